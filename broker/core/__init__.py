"""The broker without sockets, clocks or files: `core` owns the parts and drives a turn."""
