"""Indexes of `similar` subscriptions: `eia`, which is used, and `bia` and `scan`, which it is compared with.

Read `similarity` (the definition), `base` (what an index is), `verification` (from candidates to answers), `lists`
(inverted lists, which EIA and BIA are made of), then the three.
"""
