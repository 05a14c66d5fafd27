"""Values, notifications and filters to and from msgpack: what goes over the wire and into durable storage.

    notification  map of name to value
    filter        array of constraints; predicate: array of filters. `encode_filter` always writes a predicate
    constraint    [name, operator, operand], or [name, "exists"]
    operand       a value; for `in` an array of values; for `matches` [keywords, region or nil]; for `similar`
                  [keywords, point, alpha, tau]
    value         msgpack's own bool, int, float64 and str; and ext types, doubles little-endian:
                  -1 time      msgpack's timestamp
                   1 point     x y
                   2 region    x y of each vertex, unclosed
                   3 box       x1 y1 x2 y2
                   4 geotext   msgpack [point or box, keywords]

Encoding raises `InvalidValue` for what no notification may hold. Decoding trusts nothing: `Limits` bound every size, a
region is validated anew, repeated names are refused, and whatever is wrong raises `CodecError` with the reason and
nothing else. Depth needs no limit of its own: the format fixes it, and msgpack's parser does not recurse.

A notification of scalars costs one pass in C and one short loop here; the spatial types are loaded when one is met.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter, Predicate, as_filters
from contrada.forwarding.language.operands import Similar, TextMatch, ValueSet
from contrada.forwarding.language.values import (
    INT_MAX,
    INT_MIN,
    MAX_NAME,
    Kind,
    check_notification,
    check_value,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contrada.forwarding.language.filter import Expression
    from contrada.forwarding.language.values import Value
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Box, Region
    from contrada.spatial.textual.geotext import GeoText

POINT: Final = 1
REGION: Final = 2
BOX: Final = 3
GEOTEXT: Final = 4

_PAIR: Final = struct.Struct("<2d")
_CORNERS: Final = struct.Struct("<4d")
_MAP16: Final = struct.Struct(">H")
_MAP32: Final = struct.Struct(">I")
_SELF_CONTAINED: Final = frozenset((bool, str, datetime))
_MALFORMED: Final = (BufferError, ValueError, TypeError, OverflowError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Limits:
    """What a decoder accepts at most.

    `size`, `string_length` and `pattern_length` count bytes (of UTF-8); `name_length`, characters.
    """

    size: int = 4 << 20
    attributes: int = 256
    name_length: int = MAX_NAME
    string_length: int = 1 << 20
    pattern_length: int = 256  # of `contains`: each doubling costs a search one more probe at every place of a text
    vertices: int = 10_000
    keywords: int = 4096
    wanted: int = 256  # keywords that one constraint asks for
    text: int = 1 << 18  # bytes of all geotext of a notification: reading and looking up words takes 0.2 µs each
    filters: int = 1024
    constraints: int = 256
    set_size: int = 4096

    @cached_property
    def _unpacking(self) -> dict[str, Any]:
        """Options for msgpack, made once."""
        widest = max(self.filters, self.constraints, self.set_size, self.keywords, 4)
        return {
            "strict_map_key": True,
            "timestamp": 3,
            "ext_hook": self._ext_hook,
            "max_str_len": self.string_length,
            "max_bin_len": 0,
            "max_array_len": widest,
            "max_map_len": self.attributes,
            "max_ext_len": self.size,
        }

    @cached_property
    def _unpacking_notification(self) -> dict[str, Any]:
        """As `_unpacking`, geotext left packed: how much there is of it is known when all has been seen."""
        hook = self._ext_hook
        return self._unpacking | {
            "ext_hook": lambda code, data: msgpack.ExtType(code, data) if code == GEOTEXT else hook(code, data)
        }

    @cached_property
    def _ext_hook(self) -> Callable[[int, bytes], Value]:
        return lambda code, data: _decode_ext(code, data, self)


DEFAULT_LIMITS: Final = Limits()
_READ_AT_ONCE: Final = 1 << 16  # bytes of filters: some thousand vertices, a few milliseconds
_MOST: Final = 1 << 31
NO_LIMITS: Final = Limits(
    size=_MOST,
    string_length=_MOST,
    pattern_length=_MOST,
    vertices=_MOST,
    keywords=_MOST,
    wanted=_MOST,
    text=_MOST,
    filters=_MOST,
    constraints=_MOST,
    set_size=_MOST,
)
"""For what this library has written itself: what was taken once is taken back. Limits are for strangers."""


def encode_notification(notification: Mapping[str, object]) -> bytes:
    """A notification as msgpack, its values checked and normalised."""
    if type(notification) is not dict or not _is_plain(notification):
        notification = check_notification(notification)
    return _pack(notification)


def decode_notification(data: bytes, limits: Limits = DEFAULT_LIMITS) -> dict[str, Value]:
    """The notification that `encode_notification` wrote; `CodecError` for anything else."""
    notification = _unpack(data, limits, limits._unpacking_notification)
    if type(notification) is not dict:
        raise CodecError(f"a notification is a map, not {_describe(notification)}")
    if _map_length(data) != len(notification):
        raise CodecError("a notification with a repeated name")
    longest = limits.name_length
    texts = 0
    for name, value in notification.items():
        if type(name) is not str or not 0 < len(name) <= longest:
            raise CodecError(_wrong_name(name, longest))
        kind = type(value)
        if kind is int:
            if value > INT_MAX:
                raise CodecError(f"attribute {name!r}: {value} does not fit in 64 bits with a sign")
        elif kind is float:
            if value - value != 0.0:
                raise CodecError(f"attribute {name!r}: {value} is not finite")
        elif kind is msgpack.ExtType:
            texts += len(value.data)
            if texts > limits.text:
                raise CodecError(f"attribute {name!r}: {texts} bytes of geotext, more than the limit of {limits.text}")
            notification[name] = _unpacked(_decode_ext, value.code, value.data, limits)
        elif kind not in _SELF_CONTAINED and not _is_spatial(value):
            raise CodecError(f"attribute {name!r}: {_describe(value)} is not a value")
    return cast("dict[str, Value]", notification)


def encode_value(value: object) -> bytes:
    """One value as msgpack."""
    return _pack(check_value(value)[1])


def decode_value(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Value:
    """The value that `encode_value` wrote."""
    return _checked(_unpack(data, limits))


def encode_filter(expression: Expression) -> bytes:
    """A constraint, filter or predicate as msgpack."""
    return _pack([[_constraint_array(c) for c in each.constraints] for each in as_filters(expression)])


def decode_filter(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Filter | Predicate:
    """The filter, or the predicate of several, that `encode_filter` wrote."""
    try:
        document = _unpack(data, limits)
    except CodecError as error:
        if "max_array_len" not in str(error):
            raise
        most = f"a predicate has at most {limits.filters} filters, each of at most {limits.constraints} constraints"
        raise CodecError(f"{error}; {most}") from None
    return build_predicate(document, limits, _constraint_of)


def prepare_filters(encoded: Sequence[bytes], limits: Limits = DEFAULT_LIMITS) -> list[Filter | Predicate]:
    """As `decode_filter` of each: reading and validating, nothing else. May run in any thread.

    Validating a ring takes O(n log n) in compiled code that does not hold the interpreter: a server that has others to
    serve leaves what is `costly` to a thread, and holds back what the same client sends meanwhile.
    """
    return [decode_filter(each, limits) for each in encoded]


def costly(encoded: Sequence[bytes]) -> bool:
    """Whether reading these filters may take longer than a server should make others wait: they are some size."""
    return sum(map(len, encoded)) > _READ_AT_ONCE


def build_predicate(
    document: object, limits: Limits, constraint_of: Callable[[object, Limits], Constraint]
) -> Filter | Predicate:
    """A decoded array of arrays of constraints as a filter or predicate; shared with the JSON codec."""
    filters = []
    for index, items in enumerate(listed(document, "filters", limits.filters)):
        constraints = []
        for item in listed(items, f"constraints in filter {index}", limits.constraints):
            try:
                constraints.append(constraint_of(item, limits))
            except InvalidValue as error:
                raise CodecError(f"filter {index}: {error}") from None
        filters.append(Filter(constraints))
    predicate = Predicate(filters)
    return predicate if len(predicate) > 1 else predicate.filters[0]


def build_constraint(name: object, word: object, operand: object, limits: Limits) -> Constraint:
    """A constraint of decoded parts: containers still lists, values already of their types."""
    if type(name) is not str or not 0 < len(name) <= limits.name_length:
        raise CodecError(_wrong_name(name, limits.name_length))
    try:
        op = Operator(cast("str", word))
    except ValueError:
        raise CodecError(f"{_describe(word)} is not an operator") from None
    if op is Operator.IN:
        members = listed(operand, "values of in", limits.set_size)
        return Constraint(name, op, ValueSet(_checked(member) for member in members))
    if op is Operator.MATCHES:
        keywords, within = _parts(operand, op, 2)
        if within is not None:
            within = region(within)
        words, make = _words_of(keywords, limits), TextMatch.trusted if limits is NO_LIMITS else TextMatch
        return Constraint(name, op, make(words, within))
    if op is Operator.SIMILAR:
        keywords, at, alpha, tau = _parts(operand, op, 4)
        if kind_of(_checked(at)) is not Kind.POINT:
            raise CodecError(f"similar is at a point, not {_describe(at)}")
        if limits is NO_LIMITS:
            return Constraint(name, op, Similar.trusted(_words_of(keywords, limits), at, alpha, tau))
        return Constraint(name, op, Similar(_words_of(keywords, limits), at, alpha, tau))
    if op is Operator.CONTAINS and type(operand) is str:
        length = len(operand.encode(errors="replace"))  # a lone surrogate is refused below
        if length > limits.pattern_length:
            raise CodecError(f"contains a string of {length} bytes, more than the limit of {limits.pattern_length}")
    if op.mask and not (op is Operator.CONTAINS and type(operand) is str):
        operand = region(operand)  # or WKT and other forms that users may give would pass
    return Constraint(name, op, operand)


def listed(items: object, what: str, most: int) -> list[Any]:
    """A decoded array of at least one and at most so many items."""
    if type(items) is not list:
        raise CodecError(f"{what}: an array is needed, not {_describe(items)}")
    if not items:
        raise CodecError(f"{what}: none, and at least one is needed")
    if len(items) > most:
        raise CodecError(f"{what}: {len(items)}, more than the limit of {most}")
    return items


def keyword_list(keywords: object, limits: Limits) -> list[str]:
    """Decoded keywords, within limits: strings; whether each is a keyword is left to what takes them."""
    if type(keywords) is not list or len(keywords) > limits.keywords:
        raise CodecError(f"keywords are an array of at most {limits.keywords} strings, not {_describe(keywords)}")
    for keyword in keywords:
        if type(keyword) is not str:
            raise CodecError(f"a keyword is a string, not {_describe(keyword)}")
    return keywords


def _words_of(keywords: object, limits: Limits) -> frozenset[str]:
    """What decoded keywords of a constraint ask for; one of several words is read as these.

    Those of our own files stay as they are: an index of an earlier version has them so.
    """
    from contrada.spatial.textual.geotext import wanted_keywords

    listed = keyword_list(keywords, limits)
    if limits is NO_LIMITS and listed and all(type(keyword) is str for keyword in listed):
        return frozenset(listed)
    most = min(limits.wanted, limits.keywords)
    if len(listed) <= most:
        _refuse_long(listed, limits)
        words = wanted_keywords(listed)
        if len(words) <= most:
            return words
    raise CodecError(f"a constraint asks for more keywords than the limit of {most}")


def _refuse_long(listed: list[str], limits: Limits) -> None:
    length = sum([len(keyword) for keyword in listed if type(keyword) is str])
    if length > limits.text:
        raise CodecError(f"keywords of {length} characters, more than the limit of {limits.text}")


def region(value: object) -> Region:
    """A decoded value, if it is a region."""
    if not _is_spatial(value) or kind_of(cast("Value", value)) is not Kind.REGION:
        raise CodecError(f"a region is needed, not {_describe(value)}")
    return cast("Region", value)


# Encoding.


def _is_plain(notification: dict[str, object]) -> bool:
    """Whether every attribute is a scalar in the form that msgpack writes as it is. Surrogates show when packing."""
    for name, value in notification.items():
        kind = type(value)
        if kind is int:
            if not INT_MIN <= value <= INT_MAX:  # type: ignore[operator]  # the type was compared
                return False
        elif kind is float:
            if value - value != 0.0:  # type: ignore[operator]  # the type was compared; NaN and infinities differ from 0
                return False
        elif kind is not str and kind is not bool:
            return False
        if type(name) is not str or not 0 < len(name) <= MAX_NAME:
            return False
    return True


def _pack(document: object) -> bytes:
    try:
        return cast("bytes", msgpack.packb(document, default=_encode_ext, datetime=True))
    except UnicodeEncodeError as error:
        raise InvalidValue(f"a string or name holds a lone surrogate, which UTF-8 cannot encode: {error}") from None


def _encode_ext(value: object) -> msgpack.ExtType:
    kind = kind_of(cast("Value", value))
    if kind is Kind.POINT:
        return msgpack.ExtType(POINT, _PAIR.pack(*cast("Point", value)))
    if kind is Kind.GEOTEXT:
        text = cast("GeoText", value)
        return msgpack.ExtType(GEOTEXT, _pack([text.place, sorted(text.keywords)]))

    from contrada.spatial.geometry.region import Box

    shape = cast("Region", value)
    if isinstance(shape, Box):
        return msgpack.ExtType(BOX, _CORNERS.pack(*shape.bounds))
    return msgpack.ExtType(REGION, shape.coords.astype("<f8", copy=False).tobytes())


def _constraint_array(constraint: Constraint) -> list[object]:
    value: object = constraint.value
    if value is None:
        return [constraint.name, constraint.op.value]
    if isinstance(value, ValueSet):
        value = list(value.values)
    elif isinstance(value, TextMatch):
        value = [sorted(value.keywords), value.within]
    elif isinstance(value, Similar):
        value = [sorted(value.keywords), value.at, value.alpha, value.tau]
    return [constraint.name, constraint.op.value, value]


# Decoding.


def _unpack(data: bytes, limits: Limits, options: dict[str, Any] | None = None) -> Any:
    size = _unpacked(len, data)
    if size > limits.size:
        raise CodecError(f"{size} bytes, more than the limit of {limits.size}")
    return _unpacked(msgpack.unpackb, data, **(options or limits._unpacking))


def _unpacked(decode: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a decoder makes of its arguments; `CodecError` for whatever is wrong with them."""
    try:
        return decode(*arguments, **options)
    except CodecError:
        raise
    except _MALFORMED as error:
        raise CodecError(f"not msgpack of the expected form: {str(error) or type(error).__name__}") from None


def _map_length(data: bytes) -> int:
    """How many entries the map that was just decoded claims: fewer in the dict means repeated names."""
    first = data[0]
    if first == 0xDE:
        return int(_MAP16.unpack_from(data, 1)[0])
    if first == 0xDF:
        return int(_MAP32.unpack_from(data, 1)[0])
    return first & 0x0F


def _decode_ext(code: int, data: bytes, limits: Limits) -> Value:
    try:
        if code == REGION and len(data) % _PAIR.size == 0:
            import numpy as np

            from contrada.spatial.geometry.region import Region

            vertices = len(data) // _PAIR.size
            if vertices > limits.vertices:
                raise CodecError(f"a region of {vertices} vertices, more than the limit of {limits.vertices}")
            return Region(np.frombuffer(data, "<f8").reshape(-1, 2))
        if code == GEOTEXT:
            options = limits._unpacking | {"ext_hook": _decode_place}  # a place holds no geotext in turn
            place, keywords = _parts(msgpack.unpackb(data, **options), "geotext", 2)
            return make_geotext(keywords, place, limits)
        return _decode_place(code, data)
    except InvalidValue as error:
        raise CodecError(str(error)) from None


def _decode_place(code: int, data: bytes) -> Point | Box:
    if code == POINT and len(data) == _PAIR.size:
        from contrada.spatial.geometry.point import Point

        return Point(*_PAIR.unpack(data))
    if code == BOX and len(data) == _CORNERS.size:
        from contrada.spatial.geometry.region import Box

        return Box(*_CORNERS.unpack(data))
    raise CodecError(f"ext type {code} of {len(data)} bytes is not a value here")


def make_geotext(keywords: object, place: object, limits: Limits) -> GeoText:
    """Geotext of decoded parts. A keyword of several words counts as these."""
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.textual.geotext import GeoText

    listed = keyword_list(keywords, limits)
    if isinstance(place, Point):
        text = GeoText(listed, at=place)
    elif not _is_spatial(place):
        raise CodecError(f"geotext is at a point or within a box, not {_describe(place)}")
    else:
        text = GeoText(listed, within=cast("Box", place))
    if len(text.keywords) > limits.keywords:
        raise CodecError(f"geotext of {len(text.keywords)} words, more than the limit of {limits.keywords}")
    return text


def _constraint_of(item: object, limits: Limits) -> Constraint:
    if type(item) is not list or not 2 <= len(item) <= 3:
        raise CodecError(f"a constraint is [name, operator, operand], not {_describe(item)}")
    return build_constraint(item[0], item[1], item[2] if len(item) == 3 else None, limits)


def _checked(value: object) -> Value:
    try:
        return check_value(value)[1]
    except InvalidValue as error:
        raise CodecError(str(error)) from None


def _parts(items: object, what: str, count: int) -> list[Any]:
    if type(items) is not list or len(items) != count:
        raise CodecError(f"{what} has {count} parts in an array, not {_describe(items)}")
    return items


def _is_spatial(value: object) -> bool:
    if value is None or type(value) in (dict, list, bytes):
        return False
    return kind_of(cast("Value", value)) >= Kind.POINT


def _wrong_name(name: object, longest: int) -> str:
    if type(name) is str:
        return f"a name has 1 to {longest} characters, not {len(name)}"
    return f"a name is a string, not {_describe(name)}"


def _describe(value: object) -> str:
    if isinstance(value, list | dict | bytes):
        return f"{ {list: 'an array', dict: 'a map', bytes: 'binary'}[type(value)] } of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"
