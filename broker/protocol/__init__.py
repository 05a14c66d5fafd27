"""What clients, brokers and neighbours say to one another: all that clients import of the broker.

PROTOCOL.md tells it in prose; `wire` has the constants, `messages` the types, `frames` their bytes.
"""
