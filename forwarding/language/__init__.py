"""What a filter is: `values`, `constraint`, `operands`, `filter`.

Filters are written in Python (`attr`) or as text (`parse`), printed by `formatting`, and `explain` says why one
matched.
"""
