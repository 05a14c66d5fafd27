"""Road networks and the indexes of subscriptions on them ([ROADS])."""
