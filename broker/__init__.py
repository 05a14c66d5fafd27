"""Broker nodes: wire protocol, session and routing state machines, and the ZeroMQ node around them."""
