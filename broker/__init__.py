"""Broker nodes.

Read `protocol` (what is said), `core` (the broker without sockets), `overlay` (links between brokers), `node` (ZeroMQ,
files and threads around the core).
"""
