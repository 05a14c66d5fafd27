"""Events that travel to the segments which may match them: for indexes larger than a worker's memory.

A task reads its part of the log and puts each event down for every segment whose gate admits it, thousands to a record
batch of an Arrow file beside OUT that all machines see. Then a task for each segment, or several where there are more
workers than segments, matches what was put down for it, and needs no other segment; those with most events begin. No
row passes through the JVM. Deliveries are the same as without.

One of an event's copies is its *home*: there it is counted, or rejected. One that no segment admits is put down, too,
for no segment.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa

from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import is_url, join
from contrada.spark_jobs.common.engine import MESSAGES, message_rows, messages_in
from contrada.spark_jobs.common.errors import naming_this_machine, told_in_one_line
from contrada.spark_jobs.common.index_cache import admitted, opened
from contrada.spark_jobs.replaying.logs.decoding import decode
from contrada.spark_jobs.replaying.logs.degrees import events_in_degrees
from contrada.spark_jobs.replaying.logs.reading import read_task
from contrada.spark_jobs.replaying.matching import MatchTask
from contrada.spark_jobs.replaying.storing import TaskFiles
from contrada.spark_jobs.stores.shared_files import open_binary, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from contrada.spark_jobs.replaying.logs.event_logs import Log
    from contrada.spark_jobs.replaying.matching import Match, TaskDone

_NOWHERE: Final = -1  # in place of a segment's number
_TOGETHER: Final = 1 << 16  # rows of a message, about
_HOME: Final = ".home"  # a column of what is put down


@dataclass(frozen=True, slots=True)
class Routed:
    """Rows of a log for one segment, and which of them are at home there."""

    segment: int  # or _NOWHERE
    rows: pa.Table
    home: NDArray[np.bool_]


class RoutedFile(NamedTuple):
    """What a task has put down: by segment, the numbers of record batches, and how many rows they have."""

    address: str
    batches: dict[int, list[int]]
    rows: dict[int, int]


def replay_routed(session: SparkSession, log: Log, match: Match, place: str) -> list[TaskDone]:
    """Match the events of a log, and write under `place`: what the tasks at the segments have done."""
    context = session.sparkContext
    with told_in_one_line():
        files = _put_down(session, log, match, place)
        parts = _parts(files, 2 * context.defaultParallelism)

        def run(numbers: Iterable[int]) -> Iterator[TaskDone]:
            for number in numbers:
                with naming_this_machine():
                    yield match_routed(read_routed(*parts[number]), match, place)

        done = context.parallelize(range(len(parts)), max(1, len(parts))).mapPartitions(run).collect()
    object_store.delete(each.address for each in files if is_url(each.address))
    return done


def _put_down(session: SparkSession, log: Log, match: Match, place: str) -> list[RoutedFile]:
    """Have tasks read and route the events of a log."""
    tasks = log.tasks

    def routed_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with naming_this_machine():
            yield from message_rows((0, each) for each in write_routed(route(match, batches), place))

    def routed_tasks(numbers: Iterable[int]) -> Iterator[RoutedFile]:
        with naming_this_machine():
            for number in numbers:
                yield from write_routed(route(match, read_task(tasks[number], match.format)), place)

    if log.rows is not None:
        return list(messages_in(log.rows.mapInArrow(routed_rows, MESSAGES).toArrow().to_batches()))
    return session.sparkContext.parallelize(range(len(tasks)), max(1, len(tasks))).mapPartitions(routed_tasks).collect()


def _parts(files: Sequence[RoutedFile], least: int) -> list[tuple[int, list[tuple[str, list[int]]]]]:
    """What each task of the second stage matches: a segment, and record batches of files; the largest first."""
    segments = sorted({segment for each in files for segment in each.batches})
    shares = -(-least // max(1, len(segments)))
    parts: list[tuple[int, int, list[tuple[str, list[int]]]]] = []
    for segment in segments:
        mine = [each for each in files if segment in each.batches]
        for share in range(shares):
            some = mine[share::shares]
            if some:
                rows = sum(each.rows[segment] for each in some)
                parts.append((rows, segment, [(each.address, each.batches[segment]) for each in some]))
    parts.sort(key=lambda part: (-part[0], part[1]))
    return [(segment, some) for _, segment, some in parts]


def write_routed(messages: Iterable[Routed], place: str) -> Iterator[RoutedFile]:
    """Put messages down in a file, and tell of it; no file for none."""
    messages = iter(messages)
    first = next(messages, None)
    if first is None:
        return
    address = join(place, "routed", f"part-{uuid4().hex}.arrow")
    batches: dict[int, list[int]] = {}
    rows: dict[int, int] = {}
    written = 0
    with writing(address) as file, pa.ipc.new_file(str(file), _with_home(first).schema) as writer:
        for message in chain([first], messages):
            for batch in _with_home(message).to_batches():
                writer.write_batch(batch)
                batches.setdefault(message.segment, []).append(written)
                rows[message.segment] = rows.get(message.segment, 0) + batch.num_rows
                written += 1
    yield RoutedFile(address, batches, rows)


def _with_home(message: Routed) -> pa.Table:
    return message.rows.append_column(_HOME, pa.array(message.home)).combine_chunks()


def read_routed(segment: int, files: Iterable[tuple[str, list[int]]]) -> Iterator[Routed]:
    """What was put down for a segment."""
    for address, numbers in files:
        with open_binary(address) if is_url(address) else pa.memory_map(address) as opened:
            reader = pa.ipc.open_file(opened)
            for number in numbers:
                batch = reader.get_batch(number)
                home = batch.column(_HOME).to_numpy(zero_copy_only=False)
                yield Routed(segment, pa.Table.from_batches([batch.drop_columns([_HOME])]), home)


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
