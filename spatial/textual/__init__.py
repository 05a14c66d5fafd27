"""Spatio-textual indexes: they find the subscriptions, keywords within a box, that a message satisfies.

Values first: `geotext`. Then what every index is: `protocol`, `slot_index`, `base`; what they keep subscriptions in:
`store`, `slot_map`, `vocabulary`; what several are made of: `postings`, `tally`; `guard` refuses bad files; `registry`
has the indexes by name. The indexes: `partition_tree` (rk-tree, the default, and ap-tree), `lfilter`, `rt`,
`baselines`.
"""
