"""A batch of notifications against the arrays.

`reading` makes a `batch` of bytes; `matching` is the loop over it: what a value hits (`finding`, filed as `patterns`
and `thresholds` say), what is passed over unseen (`masks`), fetched ahead (`prefetching`) and decided (`verifying`).
"""
