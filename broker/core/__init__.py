"""One broker without sockets: messages in, messages out.

Read core (the turn) and handlers (which message goes to which part), then matching, with newcomers, and delivery, with
publication and receiver (the way of a notification), subscriptions and standing_index (what is wanted). ports says what
the parts ask of the outside and of each other; recent and admin answer operators. Who is connected is in
contrada.broker.sessions.
"""
