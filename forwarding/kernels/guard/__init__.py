"""Whether the arrays of a loaded table are those of a table."""
