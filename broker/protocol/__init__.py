"""What clients, brokers and neighbours say to one another: all that clients import of the broker.

PROTOCOL.md tells it in prose. Read `wire` (the constants), `messages` (one type for each message) and `frames` (their
bytes; `fields` checks what is read). `peer_messages` and `peer_frames` are the same for what brokers say over a link.
`addresses`, `keys`, `keepalive` and `monitor` are what both ends need to know to connect. It imports nothing else of
the broker.
"""
