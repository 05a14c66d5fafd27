"""Event logs: Parquet, JSON lines and recordings, into notifications.

`event_logs` are DataFrames, `reading` is what tasks do, `event_stream` goes without Spark; `decoding` checks rows, and
`typed` columns are matched as they are.
"""
