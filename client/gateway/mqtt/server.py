"""The MQTT door: a task that reads each connection, and one for each of its subscriptions."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Any, Final

import mqtt5

from contrada.client.gateway.mqtt.codec import PlainPublish, Reader, publish_bytes, write
from contrada.client.gateway.mqtt.session import (
    Admit,
    Close,
    Done,
    Publish,
    Send,
    Session,
    Subscribe,
    Unsubscribe,
    refused_publish,
    subscribed,
)
from contrada.client.gateway.mqtt.topics import TopicQuery, message_of_notification
from contrada.client.gateway.problems import Problem, problem_of
from contrada.client.gateway.settings import host_and_port
from contrada.client.gateway.streams import Wish
from contrada.errors import ContradaError, ProtocolError

if TYPE_CHECKING:
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.mqtt.session import Action
    from contrada.client.gateway.streams import Stream

log = logging.getLogger("contrada.gateway")
_READ: Final = 1 << 17
_FIRST: Final = 10.0  # seconds for CONNECT
_LARGE: Final = 1 << 15  # bytes of a payload that another thread reads
_CHUNK: Final = 256  # packets that are read before others get a turn
_TOGETHER: Final = 4096  # notifications published together


class MqttDoor:
    """The listening socket, and the connections by their client ids."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.by_id: dict[tuple[str, str], MqttConnection] = {}  # by visitor and client id
        self._connections: set[MqttConnection] = set()
        self._server: asyncio.Server | None = None

    async def open(self, address: str) -> str:
        """Listen at HOST:PORT; the address of the door."""
        host, port = host_and_port(address, "MQTT")
        context = self.gateway.tls()
        try:
            self._server = await asyncio.start_server(self._serve, host, port, ssl=context, limit=_READ)
        except OSError as error:
            raise ContradaError(f"MQTT cannot be served on {address}: {error}") from error
        bound = self._server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        return f"{'mqtt' if context is None else 'mqtts'}://{shown}:{bound}"

    async def close(self) -> None:
        """Accept nobody, and tell those inside."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.leave("the gateway is stopping", Done.SERVER_SHUTTING_DOWN)
        waiting = [connection.over.wait() for connection in self._connections]
        if waiting:
            await asyncio.wait([asyncio.ensure_future(each) for each in waiting], timeout=2.0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            stores = await self.gateway.stores()
        except (ContradaError, TimeoutError) as error:
            log.info("mqtt: %s", error)  # the broker is away: it will be asked again
            stores = False
        connection = MqttConnection(self, reader, writer, stores=stores)
        self._connections.add(connection)
        try:
            async with self.gateway.connection():
                await connection.run()
        except Problem as problem:
            log.warning("mqtt: %s", problem)
        finally:
            writer.close()
            self._connections.discard(connection)
            connection.over.set()


class MqttConnection:
    """A session, its socket, and its subscriptions."""

    def __init__(
        self, door: MqttDoor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, stores: bool
    ) -> None:
        gateway = door.gateway
        self._door, self._gateway = door, gateway
        self._reader, self._writer = reader, writer
        self._stores = stores
        new_id = f"contrada-{secrets.token_hex(6)}"
        self._session = Session(gateway.settings, gateway.visitor, new_id, stores=stores)
        self._incoming = Reader(gateway.settings.line_bytes)
        self._silence: float | None = _FIRST
        self._client_id = ""
        self._key = "", ""
        self._waiting: list[dict[str, Any]] = []  # of quality 0, to be published together
        self._streams: dict[str, tuple[Stream, asyncio.Task[None]]] = {}
        self._closing = False
        self.over = asyncio.Event()

    async def run(self) -> None:
        """Serve the connection until it ends, publish its will if it has one, and end its subscriptions."""
        try:
            while not self._closing:
                try:
                    async with asyncio.timeout(self._silence):
                        data = await self._reader.read(_READ)
                except TimeoutError:
                    self._fault("nothing was heard for one and a half times the keep-alive", Done.KEEP_ALIVE_TIMEOUT)
                    break
                if not data:
                    break
                await self._take_in(data)
        except (ConnectionError, ContradaError, TimeoutError) as error:
            log.info("mqtt %s: %s", self._client_id, error)
        finally:
            await asyncio.shield(self._end())

    def leave(self, why: str, code: mqtt5.DisconnectReasonCode) -> None:
        """End the connection from this side."""
        self._fault(why, code)
        self._reader.feed_eof()

    # ------------------------------------------------------------------ what comes in

    async def _take_in(self, data: bytes) -> None:
        try:
            messages = self._incoming.feed(data)
        except ProtocolError as error:
            self._gateway.metrics.mqtt_faults.inc()
            self._fault(str(error), Done.MALFORMED_PACKET)
            return
        self._gateway.metrics.mqtt_messages.inc(len(messages))
        for number, message in enumerate(messages):
            if number % _CHUNK == _CHUNK - 1:
                await asyncio.sleep(0)  # others get a turn
            large = isinstance(message, (PlainPublish, mqtt5.PublishPacket)) and len(message.payload) > _LARGE
            receive = self._session.receive
            for action in await asyncio.to_thread(receive, message) if large else receive(message):
                if type(action) is Publish and action.number is None and not action.retain:
                    self._waiting.append(action.notification)
                    if len(self._waiting) >= _TOGETHER:
                        await self._flush()
                    continue
                await self._flush()
                await self._perform(action)
                if self._closing:
                    return
        await self._flush()
        await self._writer.drain()

    async def _perform(self, action: Action) -> None:
        if isinstance(action, Publish):
            await self._publish(action)
        elif isinstance(action, Send):
            self._send(action.message)
        elif isinstance(action, Admit):
            self._admit(action)
        elif isinstance(action, Subscribe):
            await self._subscribe(action)
        elif isinstance(action, Unsubscribe):
            await self._unsubscribe(action)
        elif isinstance(action, Close):
            log.info("mqtt %s: %s", self._client_id, action.why)
            self._closing = True

    def _admit(self, action: Admit) -> None:
        self._key = self._session.visitor.name, action.client_id  # nobody takes over what is another visitor's
        other = self._door.by_id.get(self._key)
        if other is not None:
            other.leave("another connection came with the same client id", Done.SESSION_TAKEN_OVER)
        self._client_id = action.client_id
        self._door.by_id[self._key] = self
        self._silence = action.silence or None
        self._send(action.message)

    async def _publish(self, action: Publish) -> None:
        retain = action.retain and self._stores
        if action.retain and not self._stores:
            if self._incoming.version == 5:
                self._fault("nothing is retained here", Done.RETAIN_NOT_SUPPORTED)
                return
            self._gateway.metrics.retain_ignored.inc()
        if action.number is None and not retain:  # to be retained, which is ignored
            self._waiting.append(action.notification)
            return
        try:
            if retain:
                await self._gateway.retain(action.notification, f"mqtt/{action.notification['topic']}")
            else:
                await self._gateway.publish([action.notification], durable=self._stores)
            if action.number is not None:
                self._send(mqtt5.PubAckPacket(action.number))
        except (ContradaError, TimeoutError) as error:
            if action.number is None:
                self._fault(str(error), Done.UNSPECIFIED_ERROR)
            else:
                self._send(refused_publish(action.number, problem_of(error)))

    async def _flush(self) -> None:
        """Publish what waits, of quality 0. What is refused ends the connection, which is how MQTT says it."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            await self._gateway.publish(waiting)
        except (ContradaError, TimeoutError) as error:
            self._fault(str(error), Done.UNSPECIFIED_ERROR)

    # ------------------------------------------------------------------ subscriptions

    async def _subscribe(self, action: Subscribe) -> None:
        outcomes: list[Problem | None] = []
        for pattern, query in action.wanted:
            if isinstance(query, Problem):
                outcomes.append(query)
                continue
            await self._end_stream(pattern)
            try:
                wish = Wish(query.filter, window=min(1000, self._gateway.settings.window))
                stream = await self._gateway.open_stream(wish, self._session.visitor, "mqtt")
            except (ContradaError, TimeoutError) as error:
                outcomes.append(problem_of(error))
                continue
            outcomes.append(None)
            self._session.patterns.add(pattern)
            pump = asyncio.create_task(self._pump(stream, query, action.subscription_id))
            self._streams[pattern] = (stream, pump)
        self._send(subscribed(action.number, outcomes))

    async def _unsubscribe(self, action: Unsubscribe) -> None:
        codes = mqtt5.UnsubAckReasonCode
        found = [
            codes.SUCCESS if await self._end_stream(pattern) else codes.NO_SUBSCRIPTION_EXISTED
            for pattern in action.patterns
        ]
        self._send(mqtt5.UnsubAckPacket(action.number, found))

    async def _end_stream(self, pattern: str) -> bool:
        stream, pump = self._streams.pop(pattern, (None, None))
        self._session.patterns.discard(pattern)
        if stream is None or pump is None:
            return False
        pump.cancel()
        await self._gateway.close_stream(stream)
        return True

    async def _pump(self, stream: Stream, query: TopicQuery, number: int | None) -> None:
        """Write a subscription's notifications as fast as the client takes them."""
        version, writer = self._incoming.version, self._writer
        try:
            while True:
                batch = await stream.batch()
                data = []
                for each in batch:
                    topic, payload = message_of_notification(each)
                    if not query.takes(topic.decode()):
                        continue
                    if number is None or version == 4:
                        data.append(publish_bytes(topic, payload, version))
                    else:
                        data.append(mqtt5.PublishPacket(topic.decode(), payload, subscription_ids=[number]).write())
                writer.write(b"".join(data))
                await writer.drain()
        except ConnectionError:
            pass  # the client has left, and `run` notices
        except ContradaError as error:
            self.leave(str(error), Done.UNSPECIFIED_ERROR)

    # ------------------------------------------------------------------ the end

    def _fault(self, why: str, code: mqtt5.DisconnectReasonCode) -> None:
        for action in self._session.fault(why, code):
            if isinstance(action, Send):
                self._send(action.message)
        self._closing = True

    def _send(self, message: mqtt5.Packet) -> None:
        if not self._writer.is_closing():
            self._writer.write(write(message, self._incoming.version))

    async def _end(self) -> None:
        if self._door.by_id.get(self._key) is self:
            del self._door.by_id[self._key]
        for pattern in list(self._streams):
            await self._end_stream(pattern)
        will = self._session.take_will()
        if will is not None:
            try:
                await self._gateway.publish([will])
            except (ContradaError, TimeoutError) as error:
                log.warning("the will of %s was not published: %s", self._client_id, error)
