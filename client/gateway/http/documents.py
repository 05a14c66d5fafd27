"""OpenAPI and AsyncAPI documents of the gateway, made of the tables that the code uses."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from contrada.broker.protocol.wire import Policy
from contrada.client.gateway.http.bodies import MEDIA_TYPES
from contrada.client.gateway.http.conversation import Conversation
from contrada.client.gateway.problems import MEDIA_TYPE, TITLES

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


def openapi() -> dict[str, Any]:
    """The HTTP interface, as OpenAPI 3.1."""

    def operation(
        summary: str, role: str, parameters: list[dict[str, Any]], answer: dict[str, Any], **more: Any
    ) -> Any:
        problems = {"description": "A problem (RFC 9457)", "content": {MEDIA_TYPE: {"schema": _problem_schema()}}}
        return {
            "summary": f"{summary}{f' (role {role})' if role else ''}",
            **({"security": [{"token": []}]} if role else {"security": []}),
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": answer}, "default": problems},
            **more,
        }

    json = {"application/json": {"schema": {"type": "object"}}}
    text = {"text/plain": {"schema": {"type": "string"}}}
    published = {
        "type": "object",
        "required": ["published"],
        "properties": {"published": {"type": "integer"}, "ids": {"type": "array", "items": {"type": "string"}}},
    }
    bodies = {kind: {"schema": _NOTIFICATION} for kind in MEDIA_TYPES}
    subscribe = [_parameter("filter", required=True), _parameter("policy", enum=list(Policy))]
    paths = {
        "/v1/notifications": {
            "post": operation(
                "Publish",
                "publish",
                [_parameter("geometry"), *(_parameter(name, enum=["true", "false"]) for name in ("ids", "durable"))],
                {"application/json": {"schema": published}},
                requestBody={"required": True, "content": bodies},
            )
        },
        "/v1/subscribe": {
            "get": operation(
                "Subscribe: Server-Sent Events",
                "subscribe",
                [
                    *subscribe,
                    *(_parameter(name, "integer") for name in ("window", "queue", "rate")),
                    *(_parameter(name) for name in ("bounds", "durable", "since")),
                ],
                {"text/event-stream": {"schema": {"type": "string"}}},
            )
        },
        "/v1/socket": {"get": operation("WebSocket: see /v1/asyncapi.json", "", [], json)},
        "/v1/status": {"get": operation("What broker and gateway are doing", "admin", [], json)},
        "/v1/subscriptions": {
            "get": operation(
                "The gateway's subscriptions, or a page of the broker's with their shapes",
                "admin",
                [_parameter("of", enum=["gateway", "broker"]), _parameter("after", "integer")],
                json,
            )
        },
        "/v1/receivers": {
            "get": operation(
                "Which interfaces notifications of late went to",
                "admin",
                [_parameter("notification", required=True)],
                json,
            )
        },
        "/v1/recording": {"get": operation("How far the recording goes", "admin", [], json)},
        "/v1/recording/notifications": {
            "get": operation(
                "What was accepted between two times, in µs since 1970",
                "admin",
                [
                    *(_parameter(name, "integer", required=True) for name in ("from", "to")),
                    _parameter("limit", "integer"),
                    _parameter("bounds"),
                ],
                json,
            )
        },
        "/v1/explain": {
            "get": operation(
                "Why a notification did or did not reach a subscription",
                "admin",
                [
                    _parameter("notification", required=True),
                    _parameter("subscription", "integer", required=True),
                    _parameter("session", "integer"),
                ],
                json,
            )
        },
        "/healthz": {"get": operation("Whether the broker is there", "", [], text)},
        "/metrics": {"get": operation("Prometheus metrics", "admin", [], text)},
        "/v1/openapi.json": {"get": operation("This document", "", [], json)},
        "/docs/problems": {"get": operation("The types of problems", "", [], text)},
        "/v1/asyncapi.json": {"get": operation("The WebSocket's messages", "", [], json)},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Contrada gateway", "version": version("contrada")},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
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
    "welcome", "subscribed", "unsubscribed", "published", "explained",
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


def _parameter(name: str, type: str = "string", *, required: bool = False, enum: list[str] | None = None) -> Any:
    schema = {"type": type, **({"enum": enum} if enum else {})}
    return {"name": name, "in": "query", "required": required, "schema": schema}
