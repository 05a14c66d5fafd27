"""Event logs: Parquet, JSON lines, recordings and tables, into notifications.

`event_logs` finds logs and looks at them, `reading` is what tasks do, `event_stream` goes without Spark; `decoding`
checks rows, `typed` columns are matched as they are, and of them `posts` are those with geotext.
"""
