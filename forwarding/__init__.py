"""Values, constraints, filters and their language, and the counting forwarding table."""
