"""What a forwarding table is made of, and its form on disk.

`state` is all of it: `memory`, of arrays that grow (`growable`), and numbers for names and interfaces (`numbering`,
found by `hashes`). `matching` names the ways to match. `lock` keeps readers and a writer apart, `file` saves and loads,
`guard` refuses a bad file, `check` and `trie_check` assert the invariants.
"""
