"""Stages of a job: tasks that send typed messages, and what is made of the messages of each part.

A stage is two functions. One is run for each task of a list, or for the rows of each partition of a DataFrame, and
gives messages, each with the number of the part it goes to; the other is run for each part, with all its messages, and
gives results, which the driver collects. A message is an object of a dataclass: its type says what it is.

    SparkEngine    on Spark; a message is one row of a DataFrame, (part, bytes). It holds the data of many thousands
                   of subscriptions, so a shuffle costs what its bytes cost
    LocalEngine    in this process, one task after another
"""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import numpy as np
import pyarrow as pa

from contrada.spark_jobs.common.errors import naming_this_machine, told_in_one_line
from contrada.spark_jobs.common.preflight import check_executors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

_T = TypeVar("_T")
_M = TypeVar("_M")
_R = TypeVar("_R")

MESSAGES: Final = "part int, message binary"
"""Messages as rows of a DataFrame."""

_ROW: Final = pa.schema([("part", pa.int32()), ("message", pa.binary())])
_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH: Final = 32 << 20  # bytes of messages that cross between the JVM and Python at once


class LocalEngine:
    """Stages in this process."""

    parallelism = 1  # tasks that run at once

    def check(self, paths: Mapping[str, str], tell: Callable[[str], None]) -> None:
        """Raise `ClusterNotReady` unless tasks can run and see these paths, which have a name each. These can."""

    def run(
        self,
        tasks: Sequence[_T],
        send: Callable[[int, _T], Iterator[tuple[int, _M]]],
        parts: int,
        gather: Callable[[Iterable[_M]], Iterator[_R]],
    ) -> list[_R]:
        """Run a stage; `send` is given a task and its number."""
        sent: list[list[_M]] = [[] for _ in range(parts)]
        for number, task in enumerate(tasks):
            for part, message in send(number, task):
                sent[part].append(message)
        found: list[_R] = []
        while sent:
            found += gather(sent.pop(0))  # what was gathered is not needed any more
        return found


class SparkEngine:
    """Stages on Spark."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return int(self.session.sparkContext.defaultParallelism)

    def check(self, paths: Mapping[str, str], tell: Callable[[str], None]) -> None:
        """Ask the executors."""
        check_executors(self.session, paths, tell=tell)

    def run(
        self,
        tasks: Sequence[_T],
        send: Callable[[int, _T], Iterator[tuple[int, _M]]],
        parts: int,
        gather: Callable[[Iterable[_M]], Iterator[_R]],
    ) -> list[_R]:
        """Run a stage."""

        def each(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, _M]]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from send(number, tasks[number])

        return self._gathered(self.session.range(0, len(tasks), 1, max(1, len(tasks))), each, parts, gather)

    def run_rows(
        self,
        rows: DataFrame,
        send: Callable[[int, Iterable[pa.RecordBatch]], Iterator[tuple[int, _M]]],
        parts: int,
        gather: Callable[[Iterable[_M]], Iterator[_R]],
    ) -> list[_R]:
        """As `run`, a task being the rows of a partition."""

        def each(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, _M]]:
            from pyspark import TaskContext

            context = TaskContext.get()
            return send(context.partitionId() if context else 0, batches)

        return self._gathered(rows, each, parts, gather)

    def _gathered(
        self,
        rows: DataFrame,
        send: Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[int, _M]]],
        parts: int,
        gather: Callable[[Iterable[_M]], Iterator[_R]],
    ) -> list[_R]:
        from pyspark.sql import functions as F

        def to_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with naming_this_machine():
                yield from message_rows(send(batches))

        def to_results(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with naming_this_machine():
                yield from message_rows((0, result) for result in gather(messages_in(batches)))

        sent = rows.mapInArrow(to_messages, MESSAGES).repartitionById(parts, F.col("part"))
        conf = self.session.conf
        before = conf.get(_BYTES, None)
        conf.set(_BYTES, str(_BATCH))
        try:
            with told_in_one_line():
                return list(messages_in(sent.mapInArrow(to_results, MESSAGES).toArrow().to_batches()))
        finally:
            if before is None:
                conf.unset(_BYTES)
            else:
                conf.set(_BYTES, before)


Engine: TypeAlias = LocalEngine | SparkEngine


def scattered(rows: pa.Table | pa.RecordBatch, parts: np.ndarray) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each part."""
    if not len(parts):
        return
    order = np.argsort(parts, kind="stable")
    gathered = (pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows).take(pa.array(order))
    edges = np.flatnonzero(np.diff(parts[order], prepend=-1))
    for start, end in zip(edges.tolist(), [*edges[1:].tolist(), len(order)], strict=True):
        yield int(parts[order[start]]), gathered.slice(start, end - start)


def message_rows(messages: Iterable[tuple[int, object]]) -> Iterator[pa.RecordBatch]:
    """Messages, each with its part, as rows."""
    for part, message in messages:
        columns = [pa.array([part], pa.int32()), pa.array([_encoded(message)], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, schema=_ROW)


def messages_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """Undo `message_rows`, without the parts."""
    for batch in batches:
        for data in batch.column("message").to_pylist():
            yield pickle.loads(data)


class _Pickler(pickle.Pickler):
    """Tables go as Arrow has them on the wire: of a slice, the slice alone."""

    def reducer_override(self, value: object) -> Any:
        return (table_of, (stream_of(value),)) if isinstance(value, pa.Table) else NotImplemented


def _encoded(message: object) -> bytes:
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(message)
    return file.getvalue()


def stream_of(rows: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return cast("bytes", sink.getvalue().to_pybytes())


def table_of(data: bytes) -> pa.Table:
    """Undo `stream_of`."""
    return pa.ipc.open_stream(data).read_all()
