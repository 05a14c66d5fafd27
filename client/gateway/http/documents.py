"""OpenAPI and AsyncAPI documents of the gateway, made of the tables that the code uses."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.broker.protocol.wire import Policy
from contrada.client.gateway.http.bodies import MEDIA_TYPES
from contrada.client.gateway.http.conversation import Conversation
from contrada.client.gateway.problems import MEDIA_TYPE, TITLES, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOTIFICATION = {
    "type": "object",
    "description": "Attributes by name. Values are numbers, strings, booleans, GeoJSON points and polygons, "
    '{"type": "Time", "time": …} and features with keywords; nested objects become dotted names.',
    "additionalProperties": True,
}
_DELIVERED = {
    "type": "object",
    "required": ["id", "publisher", "notification"],
    "properties": {"id": {"type": "string"}, "publisher": {"type": "string"}, "notification": _NOTIFICATION},
}


class _Asked(NamedTuple):
    """One operation of the HTTP interface."""

    path: str
    summary: str
    role: str
    answer: dict[str, Any]
    parameters: tuple[dict[str, Any], ...] = ()


def _parameter(name: str, type: str = "string", *, required: bool = False, enum: list[str] | None = None) -> Any:
    schema = {"type": type, **({"enum": enum} if enum else {})}
    return {"name": name, "in": "query", "required": required, "schema": schema}


def _integers(*names: str, required: bool = False) -> tuple[dict[str, Any], ...]:
    return tuple(_parameter(name, "integer", required=required) for name in names)


_JSON = {"application/json": {"schema": {"type": "object"}}}
_TEXT = {"text/plain": {"schema": {"type": "string"}}}
_STREAM = {"text/event-stream": {"schema": {"type": "string"}}}
_ID = _parameter("notification", required=True)
_GOT = (
    _Asked(
        "/v1/subscribe",
        "Subscribe: Server-Sent Events",
        "subscribe",
        _STREAM,
        (
            _parameter("filter", required=True),
            _parameter("policy", enum=list(Policy)),
            *_integers("window", "queue", "rate"),
            *(_parameter(name) for name in ("bounds", "durable", "since", "last-event-id")),
        ),
    ),
    _Asked("/v1/socket", "WebSocket: see /v1/asyncapi.json", "", _JSON),
    _Asked("/v1/status", "What broker and gateway are doing", "admin", _JSON),
    _Asked(
        "/v1/subscriptions",
        "The gateway's subscriptions, or a page of the broker's with their shapes",
        "admin",
        _JSON,
        (_parameter("of", enum=["gateway", "broker"]), *_integers("after")),
    ),
    _Asked("/v1/receivers", "Which interfaces notifications of late went to", "admin", _JSON, (_ID,)),
    _Asked("/v1/recording", "How far the recording goes", "admin", _JSON),
    _Asked(
        "/v1/recording/notifications",
        "What was accepted between two times, in µs since 1970",
        "admin",
        _JSON,
        (*_integers("from", "to", required=True), *_integers("limit"), _parameter("bounds")),
    ),
    _Asked(
        "/v1/explain",
        "Why a notification did or did not reach a subscription",
        "admin",
        _JSON,
        (_ID, *_integers("subscription", required=True), *_integers("session")),
    ),
    _Asked("/healthz", "Whether the broker is there", "", _TEXT),
    _Asked("/metrics", "Prometheus metrics", "admin", _TEXT),
    _Asked("/v1/openapi.json", "This document", "", _JSON),
    _Asked("/v1/asyncapi.json", "The WebSocket's messages", "", _JSON),
    _Asked("/docs/problems", "The types of problems", "", _TEXT),
)
_PUBLISHED = {
    "type": "object",
    "required": ["published"],
    "properties": {"published": {"type": "integer"}, "ids": {"type": "array", "items": {"type": "string"}}},
}
_PUBLISH = _Asked(
    "/v1/notifications",
    "Publish",
    "publish",
    {"application/json": {"schema": _PUBLISHED}},
    (_parameter("geometry"), *(_parameter(name, enum=["true", "false"]) for name in ("ids", "durable", "envelope"))),
)


_KNOWN = {each.path: {parameter["name"] for parameter in each.parameters} for each in (*_GOT, _PUBLISH)}


def check_query(path: str, given: Iterable[str]) -> None:
    """Refuse a parameter that means nothing at this path: who misspells `durable` must not believe in it."""
    known = _KNOWN.get(path)
    if known is not None and (unknown := sorted(set(given) - known)):
        there = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
        raise Problem("bad-request", f"{path} has no parameter {unknown[0]!r:.60}: {there}")


def openapi() -> dict[str, Any]:
    """The HTTP interface, as OpenAPI 3.1."""
    bodies = {kind: {"schema": _NOTIFICATION} for kind in MEDIA_TYPES}
    publish = _operation(_PUBLISH) | {"requestBody": {"required": True, "content": bodies}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Contrada gateway", "version": version("contrada")},
        "paths": {_PUBLISH.path: {"post": publish}} | {each.path: {"get": _operation(each)} for each in _GOT},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(asked: _Asked) -> dict[str, Any]:
    problems = {"description": "A problem (RFC 9457)", "content": {MEDIA_TYPE: {"schema": _problem_schema()}}}
    return {
        "summary": f"{asked.summary} (role {asked.role})" if asked.role else asked.summary,
        "security": [{"token": []}] if asked.role else [],
        "parameters": list(asked.parameters),
        "responses": {"200": {"description": "OK", "content": asked.answer}, "default": problems},
    }


def asyncapi() -> dict[str, Any]:
    """The WebSocket's messages, as AsyncAPI 3.0."""
    sent = tuple(Conversation._HANDLERS)
    messages = {name: _message(name, {}) for name in (*sent, *_ANSWERS)}
    messages["notifications"] = _message("notifications", {"items": {"type": "array", "items": _DELIVERED}})
    messages["error"] = _message("error", {"problem": _problem_schema()})
    references = {name: {"$ref": f"#/channels/socket/messages/{name}"} for name in messages}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Contrada gateway", "version": version("contrada")},
        "channels": {"socket": {"address": "/v1/socket", "messages": messages}},
        "operations": {
            "say": {
                "action": "receive",
                "channel": {"$ref": "#/channels/socket"},
                "messages": [references[name] for name in sent],
            },
            "answer": {
                "action": "send",
                "channel": {"$ref": "#/channels/socket"},
                "messages": [
                    references[name] for name in messages if name not in sent or name in ("status", "receivers")
                ],
            },
        },
    }


_ANSWERS = (
    "welcome", "subscribed", "unsubscribed", "acknowledged", "published", "explained",
    "viewing", "notifications", "dropped", "skipped", "interrupted", "ended", "error",
)  # fmt: skip


def _message(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    members = {"type": {"const": name}, "ref": {}, "id": {"type": "string"}, **properties}
    return {"name": name, "payload": {"type": "object", "required": ["type"], "properties": members}}


def _problem_schema() -> dict[str, Any]:
    kinds = [f"/docs/problems#{kind}" for kind in TITLES]
    return {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string", "enum": kinds},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "line": {"type": "integer", "description": "Of JSON lines: the line at fault, counted from 1"},
            "published": {"type": "integer", "description": "Of JSON lines: notifications accepted before it"},
        },
    }
