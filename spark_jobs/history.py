"""Subscriptions as of each moment, from a broker's recording.

Every record has a sequence number, and a subscription lives from that of its beginning to that of its end: a
notification numbered s went to the subscriptions with `added` ≤ s < `removed`. So one index holds every subscription
that ever lived, and after matching what did not live then is left out.

A subscription begins with its record, or in the first file with its restatement. It ends when it is cancelled, when
the broker starts anew, and when records are missing and it is not among those restated after the gap. Its id here is
that of its interface in the recording, `life.number`; its interface is the client's name.

A broker that was started with an index has standing subscriptions besides: the whole index, from the moment it was
loaded until another one was, or the broker started anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.forwarding.codec import decode_filter
from contrada.forwarding.filter import Predicate, as_filters
from contrada.forwarding.recording import (
    Gap,
    Indexed,
    Recording,
    Standing,
    Started,
    Subscribed,
    Unsubscribed,
)
from contrada.forwarding.segments import write_index
from contrada.spark_jobs.opening import FOREVER, INTERVALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from contrada.forwarding.filter import Filter
    from contrada.forwarding.recording import Problem, Record

_LIFE: Final = 1 << 32
_LONGEST: Final = 120  # characters of a client that are kept: an interface may have four times as many bytes


@dataclass(slots=True)
class Lived:
    """A subscription, and from when to when."""

    interface: int  # its number in the recording
    client: str
    session: int
    subscription: int
    filters: tuple[bytes, ...]
    added: int
    removed: int = FOREVER

    @property
    def id(self) -> str:
        """Its id in the index: the life of the broker, and the number in it."""
        return f"{self.interface // _LIFE}.{self.interface % _LIFE}"

    @property
    def owner(self) -> str:
        """Its interface in the index: the client's name."""
        return self.client[:_LONGEST] or "?"

    def predicate(self) -> Predicate:
        """Its filters."""
        every: list[Filter] = []
        for encoded in self.filters:
            every += as_filters(decode_filter(encoded))
        return Predicate(every)


@dataclass(slots=True)
class Period:
    """An index, and from when to when its subscriptions stood."""

    path: str
    digest: str
    added: int
    removed: int = FOREVER


@dataclass(slots=True)
class History:
    """Everything that was ever subscribed in a recording."""

    lived: list[Lived] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    standing: dict[int, str] = field(default_factory=dict)  # names of standing interfaces
    problems: list[Problem] = field(default_factory=list)


def read_history(path: Path) -> History:
    """Walk a recording."""
    recording = Recording(path, strict=False)
    history = history_of(recording)
    history.problems = list(recording.problems)
    return history


def history_of(records: Iterable[Record]) -> History:
    """What the records tell."""
    history = History()
    alive: dict[int, Lived] = {}
    unsure: set[int] = set()  # alive before a gap, and not yet restated behind it
    for record in records:
        if unsure and not getattr(record, "restated", False):
            for interface in unsure:
                alive.pop(interface).removed = record.sequence
            unsure = set()
        if type(record) is Subscribed:
            unsure.discard(record.interface)
            if record.interface not in alive:
                lived = Lived(
                    record.interface,
                    record.client,
                    record.session,
                    record.subscription,
                    record.filters,
                    record.sequence,
                )
                alive[record.interface] = lived
                history.lived.append(lived)
        elif type(record) is Unsubscribed:
            if record.interface in alive:
                alive.pop(record.interface).removed = record.sequence
        elif type(record) is Started:
            for lived in alive.values():
                lived.removed = record.sequence
            alive = {}
            _end_period(history, record.sequence)
        elif type(record) is Gap:
            unsure = set(alive) if record.reset else set()
        elif type(record) is Indexed:
            if not (record.restated and history.periods and history.periods[-1].removed == FOREVER):
                _end_period(history, record.sequence)
                history.periods.append(Period(record.path, record.digest, record.sequence))
        elif type(record) is Standing:
            history.standing[record.interface] = record.name
    return history


def _end_period(history: History, sequence: int) -> None:
    if history.periods and history.periods[-1].removed == FOREVER:
        history.periods[-1].removed = sequence


def write_history(path: Path, history: History) -> None:
    """Write the index of all that ever lived, and beside it when each did."""
    write_index(path, _rows(history.lived))
    table = {
        "filter_id": pa.array([each.id for each in history.lived], pa.string()),
        "added": pa.array([each.added for each in history.lived], pa.int64()),
        "removed": pa.array([each.removed for each in history.lived], pa.int64()),
    }
    pq.write_table(pa.table(table), path / INTERVALS)


def _rows(lived: Iterable[Lived]) -> Iterator[tuple[str, str, Predicate]]:
    for each in lived:
        yield each.id, each.owner, each.predicate()
