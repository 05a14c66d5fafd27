"""The client library, async and blocking, and the command line."""
