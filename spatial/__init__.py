"""2D regions, their relations, and the indexes over places. Knows nothing of filters."""
