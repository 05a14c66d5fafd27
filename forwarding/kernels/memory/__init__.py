"""What the arrays of a forwarding table hold.

Read `layout` first; `bits` names what is packed into one number. `words` are pieces of variable size, `interning` keeps
each operand once, by its `keys`; `postings` lead from operands to filters, and `names` from bytes to numbers.
"""
