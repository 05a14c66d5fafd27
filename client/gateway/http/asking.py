"""What operators and pages ask by HTTP: status, subscriptions, receivers, explanations, the recording, documents."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from contrada.broker.protocol.wire import ASKED_AT_ONCE, Role
from contrada.client.gateway.http import documents
from contrada.client.gateway.problems import TITLES, Problem
from contrada.client.gateway.recordings import MOST
from contrada.client.gateway.streaming.views import View

if TYPE_CHECKING:
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.tokens import Visitor

VISITOR: Final = web.RequestKey("visitor", object)


def visitor_of(request: web.Request) -> Visitor:
    """Who asks: the guard has put that into the request."""
    visitor: Any = request[VISITOR]
    return visitor  # type: ignore[no-any-return]  # the guard put one there


class Asking:
    """The handlers of requests that change nothing."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[web.RouteDef]:
        """What is asked where."""
        return [
            web.get("/v1/status", self._status),
            web.get("/v1/subscriptions", self._subscriptions),
            web.get("/v1/receivers", self._receivers),
            web.get("/v1/explain", self._explain),
            web.get("/v1/recording", self._recording),
            web.get("/v1/recording/notifications", self._recorded),
            web.get("/healthz", self._health),
            web.get("/metrics", self._metrics),
            web.get("/v1/openapi.json", self._openapi),
            web.get("/v1/asyncapi.json", self._asyncapi),
            web.get("/docs/problems", self._problems),
        ]

    async def _status(self, request: web.Request) -> web.Response:
        visitor_of(request).require(Role.ADMIN)
        return _json(await self._gateway.status())

    async def _subscriptions(self, request: web.Request) -> web.Response:
        visitor_of(request).require(Role.ADMIN)
        of = request.query.get("of", "gateway")
        if of == "broker":
            return _json(await self._gateway.list_subscriptions(_number(request, "after", 0)))
        if of != "gateway":
            raise Problem("bad-request", "of is `gateway` or `broker`")
        session = self._gateway.subscriber.session
        return _json({"subscriptions": [stream.describe(session) for stream in self._gateway.streams.values()]})

    async def _receivers(self, request: web.Request) -> web.Response:
        visitor_of(request).require(Role.ADMIN)
        ids = request.query.getall("notification", [])
        if not 1 <= len(ids) <= ASKED_AT_ONCE:
            raise Problem("bad-request", f"receivers needs notification=ID, up to {ASKED_AT_ONCE} times")
        return _json(await self._gateway.list_receivers(ids))

    async def _explain(self, request: web.Request) -> web.Response:
        visitor_of(request).require(Role.ADMIN)
        if "notification" not in request.query:
            raise Problem("bad-request", "explain needs notification=ID and subscription=N, and session=N of another")
        numbers = _number(request, "subscription"), _number(request, "session", 0)
        return _json(await self._gateway.explain(request.query["notification"], *numbers))

    async def _recording(self, request: web.Request) -> web.Response:
        visitor_of(request).require(Role.ADMIN)
        recordings = self._gateway.recordings
        span = {} if recordings is None else await self._gateway.read(recordings.span)
        return _json({"recording": recordings is not None, **span})

    async def _recorded(self, request: web.Request) -> web.Response:
        visitor_of(request).require(Role.ADMIN)
        recordings = self._gateway.recordings
        if recordings is None:
            raise Problem("not-available", "the gateway reads no recording: start it with --recording DIR")
        start, end = _number(request, "from"), _number(request, "to")
        limit = min(MOST, _number(request, "limit", MOST))
        bounds = View.of({"bounds": request.query.get("bounds")}).bounds
        text = await self._gateway.read(recordings.between, start, end, max(1, limit), bounds)
        return web.Response(text=text, content_type="application/json")

    async def _health(self, request: web.Request) -> web.Response:
        wrong = self._gateway.health()
        return web.Response(text=f"{wrong or 'ok'}\n", status=503 if wrong else 200)

    async def _metrics(self, request: web.Request) -> web.Response:
        if self._gateway.has_tokens:
            visitor_of(request).require(Role.ADMIN)
        text = await asyncio.to_thread(self._gateway.metrics.text)
        return web.Response(body=text, content_type="text/plain", charset="utf-8")

    async def _openapi(self, request: web.Request) -> web.Response:
        return _json(documents.openapi())

    async def _asyncapi(self, request: web.Request) -> web.Response:
        return _json(documents.asyncapi())

    async def _problems(self, request: web.Request) -> web.Response:
        """What `type` of a problem refers to."""
        lines = [f"{kind:<18} {status}  {title}" for kind, (status, title) in TITLES.items()]
        return web.Response(text="\n".join(lines) + "\n")


def _number(request: web.Request, name: str, default: int | None = None) -> int:
    text = request.query.get(name, "" if default is None else str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Problem("bad-request", f"{name} is a whole number, not {text!r:.40}")
    return int(text)


def _json(document: object) -> web.Response:
    return web.json_response(document, dumps=lambda each: json.dumps(each, ensure_ascii=False, default=str))
