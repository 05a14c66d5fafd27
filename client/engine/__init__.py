"""The client's side of the protocol without sockets, threads or clocks: both clients drive it.

Read `states` (the phases of a connection, as a table), `connection` (what belongs to each phase) and `core` (everything
that a client asks for and hears). `outbox` has what is published, `kept_requests` and `inbox` what is subscribed to,
`tickets` what can be waited for, and `actions` what the core wants done.
"""
