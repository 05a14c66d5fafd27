"""What people send, JSON, GeoJSON and CloudEvents, as notifications.

{"engine": {"rpm": 900}}      engine.rpm = 900: nested objects become dotted names
{"x": null}                   nothing: null is absence
{"at": {"type": "Point", …}}  a value, as `contrada.forwarding.codec.json` reads it: Point, Polygon, Time, geotext
Feature                       its properties, and its geometry under a name of your choice (`area`)
FeatureCollection, [ … ]      as many notifications as there are items
CloudEvent                    ce.id, ce.source, ce.type, …; its data as above; beside them if it is no object
{"tags": ["ice", 3]}          a set value, of which `tags has "ice"` asks

In an envelope, {"notification": {…}, "payload": …}, a payload travels beside the attributes: any JSON, or bytes as
{"base64": "…"}. It is what subscribers get, and may be sent again as it came.
"""

from __future__ import annotations

from base64 import b64decode
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from contrada.client.notification import Draft
from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.codec.json import load_json, notification_from_plain
from contrada.forwarding.language.values import flatten as flattened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contrada.forwarding.language.values import Value

_REQUIRED: Final = ("id", "source", "specversion", "type")
_ENVELOPE: Final = frozenset(("notification", "payload", "id", "publisher"))
Attributes = dict[str, Any]
"""A notification to be published: its values by name; with a payload, a `Draft`."""


def parse_document(text: str | bytes, geometry: str = "area", *, envelope: bool = False) -> Iterator[Attributes]:
    """Yield the notifications of one JSON document; `CodecError` names the item at fault."""
    return notifications_of(load_json(text), geometry, envelope=envelope)


def notifications_of(document: object, geometry: str = "area", *, envelope: bool = False) -> Iterator[Attributes]:
    """Yield the notifications of a parsed JSON document; `CodecError` names the item at fault."""
    read = enveloped if envelope else notification_of
    items: object = document
    if type(document) is dict and document.get("type") == "FeatureCollection":
        items = document.get("features")
        if type(items) is not list:
            raise CodecError("a FeatureCollection without an array of features")
    if type(items) is not list:
        yield read(items, geometry)
        return
    for number, item in enumerate(items):
        try:
            yield read(item, geometry)
        except CodecError as error:
            raise CodecError(f"item {number}: {error}") from None


def notification_of(document: object, geometry: str = "area") -> dict[str, Value]:
    """The notification that one JSON object describes."""
    if type(document) is not dict:
        raise CodecError(f"a notification is a JSON object, not {_kind(document)}")
    if document.get("type") == "Feature" and "geometry" in document:
        return notification_from_plain(_of_feature(document, geometry))
    return notification_from_plain(flatten(document))


def enveloped(document: object, geometry: str = "area") -> Attributes:
    """The notification in an envelope, with its payload."""
    if type(document) is not dict or "notification" not in document or not _ENVELOPE.issuperset(document):
        names = ", ".join(sorted(_ENVELOPE))
        raise CodecError(f"an envelope is a JSON object with a notification; its members are {names}")
    return with_payload(notification_of(document["notification"], geometry), document.get("payload"))


def with_payload(notification: dict[str, Value], payload: object) -> Attributes:
    """A notification and its payload as JSON has it, bytes as an object with the member `base64`."""
    if payload is None:
        return notification
    if type(payload) is dict and set(payload) == {"base64"}:
        payload = _bytes_of(payload["base64"])
    return Draft(notification, payload)


def _bytes_of(text: object) -> bytes:
    try:
        return b64decode(text, validate=True)  # type: ignore[arg-type]  # what is no string raises TypeError
    except (TypeError, ValueError):
        raise CodecError(f"base64 is a string in that alphabet, not {text!r:.40}") from None


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


def notification_of_event(document: object, geometry: str = "area") -> Attributes:
    """The notification of a CloudEvent in structured mode: one JSON object with its context and its data."""
    if type(document) is not dict:
        raise CodecError(f"a CloudEvent is a JSON object, not {_kind(document)}")
    context = {name: value for name, value in document.items() if name not in ("data", "data_base64")}
    if "data_base64" in document:
        return Draft(_with_context(context, None, geometry), _bytes_of(document["data_base64"]))
    data = document.get("data")
    if data is None or type(data) is dict:
        return _with_context(context, data, geometry)
    return Draft(_with_context(context, None, geometry), data)


def notification_of_headers(headers: Mapping[str, str], body: bytes, geometry: str = "area") -> Attributes:
    """The notification of a CloudEvent in binary mode: its context in headers `ce-…`, its data as the body.

    What is not announced as JSON travels as the payload.
    """
    from urllib.parse import unquote

    context = {name[3:].lower(): unquote(value) for name, value in headers.items() if name[:3].lower() == "ce-"}
    if not body.strip():
        return _with_context(context, None, geometry)
    if not is_json(headers.get("Content-Type", "application/json")):
        return Draft(_with_context(context, None, geometry), body)
    data = load_json(body)
    if type(data) is dict:
        return _with_context(context, data, geometry)
    return Draft(_with_context(context, None, geometry), data)


def is_json(media_type: str) -> bool:
    """Whether a content type says that a body is JSON."""
    name = media_type.partition(";")[0].strip().lower()
    return name == "application/json" or name.endswith("+json")


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
