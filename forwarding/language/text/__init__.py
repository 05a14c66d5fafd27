"""The language as text.

`tokens` cut it, `parse` reads it (`usual`: the commonest of it at a glance), `formatting` writes it, `html` shows it in
notebooks.
"""
