"""The forwarding table.

`contract` is what every table does and `table` the one in memory: `changer`, `matcher` and `rebuild` are what it
does, `arguments` (and `interfaces`, their type) what it is given, `answers` what it gives, `options` how it is made.
What it is made of is in forwarding/state.
"""
