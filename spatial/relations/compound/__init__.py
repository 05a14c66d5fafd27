"""Relations of regions with holes or several parts.

`relating` decides them, by contacts of the boundaries; `rays` looks at points where several rings meet, and `faces`
sweeps where there are too many. `deciding` says for people which part or hole it was.
"""
