"""One MQTT connection: a task that reads it, and one for each of its subscriptions."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Final

import mqtt5

from contrada.broker.protocol.messages import Keep
from contrada.broker.protocol.wire import Code, Full
from contrada.client.gateway.mqtt.codec import OtherVersion, PlainPublish, Reader, TooLarge, publish_bytes, write
from contrada.client.gateway.mqtt.outgoing import Outgoing
from contrada.client.gateway.mqtt.publishing import Publishing
from contrada.client.gateway.mqtt.session import (
    ALWAYS,
    IF_NEW,
    Acknowledged,
    Admit,
    Asked,
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
from contrada.client.gateway.mqtt.sessions import KeptSession, durable_name
from contrada.client.gateway.mqtt.topics import (
    ATTRIBUTES,
    Message,
    encoded_of_message,
    message_of_notification,
    plain_message,
)
from contrada.client.gateway.problems import Problem, problem_of
from contrada.client.gateway.shares import Share
from contrada.client.gateway.streaming.stream import Wish
from contrada.errors import ContradaError, ProtocolError, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.client.gateway.mqtt.codec import Incoming
    from contrada.client.gateway.mqtt.server import MqttDoor
    from contrada.client.gateway.mqtt.session import Action
    from contrada.client.gateway.streaming.stream import Stream
    from contrada.client.notification import Notification

log = logging.getLogger("contrada.gateway")
READ: Final = 1 << 17
_FIRST: Final = 10.0  # seconds for CONNECT
_LARGE: Final = 1 << 15  # bytes of a payload that another thread reads
_LARGE_FILTERS: Final = 1 << 13  # characters of filters, read for each topic filter, likewise
_SOME: Final = 1 << 12  # bytes of a payload before which others get a turn
_FOR_EVER: Final = ("bad-request", "bad-notification", "forbidden", "unauthenticated", "too-large")  # each time again
_CHUNK: Final = 256  # packets that are read before others get a turn
_WINDOW: Final = 4000  # notifications of one subscription on their way to it, of quality 0,
_AT_LEAST_ONCE: Final = 20  # and of quality 1, to one client: each that is on its way when it breaks was an attempt
_KEEP: Final = Keep(when_notifications=Full.DROP_OLDEST, when_bytes=Full.DROP_OLDEST)  # who is away refuses nobody


class MqttConnection:
    """A session, its socket, and its subscriptions."""

    def __init__(
        self,
        door: MqttDoor,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        stores: bool,
        full: str = "",
    ) -> None:
        gateway = door.gateway
        self._door, self._gateway = door, gateway
        self._reader, self._writer = reader, writer
        self._stores = stores
        new_id = f"contrada-{secrets.token_hex(6)}"
        self._share = Share(gateway.token_connections)
        self._session = Session(
            gateway.settings,
            lambda token: self._share.move(gateway.visitor(token)),
            new_id,
            stores=stores,
            full=full,
        )
        self._incoming = Reader(gateway.settings.line_bytes)
        self._silence: float | None = _FIRST
        self._key = "", ""
        self._kept: KeptSession | None = None
        self._outgoing = Outgoing({}, 1)
        self._largest: int | None = None
        self._publishing = Publishing(gateway, lambda why: self.leave(why, Done.UNSPECIFIED_ERROR), stores=stores)
        self._streams: dict[str, tuple[Stream, asyncio.Task[None]]] = {}
        self._closing = False
        self.over = asyncio.Event()

    async def run(self) -> None:
        """Serve the connection until it ends; then its will and its session are the door's."""
        try:
            while not self._closing:
                try:
                    async with asyncio.timeout(self._silence):
                        data = await self._reader.read(READ)
                except TimeoutError:
                    self._fault("nothing was heard for one and a half times the keep-alive", Done.KEEP_ALIVE_TIMEOUT)
                    break
                if not data:
                    break
                await self._take_in(data)
        except (ConnectionError, ContradaError, TimeoutError) as error:
            log.info("mqtt %s: %s", self._key[1], error)
        finally:
            await asyncio.shield(self._end())

    def leave(self, why: str, code: mqtt5.DisconnectReasonCode) -> None:
        """End the connection from this side."""
        self._fault(why, code)
        self._reader.feed_eof()

    # ------------------------------------------------------------------ what comes in

    async def _take_in(self, data: bytes) -> None:
        try:
            await self._take_all(self._incoming.feed(data))
            if self._incoming.fault is not None and not self._closing:
                raise self._incoming.fault
        except ProtocolError as error:
            self._gateway.metrics.mqtt_faults.inc()
            if isinstance(error, OtherVersion):
                self._writer.write(error.answer)
            too_large = isinstance(error, TooLarge)
            self._fault(str(error), Done.PACKET_TOO_LARGE if too_large else Done.MALFORMED_PACKET)

    async def _take_all(self, messages: list[Incoming]) -> None:
        self._gateway.metrics.mqtt_messages.inc(len(messages))
        self._session.version = self._incoming.version
        for number, message in enumerate(messages):
            if number % _CHUNK == _CHUNK - 1:
                await asyncio.sleep(0)  # others get a turn
            if type(message) is PlainPublish and len(message.payload) <= _LARGE:
                if len(message.payload) > _SOME:
                    await asyncio.sleep(0)
                encoded = encoded_of_message(*message) if self._session.may_publish else None
                if encoded is not None:  # nearly always: without an action each
                    if self._publishing.add(encoded):
                        await self._publishing.flush()
                        if self._closing:
                            return
                    continue
            receive = self._session.receive
            for action in await asyncio.to_thread(receive, message) if _is_large(message) else receive(message):
                if type(action) is Publish and action.number is None and not (action.retain and self._stores):
                    if action.retain:
                        self._gateway.metrics.retain_ignored.inc()  # which version 3.1.1 cannot say
                    if self._publishing.add(action.notification):
                        await self._publishing.flush()
                    continue
                await self._publishing.flush()
                await self._perform(action)
                if self._closing:
                    return
        await self._publishing.flush()
        await self._writer.drain()

    async def _perform(self, action: Action) -> None:
        if isinstance(action, Publish):
            await self._publish(action)
        elif isinstance(action, Acknowledged):
            self._outgoing.acknowledge(action.number)
        elif isinstance(action, Send):
            if isinstance(action.message, mqtt5.PubAckPacket):
                self._gateway.metrics.refused.inc()
                log.info("mqtt %s: refused: %s", self._key[1], action.message.reason_str)
            self._send(action.message)
        elif isinstance(action, Admit):
            await self._admit(action)
        elif isinstance(action, Subscribe):
            await self._subscribe(action)
        elif isinstance(action, Unsubscribe):
            await self._unsubscribe(action)
        elif isinstance(action, Close):
            log.info("mqtt %s: %s", self._key[1], action.why)
            self._closing = True

    async def _admit(self, action: Admit) -> None:
        self._key = key = self._session.visitor.name, action.client_id
        other, self._door.by_key[key] = self._door.by_key.get(key), self
        if other is not None:
            other.leave("another connection came with the same client id", Done.SESSION_TAKEN_OVER)
            await other.over.wait()
        self._kept, present = await self._door.sessions.take_up(key, clean=action.clean_start)
        self._outgoing = Outgoing(self._kept.sent, min(action.receive_max, _AT_LEAST_ONCE))
        self._largest = action.largest
        self._silence = action.silence or None
        self._send(self._session.welcome(present=present))
        for asked in list(self._kept.asked.values()):
            try:
                await self._open(asked, with_retained=False)
            except (ContradaError, TimeoutError) as error:
                self._fault(f"the session cannot be taken up: {error}", Done.UNSPECIFIED_ERROR)
                return

    async def _publish(self, action: Publish) -> None:
        try:
            await self._publishing.publish(action)
            if action.number is not None:
                self._send(mqtt5.PubAckPacket(action.number))
        except (ContradaError, TimeoutError) as error:
            problem = problem_of(error)
            # An acknowledgement of version 3.1.1 cannot say no, and what is not acknowledged is sent again.
            forgotten = self._incoming.version == 4 and problem.kind not in _FOR_EVER
            if action.number is None or forgotten:
                self._fault(str(error), Done.UNSPECIFIED_ERROR)
            else:
                log.info("mqtt %s: refused: %s", self._key[1], problem)
                self._send(refused_publish(action.number, problem))

    # ------------------------------------------------------------------ subscriptions

    async def _subscribe(self, action: Subscribe) -> None:
        assert self._kept is not None
        outcomes: list[int | Problem] = []
        for asked in action.wanted:
            if isinstance(asked, Problem):
                outcomes.append(asked)
                continue
            before = self._kept.asked.get(asked.pattern)
            try:
                self._kept.check_room(asked, self._gateway.settings.line_bytes)
                await self._close_stream(asked.pattern)
                if before is not None and _durable_part(before) != _durable_part(asked):
                    await self._door.sessions.end_subscription(self._kept.key, before)
                wanted = asked.retained == ALWAYS or (asked.retained == IF_NEW and before is None)
                await self._open(asked, with_retained=wanted)
            except (ContradaError, TimeoutError) as error:
                outcomes.append(problem_of(error))
                continue
            self._kept.asked[asked.pattern] = asked
            outcomes.append(asked.quality)
        self._send(subscribed(action.number, outcomes))

    async def _open(self, asked: Asked, *, with_retained: bool) -> None:
        assert self._kept is not None
        gateway, visitor = self._gateway, self._session.visitor
        if asked.no_local:
            self._publishing.watch()
        if asked.quality:
            window = min(_AT_LEAST_ONCE, gateway.settings.window)
            name = durable_name(self._kept.key, asked)
            stream = await gateway.open_stream(
                Wish(asked.query.filter, window=window), visitor, "mqtt", durable=name, keep=_KEEP
            )
        else:
            wish = Wish(asked.query.filter, window=min(_WINDOW, gateway.settings.window))
            stream = await gateway.open_stream(wish, visitor, "mqtt")
        self._session.patterns.add(asked.pattern)
        if with_retained and asked.quality and stream.subscription.first.sequence == 1:  # it was there before
            await self._send_retained(asked)
        pump = asyncio.create_task(self._pump(stream, asked, with_retained=with_retained))
        self._streams[asked.pattern] = (stream, pump)

    async def _send_retained(self, asked: Asked) -> None:
        """Send the last values that match, as they are now."""
        wish = Wish(asked.query.filter, window=self._gateway.settings.window)
        stream = await self._gateway.open_stream(wish, self._session.visitor, "mqtt")
        try:
            while stream.subscription.pending:
                each = await stream.subscription.get()
                message = message_of_notification(each, self._incoming.version)
                if stream.subscription.is_last_value(each) and asked.query.takes(message.topic.decode()):
                    self._writer.write(self._written(message, asked, None, retained=True, again=False))
                    await self._writer.drain()
        finally:
            await self._gateway.close_stream(stream)

    async def _unsubscribe(self, action: Unsubscribe) -> None:
        assert self._kept is not None
        codes = mqtt5.UnsubAckReasonCode
        found = []
        for pattern in action.patterns:
            await self._close_stream(pattern)
            self._session.patterns.discard(pattern)
            self._outgoing.forget(pattern)
            asked = self._kept.asked.pop(pattern, None)
            if asked is not None:
                await self._door.sessions.end_subscription(self._kept.key, asked)
            found.append(codes.NO_SUBSCRIPTION_EXISTED if asked is None else codes.SUCCESS)
        self._send(mqtt5.UnsubAckPacket(action.number, found))

    async def _close_stream(self, pattern: str) -> None:
        stream, pump = self._streams.pop(pattern, (None, None))
        if stream is not None and pump is not None:
            pump.cancel()
            self._outgoing.interrupt(pattern)
            await self._gateway.close_stream(stream)

    async def _pump(self, stream: Stream, asked: Asked, *, with_retained: bool) -> None:
        """Write a subscription's notifications as fast as the client takes them."""
        bare = asked.quality == 0 and not asked.query.levels and not asked.no_local and self._largest is None
        plain = bare and (asked.subscription_id is None or self._incoming.version == 4)
        try:
            while True:
                batch: Sequence[Notification] = await stream.batch()
                if plain and not stream.subscription.is_last_value(batch[0]):  # then none behind it is
                    self._writer.write(b"".join([self._plain(each) for each in batch]))
                    await self._writer.drain()
                    continue
                own = await self._publishing.own() if asked.no_local else ()
                data: list[bytes] = []
                for each in batch:
                    retained = stream.subscription.is_last_value(each)
                    message = message_of_notification(each, self._incoming.version)
                    unwanted = (retained and not with_retained) or each.id in own
                    if unwanted or not asked.query.takes(message.topic.decode()):
                        each.ack()
                        continue
                    number = None
                    if asked.quality:
                        if data:
                            self._writer.write(b"".join(data))  # before waiting for acknowledgements of it
                            data = []
                        number = await self._outgoing.number(asked.pattern, each)
                    written = self._written(message, asked, number, retained=retained, again=each.redelivered)
                    if self._largest is not None and len(written) > self._largest:
                        if number is not None:
                            self._outgoing.acknowledge(number)  # as the standard has it: as if it had been sent
                        continue
                    data.append(written)
                self._writer.write(b"".join(data))
                await self._writer.drain()
        except ConnectionError:
            pass  # the client has left, and `run` notices
        except ContradaError as error:
            taken_over = isinstance(error, Refused) and error.code == Code.DUPLICATE
            self.leave(str(error), Done.SESSION_TAKEN_OVER if taken_over else Done.UNSPECIFIED_ERROR)

    def _plain(self, notification: Notification) -> bytes:
        """A message of quality 0 that was not retained."""
        version = self._incoming.version
        plain = plain_message(notification.encoded)
        if plain is not None:
            return publish_bytes(*plain, version)
        topic, payload, attributes = message_of_notification(notification, version)
        if attributes:
            properties = [(ATTRIBUTES, attributes)]
            return write(mqtt5.PublishPacket(topic.decode(), payload, user_properties=properties), version)
        return publish_bytes(topic, payload, version)

    def _written(self, message: Message, asked: Asked, number: int | None, *, retained: bool, again: bool) -> bytes:
        version, subscription = self._incoming.version, asked.subscription_id
        topic, payload, attributes = message
        if number is None and not retained and not attributes and (subscription is None or version == 4):
            return publish_bytes(topic, payload, version)
        return write(
            mqtt5.PublishPacket(
                topic.decode(),
                payload,
                qos=mqtt5.QoS.AT_MOST_ONCE if number is None else mqtt5.QoS.AT_LEAST_ONCE,
                packet_id=number,
                duplicate=again and number is not None,
                retain=retained,
                subscription_ids=None if subscription is None else [subscription],
                user_properties=[(ATTRIBUTES, attributes)] if attributes else None,
            ),
            version,
        )

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
        try:
            await self._publishing.finish()
            if (kept := self._kept) is not None:
                for pattern in list(self._streams):
                    await self._close_stream(pattern)
                kept.sent = self._outgoing.sent()
                await self._door.sessions.put_down(kept, self._session.expiry, self._session.take_will())
        finally:  # only now: until then, who comes with the same id waits for this
            self._share.end()
            if self._door.by_key.get(self._key) is self:
                del self._door.by_key[self._key]


def _is_large(message: Incoming) -> bool:
    """Whether another thread is to read it, so that nobody waits for it."""
    if isinstance(message, PlainPublish):
        return len(message.payload) > _LARGE
    if isinstance(message, mqtt5.PublishPacket):
        return len(message.payload) + sum(len(text) for _, text in message.user_properties or ()) > _LARGE
    if isinstance(message, mqtt5.SubscribePacket):
        size = sum(len(text) for _, text in message.user_properties or ())
        return size * len(message.topic_filters) > _LARGE_FILTERS
    return False


def _durable_part(asked: Asked) -> tuple[int, str]:
    """What of a subscription makes it another one at the broker."""
    return asked.quality, asked.query.filter
