"""`build-index`: rows are read and parsed, brought together, counted, planned and packed into segments."""
