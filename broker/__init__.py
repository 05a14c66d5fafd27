"""Broker nodes.

Read `protocol` (what is said), `sessions` (who is connected), `core` (the broker without sockets), `turn` (what keeps
each pass of its loop short), `overlay` (links between brokers) over `routing` (what the neighbours should know), and
`node` (ZeroMQ, files and threads around the core).
"""
