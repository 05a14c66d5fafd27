"""The client's side of the protocol without sockets, threads or clocks: both clients drive it."""
