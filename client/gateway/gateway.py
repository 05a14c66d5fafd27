"""One gateway: two sessions at the broker, the doors, and what goes through them."""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from contrada.broker.protocol.messages import Keep
from contrada.broker.protocol.wire import Policy, Role
from contrada.client.async_client import AsyncClient
from contrada.client.gateway.forms.attributes import notification_of
from contrada.client.gateway.forms.rendering import Renderer
from contrada.client.gateway.forms.shapes import shapes_of
from contrada.client.gateway.metrics import GatewayMetrics
from contrada.client.gateway.problems import Problem
from contrada.client.gateway.recordings import Recordings
from contrada.client.gateway.shares import Shares
from contrada.client.gateway.streaming.stream import Stream
from contrada.client.gateway.tokens import ANYBODY, STRANGER, TokenDirectory
from contrada.errors import ContradaError, Disconnected, Refused
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.language.text.parse import parse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from contrada.broker.protocol.messages import NotificationId
    from contrada.client.gateway.settings import GatewaySettings
    from contrada.client.gateway.streaming.stream import Wish
    from contrada.client.gateway.tokens import Visitor
    from contrada.client.notification import Encoded
    from contrada.client.options import OptionNames

_T = TypeVar("_T")
log = logging.getLogger("contrada.gateway")
_LARGE: Final = 1 << 13  # characters of a filter that another thread reads, so that nobody waits for it


class Gateway:
    """Use it as an asynchronous context manager; `http_url` and `mqtt_url` say where it listens."""

    def __init__(self, url: str, settings: GatewaySettings, options: OptionNames | None = None) -> None:
        keywords: OptionNames = {"name": "gateway", **(options or {})}
        self.settings = settings
        self.subscriber = AsyncClient(url, **keywords)
        self.publisher = AsyncClient(url, **keywords)
        self.renderer = Renderer()
        self.metrics = GatewayMetrics(self)
        self.streams: dict[int, Stream] = {}
        self.connections = 0
        self.token_connections = Shares("connections", settings.token_connections)
        self._durable_shares = Shares("durable subscriptions", settings.token_durable)  # beside those that are there
        self.stopping = asyncio.Event()
        self.http_url = self.mqtt_url = ""
        self._tokens = None if settings.tokens is None else TokenDirectory(settings.tokens)
        self.recordings = None if settings.recording is None else Recordings(settings.recording)
        self._reading = asyncio.Lock()
        self._stores: tuple[int, bool] | None = None  # after how many reconnects it was asked, and the answer
        self._doors: list[Any] = []

    async def __aenter__(self) -> Self:
        try:
            await self.subscriber
            await self.publisher
            await asyncio.to_thread(_warm)
            if self.settings.http is not None:
                from contrada.client.gateway.http.server import HttpDoor

                door = HttpDoor(self)
                self._doors.append(door)
                self.http_url = await door.open(self.settings.http)
            if self.settings.mqtt is not None:
                from contrada.client.gateway.mqtt.server import MqttDoor

                mqtt = MqttDoor(self)
                self._doors.append(mqtt)
                self.mqtt_url = await mqtt.open(self.settings.mqtt)
            if self.settings.webhooks:
                from contrada.client.gateway.streaming.webhooks import Webhooks

                hooks = Webhooks(self, self.settings.webhooks)
                self._doors.append(hooks)
                await hooks.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let nobody in any more, tell those inside, flush what they published, and leave the broker."""
        self.stopping.set()
        for door in self._doors:
            await door.close()
        for client in (self.publisher, self.subscriber):
            try:
                await client.close()
            except ContradaError as error:
                log.warning("while closing: %s", error)

    # ------------------------------------------------------------------ who comes in

    def visitor(self, token: str | None) -> Visitor:
        """Who shows this token, or none."""
        if self._tokens is None:
            return ANYBODY
        return STRANGER if not token else self._tokens.visitor(token)

    @property
    def has_tokens(self) -> bool:
        """Whether visitors must say who they are."""
        return self._tokens is not None

    def tls(self) -> ssl.SSLContext | None:
        """What both doors need for TLS, if it is wanted."""
        if self.settings.certificate is None or self.settings.private_key is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.settings.certificate, self.settings.private_key)
        except (OSError, ssl.SSLError) as error:
            raise ContradaError(f"cannot use the certificate {self.settings.certificate}: {error}") from error
        return context

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[None]:
        """Count a stream, WebSocket or MQTT connection; a `Problem` when there are too many."""
        if self.connections >= self.settings.connections:
            raise Problem("limit", f"the gateway has its {self.settings.connections} connections")
        self.connections += 1
        try:
            yield
        finally:
            self.connections -= 1

    # ------------------------------------------------------------------ what they do

    async def publish(
        self, notifications: Sequence[Mapping[str, object]], *, durable: bool = False
    ) -> list[NotificationId]:
        """Publish, and return the ids once the broker has accepted all of them, or has them on disk."""
        try:
            ids = await self.publisher.publish_many(notifications, durable=durable, timeout=self.settings.timeout)
        except (ContradaError, TimeoutError):
            self.metrics.refused.inc()
            raise
        self.metrics.published.inc(len(ids))
        return ids

    async def begin_publishing(
        self, notifications: Sequence[Mapping[str, object] | Encoded], *, durable: bool = False
    ) -> asyncio.Task[list[NotificationId]]:
        """Hand notifications over, in order; the task ends with their ids once the broker has accepted them."""
        try:
            outcome = await self.publisher._begin_publishing(
                notifications, durable=durable, timeout=self.settings.timeout
            )
        except (ContradaError, TimeoutError):
            self.metrics.refused.inc()
            raise
        return asyncio.create_task(self._published(outcome))

    async def _published(self, outcome: Coroutine[Any, Any, list[NotificationId]]) -> list[NotificationId]:
        try:
            ids = await outcome
        except (ContradaError, TimeoutError):
            self.metrics.refused.inc()
            raise
        self.metrics.published.inc(len(ids))
        return ids

    async def retain(self, notification: Mapping[str, object], key: str) -> NotificationId:
        """Publish what becomes the last value of a key; its id, once it is on disk."""
        try:
            id = await self.publisher.publish(notification, durable=True, retain=key, timeout=self.settings.timeout)
        except (ContradaError, TimeoutError):
            self.metrics.refused.inc()
            raise
        self.metrics.published.inc()
        assert id is not None
        return id

    async def stores(self) -> bool:
        """Whether the broker keeps what is durable; asked again after a reconnect, since it may be another one."""
        if self._stores is None or self._stores[0] != self.publisher.reconnects:
            try:
                await self.publisher.durable_subscriptions(timeout=self.settings.timeout)
                self._stores = self.publisher.reconnects, True
            except Refused:
                self._stores = self.publisher.reconnects, False
        return self._stores[1]

    async def open_stream(
        self, wish: Wish, visitor: Visitor, door: str, *, durable: str | None = None, keep: Keep | None = None
    ) -> Stream:
        """Subscribe; close the stream with `close_stream`. `durable` is a name at the broker, of MQTT's sessions."""
        if wish.policy is Policy.BLOCK:
            visitor.require(Role.PUBLISH)  # who may only listen does not hold back those who speak
        if wish.durable:
            durable = f"gateway/{visitor.name}/{wish.durable}"
        if durable is None or not visitor.name:
            return await self._open_stream(wish, visitor, door, durable, keep)
        names = await self._durable_names(visitor)
        if durable in names:
            return await self._open_stream(wish, visitor, door, durable, keep)
        with self._durable_shares.one(visitor, len(names)):
            return await self._open_stream(wish, visitor, door, durable, keep)

    async def _durable_names(self, visitor: Visitor) -> set[str]:
        """The durable subscriptions that a token has at the broker, by whichever gateway; as many as it may have."""
        found: set[str] = set()
        for prefix in (f"gateway/{visitor.name}/", f"mqtt/{visitor.name}/"):
            after, more = prefix, True
            while more and len(found) < self._durable_shares.most:
                page = await self.subscriber.durable_subscriptions(after, timeout=self.settings.timeout)
                names = [each["name"] for each in page["subscriptions"]]
                own = [name for name in names if name.startswith(prefix)]
                found.update(own)
                more = bool(page["more"]) and len(own) == len(names)
                after = names[-1] if names else after
        return found

    async def _open_stream(
        self, wish: Wish, visitor: Visitor, door: str, durable: str | None, keep: Keep | None
    ) -> Stream:
        policy = (
            Policy.DROP_OLDEST if wish.policy is Policy.DISCONNECT else wish.policy
        )  # ours to cut off, not the session
        text = wish.filter
        expression = text if len(text) < _LARGE else await asyncio.to_thread(parse, text)
        subscription = await self.subscriber.subscribe(
            expression,
            policy=policy,
            window=wish.window,
            queue=wish.queue,
            durable=durable,
            since=wish.since,
            ack="auto" if durable is None else "manual",
            keep=keep or Keep(),
            timeout=self.settings.timeout,
        )
        stream = Stream(subscription, wish, visitor.name, door)
        self.streams[subscription.id] = stream
        return stream

    async def close_stream(self, stream: Stream) -> None:
        """Unsubscribe. Safe when the broker is gone."""
        self.streams.pop(stream.subscription.id, None)
        self.metrics.count_closed(stream)
        try:
            await stream.subscription.close(timeout=self.settings.timeout)
        except (Disconnected, TimeoutError) as error:
            log.info("while unsubscribing: %s", error)

    async def status(self) -> dict[str, Any]:
        """What the broker says of itself, and the gateway of itself."""
        document = await self.subscriber.status(timeout=self.settings.timeout)
        return {"broker": document, "gateway": self.describe()}

    def describe(self) -> dict[str, Any]:
        """What the gateway is doing."""
        return {
            "session": self.subscriber.session,
            "connections": self.connections,
            "subscriptions": len(self.streams),
            "published": self.metrics.total_published,
            "delivered": self.metrics.total_delivered,
            "dropped": self.metrics.total_dropped,
            "reconnects": self.subscriber.reconnects,
        }

    async def explain(self, notification: str, subscription: int, session: int = 0) -> dict[str, Any]:
        """Why a notification did or did not reach a subscription; session 0 is the gateway's own."""
        return await self.subscriber.explain(notification, subscription, session, timeout=self.settings.timeout)

    async def list_subscriptions(self, after: int) -> dict[str, Any]:
        """A page of the broker's subscriptions, whoever made them, with the shapes of their filters."""
        document = await self.subscriber.list_subscriptions(after, timeout=self.settings.timeout)
        document["session"] = self.subscriber.session
        await asyncio.to_thread(_add_shapes, document["subscriptions"])
        return document

    async def list_receivers(self, notifications: Sequence[str]) -> dict[str, Any]:
        """The interfaces that notifications of late went to."""
        return await self.subscriber.list_receivers(notifications, timeout=self.settings.timeout)

    async def read(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Have files read by another thread; one question at a time: it is work."""
        async with self._reading:
            return await asyncio.to_thread(function, *arguments)

    def health(self) -> str:
        """What is wrong, or nothing."""
        if self.stopping.is_set():
            return "the gateway is stopping"
        if not (self.subscriber.connected and self.publisher.connected):
            return f"the broker {self.subscriber.url} is not there"
        return ""


def _warm() -> None:
    """Read a polygon, as visitors send them: the first one loads compiled code, which takes most of a second."""
    corners = [[0, 0], [4, 0], [4, 3], [1, 5], [0, 0]]
    encode_notification(notification_of({"area": {"type": "Polygon", "coordinates": [corners]}}))


def _add_shapes(subscriptions: list[dict[str, Any]]) -> None:
    for subscription in subscriptions:
        subscription["shapes"] = shapes_of(subscription["filters"])
