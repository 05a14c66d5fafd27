"""Events against an index: every event is given to every segment whose gate admits it, Arrow all the way.

There are two forms: deliveries as a DataFrame, for whoever wants to go on with them; and `replay_tasks`, where tasks
write deliveries, rejected events and counts to files (storing.py) and tell which these are, with a tally
(report/tally.py), so that a single pass over the events gives everything a replay tells.

The index is open in each worker. For one that is larger than a worker's memory, routing.py brings events to segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from contrada.spark_jobs.common.engine import MESSAGES, message_rows, messages_in
from contrada.spark_jobs.common.errors import naming_this_machine, told_in_one_line
from contrada.spark_jobs.common.geometries import write_geometries
from contrada.spark_jobs.common.index_cache import IndexFiles, OpenIndex, admitted, opened, some_of
from contrada.spark_jobs.common.instants import TIME_TYPE
from contrada.spark_jobs.replaying.logs.decoding import Events, Format, Reject, decode
from contrada.spark_jobs.replaying.logs.degrees import events_in_degrees
from contrada.spark_jobs.replaying.logs.reading import read_task
from contrada.spark_jobs.replaying.report.tally import Tally, places_of, shapes_of
from contrada.spark_jobs.replaying.storing import DELIVERIES, LOCATED, TaskFiles, Written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.spark_jobs.common.splits import Task

DELIVERED: Final = "event_id string, time timestamp, interface string, filter_id string"
_TOLD: Final = DELIVERIES.append(pa.field("reason", pa.string()))
_ROWS: Final = 1 << 16  # of a batch of deliveries
_EVENTS: Final = 1 << 14  # matched at once
_PAIRS: Final = 1 << 19  # deliveries hoped for at once: a hot subscription must not fill the memory


@dataclass(frozen=True, slots=True)
class Match:
    """What a task needs to know."""

    index: IndexFiles
    format: Format
    as_of: bool = False  # whether subscriptions live from one sequence number to another
    periods: tuple[tuple[int, int], ...] | None = None  # of sequence numbers in which the whole index was in force
    gone: tuple[tuple[str, int, int], ...] = ()  # subscriptions that were not, from one to another sequence number
    first: bool = True  # whether this is the pass that counts and rejects events
    geometry: bool = False  # whether deliveries have the place of their event beside them


@dataclass(frozen=True, slots=True)
class TaskDone:
    """What a task has written and counted."""

    written: Written
    tally: Tally


def match_events(events: DataFrame, match: Match) -> DataFrame:
    """The deliveries that `events`, laid out as `match.format` says, lead to."""
    return match_with_rejects(events, match).where("reason is null").drop("reason")


def match_with_rejects(events: DataFrame, match: Match) -> DataFrame:
    """The deliveries, and a row with a `reason` and no interface for each event that cannot be read."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with naming_this_machine():
            task = MatchTask(match)
            for batch in batches:
                for found in task.deliveries([batch]):
                    yield pa.RecordBatch.from_arrays([*found.columns, pa.nulls(len(found), pa.string())], schema=_TOLD)
                if task.rejects:
                    yield _rejected(task.rejects)
                    task.rejects = []

    return events.mapInArrow(run, f"{DELIVERED}, reason string")


def replay_rows(events: DataFrame, match: Match, place: str) -> list[TaskDone]:
    """Match the rows of a DataFrame, and write under `place`: what each task has done."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = MatchTask(match, TaskFiles(place, match.geometry))
        return message_rows([(0, task.done(task.deliveries(batches)))])

    with told_in_one_line():
        return list(messages_in(events.mapInArrow(run, MESSAGES).toArrow().to_batches()))


def replay_tasks(context: SparkContext, tasks: Sequence[Task], match: Match, place: str) -> RDD[TaskDone]:
    """Match the events that tasks read by themselves, and write under `place`; what each has done.

    Only numbers go in, and names of files come out. So these are tasks of the plainest kind, of which Spark's own part
    is half that of tasks with Arrow between them.
    """

    def run(numbers: Iterable[int]) -> Iterator[TaskDone]:
        task = MatchTask(match, TaskFiles(place, match.geometry))
        rows = (batch for number in numbers for batch in read_task(tasks[number], match.format))
        yield task.done(task.deliveries(rows))

    return context.parallelize(range(len(tasks)), len(tasks)).mapPartitions(run)


class MatchTask:
    """One task's work: rows of a log in, deliveries out."""

    def __init__(self, match: Match, files: TaskFiles | None = None) -> None:
        self._match = match
        self._files = files
        self._index: OpenIndex = opened(match.index)
        self.rejects: list[Reject] = []  # of a task that writes no files
        self._tally = Tally()
        self._counts: dict[int, Ints] = {}  # by segment
        self._absent: dict[int, list[tuple[int, int, int]]] = {}  # by segment
        self._at_once = _EVENTS

    def deliveries(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The deliveries of events, rows of a log."""
        for batch in batches:
            yield from self._direct(batch)

    def done(self, deliveries: Iterable[pa.RecordBatch]) -> TaskDone:
        """Write the deliveries and all else."""
        assert self._files is not None
        try:
            with naming_this_machine():
                for batch in deliveries:
                    self._files.deliver(batch)
                self._files.count(self._counts)
                return TaskDone(self._files.close(), self._tally)
        except BaseException:
            self._files.abandon()
            raise

    def _events(self, batch: pa.RecordBatch) -> Events:
        """The events of a batch, as the index takes them."""
        events = decode(batch, self._match.format)
        return events_in_degrees(events) if self._index.degrees else events

    def _direct(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Match every event against every segment that may match it."""
        events = self._events(batch)
        self._reject(events.rejects)
        delivered = np.zeros(len(events), np.int64)
        for number, info in enumerate(self._index.infos):
            which = admitted(info.gate, events.notifications)
            yield from self._deliver(events, which, number, _sequences(batch, events), delivered)
        self._count(events, delivered)

    def routed(self, batch: pa.RecordBatch, number: int, home: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        """The deliveries of events that were sent to a segment, if its number is one; some are at home there."""
        events = self._events(batch)
        self._reject([each for each in events.rejects if home[each.row]])
        delivered = np.zeros(len(events), np.int64)
        if number >= 0:
            everyone = np.arange(len(events))
            yield from self._deliver(events, everyone, number, _sequences(batch, events), delivered)
        self._count(events, delivered, home[events.rows])

    def _deliver(
        self, events: Events, which: Ints, number: int, sequences: Ints | None, delivered: Ints
    ) -> Iterator[pa.RecordBatch]:
        """The deliveries of some events by one segment, some at a time."""
        start = 0
        while start < len(which):
            segment = self._index[number]
            some = which[start : start + self._at_once]
            start += len(some)
            then = sequences[some] if self._match.as_of and sequences is not None else None
            places, subscriptions = segment.match(some_of(events.notifications, some), then)
            rows = some[places]
            if self._match.periods is not None and sequences is not None:
                alive = _within(sequences[rows], self._match.periods)
                for gone, since, until in self._gone(number):
                    alive &= ~((subscriptions == gone) & (since <= sequences[rows]) & (sequences[rows] < until))
                rows, subscriptions = rows[alive], subscriptions[alive]
            self._at_once = min(_EVENTS, max(1, _PAIRS * len(some) // max(len(rows), 1)))
            if not len(rows):
                continue
            delivered += np.bincount(rows, minlength=len(delivered))
            counts = self._counts.setdefault(number, np.zeros(segment.size, np.int64))
            counts += np.bincount(subscriptions, minlength=len(counts))
            for at in range(0, len(rows), _ROWS):
                interfaces, ids = segment.names(subscriptions[at : at + _ROWS])
                yield _deliveries(events, rows[at : at + _ROWS], interfaces, ids, geometry=self._match.geometry)

    def _gone(self, number: int) -> list[tuple[int, int, int]]:
        """Those subscriptions of a segment that did not always stand, by number."""
        if number not in self._absent:
            segment = self._index[number]
            self._absent[number] = [
                (each, since, until)
                for id, since, until in self._match.gone
                for each in segment.numbers_of(id).tolist()
            ]
        return self._absent[number]

    def _reject(self, rejects: list[Reject]) -> None:
        if self._files is None:
            self.rejects += rejects
        elif rejects and self._match.first:
            self._tally.rejected += len(rejects)
            self._files.reject(rejects)

    def _count(self, events: Events, delivered: Ints, home: np.ndarray | None = None) -> None:
        """Count events where they are at home, and deliveries wherever they happen."""
        if not len(events):
            return
        places = places_of(events.notifications)
        if not self._match.first:
            self._tally.add(events.times, places, delivered, count_events=False)
        elif home is None or home.all():
            self._tally.add(events.times, places, delivered)
        else:
            self._tally.add(events.times[home], places[home], delivered[home])
            away = ~home
            self._tally.add(events.times[away], places[away], delivered[away], count_events=False)


def _sequences(batch: pa.RecordBatch, events: Events) -> Ints | None:
    if "sequence" not in batch.schema.names:
        return None
    sequences: Ints = batch.column("sequence").to_numpy()[events.rows]
    return sequences


def _within(sequences: Ints, periods: tuple[tuple[int, int], ...]) -> np.ndarray:
    alive = np.zeros(len(sequences), np.bool_)
    for start, end in periods:
        alive |= (start <= sequences) & (sequences < end)
    return alive


def _rejected(rejects: list[Reject]) -> pa.RecordBatch:
    ids, reasons = [each.event_id for each in rejects], [each.reason for each in rejects]
    empty = [pa.nulls(len(rejects), field.type) for field in _TOLD]
    return pa.RecordBatch.from_arrays([pa.array(ids, pa.string()), *empty[1:4], pa.array(reasons)], schema=_TOLD)


def _deliveries(
    events: Events, rows: Ints, interfaces: pa.Array, ids: pa.Array, *, geometry: bool = False
) -> pa.RecordBatch:
    times = pa.array(events.times[rows]).cast(TIME_TYPE)
    columns = [events.ids.take(pa.array(rows)), times, interfaces, ids.cast(pa.string())]
    if not geometry:
        return pa.RecordBatch.from_arrays(columns, schema=DELIVERIES)
    different, which = np.unique(rows, return_inverse=True)
    shapes = write_geometries(shapes_of(some_of(events.notifications, different)))
    return pa.RecordBatch.from_arrays([*columns, shapes.take(pa.array(which))], schema=LOCATED)
