"""Subscriptions that must meet: ids that come twice, and filters that cover others."""
