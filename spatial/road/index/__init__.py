"""Indexes of `similar` subscriptions: `base` is what EIA, BIA and the scan share."""
