"""What a task writes: deliveries by day, rejected events, and counts, as Parquet files of its own.

Python workers hold Arrow batches already; written here, a delivery costs a fraction of what it costs to hand it to the
JVM row by row. A task writes under names that no other attempt uses and, when it is done, tells the driver which files
they are. The driver takes those of the attempts that Spark counts as successful, and leaves behind what a failed,
killed or speculative attempt wrote: each event's deliveries are there exactly once.

    PLACE/deliveries/day=YYYY-MM-DD/   event_id, time, interface, filter_id, and perhaps the event's geometry; days are
                                       days in UTC
    PLACE/quarantine/                  event_id, reason, event
    PLACE/counts/                      segment, number, deliveries: of subscriptions that had any

Deliveries are kept back until there are enough of a day for a row group, so a log in order of time gives few files.
"""

from __future__ import annotations

import sys
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.forwarding.stores.addresses import join
from contrada.spark_jobs.common.geometries import with_geometry
from contrada.spark_jobs.common.instants import TIME_TYPE
from contrada.spark_jobs.stores.shared_files import writing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.spark_jobs.replaying.logs.decoding import Reject

DELIVERIES: Final = pa.schema(
    [("event_id", pa.string()), ("time", TIME_TYPE), ("interface", pa.string()), ("filter_id", pa.string())]
)
LOCATED: Final = with_geometry(DELIVERIES)
"""Deliveries with the places of their events."""
QUARANTINE: Final = pa.schema([("event_id", pa.string()), ("reason", pa.string()), ("event", pa.string())])
COUNTS: Final = pa.schema([("segment", pa.int32()), ("number", pa.int32()), ("deliveries", pa.int64())])
_DAY: Final = 86_400_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GROUP: Final = 1 << 17  # rows of a row group
_PENDING: Final = 1 << 20  # rows kept back, of all days together


class Written(NamedTuple):
    """The files of a task, by their paths under the place."""

    deliveries: tuple[str, ...] = ()
    quarantine: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()


class TaskFiles:
    """The files of one attempt at a task."""

    def __init__(self, place: str, geometry: bool = False) -> None:
        self._place = place
        self._schema = LOCATED if geometry else DELIVERIES
        self._scratch = ExitStack()  # of files that go to a store when they are whole
        self._name = f"part-{uuid.uuid4().hex}.parquet"
        self._writers: dict[str, pq.ParquetWriter] = {}  # by path
        self._pending: dict[int, list[pa.RecordBatch]] = {}  # deliveries by day
        self._sizes: dict[int, int] = {}

    def deliver(self, batch: pa.RecordBatch) -> None:
        """Keep deliveries, of any days."""
        days = batch.column("time").cast(pa.int64()).to_numpy() // _DAY
        if len(days) and days.min() != days.max():
            order = np.argsort(days, kind="stable")
            batch, days = batch.take(pa.array(order)), days[order]
        edges = np.flatnonzero(np.diff(days, prepend=days[:1] - 1))
        for start, end in zip(edges.tolist(), [*edges[1:].tolist(), len(days)], strict=True):
            day = int(days[start])
            self._pending.setdefault(day, []).append(batch.slice(start, end - start))
            self._sizes[day] = self._sizes.get(day, 0) + end - start
            if self._sizes[day] >= _GROUP:
                self._flush(day)
        while sum(self._sizes.values()) > _PENDING:
            self._flush(max(self._sizes, key=self._sizes.__getitem__))

    def reject(self, rejects: list[Reject]) -> None:
        """Keep events that cannot be matched."""
        if rejects:
            columns = [[getattr(each, name) for each in rejects] for name in ("event_id", "reason", "raw")]
            self._write("quarantine", pa.table(columns, schema=QUARANTINE))

    def count(self, counts: Mapping[int, Ints]) -> None:
        """Keep the deliveries by number of subscription, of each segment."""
        for segment, sums in counts.items():
            some = np.flatnonzero(sums)
            columns = [np.full(len(some), segment, np.int32), some.astype(np.int32), sums[some]]
            self._write("counts", pa.table([pa.array(each) for each in columns], schema=COUNTS))

    def close(self) -> Written:
        """Finish all files, and tell which they are."""
        for day in list(self._sizes):
            self._flush(day)
        for writer in self._writers.values():
            writer.close()
        self._scratch.close()
        paths, self._writers = sorted(self._writers), {}
        return Written(*(tuple(each for each in paths if each.split("/")[0] == kind) for kind in Written._fields))

    def abandon(self) -> None:
        """Close files that nobody will be told of: for whom an error has come over."""
        for writer in self._writers.values():
            writer.close()
        self._scratch.__exit__(*sys.exc_info())

    def _flush(self, day: int) -> None:
        date = (_EPOCH + timedelta(days=day)).date().isoformat()
        del self._sizes[day]
        self._write(f"deliveries/day={date}", pa.Table.from_batches(self._pending.pop(day), self._schema))

    def _write(self, directory: str, table: pa.Table) -> None:
        path = f"{directory}/{self._name}"
        if path not in self._writers:
            file = self._scratch.enter_context(writing(join(self._place, *path.split("/"))))
            self._writers[path] = pq.ParquetWriter(file, table.schema)
        self._writers[path].write_table(table, row_group_size=_GROUP)
