"""The events of a log one after another, in this process and without Spark: for replaying into a live broker.

Files are read in the order of their names and events in the order they stand in, which for a recording is that of
their acceptance. The layouts are those that a replay on Spark reads (event_logs.py).
"""

from __future__ import annotations

import bz2
import gzip
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import InvalidValue
from contrada.forwarding.codec import decode_notification
from contrada.forwarding.columns import Columns, Text
from contrada.forwarding.recording import Accepted, Recording
from contrada.forwarding.values import Kind, from_microseconds
from contrada.spark_jobs.decoding import Form, Format, Reject, decode
from contrada.spark_jobs.event_logs import Kinds, check_columns, files_of, form_of
from contrada.spark_jobs.instants import zone_of
from contrada.spatial.point import Point

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contrada.forwarding.columns import Column
    from contrada.spark_jobs.event_logs import Layout

_LINES = 1024  # decoded at once


class Event(NamedTuple):
    """An event: its id, its time in microseconds since 1970, and what was published."""

    id: str
    time: int
    notification: dict[str, Any]


def stream(path: Path, layout: Layout) -> Iterator[Event | Reject]:
    """Every event of a log, and those that cannot be read."""
    zone_of(layout.timezone)
    kind, files = files_of(path)
    if kind == Kinds.RECORDING:
        yield from _recorded(path)
        return
    for file in files:
        for batch, format in _parquet(file, layout) if kind == Kinds.PARQUET else _lines(file, layout):
            events = decode(batch, format)
            yield from events.rejects
            given = events.notifications
            each = [_row(given, n) for n in range(given.size)] if isinstance(given, Columns) else given
            yield from map(Event, events.ids.to_pylist(), events.times.tolist(), each)


def _recorded(path: Path) -> Iterator[Event]:
    for record in Recording(path, strict=False):
        if type(record) is Accepted:
            yield Event(record.id, record.time, decode_notification(record.body))


def _lines(file: Path, layout: Layout) -> Iterator[tuple[pa.RecordBatch, Format]]:
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    if file.suffix == ".zst":
        raise InvalidValue(f"{file}: unpack it first; Spark reads .zst, a stream does not")
    with openers.get(file.suffix, open)(file, "rb") as lines:
        while some := [line for _, line in zip(range(_LINES), lines, strict=False)]:
            yield (
                pa.RecordBatch.from_arrays([pa.array(some, pa.binary())], ["line"]),
                Format(Form.LINES, layout.timezone),
            )


def _parquet(file: Path, layout: Layout) -> Iterator[tuple[pa.RecordBatch, Format]]:
    try:
        source = pq.ParquetFile(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidValue(f"{file}: not a Parquet file, or damaged: {error}") from None
    names = source.schema_arrow.names
    check_columns(names, layout, file)
    for batch in source.iter_batches(_LINES):
        columns = {name: _plain(batch.column(name)) for name in names}
        others = [name for name in names if name not in (layout.id, layout.time)]
        attributes = columns.get("attributes")
        if attributes is None:
            attributes = pa.StructArray.from_arrays([columns[name] for name in others], others)
        arrays = [columns[layout.id].cast(pa.string()), columns[layout.time], attributes]
        try:
            form = form_of(arrays[1].type, attributes.type, layout)
        except InvalidValue as error:
            raise InvalidValue(f"{file}: {error}") from None
        yield (
            pa.RecordBatch.from_arrays(arrays, ["event_id", "time", "attributes"]),
            Format(form, layout.timezone),
        )


def _plain(column: pa.Array) -> pa.Array:
    """A column as Spark would give it: no dictionaries, no large strings."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


def _row(columns: Columns, n: int) -> dict[str, Any]:
    """One notification of many."""
    there = (each for each in columns.columns if each.present is None or each.present[n])
    return {column.name: _value(column, n) for column in there}


def _value(column: Column, n: int) -> Any:
    values = column.values
    if isinstance(values, Text):
        return values.data[values.offsets[n] : values.offsets[n + 1]].tobytes().decode()
    if isinstance(values, list):
        return values[n]
    if column.kind is Kind.POINT:
        return Point(*values[n].tolist())
    value = values[n].item()
    if column.kind is Kind.TIME:
        return from_microseconds(value)
    return bool(value) if column.kind is Kind.BOOL else value
