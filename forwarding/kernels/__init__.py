"""The table's compiled code: `memory` is what its arrays hold, `match` reads them, `change` writes them.

`substrings` finds patterns in texts for both, and `guard` looks at arrays that come from a file.
"""
