"""The events of a log one after another, in this process and without Spark: for replaying into a live broker.

Files are read in the order of their names and events in the order they stand in, which for a recording is that of
their acceptance. The layouts are those that a replay on Spark reads (event_logs.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from contrada.errors import InvalidValue
from contrada.forwarding.batches.columns import Columns, Text
from contrada.forwarding.batches.texts import Texts
from contrada.forwarding.language.values import Kind, from_microseconds
from contrada.forwarding.stores.addresses import address_of, shown
from contrada.spark_jobs.common.instants import zone_of
from contrada.spark_jobs.common.splits import Split, plain_schema
from contrada.spark_jobs.replaying.logs.decoding import Form, Format, Reject, decode
from contrada.spark_jobs.replaying.logs.event_logs import Kinds, files_of, parquet_format
from contrada.spark_jobs.replaying.logs.reading import read_split
from contrada.spark_jobs.stores.shared_files import parquet_at
from contrada.spatial.geometry.point import Point

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from contrada.forwarding.batches.columns import Column
    from contrada.spark_jobs.replaying.logs.event_logs import Layout


class Event(NamedTuple):
    """An event: its id, its time in microseconds since 1970, and what was published."""

    id: str
    time: int
    notification: dict[str, Any]


def stream(path: str | os.PathLike[str], layout: Layout) -> Iterator[Event | Reject]:
    """Every event of a log, and those that cannot be read."""
    zone_of(layout.timezone)
    kind, files = files_of(address_of(path, "EVENTS"))
    for file, _ in files:
        for batch, format in _batches(kind, file, layout):
            events = decode(batch, format)
            yield from events.rejects
            given = events.notifications
            each = [row_of(given, n) for n in range(given.size)] if isinstance(given, Columns) else given
            yield from map(Event, events.ids.to_pylist(), events.times.tolist(), each)


def _batches(kind: str, file: str, layout: Layout) -> Iterator[tuple[pa.RecordBatch, Format]]:
    split, format = Split(file), Format(Form.BODIES)
    if kind == Kinds.LINES:
        format = Format(Form.LINES, layout.timezone)
    elif kind == Kinds.PARQUET:
        try:
            with parquet_at(file) as opened:
                format = parquet_format(file, plain_schema(opened), layout)
                split = Split(file, 0, opened.metadata.num_row_groups)
        except (pa.ArrowInvalid, OSError) as error:
            raise InvalidValue(f"{shown(file)}: not a Parquet file, or damaged: {error}") from None
    for batch in read_split(split, format):
        yield batch, format


def row_of(columns: Columns, n: int) -> dict[str, Any]:
    """One notification of many."""
    there = (each for each in columns.columns if each.present is None or each.present[n])
    return {column.name: _value(column, n) for column in there}


def _value(column: Column, n: int) -> Any:
    values = column.values
    if isinstance(values, Text):
        return values.data[values.offsets[n] : values.offsets[n + 1]].tobytes().decode()
    if isinstance(values, list | Texts):
        return values[n]
    if column.kind is Kind.POINT:
        return Point(*values[n].tolist())
    value = values[n].item()
    if column.kind is Kind.TIME:
        return from_microseconds(value)
    return bool(value) if column.kind is Kind.BOOL else value
