"""What clients and neighbours ask of a broker's disk: durable publications and subscriptions, custody over links.

Read durable (how a subscription begins and ends), publishing (the way to the disk), delivering (the way from there to
clients), custody and carrying (over links, from here and to here), replay and past (what is older than a subscription),
upkeep (limits, checkpoints, what the journal may forget) and query. What is remembered, and how, is in
contrada.broker.stored.
"""
