"""What the arrays of a forwarding table hold: `layout` first."""
