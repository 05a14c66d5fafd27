"""Which filters say more than others, and what that saves.

`covering` decides it for two filters, by the values that each allows: `domains` that can be listed, `ordered_domain`,
`spatial_domain`. `covering_set` keeps the filters that no other covers: an `envelope_index` and `samples`, values that
satisfy a filter, tell which need comparing. `simplify` does it for a predicate, of many filters by `crowds`. A `budget`
limits them all.
"""
