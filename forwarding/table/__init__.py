"""The forwarding table.

`table` is the face, `changer` and `matcher` are what it does, `state` and `memory` what it is made of, `file` how it is
saved, `check` its invariants, `guard` what refuses a bad file.
"""
