"""A road network in kernels.

In order: `checking` refuses bad edges, `roads` joins them into roads between junctions, `edge_tree` and `places` put
points on them, `expansion` finds distances, `cells` (over `kd_order`) bounds them, `weights` are those of words.
"""
