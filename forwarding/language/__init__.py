"""What a filter is: `values` (with `set_value`), `operators`, `operands`, `constraint`, `filter`.

`distance`, `like` and `lonlat` are operands that need more said; `negation` is what `not` makes of a
constraint. Filters are written in Python (`attr`) or as text (`text/`), and `explain` says why one matched.
"""
