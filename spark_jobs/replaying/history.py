"""Subscriptions as of each moment, from a broker's recording.

Every record has a sequence number, and a subscription lives from that of its beginning to that of its end: a
notification numbered s went to the subscriptions with `added` ≤ s < `removed`. So one index holds every subscription
that ever lived, and after matching what did not live then is left out.

A subscription begins with its record, or in the first file with its restatement. It ends when it is cancelled, when
the broker starts anew, and when records are missing and it is not among those restated after the gap. Its id here is
that of its interface in the recording, `life.number`; its interface is the client's name.

A broker that was started with an index has standing subscriptions besides: the whole index, from the moment it was
loaded until another one was, or the broker started anew. What was added to it while it ran lives in the same index as
the clients' subscriptions, under `+sequence:id`; what was taken out of it is `gone` from then on.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import InvalidValue
from contrada.forwarding.codec.in_degrees import decode_filter_in_degrees
from contrada.forwarding.codec.msgpack import decode_filter
from contrada.forwarding.language.filter import Predicate, as_filters
from contrada.forwarding.language.lonlat import PLANE
from contrada.forwarding.recording.reader import (
    Accepted,
    Added,
    Gap,
    Indexed,
    Recording,
    Removed,
    Standing,
    Started,
    Subscribed,
    Unsubscribed,
)
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import is_url
from contrada.forwarding.table.options import TableOptions
from contrada.spark_jobs.common.index_cache import FOREVER, INTERVALS
from contrada.spark_jobs.stores.shared_files import fetched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from contrada.forwarding.language.filter import Filter
    from contrada.forwarding.recording.reader import Problem, Record

_LIFE: Final = 1 << 32
_LONGEST: Final = 120  # characters of a client that are kept: an interface may have four times as many bytes


@dataclass(slots=True)
class Lived:
    """A subscription, and from when to when."""

    id: str
    owner: str  # its interface in the index: the client's name, or that of a standing interface
    filters: tuple[bytes, ...]
    added: int
    removed: int = FOREVER
    interface: int | None = None  # its number in the recording; standing ones are recorded under their interface

    def predicate(self, crs: str) -> Predicate:
        """Its filters, of a broker with this crs."""
        decode = decode_filter if crs == PLANE else decode_filter_in_degrees
        every: list[Filter] = []
        for encoded in self.filters:
            every += as_filters(decode(encoded))
        return Predicate(every)


@dataclass(slots=True)
class Period:
    """An index, and from when to when its subscriptions stood; those in `gone` only until then."""

    path: str
    shard: str
    digest: str
    added: int
    removed: int = FOREVER
    gone: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class History:
    """Everything that was ever subscribed in a recording."""

    lived: list[Lived] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    standing: dict[int, str] = field(default_factory=dict)  # names of standing interfaces
    problems: list[Problem] = field(default_factory=list)
    crs: str = PLANE


def read_history(address: str | os.PathLike[str]) -> History:
    """Walk a recording, by path or URL."""
    with ExitStack() as scratch:
        path: str | os.PathLike[str] = address
        if is_url(address):
            listed = [each.address for each in object_store.entries(os.fspath(address))]
            path = scratch.enter_context(fetched([each for each in listed if each.split("?")[0].endswith(".rec")]))
        recording = Recording(path, strict=False)
        history = history_of(recording)
        history.problems = list(recording.problems)
    return history


def history_of(records: Iterable[Record]) -> History:
    """What the records tell."""
    reader = _Reader()
    for record in records:
        reader.read(record)
    return reader.history


class _Reader:
    """Who is subscribed, record by record."""

    def __init__(self) -> None:
        self.history = History()
        self._clients: dict[int, Lived] = {}  # alive, by interface
        self._standing: dict[str, Lived] = {}  # added to the index and alive, by their id there
        self._unsure: set[int] = set()  # alive before a gap, and not yet restated behind it

    def read(self, record: Record) -> None:
        """Take in the next record."""
        if self._unsure and not getattr(record, "restated", False):
            for interface in self._unsure:
                self._clients.pop(interface).removed = record.sequence
            self._unsure = set()
        if type(record) is Accepted:
            return
        if type(record) is Subscribed:
            self._unsure.discard(record.interface)
            if record.interface not in self._clients:
                id = f"{record.interface // _LIFE}.{record.interface % _LIFE}"
                owner = record.client[:_LONGEST] or "?"
                lived = Lived(id, owner, record.filters, record.sequence, interface=record.interface)
                self._clients[record.interface] = lived
                self.history.lived.append(lived)
        elif type(record) is Unsubscribed:
            if record.interface in self._clients:  # else it is an attachment, which is nothing to match
                self._clients.pop(record.interface).removed = record.sequence
        elif type(record) is Started:
            if self.history.lived and record.crs != self.history.crs:
                raise InvalidValue(f"the broker's crs became {record.crs}: replay the recording of each crs by itself")
            self.history.crs = record.crs
            self._end(self._clients, record.sequence)
            self._end_index(record.sequence)
        elif type(record) is Gap:
            if record.reset:
                self._unsure = set(self._clients)
                self._end_index(record.sequence)
        elif type(record) is Indexed:
            self._end_index(record.sequence)
            self.history.periods.append(Period(record.path, record.shard, record.digest, record.sequence))
        elif type(record) is Standing:
            self.history.standing[record.interface] = record.name
        elif type(record) is Added:
            self._take_out(record.id, record.sequence)
            lived = Lived(f"+{record.sequence}:{record.id}", record.name, (record.filter,), record.sequence)
            self._standing[record.id] = lived
            self.history.lived.append(lived)
        elif type(record) is Removed:
            self._take_out(record.id, record.sequence)

    def _take_out(self, id: str, sequence: int) -> None:
        """Something of the index ends, whether it was built into it or added."""
        if id in self._standing:
            self._standing.pop(id).removed = sequence
        elif self.history.periods:
            self.history.periods[-1].gone.setdefault(id, sequence)

    def _end_index(self, sequence: int) -> None:
        self._end(self._standing, sequence)
        if self.history.periods:
            last = self.history.periods[-1]
            last.removed = min(last.removed, sequence)

    def _end(self, alive: dict[Any, Lived], sequence: int) -> None:
        for lived in alive.values():
            lived.removed = sequence
        alive.clear()


def write_history(path: Path, history: History) -> None:
    """Write the index of all that ever lived, and beside it when each did."""
    write_index(path, _rows(history.lived, history.crs), TableOptions(crs=history.crs))
    table = {
        "filter_id": pa.array([each.id for each in history.lived], pa.string()),
        "added": pa.array([each.added for each in history.lived], pa.int64()),
        "removed": pa.array([each.removed for each in history.lived], pa.int64()),
    }
    pq.write_table(pa.table(table), path / INTERVALS)


def _rows(lived: Iterable[Lived], crs: str) -> Iterator[tuple[str, str, Predicate]]:
    for each in lived:
        yield each.id, each.owner, each.predicate(crs)
