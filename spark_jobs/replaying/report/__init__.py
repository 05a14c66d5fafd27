"""What a replay tells: `tally` and `counting`, `pictures` with `outlines`, and one page (`report`)."""
