"""What the papers measure themselves against, and a plain scan."""
