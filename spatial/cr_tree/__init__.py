"""The CR-tree: constraints on regions, indexed.

`tree` is the face and `layout` says what the arrays hold. `rows` and `lists` keep the records, `nodes` the tree of
rectangles; `change` inserts and removes, `bulk` packs many, `search` finds, with
`edges`, `sifting` tells what MBRs leave possible, `check` asserts, `guard` refuses bad files.
"""
