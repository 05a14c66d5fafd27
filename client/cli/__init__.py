"""The command line: `main` puts the commands together, `common` is what they share. `python -m contrada` runs it too.

`settings` finds what they are told by files, `json_input` reads what is published, `status_tables` draws what a broker
is doing, `event_publisher` replays a log, `local` starts a broker of one's own, and `jobs` starts Spark.
"""
