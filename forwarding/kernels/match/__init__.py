"""A batch of notifications against the arrays: `matching` is the loop, the others are what it asks."""
