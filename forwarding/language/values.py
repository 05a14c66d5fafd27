"""The values a notification may hold: what is accepted, and the one form it is kept in.

| kind    | accepted                                              | kept as                          |
| ------- | ----------------------------------------------------- | -------------------------------- |
| BOOL    | bool, numpy bool                                      | bool                             |
| NUMBER  | int of 64 bits, finite float, numpy integer or float  | int or float                     |
| STRING  | str that UTF-8 can encode                             | str                              |
| TIME    | datetime with a time zone                             | datetime in UTC, microseconds    |
| POINT   | Point                                                 | Point                            |
| REGION  | Region, Box                                           | the same                         |
| LINE    | Line                                                  | the same                         |
| GEOTEXT | GeoText                                               | the same                         |
| SET     | list, tuple, set of strings and numbers               | SetValue                         |

A constraint never holds on a value of another kind, so a kind is also the first thing an index asks of a value. Values
of different kinds are never equal here, although `True == 1` in Python: compare `(kind, value)` pairs. Numbers of both
types are one kind, and Python compares and hashes int and float exactly.

Scalars are recognised by their exact type in one dictionary look-up. The spatial types live in a module that loads
numba, so it is imported only when a value of an unknown type turns up.

`take_value` is the border for what an application hands over, whether it publishes or matches: a GeoJSON mapping, a
shapely geometry or anything else with a `__geo_interface__` becomes the Point, Line or Region that it is. Text stays
text: WKT is a string unless `Region.of` reads it. `check_value` is for what comes by wire, where a map is no value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from contrada.errors import InvalidValue
from contrada.forwarding.language.set_value import SetValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.lines.line import Line
    from contrada.spatial.textual.geotext import GeoText

    Value: TypeAlias = bool | int | float | str | datetime | Point | Region | Line | GeoText | SetValue
    Notification: TypeAlias = Mapping[str, Value]

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
MAX_NAME: Final = 255
NESTED: Final = 16  # mappings inside one another, at most
_GEOJSON: Final = frozenset(
    ("Point", "Polygon", "MultiPolygon", "LineString", "MultiPoint", "MultiLineString", "GeometryCollection", "Time")
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Kind(IntEnum):
    """The kinds of values, in the order in which mixed values are sorted."""

    BOOL = 0
    NUMBER = 1
    STRING = 2
    TIME = 3
    POINT = 4
    REGION = 5
    GEOTEXT = 6
    LINE = 7
    SET = 8


def check_name(name: object) -> str:
    """The name itself, if it is one: a non-empty string of at most `MAX_NAME` characters that UTF-8 can encode."""
    if type(name) is str and name.isascii() and 0 < len(name) <= MAX_NAME:
        return name
    if not isinstance(name, str):
        raise InvalidValue(f"an attribute's name must be a string, not {type(name).__name__}")
    if not name:
        raise InvalidValue("an attribute's name must not be empty")
    if len(name) > MAX_NAME:
        raise InvalidValue(f"an attribute's name has at most {MAX_NAME} characters; this one has {len(name)}")
    return check_string(name, "an attribute's name")


def check_string(text: str, what: str = "a string") -> str:
    """The text as a plain `str`; `InvalidValue` when it holds a lone surrogate, which UTF-8 cannot carry."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(
                f"{what} holds a lone surrogate, U+{ord(text[error.start]):04X} at {error.start}, "
                "which cannot be encoded as UTF-8"
            ) from None
    return str(text)


def check_int(value: int) -> int:
    """The integer itself, if it fits in 64 bits with a sign."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise InvalidValue(f"an integer must fit in 64 bits; this one has {value.bit_length()} and a sign")


def check_float(value: float) -> float:
    """The float itself, if it is finite."""
    if math.isfinite(value):
        return value
    raise InvalidValue(f"a number must be finite, not {value}")


def check_time(value: datetime) -> datetime:
    """The same instant in UTC."""
    if value.utcoffset() is None:
        raise InvalidValue(
            f"a datetime needs a time zone, and {value.isoformat()} has none: "
            "say which with value.replace(tzinfo=...), or value.astimezone() for local time"
        )
    if value.tzinfo is UTC and type(value) is datetime and not value.fold:
        return value
    try:
        return _EPOCH + (value - _EPOCH)
    except OverflowError:
        raise InvalidValue(f"{value.isoformat()} lies outside the years 1 to 9999 in UTC") from None


def microseconds(value: datetime) -> int:
    """A time's place on the integer line: microseconds since 1970 in UTC."""
    return (value - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """The inverse of `microseconds`; `InvalidValue` outside the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(microseconds=count)
    except OverflowError:
        raise InvalidValue(f"{count} microseconds since 1970 lies outside the years 1 to 9999") from None


def _listed(value: object) -> SetValue:
    return SetValue(cast("Iterable[object]", value))


# What to do with a value of exactly this type. Filled with the spatial types once one has been seen.
_CHECKS: dict[type, tuple[Kind, Callable[[object], Value] | None]] = {
    bool: (Kind.BOOL, None),
    int: (Kind.NUMBER, cast("Callable[[object], Value]", check_int)),
    float: (Kind.NUMBER, cast("Callable[[object], Value]", check_float)),
    str: (Kind.STRING, cast("Callable[[object], Value]", check_string)),
    datetime: (Kind.TIME, cast("Callable[[object], Value]", check_time)),
    SetValue: (Kind.SET, None),
    list: (Kind.SET, _listed),
    tuple: (Kind.SET, _listed),
    set: (Kind.SET, _listed),
    frozenset: (Kind.SET, _listed),
}


def check_value(value: object) -> tuple[Kind, Value]:
    """A value's kind and the form it is kept in; `InvalidValue` says why when no notification may hold it."""
    known = _CHECKS.get(type(value))
    if known is None:
        return _check_unusual(value)
    kind, check = known
    return kind, cast("Value", value) if check is None else check(value)


def take_value(value: object) -> tuple[Kind, Value]:
    """As `check_value`, of what an application hands over: shapes of other libraries become points and regions."""
    known = _CHECKS.get(type(value))
    if known is None:
        return _check_unusual(_own_shape(value) if is_foreign_shape(value) else value)
    kind, check = known
    return kind, cast("Value", value) if check is None else check(value)


def is_foreign_shape(value: object) -> bool:
    """Whether a value is a shape of another library, or a mapping, which may be GeoJSON."""
    if type(value) in _CHECKS or type(value).__module__.startswith("contrada."):
        return False
    return isinstance(value, Mapping) or hasattr(value, "__geo_interface__")


def with_own_shapes(notification: Mapping[str, object]) -> Mapping[str, object]:
    """The notification itself, unless it holds shapes of other libraries: then a checked one with ours instead."""
    if isinstance(notification, Mapping) and any(map(is_foreign_shape, notification.values())):
        return check_notification(notification)
    return notification


def _own_shape(value: object) -> object:
    from contrada.spatial.geometry.region import Point, Region
    from contrada.spatial.geometry.shapes import geometry_of

    geometry = geometry_of(value)
    if geometry is None:
        raise InvalidValue("neither GeoJSON nor a shape")
    if geometry.kind.endswith("LineString"):
        from contrada.spatial.lines.line import Line

        return Line.of(value)
    return Point.of(value) if geometry.kind == "Point" else Region.of(value)


def kind_of(value: Value) -> Kind:
    """The kind of a value already in its kept form."""
    known = _CHECKS.get(type(value))
    return _check_unusual(value)[0] if known is None else known[0]


def is_point(value: object) -> bool:
    """Whether something is a point that `kind_of` has been asked about, or one like it."""
    known = _CHECKS.get(type(value))
    return known is not None and known[0] is Kind.POINT


def is_line(value: object) -> bool:
    """As `is_point`, of lines."""
    known = _CHECKS.get(type(value))
    return known is not None and known[0] is Kind.LINE


def check_notification(notification: Mapping[str, object]) -> dict[str, Value]:
    """A new notification with every name checked and every value taken; `InvalidValue` names the attribute at fault.

    Nested mappings become attributes with dotted names, and None is absence.
    """
    if not isinstance(notification, Mapping):
        raise InvalidValue(f"a notification is a mapping of names to values, not {type(notification).__name__}")
    checked: dict[str, Value] = {}
    for name, value in notification.items():
        try:
            if value is None:
                check_name(name)
            elif isinstance(value, Mapping) and not is_geojson(value):
                for inner, each in flatten(value, name).items():
                    checked[check_name(inner)] = take_value(each)[1]
            else:
                checked[check_name(name)] = take_value(value)[1]
        except InvalidValue as error:
            raise InvalidValue(f"attribute {name!r}: {error}") from None
    return checked


def is_geojson(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a shape, a time or geotext rather than nested attributes: it says so by its type."""
    kind = value.get("type")
    return (type(kind) is str and kind in _GEOJSON) or (kind == "Feature" and "geometry" in value)


def flatten(nested: Mapping[Any, Any], prefix: str = "", depth: int = 1) -> dict[str, object]:
    """Members of nested mappings under dotted names, `engine.rpm`; what is None is absent."""
    flat: dict[str, object] = {}
    for name, value in nested.items():
        if type(name) is not str:
            raise InvalidValue(f"the name of a nested attribute is a string, not {type(name).__name__}")
        full = f"{prefix}.{name}" if prefix else name
        if value is None:
            continue
        if isinstance(value, Mapping) and not is_geojson(value):
            if depth == NESTED:
                raise InvalidValue(f"objects are nested more than {NESTED} deep")
            inner = flatten(value, full, depth + 1)
        else:
            inner = {full: value}
        if twice := flat.keys() & inner.keys():
            raise InvalidValue(f"{min(twice)!r} is there twice: as a dotted name, and in a nested object")
        flat |= inner
    return flat


def _check_unusual(value: object) -> tuple[Kind, Value]:
    """Subclasses, numpy scalars, and the first value of each spatial type."""
    import numpy as np

    if isinstance(value, np.generic):
        plain = value.item()
        if type(plain) in (bool, int, float, str):
            return check_value(plain)
        raise InvalidValue(f"a numpy {type(value).__name__} is not a value: give a datetime, number, string or bool")
    for scalar in (int, float, str):  # bool cannot be subclassed
        if isinstance(value, scalar):
            return check_value(scalar(value))
    if isinstance(value, datetime):
        return Kind.TIME, check_time(value)

    from contrada.spatial.geometry.point import Point
    from contrada.spatial.textual.geotext import GeoText

    if isinstance(value, Point):
        kind = Kind.POINT
    elif isinstance(value, GeoText):
        kind = Kind.GEOTEXT
    else:
        from contrada.spatial.geometry.region import Region
        from contrada.spatial.lines.line import Line

        if not isinstance(value, Region | Line):
            raise InvalidValue(
                f"{_type_name(value)} is not a type of value: "
                "use bool, int, float, str, datetime, Region, Line, Point, GeoText or a list of strings and numbers"
            )
        kind = Kind.LINE if isinstance(value, Line) else Kind.REGION
    _CHECKS[type(value)] = (kind, None)
    return kind, cast("Value", value)


def _type_name(value: object) -> str:
    """A type's name, with its module where it is somebody else's Point or Region."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
