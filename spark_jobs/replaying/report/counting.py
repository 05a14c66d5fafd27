"""How many deliveries each subscription had, put together from what tasks have counted.

Eight bytes per subscription of a segment are kept, and the names are read from the index some at a time, so that
this is the driver's work whatever the number of events.
"""

from __future__ import annotations

import heapq
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.spark_jobs.common.geometries import with_geometry, write_geometries
from contrada.spark_jobs.replaying.results import SubscriptionCounts
from contrada.spark_jobs.stores.shared_files import parquet_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.spark_jobs.common.index_cache import OpenIndex, OpenSegment
    from contrada.spatial.geometry.region import Region

_SCHEMA: Final = pa.schema([("interface", pa.string()), ("filter_id", pa.string()), ("deliveries", pa.int64())])
_ROWS: Final = 1 << 16


def add_up(files: Iterable[str]) -> dict[int, Ints]:
    """The sums of what tasks have counted (replaying/storing.py): by segment, deliveries by number of subscription."""
    sums: dict[int, Ints] = {}
    for file in files:
        for segments, numbers, counts in _batches(file):
            for segment in np.unique(segments).tolist():
                mine = segments == segment
                known = sums.get(segment, np.zeros(0, np.int64))
                more = int(numbers[mine].max()) + 1 - len(known)
                known = np.concatenate((known, np.zeros(max(more, 0), np.int64)))
                known[numbers[mine]] += counts[mine]
                sums[segment] = known
    return sums


def _batches(file: str) -> Iterator[tuple[Ints, Ints, Ints]]:
    with parquet_at(file) as opened:
        for batch in opened.iter_batches():
            segments, numbers, counts = (column.to_numpy() for column in batch.columns)
            yield segments, numbers, counts


def write_counts(
    home: Path, counted: Iterable[tuple[OpenIndex, Mapping[int, Ints]]], most: int, *, geometry: bool = False
) -> SubscriptionCounts:
    """Write a row for each subscription of some indexes; how many there are, the busiest, and some that had none.

    With `geometry`, each has the first place that it asks for beside it.
    """
    home.mkdir(parents=True)
    top: list[tuple[int, str, str]] = []
    dead: list[tuple[str, str]] = []
    total = zeros = 0
    schema = with_geometry(_SCHEMA) if geometry else _SCHEMA
    with pq.ParquetWriter(home / "subscriptions.parquet", schema) as writer:
        for interfaces, ids, counts, places in _slices(counted):
            shapes = [write_geometries(places())] if geometry else []
            writer.write_table(pa.table([interfaces, ids, pa.array(counts), *shapes], schema=schema))
            total += len(counts)
            idle = np.flatnonzero(counts == 0)
            zeros += len(idle)
            dead += [(ids[n].as_py(), interfaces[n].as_py()) for n in idle[:most].tolist()]  # ids ascend in a segment
            busy = np.argsort(-counts, kind="stable")[:most]
            top += [(-int(counts[n]), ids[n].as_py(), interfaces[n].as_py()) for n in busy.tolist() if counts[n]]
            top = heapq.nsmallest(most, top)
            dead = heapq.nsmallest(most, dead)
    return SubscriptionCounts(
        total,
        zeros,
        [{"filter_id": id, "interface": interface, "deliveries": -count} for count, id, interface in top],
        [{"filter_id": id, "interface": interface} for id, interface in dead],
    )


def _slices(
    counted: Iterable[tuple[OpenIndex, Mapping[int, Ints]]],
) -> Iterator[tuple[pa.Array, pa.Array, Ints, Callable[[], list[Region | None]]]]:
    for index, sums in counted:
        for number in range(len(index.infos)):
            segment = index[number]
            counts = np.zeros(segment.size, np.int64)
            found = sums.get(number, counts[:0])
            counts[: len(found)] = found
            for start in range(0, segment.size, _ROWS):
                numbers = np.arange(start, min(start + _ROWS, segment.size))
                interfaces, ids = segment.names(numbers)
                places = partial(_places, segment, numbers)
                yield interfaces, ids.cast(pa.string()), counts[numbers], places


def _places(segment: OpenSegment, numbers: Ints) -> list[Region | None]:
    return [next(iter(segment.places(number)), None) for number in numbers.tolist()]
