"""One WebSocket: performs what its conversation decides, and pumps its subscriptions' notifications."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from aiohttp import WSCloseCode, WSMsgType, web

from contrada.client.gateway.http.conversation import (
    Acknowledge,
    Conversation,
    Explain,
    Look,
    Publish,
    Receivers,
    Say,
    Status,
    Subscribe,
    Unsubscribe,
    error_message,
)
from contrada.client.gateway.problems import Problem, problem_of
from contrada.client.gateway.shares import Share
from contrada.client.gateway.streaming.unacknowledged import Unacknowledged
from contrada.client.gateway.tokens import STRANGER
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.http.conversation import Action
    from contrada.client.gateway.streaming.stream import Stream
    from contrada.client.gateway.tokens import Visitor

_LARGE: Final = 1 << 15  # bytes of a message that another thread reads
_AGAIN: Final = ',"redelivered":true'
_TURN: Final = 64  # messages that are read before others get a turn
_OUTSTANDING: Final = 16  # publications on their way to the broker; reading waits for room


class WebSocketConnection:
    """A conversation, its socket, and a task for each of its subscriptions."""

    def __init__(self, gateway: Gateway, visitor: Visitor) -> None:
        self._gateway = gateway
        self._share = Share(gateway.token_connections)
        self._conversation = Conversation(
            gateway.settings, self._share.move(visitor), lambda token: self._share.move(gateway.visitor(token))
        )
        settings = gateway.settings
        self._socket = web.WebSocketResponse(
            max_msg_size=settings.line_bytes, heartbeat=settings.heartbeat, autoclose=True, compress=False
        )
        self._streams: dict[str, Stream] = {}
        self._unacknowledged: dict[str, Unacknowledged] = {}  # of the durable ones
        self._pumps: dict[str, asyncio.Task[None]] = {}
        self._publishing: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_OUTSTANDING)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Talk until either side leaves."""
        count = 0
        try:
            await self._socket.prepare(request)
            async for message in self._socket:
                count += 1
                if count % _TURN == 0:
                    await asyncio.sleep(0)  # others get a turn: a full queue of messages waits for nothing
                if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break
                try:
                    large = len(message.data) > _LARGE
                    receive = self._conversation.receive
                    await self._perform(
                        await asyncio.to_thread(receive, message.data) if large else receive(message.data)
                    )
                except (ConnectionError, RuntimeError):
                    break  # the page has left
        finally:
            await asyncio.shield(self._end())
        return self._socket

    @property
    def is_stranger(self) -> bool:
        """Whether no token was said, where there are tokens."""
        return self._conversation.visitor is STRANGER

    async def leave(self) -> None:
        """Say that the gateway is going away."""
        await self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"the gateway is stopping")

    # ------------------------------------------------------------------ performing

    async def _perform(self, action: Action) -> None:
        if isinstance(action, Publish):
            await self._room.acquire()  # a page that publishes faster than the broker accepts is not read
            task = asyncio.create_task(self._publish(action))
            self._publishing.add(task)
            task.add_done_callback(self._published)
            return
        try:
            if isinstance(action, Say):
                await self._say(action.document)
            elif isinstance(action, Subscribe):
                await self._subscribe(action)
            elif isinstance(action, Unsubscribe):
                await self._close_stream(action.id)
                await self._say({"type": "unsubscribed", "ref": action.ref, "id": action.id})
            elif isinstance(action, Acknowledge):
                await self._acknowledge(action)
            elif isinstance(action, Explain):
                await self._explain(action)
            elif isinstance(action, Look):
                if action.id in self._unacknowledged:
                    raise Problem("bad-request", "a durable subscription has no view: nothing of it is left out")
                self._streams[action.id].viewer.change(action.view)
                await self._say({"type": "viewing", "ref": action.ref, "id": action.id})
            elif isinstance(action, Receivers):
                document = await self._gateway.list_receivers(action.notifications)
                await self._say({"type": "receivers", "ref": action.ref, **document})
            elif isinstance(action, Status):
                await self._say({"type": "status", "ref": action.ref, **await self._gateway.status()})
        except (ContradaError, TimeoutError) as error:
            await self._say(error_message(error, getattr(action, "ref", None)).document)

    async def _subscribe(self, action: Subscribe) -> None:
        gateway = self._gateway
        try:
            stream = await gateway.open_stream(action.wish, self._conversation.visitor, "websocket")
        except BaseException:
            self._conversation.closed(action.id)
            raise
        self._streams[action.id] = stream
        if action.wish.durable:
            self._unacknowledged[action.id] = Unacknowledged(action.wish.window)
        described = stream.describe(gateway.subscriber.session)
        await self._say({"type": "subscribed", "ref": action.ref, "id": action.id, **described})
        self._pumps[action.id] = asyncio.create_task(self._pump(action.id, stream))

    async def _acknowledge(self, action: Acknowledge) -> None:
        kept = self._unacknowledged.get(action.id)
        if kept is None:
            raise Problem("bad-request", f"the subscription {action.id!r} is not durable: it needs no ack")
        known = kept.acknowledge_up_to(action.up_to) if action.up_to else kept.acknowledge(action.notifications)
        await self._say({"type": "acknowledged", "ref": action.ref, "id": action.id, "acknowledged": known})

    async def _explain(self, action: Explain) -> None:
        number, session = action.subscription, action.session
        if action.id is not None:
            number, session = self._streams[action.id].subscription.id, 0
        document = await self._gateway.explain(action.notification, number, session)
        await self._say({"type": "explained", "ref": action.ref, "explanation": document})

    async def _publish(self, action: Publish) -> None:
        try:
            ids = await self._gateway.publish(action.notifications, durable=action.durable)
            await self._say({"type": "published", "ref": action.ref, "ids": [str(id) for id in ids]})
        except (ContradaError, TimeoutError) as error:
            await self._say(error_message(error, action.ref).document)

    def _published(self, task: asyncio.Task[None]) -> None:
        self._publishing.discard(task)
        self._room.release()
        if not task.cancelled():
            task.exception()  # the page has left: nobody to tell

    async def _pump(self, id: str, stream: Stream) -> None:
        """Send a subscription's notifications as fast as the page takes them."""
        renderer, name = self._gateway.renderer, json.dumps(id)
        kept = self._unacknowledged.get(id)
        try:
            while True:
                if kept is not None:
                    await kept.room()
                batch = await stream.batch(self._gateway.settings.heartbeat)
                for kind, document in stream.news():
                    await self._say({"type": kind, "id": id, **document})
                if batch:
                    if kept is not None:
                        kept.add(batch)
                    items = ",".join(
                        [f"{{{renderer.text(each)}{_AGAIN if each.redelivered else ''}}}" for each in batch]
                    )
                    await self._socket.send_str(f'{{"type":"notifications","id":{name},"items":[{items}]}}')
        except ContradaError as error:
            self._pumps.pop(id, None)
            await self._close_stream(id)
            await self._say({"type": "ended", "id": id, "problem": problem_of(error).document()})
        except (ConnectionError, RuntimeError):
            pass  # the page has left, and `serve` notices

    async def _close_stream(self, id: str) -> None:
        pump, stream = self._pumps.pop(id, None), self._streams.pop(id, None)
        self._unacknowledged.pop(id, None)
        if pump is not None:
            pump.cancel()
        if stream is not None:
            await self._gateway.close_stream(stream)
        self._conversation.closed(id)

    async def _end(self) -> None:
        self._share.end()
        for id in list(self._streams):
            await self._close_stream(id)
        if self._publishing:
            await asyncio.wait(self._publishing, timeout=self._gateway.settings.shutdown_timeout)

    async def _say(self, document: dict[str, Any]) -> None:
        """Send a message, as ASCII: a page may choose half a character as an id."""
        await self._socket.send_str(json.dumps(document, default=str))
