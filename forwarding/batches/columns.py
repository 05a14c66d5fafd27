"""Notifications given column by column, as analytical files hold them, into the batch that kernels read.

A column is one attribute of n notifications: an array of values and, where some lack the attribute, a mask. No Python
object is made per notification, nor per attribute: a batch of scalars costs a few array operations per column, a
tenth of what `encode_notifications` spends on the same values. So do points. Regions are objects, since the index they
are searched in takes them one by one.

    kind           values
    BOOL           int64, 0 or 1
    NUMBER         int64, or float64 and finite
    TIME           int64, microseconds since 1970 in UTC
    STRING         `Text`: offsets (n + 1) into UTF-8 bytes
    POINT          float64 (n, 2): x and y, as a Point would have them
    GEOTEXT        `Texts`, or a list of objects
    REGION, LINE,
    SET            a list of objects; what stands where the attribute is absent is not read
"""

from __future__ import annotations

from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.batches.encode import KIND, PointColumn, Values, encode_notifications
from contrada.forwarding.batches.texts import Texts
from contrada.forwarding.kernels.match.batch import FLOAT, Batch
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.lonlat import points_in_degrees, value_in_degrees
from contrada.forwarding.language.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.batches.encode import Encoded
    from contrada.forwarding.kernels.memory.layout import Bytes, Floats, Ints

_PADDING: Final = np.zeros(8, np.uint8)  # kernels read strings eight bytes at a time
_EARTH: Final = (180.0, 90.0, 180.0, 90.0)  # beyond which a place in degrees may have to be moved
_NOWHERE: Final = (np.nan, np.nan, np.nan, np.nan)


class Text(NamedTuple):
    """A column of strings: the i-th is `data[offsets[i] : offsets[i + 1]]`, in UTF-8."""

    offsets: Ints
    data: Bytes


class Column(NamedTuple):
    """One attribute of n notifications; see the module for what `values` is of each kind."""

    name: str
    kind: Kind
    values: NDArray[Any] | Text | Texts | list[Any]
    present: NDArray[np.bool_] | None = None  # None: everywhere
    boxes: Floats | None = None  # (n, 4), of regions and geotext, where they are known already

    def bounds(self) -> Floats:
        """The boxes (x1, y1, x2, y2) of values that are places; NaN where there is none."""
        if self.boxes is not None:
            return self.boxes
        if isinstance(self.values, Texts):
            return self.values.boxes
        if self.kind is Kind.POINT:
            return np.concatenate((self.values, self.values), axis=1)
        objects = cast("list[Any]", self.values)
        boxes = [_NOWHERE if each is None else getattr(each, "place", each).bounds for each in objects]
        return np.array(boxes, np.float64).reshape(-1, 4)

    def take(self, places: Ints) -> Column:
        """The same attribute of the notifications at these places."""
        values = self.values
        if isinstance(values, Text):
            starts, ends = values.offsets[:-1][places], values.offsets[1:][places]
            offsets = np.concatenate(([0], np.cumsum(ends - starts)))
            where = np.repeat(starts - offsets[:-1], ends - starts) + np.arange(offsets[-1])
            taken: NDArray[Any] | Text | Texts | list[Any] = Text(offsets, values.data[where])
        elif isinstance(values, Texts):
            taken = values.take(places)
        elif isinstance(values, list):
            taken = [values[place] for place in places.tolist()]
        else:
            taken = values[places]
        present = None if self.present is None else self.present[places]
        return Column(self.name, self.kind, taken, present, None if self.boxes is None else self.boxes[places])


class Columns(NamedTuple):
    """Notifications by columns, each `size` long. Columns of one name, of several kinds, are never both present."""

    size: int
    columns: Sequence[Column]

    def take(self, places: Ints) -> Columns:
        """The notifications at these places."""
        return Columns(len(places), [column.take(places) for column in self.columns])

    def _check(self) -> None:
        taken: dict[str, NDArray[np.bool_]] = {}
        for column in self.columns:
            values = column.values
            length = len(values.offsets) - 1 if isinstance(values, Text) else len(values)
            assert length == self.size
            present = np.ones(length, np.bool_) if column.present is None else column.present
            assert len(present) == length
            assert present.dtype == np.bool_
            assert not (taken.get(column.name, np.zeros(length, np.bool_)) & present).any()
            taken[column.name] = taken.get(column.name, False) | present


def columns_in_degrees(given: Columns) -> Columns:
    """Notifications by columns as a table of longitudes and latitudes takes them (language/lonlat.py)."""
    return Columns(given.size, [_in_degrees(column) for column in given.columns])


def _in_degrees(column: Column) -> Column:
    if column.kind not in (Kind.POINT, Kind.REGION, Kind.LINE, Kind.GEOTEXT):
        return column
    if isinstance(column.values, Texts) and (np.abs(column.values.boxes) < _EARTH).all():
        return column
    there = np.ones(len(column.values), np.bool_) if column.present is None else column.present
    try:
        if column.kind is Kind.POINT:
            return column._replace(values=points_in_degrees(cast("Floats", column.values), there))
        objects = zip(cast("list[Any]", column.values), there.tolist(), strict=True)
        moved = [value_in_degrees(each) if present else each for each, present in objects]
    except InvalidValue as error:
        raise InvalidValue(f"attribute {column.name!r}: {error}") from None
    return column._replace(values=moved, boxes=None)


def encode_columns(given: Columns, names: Mapping[str, int]) -> Encoded:
    """The batch of some notifications, the plugged-in values in them, and the most attributes that one has.

    Columns whose name no constraint speaks of are left out, unread.
    """
    columns = [column for column in given.columns if column.name in names]
    if folded := getattr(names, "folded", None):
        strings = [c for c in given.columns if c.kind is Kind.STRING and c.name in folded]
        columns += [c._replace(name=folded[c.name], values=_folded(cast("Text", c.values))) for c in strings]
    count = given.size
    rows = np.empty((count, len(columns), 2), np.int64)
    floats: list[Floats] = []
    used = 0  # of floats
    next_point = 0
    values = _points_of(columns, names)
    for place, column in enumerate(columns):
        name = names[column.name]
        code = name << 8 | KIND[column.kind]
        cells = rows[:, place]
        cells[:, 0] = code
        if column.kind is Kind.STRING:
            cells[:, 1] = np.diff(cast("Text", column.values).offsets)
        elif column.kind is Kind.POINT:
            numbers, next_point = _numbers(column, next_point)
            cells[:, 1] = numbers << 32 | (used + 2 * np.arange(count))
            floats.append(cast("Floats", column.values).ravel())
            used += 2 * count
        elif KIND[column.kind] >= layout.PLUGGED:
            cells[:, 1] = _add_plugged(values, name, column)
        elif cast("NDArray[Any]", column.values).dtype == np.float64:
            cells[:, 0] = name << 8 | FLOAT
            cells[:, 1] = np.arange(used, used + count)
            floats.append(_finite(column))
            used += count
        else:
            cells[:, 1] = cast("NDArray[Any]", column.values)
    present = _presence(columns, count)
    text = _interleave(columns, present, count)
    if present is None:
        ends = np.arange(1, count + 1, dtype=np.int64) * len(columns)
        packed = rows.reshape(-1, 2)
    else:
        ends = np.cumsum(present.sum(axis=1), dtype=np.int64)
        packed = rows[present]
    return Batch(packed, ends, np.concatenate([*floats, _NO_FLOATS]), text), values, len(columns)


def _folded(text: Text) -> Text:
    """A column of strings with their case folded."""
    data, offsets = text.data.tobytes(), text.offsets.tolist()
    folded = [data[start:end].decode().casefold().encode() for start, end in pairwise(offsets)]
    ends = np.cumsum([0, *map(len, folded)], dtype=np.int64)
    return Text(ends, np.frombuffer(b"".join(folded), np.uint8))


def encode_given(notifications: Columns | Sequence[Mapping[str, object]], names: Mapping[str, int]) -> Encoded:
    """The batch of notifications that are given by columns or one by one."""
    if isinstance(notifications, Columns):
        return encode_columns(notifications, names)
    return encode_notifications(notifications, names)


_NO_FLOATS: Final = np.zeros(0, np.float64)


def _finite(column: Column) -> Floats:
    numbers = cast("Floats", column.values)
    fine = np.isfinite(numbers)
    if not (fine if column.present is None else fine | ~column.present).all():
        raise InvalidValue(f"attribute {column.name!r}: a number must be finite; one is NaN or infinite")
    return numbers


def _presence(columns: Sequence[Column], count: int) -> NDArray[np.bool_] | None:
    if all(column.present is None for column in columns):
        return None
    present = np.ones((count, len(columns)), np.bool_)
    for place, column in enumerate(columns):
        if column.present is not None:
            present[:, place] = column.present
    return present


def _points_of(columns: Sequence[Column], names: Mapping[str, int]) -> Values:
    """The points of all columns, which come before other values; no object is made of one."""
    points = [column for column in columns if column.kind is Kind.POINT]
    if not points:
        return Values()
    xy = [cast("Floats", c.values) if c.present is None else cast("Floats", c.values)[c.present] for c in points]
    of = np.repeat([names[column.name] for column in points], [len(each) for each in xy])
    return Values(PointColumn(np.ascontiguousarray(np.concatenate(xy), np.float64)), of.tolist())


def _numbers(column: Column, first: int) -> tuple[Ints, int]:
    """The numbers of the values of a column that are there, from `first` on, 0 where there is none; the next number."""
    if column.present is None:
        length = len(cast("NDArray[Any] | list[Any]", column.values))
        return np.arange(first, first + length), first + length
    numbers = first + np.cumsum(column.present)
    return np.where(column.present, numbers - 1, 0), int(numbers[-1]) if len(numbers) else first


def _add_plugged(values: Values, name: int, column: Column) -> Ints:
    """Number the values that are there; the numbers, 0 where there is none."""
    if isinstance(column.values, Texts):
        return _add_texts(values, name, column, column.values)
    objects = cast("list[Any]", column.values)
    numbers, _ = _numbers(column, len(values.values))
    present = repeat(True) if column.present is None else column.present.tolist()
    for each, is_there in zip(objects, present, strict=False):
        if is_there:
            values.add(name, KIND[column.kind], each)
    return numbers


def _add_texts(values: Values, name: int, column: Column, texts: Texts) -> Ints:
    """As `_add_plugged`, of geotext that stays a column."""
    numbers, _ = _numbers(column, len(values.values))
    if column.present is not None:
        texts = texts.take(np.flatnonzero(column.present))
    values.add_texts(name, KIND[Kind.GEOTEXT], texts)
    return numbers


def _interleave(columns: Sequence[Column], present: NDArray[np.bool_] | None, count: int) -> Bytes:
    """The strings of all columns as kernels meet them: notification by notification, column by column."""
    places = [place for place, column in enumerate(columns) if column.kind is Kind.STRING]
    if not places:
        return _PADDING
    texts = [cast("Text", columns[place].values) for place in places]
    starts = np.empty((count, len(texts)), np.int64)
    lengths = np.empty((count, len(texts)), np.int64)
    base = 0
    for at, text in enumerate(texts):
        starts[:, at] = text.offsets[:-1] + base
        lengths[:, at] = np.diff(text.offsets)
        base += len(text.data)
    if present is not None:
        lengths[~present[:, places]] = 0
    data = texts[0].data if len(texts) == 1 else np.concatenate([text.data for text in texts])
    flat = lengths.ravel()
    ends = np.cumsum(flat)
    total = int(ends[-1]) if len(ends) else 0
    where = np.repeat(starts.ravel() - (ends - flat), flat) + np.arange(total)
    return np.concatenate((data[where], _PADDING))
