"""Event logs: Parquet, JSON lines and recordings, into notifications."""
