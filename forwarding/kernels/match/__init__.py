"""A batch of notifications against the arrays.

`reading` makes a `batch` of bytes; `matching` is the loop over it: what a value hits (`finding`, filed as `patterns`
and `thresholds` say), walked through (`walking`), passed over unseen (`masks`), fetched ahead (`prefetching`) and
decided (`verifying`). `single` is all that for one notification; `trying` tries likely filters first, and
`postponing` tells what is left to be decided last.
"""
