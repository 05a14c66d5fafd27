"""Routing between brokers: a pure state machine over link states, a spanning tree, and covering interests."""
