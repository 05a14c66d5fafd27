"""Types of values that plug into the forwarding table: `plugged` says what one must do."""
