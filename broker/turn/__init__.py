"""What keeps every turn of a broker's loop short and safe, whatever is done in it. Nothing here knows the protocol.

clock (the time of the turn), turns (how long turns take), mishaps (what raised and should not have), leftovers (work
that nobody waits for, done a little in each turn).
"""
