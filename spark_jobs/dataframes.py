"""The jobs as functions of DataFrames, for programs and notebooks: `from contrada import spark_jobs`.

    parse_subscriptions(table)            which rows are subscriptions, and what is wrong with the others
    build_index(table_or_path, out)       an index (build/build_index.py)
    match(events, index)                  who would be notified; events may be a stream
    compare(recorded, replayed)           deliveries that are missing, and such that are extra
    publisher(connect)                    for a stream's foreachBatch: its rows are published to a broker
    replay(events, index, out)            what `contrada replay` does, with its report

Whatever Spark reads as a table will do: Parquet, Delta, Iceberg. Rows cross into Python once, as Arrow batches.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.errors import InvalidValue
from contrada.forwarding.language.lonlat import PLANE, check_crs
from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.build.rows.parsing import parse_batch
from contrada.spark_jobs.build.rows.sources import COLUMNS, read_table
from contrada.spark_jobs.common.columns import check_table, quoted
from contrada.spark_jobs.common.index_cache import IndexFiles
from contrada.spark_jobs.publishing import publisher
from contrada.spark_jobs.replaying.comparing import COLUMNS as COMPARED
from contrada.spark_jobs.replaying.comparing import differences
from contrada.spark_jobs.replaying.logs.event_logs import Layout, dataframe_format, select_events
from contrada.spark_jobs.replaying.matching import Match, match_events, match_with_rejects
from contrada.spark_jobs.replaying.replay import Replay, plan_replay, run_replay

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from contrada.spark_jobs.replaying.results import Replayed

__all__ = ["build_index", "compare", "match", "parse_subscriptions", "publisher", "replay"]


def parse_subscriptions(subscriptions: DataFrame, *, roads: bool = False, crs: str = PLANE) -> DataFrame:
    """(id, interface, filter, reason): each row of a table, and why it is no subscription; null if it is one.

    With `roads`, filters may be `similar` to something: the index will have a road network. With `crs="lonlat"`
    coordinates are degrees.
    """
    from pyspark.sql import functions as f

    check_crs(crs)
    rows = read_table(subscriptions)
    schema = rows.select(*COLUMNS).withColumn("reason", f.lit(None).cast("string")).schema

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbered = batch.set_column(1, "row", pa.array(range(batch.num_rows), pa.int64()))
            bad = parse_batch(numbered, "columns", roads=roads, crs=crs).bad
            reasons: list[str | None] = [None] * batch.num_rows
            for row, reason in zip(bad.column("row").to_pylist(), bad.column("reason").to_pylist(), strict=True):
                reasons[row] = reason
            columns = [*(batch.column(name) for name in COLUMNS), pa.array(reasons, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, [*COLUMNS, "reason"])

    return rows.mapInArrow(run, schema)


def match(
    events: DataFrame,
    index: str | os.PathLike[str],
    *,
    id: str = "id",
    time: str = "time",
    attributes: Sequence[str] | None = None,
    timezone: str | None = None,
    rejects: bool = False,
) -> DataFrame:
    """(event_id, time, interface, filter_id) of all deliveries that events lead to; the index by path or URL.

    `attributes` are the columns that were published, all but id and time unless told; `timezone` is that of times
    without one. Events that cannot be read are left out; with `rejects` each is a row with a `reason` and no interface.

    A stream is matched as its batches come, against the index as it is then: one that is built anew is opened anew.
    """
    layout = Layout(id, time, timezone)
    if attributes is not None:
        wanted = list(dict.fromkeys((id, time, *attributes)))
        check_table(events, "the DataFrame", wanted)
        events = events.select(*map(quoted, wanted))
    format = dataframe_format(events, layout)
    files = IndexFiles.of(index)
    if events.isStreaming:
        files = replace(files, digest="")
    return (match_with_rejects if rejects else match_events)(select_events(events, format), Match(files, format))


def compare(recorded: DataFrame, replayed: DataFrame) -> DataFrame:
    """(difference, event_id, time, interface, filter_id, copies): what is missing from a replay, and what is extra."""
    for table, what in ((recorded, "recorded"), (replayed, "replayed")):
        check_table(table, what, COMPARED)
    return differences(recorded, replayed)


def replay(
    events: str | os.PathLike[str] | DataFrame,
    index: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    session: SparkSession | None = None,
    id: str = "id",
    time: str = "time",
    timezone: str | None = None,
    compare: bool = False,
    recorded: str | os.PathLike[str] | None = None,
    what_if: str | os.PathLike[str] | None = None,
    worker_memory: int | None = None,
    geoparquet: bool = False,
    tell: Callable[[str], None] = lambda step: None,
) -> Replayed:
    """Replay events into OUT: a log of files by path or URL, with the session to run in, or a DataFrame.

    `recorded` are deliveries to `compare` with, where the events are no recording; `what_if` are filters to try out, an
    index or subscriptions; `worker_memory` is how many bytes of the index a worker may hold. See docs/spark.md.
    """
    if session is None:
        if isinstance(events, str | PathLike):
            raise InvalidValue("replay of files: say in which session, with session=")
        session = events.sparkSession
    job = Replay(
        events,
        index,
        out,
        Layout(id, time, timezone),
        compare=compare or recorded is not None,
        recorded=recorded,
        what_if=what_if,
        worker_memory=worker_memory,
        geoparquet=geoparquet,
    )
    return run_replay(session, plan_replay(job), tell)
