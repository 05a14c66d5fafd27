"""What knows of the plane and nothing of filters.

Read `geometry` (shapes), `relations` (how two lie to each other), `cr_tree` (constraints on regions, indexed),
`textual` (keywords with a place, indexed), `road` (similarity along roads); `storage` is what all of them lie in,
and `allowance` how much work searches may do.
"""
