"""What people send, JSON, GeoJSON and CloudEvents, as notifications.

{"engine": {"rpm": 900}}      engine.rpm = 900: nested objects become dotted names
{"x": null}                   nothing: null is absence
{"at": {"type": "Point", …}}  a value, as `contrada.forwarding.codec.json` reads it: Point, Polygon, Time, geotext
Feature                       its properties, and its geometry under a name of your choice (`area`)
FeatureCollection, [ … ]      as many notifications as there are items
CloudEvent                    ce.id, ce.source, ce.type, …; and its data as above

{"tags": ["ice", 3]}          a set value, of which `tags has "ice"` asks
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.codec.json import load_json, notification_from_plain
from contrada.forwarding.language.values import flatten as flattened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contrada.forwarding.language.values import Value

_REQUIRED: Final = ("id", "source", "specversion", "type")


def parse_document(text: str | bytes, geometry: str = "area") -> Iterator[dict[str, Value]]:
    """Yield the notifications of one JSON document; `CodecError` names the item at fault."""
    return notifications_of(load_json(text), geometry)


def notifications_of(document: object, geometry: str = "area") -> Iterator[dict[str, Value]]:
    """Yield the notifications of a parsed JSON document; `CodecError` names the item at fault."""
    items: object = document
    if type(document) is dict and document.get("type") == "FeatureCollection":
        items = document.get("features")
        if type(items) is not list:
            raise CodecError("a FeatureCollection without an array of features")
    if type(items) is not list:
        yield notification_of(items, geometry)
        return
    for number, item in enumerate(items):
        try:
            yield notification_of(item, geometry)
        except CodecError as error:
            raise CodecError(f"item {number}: {error}") from None


def notification_of(document: object, geometry: str = "area") -> dict[str, Value]:
    """The notification that one JSON object describes."""
    if type(document) is not dict:
        raise CodecError(f"a notification is a JSON object, not {_kind(document)}")
    if document.get("type") == "Feature" and "geometry" in document:
        return notification_from_plain(_of_feature(document, geometry))
    return notification_from_plain(flatten(document))


def flatten(document: Mapping[str, Any]) -> dict[str, object]:
    """Give members of nested objects dotted names, and leave out what is null."""
    try:
        return flattened(document)
    except InvalidValue as error:
        raise CodecError(str(error)) from None


def _of_feature(feature: dict[str, Any], geometry: str) -> dict[str, object]:
    properties, shape = feature.get("properties"), feature.get("geometry")
    for name, member in (("properties", properties), ("geometry", shape)):
        if member is not None and type(member) is not dict:
            raise CodecError(f"the {name} of a Feature are an object or null, not {_kind(member)}")
    flat = flatten(properties or {})
    if shape is not None:
        if geometry in flat:
            raise CodecError(f"the geometry cannot be {geometry!r}, which is a property: choose another ?geometry=")
        flat[geometry] = {name: shape.get(name) for name in ("type", "coordinates")}
    return flat


# ---------------------------------------------------------------------- CloudEvents


def notification_of_event(document: object, geometry: str = "area") -> dict[str, Value]:
    """The notification of a CloudEvent in structured mode: one JSON object with its context and its data."""
    if type(document) is not dict:
        raise CodecError(f"a CloudEvent is a JSON object, not {_kind(document)}")
    if "data_base64" in document:
        raise CodecError("a CloudEvent with data_base64: bytes are not attributes; send data as JSON")
    context = {name: value for name, value in document.items() if name != "data"}
    return _with_context(context, document.get("data"), geometry)


def notification_of_headers(headers: Mapping[str, str], body: bytes, geometry: str = "area") -> dict[str, Value]:
    """The notification of a CloudEvent in binary mode: its context in headers `ce-…`, its data as the body."""
    from urllib.parse import unquote

    context = {name[3:].lower(): unquote(value) for name, value in headers.items() if name[:3].lower() == "ce-"}
    return _with_context(context, load_json(body) if body.strip() else None, geometry)


def _with_context(context: Mapping[str, Any], data: object, geometry: str) -> dict[str, Value]:
    for name in _REQUIRED:
        if type(context.get(name)) is not str or not context[name]:
            raise CodecError(f"a CloudEvent needs the attribute {name!r}, a string")
    if context["specversion"] != "1.0":
        raise CodecError(f"a CloudEvent of version {context['specversion']!r:.20}; 1.0 is understood")
    if data is None:
        flat: dict[str, object] = {}
    elif type(data) is not dict:
        raise CodecError(f"the data of a CloudEvent are a JSON object here, not {_kind(data)}")
    else:
        flat = _of_feature(data, geometry) if data.get("type") == "Feature" else flatten(data)
    for name, value in context.items():
        if value is None:
            continue
        if name == "time":
            value = {"type": "Time", "time": _time(value)}
        if flat.setdefault(f"ce.{name}", value) is not value:
            raise CodecError(f"the data of a CloudEvent cannot have an attribute 'ce.{name}'")
    return notification_from_plain(flat)


def _time(text: object) -> str:
    try:
        return datetime.fromisoformat(text).isoformat()  # type: ignore[arg-type]  # what is no string raises TypeError
    except (TypeError, ValueError):
        raise CodecError(f"the time of a CloudEvent is a timestamp as in RFC 3339, not {text!r:.60}") from None


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {list: "an array", str: "a string", bool: "a boolean", dict: "an object"}
    return names.get(type(value), "a number")
