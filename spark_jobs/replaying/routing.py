"""Events that travel to the segments which may match them: for indexes larger than a worker's memory.

A task reads its part of the log and sends each event to every segment whose gate admits it, thousands to a message
(common/engine.py); whoever gets the messages of a segment matches them against it, and needs no other segment. The
events of one segment may be split over several workers, where there are more of these than segments. Deliveries are the
same as without.

One of an event's copies is its *home*: there it is counted, or rejected. One that no segment admits travels, too, as a
message of no segment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from contrada.spark_jobs.common.engine import SparkEngine
from contrada.spark_jobs.common.index_cache import admitted, opened
from contrada.spark_jobs.replaying.logs.decoding import decode
from contrada.spark_jobs.replaying.logs.degrees import events_in_degrees
from contrada.spark_jobs.replaying.logs.reading import read_task
from contrada.spark_jobs.replaying.matching import MatchTask
from contrada.spark_jobs.replaying.storing import TaskFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from contrada.spark_jobs.common.splits import Task
    from contrada.spark_jobs.replaying.logs.event_logs import Log
    from contrada.spark_jobs.replaying.matching import Match, TaskDone

_NOWHERE: Final = -1  # in place of a segment's number
_TOGETHER: Final = 1 << 16  # rows of a message, about


@dataclass(frozen=True, slots=True)
class Routed:
    """Rows of a log for one segment, and which of them are at home there."""

    segment: int  # or _NOWHERE
    rows: pa.Table
    home: NDArray[np.bool_]


def replay_routed(session: SparkSession, log: Log, match: Match, place: str) -> list[TaskDone]:
    """Match the events of a log, and write under `place`: what the tasks at the segments have done."""
    engine = SparkEngine(session)
    segments = max(1, len(opened(match.index).infos))
    shares = -(-2 * engine.parallelism // segments)

    def send(number: int, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Routed]]:
        for message in route(match, batches):
            at = number if message.segment == _NOWHERE else message.segment * shares + number % shares
            yield at % (segments * shares), message

    def gather(messages: Iterable[Routed]) -> Iterator[TaskDone]:
        yield match_routed(messages, match, place)

    if log.rows is not None:
        return engine.run_rows(log.rows, send, segments * shares, gather)

    def read(number: int, task: Task) -> Iterator[tuple[int, Routed]]:
        return send(number, read_task(task, match.format))

    return engine.run(log.tasks, read, segments * shares, gather)


def match_routed(messages: Iterable[Routed], match: Match, place: str) -> TaskDone:
    """Match messages against the segments they are for, and write the deliveries."""
    task = MatchTask(match, TaskFiles(place, match.geometry))
    return task.done(
        found
        for message in messages
        for batch in message.rows.combine_chunks().to_batches()
        for found in task.routed(batch, message.segment, message.home)
    )


def route(match: Match, batches: Iterable[pa.RecordBatch]) -> Iterator[Routed]:
    """Each row once for every segment that may match it, or for none."""
    index = opened(match.index)
    waiting: dict[int, list[tuple[pa.RecordBatch, NDArray[np.bool_]]]] = {}
    for batch in batches:
        events = decode(batch, match.format)
        if index.degrees:
            events = events_in_degrees(events)
        homeless = np.ones(batch.num_rows, np.bool_)
        for number, info in enumerate(index.infos):
            rows = events.rows[admitted(info.gate, events.notifications)]
            if len(rows):
                waiting.setdefault(number, []).append((batch.take(pa.array(rows)), homeless[rows]))
                homeless[rows] = False
        rest = np.flatnonzero(homeless)
        if len(rest):
            waiting.setdefault(_NOWHERE, []).append((batch.take(pa.array(rest)), homeless[rest]))
        for number in [each for each, parts in waiting.items() if sum(map(_size, parts)) >= _TOGETHER]:
            yield _joined(number, waiting.pop(number))
    for number, parts in waiting.items():
        yield _joined(number, parts)


def _size(part: tuple[pa.RecordBatch, NDArray[np.bool_]]) -> int:
    return len(part[1])


def _joined(number: int, parts: list[tuple[pa.RecordBatch, NDArray[np.bool_]]]) -> Routed:
    return Routed(number, pa.Table.from_batches([rows for rows, _ in parts]), np.concatenate([at for _, at in parts]))
