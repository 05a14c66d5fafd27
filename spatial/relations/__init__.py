"""The eight topological relations, their algebra, and how they are decided.

`relate` is the face. Bounding rectangles first (`mbr`), then contacts of the boundaries (`red_blue`, `contacts`) decide
exactly (`exact`; `compound`, `rays`, `faces` for regions of several rings), or samples do (`uniform`). `relation` and
`rcc8` are the algebra; `deciding` says which part or hole it was.
"""
