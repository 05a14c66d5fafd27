"""One tree of keyword and spatial partitions, and the two indexes that are made of it: `ap-tree` and `rk-tree`.

Read `tree` first, the tree as a class; then `ap_tree` and `rk_tree`, the two faces. Below them: `settings`; `nodes`,
the memory; `paths`, ways through it; `partition`, how a node is divided and at what cost; `build`, `update`, `search`;
`guard`, which refuses bad files, and `check`, which asserts invariants.
"""
