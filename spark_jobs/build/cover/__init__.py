"""Subscriptions that must be compared: ids that come twice (`repeated_ids`), and filters that cover others.

`candidates` brings those together that may cover one another, `coverers` looks, `cover_groups` are placed together.
"""
