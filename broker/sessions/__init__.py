"""Who is connected, and what is on its way to them.

session (one of them), sessions (all of them), strangers (who has none yet), batch (notifications on their way),
offences (bad frames). Nothing here knows what is subscribed to, or whether a client or another broker is at the other
end.
"""
