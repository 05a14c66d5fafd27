"""Filters into the arrays and out of them: `changing` is what the table calls."""
