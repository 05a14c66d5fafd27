"""Notifications and filters as `msgpack` and `json`: `limits` says how much is taken, `building` what parts make."""
