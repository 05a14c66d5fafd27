"""Notifications and filters to and from JSON: for people, files and the command line.

    number, string, bool   as they are; a set value is an array of strings and numbers
    nested objects         attributes with dotted names, `engine.rpm`; null is absence
    time                   {"type": "Time", "time": "2026-11-16T09:30:00Z"}
    Point, Region          GeoJSON geometries, Polygon or MultiPolygon; a Box is the Polygon of its corners with "bbox"
    GeoText                a GeoJSON Feature: its place as geometry, {"keywords": [...]} as properties
    filter                 an array of filters, each an array of {"name": ..., "op": ..., "value": ...}
    operand of matches     (and of not matches) {"keywords": [...], "within": geometry or null}
    operand of similar     (and of not similar) {"keywords": [...], "at": point, "alpha": number, "tau": number}
    operand of within      (and of beyond) {"distance": number, "of": geometry}, perhaps with "unit": "m"

Decoding is as strict as that of `codec`, under the same `Limits`: unknown and repeated members are refused, and
whatever is wrong raises `CodecError`. Python's parser guards its own recursion, so nesting needs no limit here.
"""

from __future__ import annotations

import json
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.codec.building import build_constraint, build_predicate, make_geotext
from contrada.forwarding.codec.limits import DEFAULT_LIMITS, Limits
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.filter import as_filters
from contrada.forwarding.language.operands import Negated, Similar, TextMatch, ValueSet
from contrada.forwarding.language.text.formatting import format_time
from contrada.forwarding.language.values import (
    INT_MAX,
    INT_MIN,
    Kind,
    check_name,
    check_notification,
    check_value,
    flatten,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.filter import Expression, Filter, Predicate
    from contrada.forwarding.language.set_value import SetValue
    from contrada.forwarding.language.values import Value
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.lines.line import Line
    from contrada.spatial.textual.geotext import GeoText


_GEOMETRIES: Final = ("Point", "LineString", "MultiLineString", "Polygon", "MultiPolygon")


def notification_to_json(notification: Mapping[str, object]) -> str:
    """A notification as one line of JSON."""
    return _dump({name: _to_plain(value) for name, value in check_notification(notification).items()})


def notification_from_json(text: str | bytes, limits: Limits = DEFAULT_LIMITS) -> dict[str, Value]:
    """The notification that a JSON object describes; `CodecError` for anything else."""
    return notification_from_plain(load_json(text, limits), limits)


def notification_from_plain(document: object, limits: Limits = DEFAULT_LIMITS) -> dict[str, Value]:
    """The notification that a parsed JSON object describes, for those who find one inside another document."""
    if type(document) is not dict:
        raise CodecError("a notification is a JSON object")
    if any(type(plain) is dict or plain is None for plain in document.values()):
        try:
            document = flatten(document)
        except InvalidValue as error:
            raise CodecError(str(error)) from None
    if len(document) > limits.attributes:
        raise CodecError(f"{len(document)} attributes, more than the limit of {limits.attributes}")
    notification: dict[str, Value] = {}
    texts = 0
    for name, plain in document.items():
        if 0 < len(name) <= limits.name_length and name.isascii() and _is_simple(plain, limits):
            notification[name] = cast("Value", plain)
            continue
        if len(name) > limits.name_length:
            raise CodecError(f"a name of {len(name)} characters, more than the limit of {limits.name_length}")
        texts += _text_size(plain)
        if texts > limits.text:
            raise CodecError(f"attribute {name!r}: {texts} bytes of geotext, more than the limit of {limits.text}")
        try:
            notification[check_name(name)] = _from_plain(plain, limits)
        except (CodecError, InvalidValue) as error:
            raise CodecError(f"attribute {name!r}: {error}") from None
    return notification


def _is_simple(plain: object, limits: Limits) -> bool:
    """Whether a value is kept as it is, without a further look: most are numbers and short texts."""
    kind = type(plain)
    if kind is str:
        text = cast("str", plain)
        return len(text) <= limits.string_length and text.isascii()
    if kind is int:
        return INT_MIN <= cast("int", plain) <= INT_MAX
    return kind is bool or (kind is float and isfinite(cast("float", plain)))


def filter_to_json(expression: Expression) -> str:
    """A constraint, filter or predicate as one line of JSON."""
    return _dump([[_constraint_object(c) for c in each.constraints] for each in as_filters(expression)])


def filter_from_json(text: str | bytes, limits: Limits = DEFAULT_LIMITS) -> Filter | Predicate:
    """The filter, or the predicate of several, that `filter_to_json` wrote."""
    return filter_from_plain(load_json(text, limits), limits)


def filter_from_plain(document: object, limits: Limits = DEFAULT_LIMITS) -> Filter | Predicate:
    """As `filter_from_json`, of JSON that has been parsed already."""
    return build_predicate(document, limits, _constraint_of)


def _dump(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _to_plain(value: Value) -> object:
    kind = kind_of(value)
    if kind <= Kind.STRING:
        return value
    if kind is Kind.SET:
        return list(cast("SetValue", value))
    if kind is Kind.TIME:
        return {"type": "Time", "time": format_time(cast("datetime", value))}
    if kind is Kind.GEOTEXT:
        text = cast("GeoText", value)
        return {
            "type": "Feature",
            "geometry": _to_plain(text.place),
            "properties": {"keywords": sorted(text.keywords)},
        }
    if kind is Kind.POINT:
        return {"type": "Point", "coordinates": list(cast("Point", value))}

    if kind is Kind.LINE:
        paths = [part.tolist() for part in cast("Line", value).parts]
        if len(paths) == 1:
            return {"type": "LineString", "coordinates": paths[0]}
        return {"type": "MultiLineString", "coordinates": paths}

    from contrada.spatial.geometry.region import Box

    shape = cast("Region", value)
    parts = [[ring.tolist() for ring in part] for part in shape.rings]
    plain: dict[str, object] = {"type": "Polygon", "coordinates": parts[0]}
    if len(parts) > 1:
        plain = {"type": "MultiPolygon", "coordinates": parts}
    return plain | {"bbox": list(shape.bounds)} if isinstance(shape, Box) else plain


def _constraint_object(constraint: Constraint) -> dict[str, object]:
    value = constraint.value
    plain: object
    if isinstance(value, Negated):
        value = value.operand
    if value is None:
        return {"name": constraint.name, "op": constraint.op.value}
    if isinstance(value, ValueSet):
        plain = [_to_plain(member) for member in value]
    elif isinstance(value, TextMatch):
        within = None if value.within is None else _to_plain(value.within)
        plain = {"keywords": sorted(value.keywords), "within": within}
    elif isinstance(value, Similar):
        plain = {
            "keywords": sorted(value.keywords),
            "at": _to_plain(value.at),
            "alpha": value.alpha,
            "tau": value.tau,
        }
    elif isinstance(value, Distance):
        plain = {"distance": value.length, "of": _to_plain(value.of)} | ({"unit": value.unit} if value.unit else {})
    else:
        plain = _to_plain(value)
    return {"name": constraint.name, "op": constraint.op.value, "value": plain}


def load_json(text: str | bytes, limits: Limits = DEFAULT_LIMITS) -> Any:
    """Parse JSON strictly: no repeated names, no NaN, no more than the limits allow; `CodecError` otherwise."""
    try:
        size = len(text)
        if size > limits.size:
            raise CodecError(f"{size} characters, more than the limit of {limits.size}")
        if not isinstance(text, str):
            text = text.decode(json.detect_encoding(text), "surrogatepass")  # as `json.loads` does
        if text.startswith("\ufeff"):
            raise CodecError("not JSON: it begins with a byte order mark")
        return _DECODER.decode(text)
    except CodecError:
        raise
    except RecursionError:
        raise CodecError("not JSON of the expected form: nested too deep") from None
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise CodecError(f"not JSON: {error}") from None


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise CodecError("an object with a repeated name")
    return members


def _refuse_constant(word: str) -> NoReturn:
    raise CodecError(f"{word} is not a number in JSON, nor a value here")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unrepeated, parse_constant=_refuse_constant)


def _from_plain(plain: object, limits: Limits) -> Value:
    """A value from its JSON form."""
    if type(plain) is str:
        if len(plain) > limits.string_length:
            raise CodecError(f"a string of {len(plain)} characters, more than the limit of {limits.string_length}")
        return check_value(plain)[1]
    if type(plain) in (bool, int, float):
        return check_value(plain)[1]
    if type(plain) is list:
        if len(plain) > limits.set_size or any(
            type(each) is str and len(each) > limits.string_length for each in plain
        ):
            raise CodecError(f"a list of more than {limits.set_size} members, or with one that is too long")
        return check_value(plain)[1]
    if type(plain) is not dict:
        raise CodecError("null is not a value here")
    tag = plain.get("type")
    if tag == "Time":
        return _time(_members(plain, "type", "time")[1])
    if tag == "Feature":
        _, geometry, properties = _members(plain, "type", "geometry", "properties")
        (keywords,) = _members(properties, "keywords")
        return make_geotext(keywords, _geometry(geometry, limits), limits)
    return _geometry(plain, limits)


def _text_size(plain: object) -> int:
    """Bytes of the keywords of a value; 0 of what is no geotext, and of what will be refused as none."""
    properties = plain.get("properties") if type(plain) is dict else None
    keywords = properties.get("keywords") if type(properties) is dict else None
    if type(keywords) is not list:
        return 0
    return sum(len(each.encode(errors="replace")) for each in keywords if type(each) is str)


def _time(text: object) -> datetime:
    if type(text) is not str:
        raise CodecError('a time is {"type": "Time", "time": text in ISO 8601}')
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise CodecError(f"a time that is not ISO 8601: {error}") from None
    return cast("datetime", check_value(time)[1])


def _geometry(plain: object, limits: Limits) -> Point | Line | Region:
    """A GeoJSON geometry, judged by Point, Line and Region."""
    if type(plain) is not dict or plain.get("type") not in _GEOMETRIES:
        raise CodecError(f"a JSON object as value is a Time, a {', a '.join(_GEOMETRIES)}, or a Feature with keywords")
    if plain["type"].endswith("LineString"):
        return _line(plain, limits)
    if plain["type"] == "Point":
        from contrada.spatial.geometry.point import Point

        x, y = _coordinates(_members(plain, "type", "coordinates")[1], 2, "a position")
        return Point(x, y)

    from contrada.spatial.geometry.region import Box, Region

    box = plain.get("bbox")
    _, rings, *_ = _members(plain, "type", "coordinates", *(["bbox"] if "bbox" in plain else []))
    vertices = _vertices(rings if plain["type"] == "MultiPolygon" else [rings])
    if vertices > limits.vertices:
        raise CodecError(f"a region of {vertices} vertices, more than the limit of {limits.vertices}")
    region = Region({"type": plain["type"], "coordinates": rings})
    if box is None:
        return region
    corners = Box(*_coordinates(box, 4, "a bbox"))
    if corners != region:
        raise CodecError("a Polygon with a bbox that is not itself that box: leave the bbox out")
    return corners


def _line(plain: dict[str, Any], limits: Limits) -> Line:
    from contrada.spatial.lines.line import Line

    parts = _members(plain, "type", "coordinates")[1]
    listed = parts if type(parts) is list else []
    vertices = len(listed) if plain["type"] == "LineString" else sum(len(p) for p in listed if type(p) is list)
    if vertices > limits.vertices:
        raise CodecError(f"a line of {vertices} vertices, more than the limit of {limits.vertices}")
    return Line({"type": plain["type"], "coordinates": parts})


def _vertices(parts: object) -> int:
    """How many vertices closed rings by part have; 0 of what will be refused as none."""
    listed = [part for part in parts if type(part) is list] if type(parts) is list else []
    return sum(len(ring) - 1 for part in listed for ring in part if type(ring) is list)


def _constraint_of(item: object, limits: Limits) -> Constraint:
    if type(item) is not dict:
        raise CodecError('a constraint is an object {"name", "op", "value"}')
    name, op, *rest = _members(item, "name", "op", *(["value"] if "value" in item else []))
    plain = rest[0] if rest else None
    operand: object
    if op in ("in", "has", "not has") and type(plain) is list and len(plain) <= limits.set_size:
        operand = [_from_plain(member, limits) for member in plain]
    elif op in ("matches", "not matches"):
        keywords, within = _members(plain, "keywords", "within")
        operand = [keywords, None if within is None else _geometry(within, limits)]
    elif op in ("similar", "not similar"):
        keywords, at, alpha, tau = _members(plain, "keywords", "at", "alpha", "tau")
        operand = [keywords, _geometry(at, limits), alpha, tau]
    elif op in ("within", "beyond"):
        metres = type(plain) is dict and "unit" in plain
        length, of, *unit = _members(plain, "distance", "of", *(["unit"] if metres else []))
        operand = [length, _geometry(of, limits), *unit]
    else:
        operand = _from_plain(plain, limits) if rest else None
    return build_constraint(name, op, operand, limits)


def _members(plain: object, *names: str) -> list[Any]:
    """The members of an object that must have exactly these."""
    if type(plain) is not dict or set(plain) != set(names):
        raise CodecError(f"an object with exactly the members {', '.join(names)} is needed")
    return [plain[name] for name in names]


def _coordinates(plain: object, count: int, what: str) -> list[Any]:
    if type(plain) is not list or len(plain) != count:
        raise CodecError(f"{what} is an array of {count} numbers")
    return plain
