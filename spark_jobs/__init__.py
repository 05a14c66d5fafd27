"""Bulk index construction and replay on PySpark."""
