"""Notifications and filters into the flat batches that kernels read (batch.py), in one pass over Python objects.

All names and values are checked: integers of 64 bits, finite floats, times with a zone, strings that UTF-8 can encode.
Attributes whose name no constraint speaks of are then dropped. About a quarter of a microsecond per attribute.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, overload

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.kernels.match.batch import FLOAT, Batch
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.values import (
    INT_MAX,
    INT_MIN,
    MAX_NAME,
    Kind,
    check_name,
    check_notification,
    microseconds,
    take_value,
)
from contrada.spatial.geometry.point import Point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from numpy.typing import NDArray

    from contrada.forwarding.batches.texts import Texts
    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.operands import ValueSet

KIND: Final = {
    Kind.NUMBER: layout.NUMBER,
    Kind.STRING: layout.STRING,
    Kind.BOOL: layout.BOOL,
    Kind.TIME: layout.TIME,
    Kind.POINT: layout.POINT,
    Kind.REGION: layout.REGION,
    Kind.LINE: layout.REGION,  # the type of regions is asked about lines too
    Kind.GEOTEXT: layout.GEOTEXT,
    Kind.SET: layout.SET,
}
OPERATOR: Final = {
    Operator.EQ: layout.EQ,
    Operator.NE: layout.NE,
    Operator.LT: layout.LT,
    Operator.LE: layout.LE,
    Operator.GT: layout.GT,
    Operator.GE: layout.GE,
    Operator.EXISTS: layout.EXISTS,
    Operator.IN: layout.IN,
    Operator.PREFIX: layout.PREFIX,
    Operator.SUFFIX: layout.SUFFIX,
    Operator.CONTAINS: layout.CONTAINS,
    Operator.NOT_EXISTS: layout.ABSENT,
    Operator.NOT_SUFFIX: layout.NOT,
    Operator.NOT_CONTAINS: layout.NOT,
    Operator.NOT_LIKE: layout.NOT,
    Operator.LIKE: layout.LIKE,
}
_REFUSED: Final = {
    Operator.NOT_SUFFIX: layout.PATTERN_SUFFIX,
    Operator.NOT_CONTAINS: layout.PATTERN_CONTAINS,
    Operator.NOT_LIKE: layout.PATTERN_LIKE,
}
_PADDING: Final = "\0" * 8


class Writer:
    """A batch being written."""

    __slots__ = ("ends", "floats", "rows", "strings")

    def __init__(
        self,
        rows: list[int] | None = None,
        ends: list[int] | None = None,
        floats: list[float] | None = None,
        strings: list[str] | None = None,
    ) -> None:
        self.rows: list[int] = [] if rows is None else rows
        self.ends: list[int] = [] if ends is None else ends
        self.floats: list[float] = [] if floats is None else floats
        self.strings: list[str] = [] if strings is None else strings

    def scalar(self, code: int, kind: Kind, value: object, number: int = 0) -> None:
        """Write a row: `code` is name and operator, `number` that of a plugged-in value."""
        if kind is Kind.STRING:
            self.strings.append(cast("str", value))
            self.rows += (code | layout.STRING, _bytes_of(cast("str", value)))
        elif kind is Kind.NUMBER:
            if type(value) is float:
                self.rows += (code | FLOAT, len(self.floats))
                self.floats.append(value)
            else:
                self.rows += (code | layout.NUMBER, cast("int", value))
        elif kind is Kind.BOOL:
            self.rows += (code | layout.BOOL, int(cast("bool", value)))
        elif kind is Kind.TIME:
            self.rows += (code | layout.TIME, microseconds(cast("datetime", value)))
        elif kind is Kind.POINT:
            point = cast("Point", value)
            self.rows += (code | layout.POINT, number << 32 | len(self.floats))
            self.floats += (point.x, point.y)
        else:
            self.rows += (code | KIND[kind], number)

    def end(self) -> None:
        """Close a notification or filter."""
        self.ends.append(len(self.rows) >> 1)

    def batch(self) -> Batch:
        """The arrays."""
        return as_batch(self.rows, self.ends, self.floats, self.strings)


def as_batch(rows: list[int], ends: list[int], floats: list[float], strings: list[str]) -> Batch:
    """The arrays of a batch; `InvalidValue` for an integer beyond 64 bits or a float that is not finite."""
    try:
        numbers = array("q", rows)
    except OverflowError:
        raise InvalidValue("an integer must fit in 64 bits") from None
    reals = _NO_FLOATS
    if floats:
        reals = np.frombuffer(array("d", floats), np.float64)
        if not all(map(isfinite, floats)):
            raise InvalidValue("a number must be finite, not NaN or infinite")
    strings.append(_PADDING)
    return Batch(
        np.frombuffer(numbers, np.int64).reshape(-1, 2) if rows else _NO_ROWS,
        np.frombuffer(array("q", ends), np.int64),
        reals,
        np.frombuffer(bytearray("".join(strings).encode()), np.uint8),
    )


_NO_ROWS: Final = np.zeros((0, 2), np.int64)
_NO_FLOATS: Final = np.zeros(0, np.float64)


class PointColumn(Sequence[Point]):
    """Points as their coordinates, (n, 2): objects only where somebody asks for one."""

    __slots__ = ("xy",)

    def __init__(self, xy: NDArray[np.float64]) -> None:
        self.xy = xy

    def __len__(self) -> int:
        return len(self.xy)

    @overload
    def __getitem__(self, place: int) -> Point: ...
    @overload
    def __getitem__(self, place: slice) -> PointColumn: ...
    def __getitem__(self, place: int | slice) -> Point | PointColumn:
        if isinstance(place, slice):
            return PointColumn(self.xy[place])
        x, y = self.xy[place].tolist()
        return Point.unchecked(x, y)


class Values:
    """The plugged-in values of a batch, by their numbers, with the names they came under.

    Geotext that came as a column stays one: `texts` has it, with the number of its first, and None stands for each
    until it is asked for as an object (`make`).
    """

    __slots__ = ("kinds", "names", "texts", "values")

    def __init__(self, points: PointColumn | None = None, names: Sequence[int] = ()) -> None:
        self.texts: list[tuple[int, Texts]] = []
        self.values: list[Any] | PointColumn = [] if points is None else points
        self.names: list[int] = [*names]
        self.kinds: list[int] = [layout.POINT] * len(self.names)

    @property
    def are_points(self) -> bool:
        """Whether all are points, or of kind 0: nobody's."""
        return self.kinds.count(layout.POINT) + self.kinds.count(0) == len(self.kinds)

    def add(self, name: int, kind: int, value: object) -> int:
        """The number of a value."""
        self._as_list().append(value)
        self.names.append(name)
        self.kinds.append(kind)
        return len(self.values) - 1

    def add_texts(self, name: int, kind: int, texts: Texts) -> None:
        """Add a column of geotext."""
        self.texts.append((len(self.values), texts))
        values = self._as_list()
        values += [None] * len(texts)
        self.names += [name] * len(texts)
        self.kinds += [kind] * len(texts)

    def _as_list(self) -> list[Any]:
        """All values, in a list: what follows points is no point."""
        if isinstance(self.values, PointColumn):
            self.values = [*self.values]
        return self.values

    def make(self, numbers: Iterable[int]) -> Sequence[Any]:
        """The values, of which those of these numbers are objects."""
        if self.texts:
            values = self._as_list()
            for number in numbers:
                if values[number] is None:
                    first, texts = next(run for run in reversed(self.texts) if run[0] <= number)
                    values[number] = texts[number - first]
        return self.values


_NO_VALUES: Final = Values()
Encoded: TypeAlias = tuple[Batch, Values, int]
"""A batch, its plugged-in values, and how many attributes the widest notification in it has."""


def encode_notifications(notifications: Sequence[Any], names: Mapping[str, int]) -> Encoded:
    """The batch of some notifications, the plugged-in values in them, and how many attributes the widest has."""
    try:
        return _encode_notifications(notifications, names)
    except InvalidValue:
        if not any(isinstance(each, Mapping) and any(map(_is_nested, each.values())) for each in notifications):
            raise
    return _encode_notifications([check_notification(each) for each in notifications], names)


def _is_nested(value: object) -> bool:
    """Whether a value is what only notifications that are handed over may hold: absence, or attributes inside."""
    return value is None or isinstance(value, Mapping)


def _encode_notifications(notifications: Sequence[Any], names: Mapping[str, int]) -> Encoded:
    """The batch of some notifications, the plugged-in values in them, and how many attributes the widest has."""
    if folded := getattr(names, "folded", None):
        notifications = [_with_twins(each, folded) for each in notifications]
    rows: list[int] = []
    ends: list[int] = []
    floats: list[float] = []
    strings: list[str] = []
    append = rows.append
    known = names.get
    values = None
    start = widest = 0
    for notification in notifications:
        if type(notification) is not dict and not isinstance(notification, Mapping):
            what = type(notification).__name__
            raise InvalidValue(f"a notification is a mapping of names to values, not a {what}")
        for name, value in notification.items():
            number = known(name)
            if number is None:
                _check_dropped(name, value)
                continue
            code = number << 8
            kind = type(value)
            if kind is str:
                append(code | _STRING)
                try:
                    append(len(value) if value.isascii() else len(value.encode()))
                except UnicodeEncodeError:
                    raise InvalidValue(f"attribute {name!r}: a lone surrogate cannot be encoded as UTF-8") from None
                strings.append(value)
            elif kind is int:
                append(code | _NUMBER)
                append(value)
            elif kind is float:
                append(code | FLOAT)
                append(len(floats))
                floats.append(value)
            elif kind is bool:
                append(code | _BOOL)
                append(1 if value else 0)
            else:
                values = values or Values()
                if kind is Point:
                    append(code | _POINT)
                    append(values.add(number, _POINT, value) << 32 | len(floats))
                    floats += (value.x, value.y)
                else:
                    _unusual(Writer(rows, ends, floats, strings), values, name, number, value)
        end = len(rows) >> 1
        ends.append(end)
        # Counted, not asked of the mapping: kernels trust it.
        if end - start > widest:
            widest = end - start
        start = end
    try:
        return as_batch(rows, ends, floats, strings), values or _NO_VALUES, widest
    except InvalidValue:
        for notification in notifications:
            check_notification(notification)  # says which attribute it is
        raise


def _with_twins(notification: Any, folded: Mapping[str, str]) -> Any:
    """A notification with the folded twins of its strings that filters ask for (indexed.py)."""
    if not isinstance(notification, Mapping):
        return notification  # it will be refused
    found = [(folded[name], value) for name, value in notification.items() if name in folded and isinstance(value, str)]
    return {**notification, **{twin: value.casefold() for twin, value in found}} if found else notification


def _check_dropped(name: str, value: object) -> None:
    """Refuse an attribute that no notification may have, although no constraint speaks of it."""
    kind = type(value)
    if type(name) is str and 0 < len(name) <= MAX_NAME and name.isascii():
        if kind is int:
            if INT_MIN <= value <= INT_MAX:  # type: ignore[operator]  # the type was compared
                return
        elif kind is float:
            if value - value == 0.0:  # type: ignore[operator]  # neither NaN nor infinite
                return
        elif kind is bool or (kind is str and value.isascii()):  # type: ignore[attr-defined]  # the type was compared
            return
    try:
        check_name(name)
        take_value(value)
    except InvalidValue as error:
        raise InvalidValue(f"attribute {name!r}: {error}") from None


_STRING: Final = layout.STRING
_NUMBER: Final = layout.NUMBER
_BOOL: Final = layout.BOOL
_POINT: Final = layout.POINT
_STRINGS: Final = Kind.STRING
_NUMBERS: Final = Kind.NUMBER


def _unusual(writer: Writer, values: Values, name: str, number: int, value: object) -> None:
    try:
        kind, checked = take_value(value)
    except InvalidValue as error:
        raise InvalidValue(f"attribute {name!r}: {error}") from None
    place = values.add(number, KIND[kind], checked) if KIND[kind] >= layout.POINT else 0
    writer.scalar(number << 8, kind, checked, place)


def encode_constraint(
    writer: Writer, name: int, constraint: Constraint, handle: Callable[[int, int, Constraint], int]
) -> None:
    """Write a constraint; `handle(kind, name, constraint)` numbers those of plugged-in types."""
    kind = constraint.kind
    if kind is _STRINGS:
        text: str = constraint.value  # type: ignore[assignment]  # the kind says it is a string
        writer.strings.append(text)
        pattern = _REFUSED.get(constraint.op, 0)
        writer.rows += (name << 8 | OPERATOR[constraint.op] << 4 | _STRING, pattern << 32 | _bytes_of(text))
    elif kind is _NUMBERS and type(constraint.value) is int:
        writer.rows += (name << 8 | OPERATOR[constraint.op] << 4 | _NUMBER, constraint.value)
    elif kind is None:
        code = name << 8 | OPERATOR[constraint.op] << 4
        if constraint.value is None:
            writer.rows += (code, 0)
            return
        members: ValueSet = cast("ValueSet", constraint.value)
        writer.rows += (code, len(members))
        for member_kind, value in members.members:
            writer.scalar(name << 8, member_kind, value)
    elif KIND[kind] >= layout.PLUGGED:
        writer.rows += (name << 8 | layout.PLUG << 4 | KIND[kind], handle(KIND[kind], name, constraint))
    else:
        writer.scalar(name << 8 | OPERATOR[constraint.op] << 4, kind, constraint.value)


def _bytes_of(text: str) -> int:
    """How many bytes a string is in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def as_ints(numbers: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A list of integers as an array."""
    return np.array(numbers, np.int64)
