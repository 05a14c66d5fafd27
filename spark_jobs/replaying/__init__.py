"""Replays: events of the past against an index.

`replay` is the job and `passes` one pass over a log (`logs`): `matching` finds deliveries, `storing` writes them, and
`routing` brings events to the segments of an index that is too large.
Against a recording, `history` is who subscribed when, and `comparing` what was delivered; `results` and `report` tell
it.
"""
