"""The client library, async and blocking; the command line and the demo, which use it.

Read `engine` (the protocol without I/O), `base` (what both clients do with it), `async_client` and `blocking` (how each
waits), `subscriptions` (what they hand out), `notification` (what arrives). `arguments` and `options` check what the
application gives; `transport` is the socket. Of the broker they know `contrada.broker.protocol` alone.
"""
