"""Arrays through Spark's shuffle: a row of a DataFrame is a packet of many subscriptions' data, not one subscription.

The JVM moves a packet as one block of bytes, so a shuffle costs what its bytes cost. A packet says which partition it
is for, what it holds, and a number whose meaning depends on that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from contrada.spark_jobs.common.failing import naming_this_machine, told_in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

PACKETS: Final = "part int, what string, number long, data binary"
_SCHEMA: Final = pa.schema([("part", pa.int32()), ("what", pa.string()), ("number", pa.int64()), ("data", pa.binary())])
_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH: Final = 32 << 20  # bytes of packets that cross between the JVM and Python at once


class Packet(NamedTuple):
    """A block of data on its way."""

    part: int
    what: str
    number: int
    data: bytes

    def table(self) -> pa.Table:
        """The data of a packet that `packed` made."""
        return pa.ipc.open_stream(self.data).read_all()


def packed(part: int, what: str, number: int, rows: pa.Table | pa.RecordBatch) -> Packet:
    """A packet of rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return Packet(part, what, number, sink.getvalue().to_pybytes())


def scattered(rows: pa.Table | pa.RecordBatch, parts: np.ndarray, what: str, number: int) -> Iterator[Packet]:
    """The rows in packets, each to its part."""
    if not len(parts):
        return
    order = np.argsort(parts, kind="stable")
    held = rows.take(pa.array(order))
    edges = np.flatnonzero(np.diff(parts[order], prepend=-1))
    for start, end in zip(edges.tolist(), [*edges[1:].tolist(), len(order)], strict=True):
        yield packed(int(parts[order[start]]), what, number, held.slice(start, end - start))


def mapped(rows: DataFrame, run: Callable[[Iterable[pa.RecordBatch]], Iterator[Packet]]) -> DataFrame:
    """Packets that tasks make of rows."""

    def to_packets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with naming_this_machine():
            for packet in run(batches):
                columns = [pa.array([value], field.type) for value, field in zip(packet, _SCHEMA, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    return rows.mapInArrow(to_packets, PACKETS)


def reduced(packets: DataFrame, parts: int, run: Callable[[Iterator[Packet]], Iterator[Packet]]) -> DataFrame:
    """Packets that tasks make of those of each part."""
    spread = packets.repartitionById(parts, F.col("part"))
    return mapped(spread, lambda batches: run(packets_of(batches)))


def packets_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
    """The packets in some batches."""
    for batch in batches:
        for row in batch.to_pylist():
            yield Packet(**row)


def collected(session: SparkSession, packets: DataFrame) -> list[Packet]:
    """The packets at the driver."""
    before = session.conf.get(_BYTES, None)
    session.conf.set(_BYTES, str(_BATCH))
    try:
        with told_in_one_line():
            return list(packets_of(packets.toArrow().to_batches()))
    finally:
        if before is None:
            session.conf.unset(_BYTES)
        else:
            session.conf.set(_BYTES, before)


def columns(**arrays: Any) -> pa.Table:
    """Arrays of equal length as a table."""
    return pa.table({name: pa.array(array) for name, array in arrays.items()})
