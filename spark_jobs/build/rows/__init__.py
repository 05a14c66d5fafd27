"""Rows of subscriptions as they come, into checked ones."""
