"""Values, notifications and filters to and from msgpack: what goes over the wire and into durable storage.

    notification  map of name to value; under the empty name, which is nobody's, a payload: bytes, or ext type 7
                  with JSON text. Nothing but `payload_of` looks inside
    filter        array of constraints, none for `true`; predicate: array of filters, what `encode_filter` always writes
    constraint    [name, operator, operand], or [name, "exists"], [name, "not exists"]
    operand       a value; for `in` an array of values; for `matches` and `not matches` [keywords, region or nil];
                  for `similar` and `not similar` [keywords, point, alpha, tau]; for `within` and `beyond`
                  [distance, point, line or region], with "m" behind for metres
    value         msgpack's own bool, int, float64 and str; an array of numbers and strings is a set; and ext types,
                  doubles little-endian:
                  -1 time      msgpack's timestamp
                   1 point     x y
                   2 region    x y of each vertex, unclosed
                   3 box       x1 y1 x2 y2
                   4 geotext   msgpack [point or box, keywords]
                   5 compound  a region of several rings: how many; then of each ring how many vertices it has, negative
                               for a hole of the last shell before it; then x y of each vertex, rings unclosed
                   6 line      how many parts; then of each how many vertices it has; then x y of each vertex

Encoding raises `InvalidValue` for what no notification may hold. Decoding trusts nothing: `Limits` bound every size, a
region is validated anew, repeated names are refused, and whatever is wrong raises `CodecError` with the reason and
nothing else. Depth needs no limit of its own: the format fixes it, and msgpack's parser does not recurse.

A notification of scalars costs one pass in C and one short loop here; the spatial types are loaded when one is met.
"""

from __future__ import annotations

import json
import struct
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.codec.building import (
    build_constraint,
    build_predicate,
    checked,
    describe,
    is_spatial,
    make_geotext,
    parts,
    wrong_name,
)
from contrada.forwarding.codec.limits import DEFAULT_LIMITS, Limits
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.filter import as_filters
from contrada.forwarding.language.operands import Negated, Similar, TextMatch, ValueSet
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

    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.filter import Expression, Filter, Predicate
    from contrada.forwarding.language.set_value import SetValue
    from contrada.forwarding.language.values import Value
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Box, Region
    from contrada.spatial.lines.line import Line
    from contrada.spatial.textual.geotext import GeoText

POINT: Final = 1
REGION: Final = 2
BOX: Final = 3
GEOTEXT: Final = 4
LINE: Final = 6
JSON_PAYLOAD: Final = 7
COMPOUND: Final = 5

_PAIR: Final = struct.Struct("<2d")
_CORNERS: Final = struct.Struct("<4d")
_MAP16: Final = struct.Struct(">H")
_MAP32: Final = struct.Struct(">I")
_SELF_CONTAINED: Final = frozenset((bool, str, datetime))
_READ_AT_ONCE: Final = 1 << 16  # bytes of filters: some thousand vertices, a few milliseconds
PAYLOAD: Final = ""
PAYLOAD_KEY: Final = b"\xa0"
_PACKED: Final = (GEOTEXT, JSON_PAYLOAD)  # left as they are until somebody looks
_MALFORMED: Final = (BufferError, ValueError, TypeError, OverflowError, RecursionError, MemoryError)


def encode_notification(notification: Mapping[str, object], payload: object = None) -> bytes:
    """A notification as msgpack, its values checked and normalised; with a payload, bytes or what JSON can say."""
    if type(notification) is not dict or not _is_plain(notification):
        notification = check_notification(notification)
    if payload is not None:
        notification = {**notification, PAYLOAD: _payload(payload)}
    return _pack(notification)


def payload_of(data: bytes) -> Any:
    """The payload that goes with an encoded notification: bytes, or the JSON that it was; None without one."""
    if PAYLOAD_KEY not in data:
        return None
    found = _unpacked(msgpack.unpackb, data, timestamp=3, ext_hook=msgpack.ExtType).get(PAYLOAD)
    if not isinstance(found, msgpack.ExtType):
        return found
    try:
        return json.loads(found.data)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"a payload that is not JSON, as it says: {error}") from None


def _payload(payload: object) -> object:
    if isinstance(payload, bytes | bytearray | memoryview):
        return bytes(payload)
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return msgpack.ExtType(JSON_PAYLOAD, text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"a payload is bytes, or what JSON can say: {error}") from None


def decode_notification(data: bytes, limits: Limits = DEFAULT_LIMITS) -> dict[str, Value]:
    """The notification that `encode_notification` wrote; `CodecError` for anything else."""
    notification = _unpack(data, limits, _options_of_notifications(limits))
    if type(notification) is not dict:
        raise CodecError(f"a notification is a map, not {describe(notification)}")
    if _map_length(data) != len(notification):
        raise CodecError("a notification with a repeated name")
    longest = limits.name_length
    texts = 0
    if PAYLOAD in notification:
        _check_payload(notification.pop(PAYLOAD))
    for name, value in notification.items():
        if type(name) is not str or not 0 < len(name) <= longest:
            raise CodecError(wrong_name(name, longest))
        kind = type(value)
        if kind is int:
            if value > INT_MAX:
                raise CodecError(f"attribute {name!r}: {value} does not fit in 64 bits with a sign")
        elif kind is float:
            if value - value != 0.0:
                raise CodecError(f"attribute {name!r}: {value} is not finite")
        elif kind is msgpack.ExtType:
            if value.code != GEOTEXT:
                raise CodecError(f"attribute {name!r}: ext type {value.code} is not a value")
            texts += len(value.data)
            if texts > limits.text:
                raise CodecError(f"attribute {name!r}: {texts} bytes of geotext, more than the limit of {limits.text}")
            notification[name] = _unpacked(_decode_ext, value.code, value.data, limits)
        elif kind is list:
            notification[name] = checked(value)
        elif kind not in _SELF_CONTAINED and not is_spatial(value):
            raise CodecError(f"attribute {name!r}: {describe(value)} is not a value")
    return cast("dict[str, Value]", notification)


def _check_payload(payload: object) -> None:
    """Refuse what is no payload, whatever is in it."""
    if type(payload) is not bytes and not (isinstance(payload, msgpack.ExtType) and payload.code == JSON_PAYLOAD):
        raise CodecError(f"a payload is binary or JSON, not {describe(payload)}")


def encode_value(value: object) -> bytes:
    """One value as msgpack."""
    return _pack(check_value(value)[1])


def decode_value(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Value:
    """The value that `encode_value` wrote."""
    return checked(_unpack(data, limits))


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


def _encode_ext(value: object) -> object:
    kind = kind_of(cast("Value", value))
    if kind is Kind.SET:
        return list(cast("SetValue", value))
    if kind is Kind.POINT:
        return msgpack.ExtType(POINT, _PAIR.pack(*cast("Point", value)))
    if kind is Kind.GEOTEXT:
        text = cast("GeoText", value)
        return msgpack.ExtType(GEOTEXT, _pack([text.place, sorted(text.keywords)]))

    if kind is Kind.LINE:
        vertices = cast("Line", value).parts
        head = struct.pack(f"<{1 + len(vertices)}d", len(vertices), *map(len, vertices))
        return msgpack.ExtType(LINE, head + b"".join(part.astype("<f8", copy=False).tobytes() for part in vertices))

    from contrada.spatial.geometry.region import Box

    shape = cast("Region", value)
    if isinstance(shape, Box):
        return msgpack.ExtType(BOX, _CORNERS.pack(*shape.bounds))
    coords = shape.coords.astype("<f8", copy=False).tobytes()
    if not shape.is_compound:
        return msgpack.ExtType(REGION, coords)
    counts = [-(len(ring) - 1) if hole else len(ring) - 1 for part in shape.rings for hole, ring in enumerate(part)]
    return msgpack.ExtType(COMPOUND, struct.pack(f"<{1 + len(counts)}d", len(counts), *counts) + coords)


def _constraint_array(constraint: Constraint) -> list[object]:
    value: object = constraint.value
    if isinstance(value, Negated):
        value = value.operand
    if value is None:
        return [constraint.name, constraint.op.value]
    if isinstance(value, ValueSet):
        value = list(value.values)
    elif isinstance(value, TextMatch):
        value = [sorted(value.keywords), value.within]
    elif isinstance(value, Similar):
        value = [sorted(value.keywords), value.at, value.alpha, value.tau]
    elif isinstance(value, Distance):
        value = [value.length, value.of, value.unit] if value.unit else [value.length, value.of]
    return [constraint.name, constraint.op.value, value]


# Decoding.


@cache
def _options(limits: Limits) -> dict[str, Any]:
    """What msgpack is told, made once."""
    return {
        "strict_map_key": True,
        "timestamp": 3,
        "ext_hook": lambda code, data: _decode_ext(code, data, limits),
        "max_str_len": limits.string_length,
        "max_bin_len": 0,
        "max_array_len": max(limits.filters, limits.constraints, limits.set_size, limits.keywords, 4),
        "max_map_len": limits.attributes,
        "max_ext_len": limits.size,
    }


@cache
def _options_of_notifications(limits: Limits) -> dict[str, Any]:
    """As `_options`, geotext left packed: how much there is of it is known when all has been seen."""
    options = _options(limits)
    hook = options["ext_hook"]
    return options | {
        "ext_hook": lambda code, data: msgpack.ExtType(code, data) if code in _PACKED else hook(code, data),
        "max_bin_len": limits.size,
    }


def _unpack(data: bytes, limits: Limits, options: dict[str, Any] | None = None) -> Any:
    size = _unpacked(len, data)
    if size > limits.size:
        raise CodecError(f"{size} bytes, more than the limit of {limits.size}")
    return _unpacked(msgpack.unpackb, data, **(options or _options(limits)))


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
        if code == COMPOUND and len(data) % 8 == 0:
            return _decode_compound(data, limits)
        if code == LINE and len(data) % 8 == 0:
            return _decode_line(data, limits)
        if code == GEOTEXT:
            options = _options(limits) | {"ext_hook": _decode_place}  # a place holds no geotext in turn
            place, keywords = parts(msgpack.unpackb(data, **options), "geotext", 2)
            return make_geotext(keywords, place, limits)
        return _decode_place(code, data)
    except InvalidValue as error:
        raise CodecError(str(error)) from None


def _decode_line(data: bytes, limits: Limits) -> Line:
    import numpy as np

    from contrada.spatial.lines.line import Line

    numbers = np.frombuffer(data, "<f8")
    parts = float(numbers[0]) if len(numbers) else 0.0
    if not 1 <= parts < len(numbers) or not parts.is_integer():
        raise CodecError("a line that does not say how many parts it has")
    first = 1 + int(parts)
    counts, coords = numbers[1:first], numbers[first:]
    if len(coords) > 2 * limits.vertices:
        raise CodecError(f"a line of {len(coords) // 2} vertices, more than the limit of {limits.vertices}")
    if not (counts >= 2).all() or (counts != np.floor(counts)).any() or 2 * counts.sum() != len(coords):
        raise CodecError("a line whose parts have other vertices than it says")
    ends = np.cumsum(counts).astype(np.int64)
    return Line.of_parts(np.split(coords.reshape(-1, 2), ends[:-1]))


def _decode_compound(data: bytes, limits: Limits) -> Region:
    import numpy as np

    from contrada.spatial.geometry.region import Region

    numbers = np.frombuffer(data, "<f8")
    rings = float(numbers[0]) if len(numbers) else 0.0
    if not 2 <= rings < len(numbers) or not rings.is_integer():
        raise CodecError("a region of several rings that does not say how many")
    counts, coords = numbers[1 : 1 + int(rings)], numbers[1 + int(rings) :]
    if 2 * limits.vertices < len(coords):
        raise CodecError(f"a region of {len(coords) // 2} vertices, more than the limit of {limits.vertices}")
    sizes = np.abs(counts)
    if not (sizes >= 1).all() or (sizes % 1).any() or counts[0] < 0 or 2 * sizes.sum() != len(coords):
        raise CodecError("a region of several rings that are not of the vertices it has")
    parts: list[list[Any]] = []
    for ring, count in zip(
        np.split(coords.reshape(-1, 2), np.cumsum(sizes).astype(np.int64)[:-1]), counts, strict=True
    ):
        if count > 0:
            parts.append([])
        parts[-1].append(ring)
    return Region({"type": "MultiPolygon", "coordinates": parts})


def _decode_place(code: int, data: bytes) -> Point | Box:
    if code == POINT and len(data) == _PAIR.size:
        from contrada.spatial.geometry.point import Point

        return Point(*_PAIR.unpack(data))
    if code == BOX and len(data) == _CORNERS.size:
        from contrada.spatial.geometry.region import Box

        return Box(*_CORNERS.unpack(data))
    raise CodecError(f"ext type {code} of {len(data)} bytes is not a value here")


def _constraint_of(item: object, limits: Limits) -> Constraint:
    if type(item) is not list or not 2 <= len(item) <= 3:
        raise CodecError(f"a constraint is [name, operator, operand], not {describe(item)}")
    return build_constraint(item[0], item[1], item[2] if len(item) == 3 else None, limits)
