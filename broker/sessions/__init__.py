"""Who is connected: session (one of them, and what is on its way to it), sessions (all of them), offences (bad frames).

Nothing here knows what is subscribed to, or whether a client or another broker is at the other end.
"""
