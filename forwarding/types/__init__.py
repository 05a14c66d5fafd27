"""Types of values that plug into the forwarding table: `plugged` says what one must do.

`region`, `geotext` (with `similar`) have indexes, `plain` has none; `records` keep their constraints, `shares`
estimate. `trying` spares searches where a few filters or MBRs decide, `postponing` where few are left to be decided.
"""
