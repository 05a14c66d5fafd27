"""Filters into the arrays and out of them: `changing` is what the table calls.

`adding` makes a filter's row, `filing` its constraints, posted where `choosing` says; `simplifying` finds what is
covered, by `weighing` two filters.
"""
