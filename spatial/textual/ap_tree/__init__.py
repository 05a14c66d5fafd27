"""The AP-tree and the ranked-key tree over it, which is the default.

`tree` and `rk_tree` are the faces; `nodes` is the memory, `partition` how a node is divided, `build`, `update` and
`search` what is done with it, `guard` refuses bad files.
"""
