"""The eight topological relations, their algebra, and how they are decided.

`relate` is the face. Bounding rectangles first (`mbr`), then contacts of the boundaries (`red_blue`, `contacts`) decide
exactly (`exact`; of regions of several rings, `compound`), or samples do (`uniform`). `relation` and `rcc8` are the
algebra.
"""
