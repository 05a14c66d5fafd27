"""The HTTP door: aiohttp around the parts that do no I/O."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from contrada.broker.protocol.wire import Role
from contrada.client.gateway.forms.rendering import event, notification_event
from contrada.client.gateway.http import page
from contrada.client.gateway.http.asking import VISITOR, Asking, visitor_of
from contrada.client.gateway.http.bodies import Form, LineReader, form_of, read_body
from contrada.client.gateway.http.documents import check_query
from contrada.client.gateway.http.guard import SECURITY_HEADERS, bearer, check_host, check_origin
from contrada.client.gateway.http.websocket import WebSocketConnection
from contrada.client.gateway.problems import MEDIA_TYPE, Problem, problem_of
from contrada.client.gateway.settings import host_and_port
from contrada.client.gateway.streaming.resuming import Resuming
from contrada.client.gateway.streaming.stream import Wish
from contrada.client.gateway.tokens import STRANGER
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from contrada.broker.protocol.messages import NotificationId
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.tokens import Visitor

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log: Final = logging.getLogger("contrada.gateway.http")
_CHUNK: Final = 256  # notifications published together, and read before others get a turn
_OUTSTANDING: Final = 8  # of these on their way to the broker; reading waits for room
_LARGE: Final = 1 << 15  # bytes that another thread reads, so that nobody waits for it
_STRANGERS: Final = 10  # one of so many connections may be a conversation in which no token was said
_SILENCE: Final = 75.0  # seconds that a connection may be open without a request


class HttpDoor:
    """The routes of a gateway, and the sockets they are served on."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._runner: web.AppRunner | None = None
        self._sockets: set[WebSocketConnection] = set()
        self._most_strangers = max(1, gateway.settings.connections // _STRANGERS)

    async def open(self, address: str) -> str:
        """Listen at HOST:PORT; the address of the gateway."""
        host, port = host_and_port(address, "HTTP")
        application = web.Application(middlewares=[self._guard], client_max_size=self._gateway.settings.body_bytes)
        application.add_routes(
            [
                web.post("/v1/notifications", self._publish),
                web.get("/v1/subscribe", self._subscribe),
                web.get("/v1/socket", self._socket),
                *Asking(self._gateway).routes(),
                *page.routes(),
            ]
        )
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=1.0,
            keepalive_timeout=_SILENCE,
            auto_decompress=False,  # a few bytes must not become many: see `form_of`
            logger=_log,
        )
        await self._runner.setup()
        context = self._gateway.tls()
        try:
            await web.TCPSite(self._runner, host, port, ssl_context=context).start()
        except OSError as error:
            raise ContradaError(f"HTTP cannot be served on {address}: {error}") from error
        bound = self._runner.addresses[0][1]
        shown = f"[{host}]" if ":" in host else host
        return f"{'http' if context is None else 'https'}://{shown}:{bound}"

    async def close(self) -> None:
        """Accept nobody, end the streams and conversations, wait for requests."""
        for connection in list(self._sockets):
            await connection.leave()
        if self._runner is not None:
            await self._runner.cleanup()

    # ------------------------------------------------------------------ around every request

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        gateway = self._gateway
        allowed: str | None = None
        try:
            check_host(request.host, has_tokens=gateway.has_tokens, insecure=gateway.settings.insecure)
            allowed = check_origin(request.headers.get("Origin"), request.host, gateway.settings.origins)
            if request.method == "OPTIONS" and allowed is not None:
                response: web.StreamResponse = web.Response(headers=_preflight())
            else:
                request[VISITOR] = gateway.visitor(bearer(request.headers.get("Authorization")))
                check_query(request.path, request.query)
                response = await handler(request)
        except web.HTTPRequestEntityTooLarge:
            limit = gateway.settings.body_bytes
            response = _problem(Problem("too-large", f"a document has at most {limit} bytes; JSON lines may go on"))
        except web.HTTPException as error:
            response = _problem(Problem("unknown", f"{request.method} {request.path}: {error.reason}"), error.status)
        except (ContradaError, TimeoutError) as error:
            response = _problem(problem_of(error))
        except ConnectionError as error:  # it was not all said: nobody is there to be answered
            response = _problem(Problem("bad-request", str(error)))
        gateway.metrics.requests.labels(str(response.status)).inc()
        if not response.prepared:
            response.headers.update(SECURITY_HEADERS)
            if allowed is not None:
                response.headers["Access-Control-Allow-Origin"] = allowed
        return response

    # ------------------------------------------------------------------ publishing

    async def _publish(self, request: web.Request) -> web.Response:
        visitor_of(request).require(Role.PUBLISH)
        geometry, envelope = request.query.get("geometry", "area"), _flag(request, "envelope")
        durable, with_ids = _flag(request, "durable"), _flag(request, "ids", default=True)
        form = form_of(request.content_type, request.headers)
        published = _Published(self._gateway, durable=durable)
        if form is Form.LINES:
            lines = LineReader(geometry, self._gateway.settings.line_bytes, envelope=envelope)
            try:
                async for data in request.content.iter_any():
                    for some in lines.feed(data):
                        await published.all(await _read_lines(lines, some))
                        await asyncio.sleep(0)  # others get a turn, also when all of them are empty
                    await published.hand_over()  # nobody knows when the next will come
                await published.all(await _read_lines(lines, lines.end()))
                await published.flush()
            except (ContradaError, TimeoutError) as error:
                raise problem_of(error, published=published.count) from None
        else:
            body = await _read_whole(request)
            read = read_body(form, body, request.headers, geometry, envelope=envelope)
            await published.checked(await asyncio.to_thread(list, read) if len(body) > _LARGE else read)
        return web.json_response(published.answer(with_ids))

    # ------------------------------------------------------------------ subscribing

    async def _subscribe(self, request: web.Request) -> web.StreamResponse:
        visitor = visitor_of(request)
        visitor.require(Role.SUBSCRIBE)
        gateway = self._gateway
        wish = Wish.of(dict(request.query), gateway.settings.window)
        last_event = request.query.get("last-event-id", "")
        if last_event and not wish.durable:
            raise Problem("not-available", "last-event-id resumes durable subscriptions: give it a name, durable=NAME")
        last_event = request.headers.get("Last-Event-ID") or last_event  # which browsers send of any stream
        with gateway.token_connections.one(visitor):
            async with gateway.connection():
                return await self._stream(request, wish, visitor, last_event)

    async def _stream(self, request: web.Request, wish: Wish, visitor: Visitor, last_event: str) -> web.StreamResponse:
        gateway = self._gateway
        stream = await gateway.open_stream(wish, visitor, "sse")
        stream.resuming = Resuming(last_event) if wish.durable else None
        try:
            headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", **SECURITY_HEADERS}
            origin = request.headers.get("Origin")
            if origin in gateway.settings.origins:
                headers["Access-Control-Allow-Origin"] = str(origin)
            response = web.StreamResponse(headers=headers)
            await response.prepare(request)
            session = gateway.subscriber.session
            await response.write(event("subscribed", stream.describe(session)))
            await self._pump(stream, response)
        except ConnectionError:
            pass  # the subscriber has left
        finally:
            await asyncio.shield(gateway.close_stream(stream))
        return response

    async def _pump(self, stream: Any, response: web.StreamResponse) -> None:
        gateway = self._gateway
        stopping = asyncio.ensure_future(gateway.stopping.wait())
        try:
            while not gateway.stopping.is_set():
                reading = asyncio.ensure_future(stream.batch(gateway.settings.heartbeat))
                await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    reading.cancel()
                    break
                batch = reading.result()
                told = [event(name, document) for name, document in stream.news()]
                texts = "".join([notification_event(gateway.renderer, each) for each in batch])
                alive = b": alive\n\n" if stream.idle and not told else b""
                if texts or told or alive:
                    await response.write(b"".join([texts.encode(), alive, *told]))
                if stream.resuming is not None:
                    stream.resuming.written(batch)
            await response.write(event("bye", {"why": "the gateway is stopping"}))
        except ContradaError as error:
            await response.write(event("problem", problem_of(error).document()))
        finally:
            stopping.cancel()

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        visitor = visitor_of(request)
        if visitor is STRANGER and sum(each.is_stranger for each in self._sockets) >= self._most_strangers:
            raise Problem("limit", f"{self._most_strangers} conversations wait for a token: send it as a header")
        async with self._gateway.connection():
            connection = WebSocketConnection(self._gateway, visitor)
            self._sockets.add(connection)
            try:
                return await connection.serve(request)
            finally:
                self._sockets.discard(connection)


def _flag(request: web.Request, name: str, *, default: bool = False) -> bool:
    """A parameter that is true or false; nothing else will do, since who writes `durable=1` relies on it."""
    text = request.query.get(name, str(default).lower())
    if text not in ("true", "false"):
        raise Problem("bad-request", f"{name} is true or false, not {text!r:.40}")
    return text == "true"


async def _read_whole(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(_SILENCE):
            return await request.read()
    except TimeoutError:
        raise Problem("bad-request", f"a document that was not whole after {_SILENCE:.0f} s") from None


async def _read_lines(lines: LineReader, some: list[bytes]) -> Iterable[Mapping[str, object]]:
    read = lines.read(some)
    return await asyncio.to_thread(list, read) if len(some) == 1 and len(some[0]) > _LARGE else read


class _Published:
    """What one request has published so far."""

    def __init__(self, gateway: Gateway, *, durable: bool) -> None:
        self._gateway = gateway
        self._durable = durable
        self._waiting: list[Mapping[str, object]] = []
        self._outstanding: deque[asyncio.Task[list[NotificationId]]] = deque()
        self._refused: ContradaError | TimeoutError | None = None
        self._ids: list[str] | None = []
        self.count = 0

    async def all(self, notifications: Iterable[Mapping[str, object]]) -> None:
        """Publish what an iterator gives, in chunks; those before a fault stand."""
        try:
            for notification in notifications:
                self._waiting.append(notification)
                if len(self._waiting) >= _CHUNK:
                    await self.hand_over()
        except (ContradaError, TimeoutError):
            await self.flush()
            raise

    async def checked(self, notifications: Iterable[Mapping[str, object]]) -> None:
        """Read everything first, and publish only if nothing is wrong."""
        whole: list[Mapping[str, object]] = []
        for notification in notifications:
            whole.append(notification)
            if len(whole) % _CHUNK == 0:
                await asyncio.sleep(0)  # others get a turn
        await self.all(whole)
        await self.flush()

    async def flush(self) -> None:
        """Publish what waits, and wait for what the broker says of all; the first that it refused is raised then."""
        try:
            await self._begin()
        finally:
            while self._outstanding:
                await self._answered()
            if self._refused is not None:
                raise self._refused

    async def hand_over(self) -> None:
        """Publish what waits; what the broker says of it is waited for when much is on its way, or on `flush`."""
        await self._begin()
        while self._outstanding and (len(self._outstanding) > _OUTSTANDING or self._outstanding[0].done()):
            await self._answered()
        if self._refused is not None:
            raise self._refused

    async def _begin(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._outstanding.append(await self._gateway.begin_publishing(waiting, durable=self._durable))

    async def _answered(self) -> None:
        try:
            ids = await self._outstanding.popleft()
        except (ContradaError, TimeoutError) as error:
            self._refused = self._refused or error
            return
        self.count += len(ids)
        if self._ids is not None:
            self._ids += map(str, ids)
            if len(self._ids) > self._gateway.settings.batch:
                self._ids = None

    def answer(self, with_ids: bool) -> dict[str, Any]:
        """What the publisher gets back."""
        return {"published": self.count, **({"ids": self._ids} if with_ids and self._ids is not None else {})}


def _tell_shortly(record: logging.LogRecord) -> bool:
    """What is no HTTP is no fault of ours: a line of the log will do, without the bytes that a stranger chose."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.msg, record.args, record.exc_info = "what came is no HTTP: %s", (type(error).__name__,), None
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


_log.addFilter(_tell_shortly)


def _problem(problem: Problem, status: int | None = None) -> web.Response:
    document = problem.document() | ({"status": status} if status else {})
    headers = {"WWW-Authenticate": "Bearer"} if problem.kind == "unauthenticated" else None
    return web.json_response(document, status=status or problem.status, content_type=MEDIA_TYPE, headers=headers)


def _preflight() -> dict[str, str]:
    return {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Authorization, Content-Type, Last-Event-ID, ce-id, ce-source, ce-type, "
        "ce-specversion, ce-time, ce-subject, Contrada-Notification",
        "Access-Control-Max-Age": "600",
    }
