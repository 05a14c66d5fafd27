"""Recorded deliveries beside replayed ones: which are missing, and which are extra.

A delivery is an event, an interface and a subscription; a standing subscription of a broker that was started with an
index is recorded by its interface alone, and then has no subscription here either. Both sides are added up in one
shuffle, recorded ones as +1 and replayed ones as -1: what is left over is a difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.spark_jobs.event_logs import recorded_deliveries

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from contrada.spark_jobs.history import History

MISSING: Final = "missing"
EXTRA: Final = "extra"
DELIVERED: Final = "event_id string, time timestamp, interface string, filter_id string"
DIFFERENCES: Final = f"difference string, {DELIVERED}, copies long"
COLUMNS: Final = ("event_id", "time", "interface", "filter_id")


def differences(recorded: DataFrame, replayed: DataFrame) -> DataFrame:
    """Rows (difference, event_id, time, interface, filter_id, copies), none when both sides are the same."""
    from pyspark.sql import functions as f

    sides = recorded.select(*COLUMNS, f.lit(1).alias("n")).unionByName(replayed.select(*COLUMNS, f.lit(-1).alias("n")))
    left = sides.groupBy("event_id", "interface", "filter_id").agg(f.sum("n").alias("n"), f.min("time").alias("time"))
    kind = f.when(f.col("n") > 0, MISSING).otherwise(EXTRA)
    return left.where("n != 0").select(kind.alias("difference"), *COLUMNS, f.abs("n").cast("long").alias("copies"))


def by_interface(deliveries: DataFrame) -> DataFrame:
    """Each event once for every interface it goes to, as standing subscriptions are recorded."""
    from pyspark.sql import functions as f

    distinct = deliveries.select("event_id", "time", "interface").distinct()
    return distinct.withColumn("filter_id", f.lit(None).cast("string"))


def recorded_by_broker(
    spark: SparkSession, files: Sequence[Path], history: History, *, standing_only: bool = False
) -> DataFrame:
    """The deliveries of a recording, with the names of its interfaces."""
    from pyspark.sql import functions as f

    names: list[tuple[int, str, str | None]] = [(number, name, None) for number, name in history.standing.items()]
    if not standing_only:
        names += [(each.interface, each.owner, each.id) for each in history.lived if each.interface is not None]
    known = spark.createDataFrame(names, "interface long, name string, filter_id string")
    how = "inner" if standing_only else "left"
    joined = recorded_deliveries(spark, files).join(f.broadcast(known), "interface", how)
    if not standing_only:  # what nobody subscribed to must not go unnoticed
        unknown = f.col("name").isNull()
        joined = joined.withColumn(
            "filter_id", f.when(unknown, f.col("interface").cast("string")).otherwise(f.col("filter_id"))
        )
    return joined.select("event_id", "time", f.coalesce("name", f.lit("?")).alias("interface"), "filter_id")
