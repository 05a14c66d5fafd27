"""Bulk work on PySpark: indexes built of millions of subscriptions, and events of the past replayed.

The functions of `dataframes.py` are found here: `spark_jobs.match(events, index)`. They are loaded when they are asked
for, since the broker and the clients run without Spark. `publishing` brings streams to a broker.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contrada.spark_jobs.dataframes import build_index, compare, match, parse_subscriptions, publisher, replay

__all__ = ["build_index", "compare", "match", "parse_subscriptions", "publisher", "replay"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from contrada.spark_jobs import dataframes

        return getattr(dataframes, name)
