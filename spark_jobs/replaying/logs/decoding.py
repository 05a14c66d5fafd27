"""Event logs at the border: Arrow batches into notifications that can be matched, and what is wrong with the others.

A row of a log is an event: an id, a time, and attributes. Where the attributes are typed columns they stay columns
(`forwarding/batches/columns.py`) and no object is made per event; where they are text or msgpack they are decoded one
by one.

    form       columns of a batch                         where from
    TYPED      event_id, time, attributes: struct         Parquet with an attributes struct, or one column per attribute
    MAP        event_id, time, attributes: map of values  Parquet
    TEXT       event_id, time, attributes: string         Parquet with attributes as JSON (forwarding/codec/json.py)
    LINES      line: bytes                                JSON lines {"id": …, "time": …, "attributes": {…}}
               and damage: string                         of a packed file that cannot be read, in place of its lines
    BODIES     event_id, time, body: bytes                a recording; the body tells of damage if there is no id

Which Arrow type is which kind of value is told in `typed.py`, and what a time is in `common/instants.py`.

An event that breaks a rule is rejected with the reason and its text, and never stops the job. A schema that breaks one
is `InvalidValue`, before anything is read.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.batches.columns import Columns
from contrada.forwarding.codec.json import load_json, notification_from_json, notification_from_plain
from contrada.forwarding.codec.msgpack import decode_notification
from contrada.forwarding.language.values import check_name, check_string, check_value, from_microseconds
from contrada.spark_jobs.common.arrow import mask_of
from contrada.spark_jobs.common.instants import instants, parse_time, zone_of
from contrada.spark_jobs.replaying.logs.typed import read_attributes

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    from contrada.forwarding.kernels.memory.layout import Ints

_RAW: Final = 4096  # characters of a rejected event that are kept


class Form(StrEnum):
    """How the rows of a log are laid out."""

    TYPED = "typed"
    MAP = "map"
    TEXT = "text"
    LINES = "lines"
    BODIES = "bodies"


@dataclass(frozen=True, slots=True)
class Format:
    """How to read the rows of a log; small, and sent to every task."""

    form: Form
    timezone: str | None = None  # of times without one
    id: str = "id"  # columns of Parquet
    time: str = "time"


@dataclass(frozen=True, slots=True)
class Reject:
    """An event that cannot be matched."""

    row: int
    event_id: str | None
    reason: str
    raw: str


@dataclass(frozen=True, slots=True)
class Events:
    """The good events of a batch, side by side, and the others."""

    rows: Ints  # where in the batch each was
    ids: pa.Array  # of strings
    times: Ints  # microseconds since 1970 in UTC
    notifications: Columns | list[dict[str, Any]]
    rejects: list[Reject]

    def __len__(self) -> int:
        return len(self.times)


def decode(batch: pa.RecordBatch, format: Format) -> Events:
    """The events of a batch."""
    zone = zone_of(format.timezone)
    if format.form is Form.LINES:
        return _decode_lines(batch, zone)
    faults: dict[int, str] = {}
    if format.form is Form.BODIES:
        for row in np.flatnonzero(mask_of(batch.column("event_id").is_null())).tolist():
            faults[row] = batch.column("body")[row].as_py().decode(errors="replace")
    ids = _ids(batch.column("event_id"), faults)
    times = instants(batch.column("time"), zone, "time", faults)
    for row in np.flatnonzero(mask_of(batch.column("time").is_null())).tolist():
        faults.setdefault(row, "the event has no time")
    notifications: Columns | list[Any]  # None in place of those that are faults
    if format.form is Form.TYPED:
        notifications = read_attributes(batch.column("attributes"), zone, faults)
    elif format.form is Form.MAP:
        notifications = _maps(batch.column("attributes"), zone, faults)
    elif format.form is Form.TEXT:
        notifications = _decoded(batch.column("attributes"), notification_from_json, faults)
    else:
        notifications = _decoded(batch.column("body"), decode_notification, faults)
    if not faults:
        return Events(np.arange(batch.num_rows), ids, times, notifications, [])
    good = np.setdiff1d(np.arange(batch.num_rows), np.array(list(faults), np.int64))
    rejects = [
        Reject(row, ids[row].as_py(), reason, _raw(batch.slice(row, 1))) for row, reason in sorted(faults.items())
    ]
    kept = notifications.take(good) if isinstance(notifications, Columns) else [notifications[n] for n in good.tolist()]
    return Events(good, ids.take(pa.array(good)), times[good], kept, rejects)


def _ids(column: pa.Array, faults: dict[int, str]) -> pa.Array:
    ids = column if pa.types.is_string(column.type) else column.cast(pa.string())
    try:
        ids.validate(full=True)
    except pa.ArrowInvalid:
        texts = [None if each is None else each.decode(errors="replace") for each in ids.cast(pa.binary()).to_pylist()]
        for row, text in enumerate(texts):
            if text is not None and "\ufffd" in text:
                faults[row] = f"the event's id is not UTF-8: {text}"
        ids = pa.array(texts, pa.string())
    fine = pc.and_(pc.is_valid(ids), pc.not_equal(ids, ""))
    for row in np.flatnonzero(~mask_of(fine)).tolist():
        faults.setdefault(row, "the event has no id")
    return ids


# -- attributes one by one -------------------------------------------------------------------------------------


def _decoded(cells: pa.Array, read: Callable[[Any], dict[str, Any]], faults: dict[int, str]) -> list[Any]:
    """Each cell as a notification; None where it is none."""
    found: list[Any] = []
    if pa.types.is_string(cells.type):
        cells = cells.cast(pa.binary())  # what is not UTF-8 is a fault of one event, and not of the batch
    for row, cell in enumerate(cells.to_pylist()):
        notification = None
        if cell is None:
            faults.setdefault(row, "the event has no attributes")
        elif row not in faults:
            try:
                notification = read(cell)
            except ContradaError as error:
                faults[row] = str(error)
        found.append(notification)
    return found


def _maps(cells: pa.MapArray, zone: ZoneInfo | None, faults: dict[int, str]) -> list[Any]:
    found: list[Any] = []
    for row, pairs in enumerate(cells.to_pylist()):
        notification = None
        if pairs is None:
            faults.setdefault(row, "the event has no attributes")
        else:
            try:
                given = {name: value for name, value in pairs if value is not None}
                notification = {check_name(name): _map_value(value, zone) for name, value in given.items()}
            except ContradaError as error:
                faults.setdefault(row, str(error))
        found.append(notification)
    return found


def _map_value(value: Any, zone: ZoneInfo | None) -> Any:
    if isinstance(value, datetime):
        return from_microseconds(parse_time(value, zone))
    return check_value(value)[1]


def _decode_lines(batch: pa.RecordBatch, zone: ZoneInfo | None) -> Events:
    rows: list[int] = []
    ids: list[str] = []
    times: list[int] = []
    notifications: list[dict[str, Any]] = []
    rejects: list[Reject] = []
    damage = batch.column("damage").to_pylist() if "damage" in batch.schema.names else [None] * batch.num_rows
    for row, (line, damaged) in enumerate(zip(batch.column("line").to_pylist(), damage, strict=True)):
        if damaged is not None:
            rejects.append(Reject(row, None, damaged, ""))
        if line is None or not line.strip():
            continue
        try:
            id, time, notification = read_line(line, zone)
        except ContradaError as error:
            rejects.append(Reject(row, None, str(error), line.decode(errors="replace")[:_RAW]))
            continue
        rows.append(row)
        ids.append(id)
        times.append(time)
        notifications.append(notification)
    return Events(
        np.array(rows, np.int64), pa.array(ids, pa.string()), np.array(times, np.int64), notifications, rejects
    )


def read_line(line: bytes, zone: ZoneInfo | None) -> tuple[str, int, dict[str, Any]]:
    """Id, time in microseconds, and notification of one line of JSON."""
    document = load_json(line)
    if not isinstance(document, dict):
        raise InvalidValue('an event is an object {"id": …, "time": …, "attributes": {…}}')
    id, time, attributes = (document.get(name) for name in ("id", "time", "attributes"))
    if isinstance(id, bool) or not isinstance(id, str | int) or id == "":
        raise InvalidValue("the event has no id")
    if time is None:
        raise InvalidValue("the event has no time")
    if not isinstance(attributes, dict):
        raise InvalidValue("the event has no attributes")
    instant = parse_time(time, zone)
    return check_string(str(id), "an event's id"), instant, notification_from_plain(attributes)


def _raw(row: pa.RecordBatch) -> str:
    """One row, for people."""
    try:
        (plain,) = row.to_pylist()
    except (ValueError, OverflowError):  # not UTF-8, or a time that Python has no date for
        return str(row.schema)[:_RAW]
    return json.dumps(plain, ensure_ascii=False, default=_plain)[:_RAW]


def _plain(value: object) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
