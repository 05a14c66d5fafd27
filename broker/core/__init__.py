"""One broker without sockets: messages in, messages out.

Read core (the turn, and which message goes to which part), then delivery with publication, receiver and batch (the way
of a notification), sessions with session and offences (who is connected), subscriptions and standing_index (what is
wanted). ports says what the parts ask of the outside and of each other; recent and admin answer operators.
"""
