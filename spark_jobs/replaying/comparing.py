"""Recorded deliveries beside replayed ones: which are missing, and which are extra.

A delivery is an event, an interface and a subscription; a standing subscription of a broker that was started with an
index is recorded by its interface alone, and then has no subscription here either. Both sides are added up in one
shuffle, recorded ones as +1 and replayed ones as -1: what is left over is a difference.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.forwarding.recording.reader import Accepted
from contrada.forwarding.stores.addresses import join
from contrada.spark_jobs.common.engine import MESSAGES, message_rows, messages_in
from contrada.spark_jobs.common.errors import naming_this_machine, told_in_one_line
from contrada.spark_jobs.common.instants import TIME_TYPE
from contrada.spark_jobs.replaying.logs.reading import recorded
from contrada.spark_jobs.replaying.results import Differences
from contrada.spark_jobs.replaying.storing import DELIVERIES
from contrada.spark_jobs.stores.shared_files import parquet_at, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from contrada.spark_jobs.replaying.history import History

MISSING: Final = "missing"
EXTRA: Final = "extra"
DELIVERED: Final = "event_id string, time timestamp, interface string, filter_id string"
_BATCH: Final = 8192
DIFFERENCES: Final = pa.schema([pa.field("difference", pa.string()), *DELIVERIES, pa.field("copies", pa.int64())])
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
    spark: SparkSession, paths: Sequence[str], history: History, *, standing_only: bool = False
) -> DataFrame:
    """The deliveries of a recording, with the names of its interfaces. Drops on the way do not matter."""
    names: dict[int, tuple[str, str | None]] = {number: (name, None) for number, name in history.standing.items()}
    if not standing_only:
        names |= {each.interface: (each.owner, each.id) for each in history.lived if each.interface is not None}

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _recorded(paths[number], names, standing_only)

    return spark.range(0, len(paths), 1, max(1, len(paths))).mapInArrow(read, DELIVERED)


def _recorded(path: str, names: Mapping[int, tuple[str, str | None]], standing_only: bool) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[str, int, str, str | None]] = []
    with recorded(path) as recording:
        for record in recording:
            if type(record) is not Accepted:
                continue
            for to in record.interfaces:
                # What nobody subscribed to, as far as the recording tells, must not go unnoticed.
                known = names.get(to, None if standing_only else ("?", str(to)))
                if known is not None:
                    rows.append((record.id, record.time, *known))
            if len(rows) >= _BATCH:
                yield _batch(rows)
                rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[str, int, str, str | None]]) -> pa.RecordBatch:
    ids, times, interfaces, filters = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(ids, pa.string()),
            pa.array(times, pa.int64()).cast(TIME_TYPE),
            pa.array(interfaces, pa.string()),
            pa.array(filters, pa.string()),
        ],
        schema=DELIVERIES,
    )


def read_deliveries(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Deliveries of files, by address."""
    if not paths:
        return spark.createDataFrame([], DELIVERED)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with naming_this_machine():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    with parquet_at(paths[number]) as file:
                        for rows in file.iter_batches(_BATCH, columns=list(COLUMNS)):
                            yield rows.select(COLUMNS).cast(DELIVERIES)

    return spark.range(0, len(paths), 1, len(paths)).mapInArrow(read, DELIVERED)


def write_differences(found: DataFrame, home: str) -> list[str]:
    """Have tasks write differences under an address that all see; the files of those that count."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with naming_this_machine():
            some = [batch.cast(DIFFERENCES) for batch in batches if batch.num_rows]
            if some:
                path = join(home, f"part-{uuid.uuid4().hex}.parquet")
                with writing(path) as file:
                    pq.write_table(pa.Table.from_batches(some), file)
                yield from message_rows([(0, path)])

    with told_in_one_line():
        return sorted(messages_in(found.mapInArrow(write, MESSAGES).toArrow().to_batches()))


def summary_of(files: Sequence[str], most: int) -> Differences:
    """How many differences were written, and the first of them."""
    counts = {MISSING: 0, EXTRA: 0}
    first: list[dict[str, Any]] = []
    for path in files:
        with parquet_at(path) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    counts[row["difference"]] += row["copies"]
                    first.append(row | {"time": None if row["time"] is None else row["time"].isoformat()})
                first = sorted(first, key=_order)[:most]
    return Differences(counts[MISSING], counts[EXTRA], first)


def _order(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] or "" for name in ("time", "event_id", "interface", "filter_id"))
