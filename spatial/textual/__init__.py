"""Spatio-textual indexes: which keyword-and-place subscriptions does a message satisfy? One protocol, many answers."""
