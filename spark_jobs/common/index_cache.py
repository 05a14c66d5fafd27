"""Indexes as workers see them: files, opened once per process and memory-mapped; of a URL, from the machine's cache.

A worker process runs many tasks of a job, one after another; what it has opened stays open between them, in a cache
by path and by a digest of the manifest, so that an index built anew under the same path is opened anew. Segments are
opened when the first event reaches them. When a job gives a worker less memory than the index has bytes, the segments
used longest ago are let go.

    OpenIndex      segments by number
    OpenSegment    a table; which subscription each of its filters is of; ids and interfaces as Arrow arrays
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.errors import CorruptFile
from contrada.forwarding.batches.columns import Columns
from contrada.forwarding.language.lonlat import LONLAT
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.language.values import Kind
from contrada.forwarding.segments.gate import place_of
from contrada.forwarding.segments.manifest import (
    digest_of_manifest,
    manifest_bytes,
    manifest_digest,
    manifest_of,
    read_manifest,
)
from contrada.forwarding.segments.segment import Segment
from contrada.forwarding.segments.stored_index import holding, roads_of
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import address_of, is_url, join, shown
from contrada.spark_jobs.common.errors import OutOfReach
from contrada.spark_jobs.stores.shared_files import parquet_at
from contrada.spatial.geometry.region import Region
from contrada.spatial.storage.garbage import freeze
from contrada.spatial.storage.regular_file import check_regular

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.forwarding.segments.gate import Gate
    from contrada.forwarding.segments.manifest import Manifest

    Notifications = Columns | Sequence[Mapping[str, Any]]

INTERVALS: Final = "intervals.parquet"
FOREVER: Final = np.iinfo(np.int64).max
_PLACES: Final = (Kind.POINT, Kind.REGION, Kind.LINE, Kind.GEOTEXT)
_KEPT: Final = 2  # indexes open in a process


@dataclass(frozen=True, slots=True)
class IndexFiles:
    """An index to be opened by workers: where it is, and that it is the one meant."""

    path: str  # or URL
    digest: str  # of its manifest; empty: the one that is there when a task begins
    budget: int | None = None  # bytes of segments that a worker keeps open; None: all
    shard: str = ""  # "k/n", or empty for all of it

    @classmethod
    def of(cls, path: str | os.PathLike[str], budget: int | None = None, shard: str = "") -> IndexFiles:
        """The index in a directory, or at a URL, as it is now; `CorruptFile` if there is none."""
        read_manifest(path)
        address = address_of(path, "INDEX")
        return cls(address if is_url(address) else str(Path(address).resolve()), manifest_digest(path), budget, shard)

    def manifest(self) -> Manifest:
        """The manifest of the index that is meant; `OutOfReach` or `CorruptFile` if this machine does not see it.

        It is read once: an index that is committed a moment later is not taken for this one.
        """
        try:
            content = manifest_bytes(self.path)
        except OSError as error:
            raise OutOfReach(self.path, error) from error
        if digest_of_manifest(content) != self.digest:
            raise CorruptFile(f"{shown(self.path)}: the index was built anew meanwhile; run the job again")
        return manifest_of(content, shown(self.path))


_OPEN: OrderedDict[IndexFiles, OpenIndex] = OrderedDict()


def opened(files: IndexFiles) -> OpenIndex:
    """The open index of this process."""
    if not files.digest:
        files = IndexFiles.of(files.path, files.budget, files.shard)
    index = _OPEN.get(files)
    if index is None:
        index = _OPEN[files] = OpenIndex(files)
        freeze()
        while len(_OPEN) > _KEPT:
            _OPEN.popitem(last=False)
    _OPEN.move_to_end(files)
    return index


class OpenIndex:
    """The segments of an index, opened when they are asked for."""

    def __init__(self, files: IndexFiles) -> None:
        self._path = files.path
        self._budget = files.budget
        manifest = files.manifest()
        number, _, of = files.shard.partition("/")
        self._roads = roads_of(files.path, manifest)
        self.degrees = manifest.options.crs == LONLAT
        self.infos = manifest.shard(int(number), int(of)) if files.shard else manifest.segments
        self._segments: OrderedDict[int, OpenSegment] = OrderedDict()
        self._intervals = _intervals_of(files.path)

    def __getitem__(self, number: int) -> OpenSegment:
        found = self._segments.get(number)
        if found is None:
            with holding(self._path, self.infos[number]) as directory:
                found = OpenSegment(
                    Segment.open(directory, self.infos[number], road_network=self._roads), self._intervals
                )
            self._segments[number] = found
            while self._budget is not None and len(self._segments) > 1 and self._bytes() > self._budget:
                self._segments.popitem(last=False)
        self._segments.move_to_end(number)
        return found

    def _bytes(self) -> int:
        return sum(self.infos[number].bytes for number in self._segments)


def _intervals_of(path: str) -> pa.Table | None:
    """When the subscriptions of an index lived, if it is one of a recording."""
    file = join(path, INTERVALS)
    if is_url(path):
        if object_store.size_of(file) is None:
            return None
    elif not Path(file).exists():
        return None
    else:
        check_regular(Path(file))
    with parquet_at(file) as opened:
        return opened.read()


class OpenSegment:
    """A segment whose answers are arrays."""

    def __init__(self, segment: Segment, intervals: pa.Table | None) -> None:
        self.size = len(segment.ids)
        offsets, text = segment.ids.text
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        self.ids = pa.Array.from_buffers(pa.large_string(), self.size, buffers)
        self._table = segment.table
        self._owners = segment.ids
        self._several = segment.info.filters != segment.info.subscriptions
        self._interfaces, names = self._table.interface_numbers(segment.ids.first_rows)  # by subscription
        self._names = pa.array([name if isinstance(name, str) else None for name in names], pa.string())
        self._lives: tuple[Ints, Ints] | None = None
        if intervals is not None:
            rows = pc.index_in(self.ids.cast(pa.string()), intervals.column("filter_id"))
            self._lives = tuple(intervals.column(name).take(rows).to_numpy() for name in ("added", "removed"))

    def match(self, notifications: Notifications, sequences: Ints | None = None) -> tuple[Ints, Ints]:
        """The (notification, subscription) pairs that match, each once, by place and number.

        With `sequences`, only subscriptions that lived when the notification came.
        """
        places, filters = self._table.match_pairs(notifications)
        numbers = self._owners.numbers_of(filters).astype(np.int64)
        if self._lives is not None and sequences is not None:
            added, removed = self._lives
            then = sequences[places]
            alive = (added[numbers] <= then) & (then < removed[numbers])
            places, numbers = places[alive], numbers[alive]
        if self._several:
            pairs = np.unique(places * self.size + numbers)
            return pairs // self.size, pairs % self.size
        return places, numbers

    def numbers_of(self, id: str) -> Ints:
        """The number of the subscription of that id, or none."""
        rows = self._owners.rows_of(id)
        return self._owners.numbers_of(np.array(rows[:1], np.int64)).astype(np.int64)

    def rings(self, number: int) -> list[Floats]:
        """The outlines of the places that a subscription asks for, closed."""
        return [ring for place in self.places(number) for part in place.rings for ring in part]

    def places(self, number: int) -> list[Region]:
        """The regions that a value must meet for a subscription; a point, or what is near a shape, is none."""
        found: list[Region] = []
        for row in self._owners.rows_of(self._owners.id(number)):
            for constraint in self._table.filter(row).constraints:
                if place_of(constraint) is not None:
                    value = constraint.value
                    region = value.within if isinstance(value, TextMatch) else value
                    if isinstance(region, Region):
                        found.append(region)
        return found

    def names(self, numbers: Ints) -> tuple[pa.Array, pa.Array]:
        """Interfaces and ids of subscriptions."""
        return self._names.take(pa.array(self._interfaces[numbers])), self.ids.take(pa.array(numbers))


def admitted(gate: Gate, notifications: Notifications) -> Ints:
    """The places of the notifications that may match something behind a gate."""
    attributes = gate.attributes
    if not isinstance(notifications, Columns):
        return np.array(gate.which(notifications), np.int64)
    if attributes is None:
        return np.arange(notifications.size)
    mask = np.zeros(notifications.size, np.bool_)
    for column in notifications.columns:
        if column.name not in attributes:
            continue
        box = attributes[column.name]
        if box is None:
            fits = np.ones(notifications.size, np.bool_)
        elif column.kind in _PLACES:
            x1, y1, x2, y2 = column.bounds().T
            fits = (x1 <= box[2]) & (box[0] <= x2) & (y1 <= box[3]) & (box[1] <= y2)
        else:
            continue
        mask |= fits if column.present is None else fits & column.present
    return np.flatnonzero(mask)


def some_of(notifications: Notifications, places: Ints) -> Notifications:
    """The notifications at these places."""
    if isinstance(notifications, Columns):
        return notifications if len(places) == notifications.size else notifications.take(places)
    return notifications if len(places) == len(notifications) else [notifications[place] for place in places.tolist()]
