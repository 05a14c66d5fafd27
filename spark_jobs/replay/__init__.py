"""`replay`: events of the past against an index, what it counts, compares and reports."""
