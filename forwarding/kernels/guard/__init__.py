"""Whether the arrays of a loaded table are those of one: `operands`, `tries`, `filters` with `relatives`, `lists`."""
