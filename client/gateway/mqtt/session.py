"""One MQTT connection: packets in, actions out. No I/O, no clock: who drives it does what the actions say, in order.

    CONNECT → Admit or Send and Close    PUBLISH → Publish    PUBACK → Acknowledged    SUBSCRIBE → Subscribe
    UNSUBSCRIBE → Unsubscribe    PINGREQ → Send    DISCONNECT → Close    anything out of place → Send why, and Close

A will is published when the connection ends in any other way than by a DISCONNECT without one. Quality 1 and retained
messages are carried where the broker stores (`stores`); elsewhere a message of quality 1 is acknowledged when the
broker has accepted it, and subscriptions are granted quality 0. CONNACK says what is carried. A session of version
3.1.1, unless it is a clean one, is kept for as long as the settings allow; version 5 says for how long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import mqtt5

from contrada.broker.protocol.wire import Role
from contrada.client.gateway.mqtt.codec import PlainPublish
from contrada.client.gateway.mqtt.topics import TopicQuery, notification_of_message, topic_query
from contrada.client.gateway.problems import Problem, problem_of
from contrada.client.gateway.tokens import STRANGER
from contrada.errors import ContradaError, FilterSyntaxError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.client.gateway.mqtt.codec import Incoming
    from contrada.client.gateway.settings import GatewaySettings
    from contrada.client.gateway.tokens import Visitor

_REASON: Final = 1000  # characters of a reason string
_ALIASES: Final = 32  # topic aliases that a client may use
ALWAYS, IF_NEW, NEVER = 0, 1, 2  # retained messages: the "retain handling" of a subscription
Done = mqtt5.DisconnectReasonCode
_PUBLISH_CODES: Final = {
    "bad-request": mqtt5.PubAckReasonCode.TOPIC_NAME_INVALID,
    "bad-notification": mqtt5.PubAckReasonCode.PAYLOAD_FORMAT_INVALID,
    "forbidden": mqtt5.PubAckReasonCode.NOT_AUTHORIZED,
    "unauthenticated": mqtt5.PubAckReasonCode.NOT_AUTHORIZED,
    "limit": mqtt5.PubAckReasonCode.QUOTA_EXCEEDED,
    "too-large": mqtt5.PubAckReasonCode.QUOTA_EXCEEDED,
}
_CONNECT_CODES: Final = {
    "bad-request": mqtt5.ConnAckReasonCode.TOPIC_NAME_INVALID,
    "limit": mqtt5.ConnAckReasonCode.QUOTA_EXCEEDED,
}
_SUBSCRIBE_CODES: Final = {
    "bad-notification": mqtt5.SubAckReasonCode.TOPIC_FILTER_INVALID,
    "bad-filter": mqtt5.SubAckReasonCode.TOPIC_FILTER_INVALID,
    "forbidden": mqtt5.SubAckReasonCode.NOT_AUTHORIZED,
    "unauthenticated": mqtt5.SubAckReasonCode.NOT_AUTHORIZED,
    "limit": mqtt5.SubAckReasonCode.QUOTA_EXCEEDED,
    "not-available": mqtt5.SubAckReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
}


@dataclass(frozen=True)
class Send:
    """Send a packet."""

    message: mqtt5.Packet


@dataclass(frozen=True)
class Admit:
    """The client is in. Replace who has its id, take its session up unless it begins anew, and `welcome` it.

    From then on it may be silent for so many seconds, 0 for ever; at most `receive_max` messages of quality 1 may wait
    for its acknowledgement, and none is longer than `largest`.
    """

    client_id: str
    silence: float
    clean_start: bool
    receive_max: int
    largest: int | None


@dataclass(frozen=True)
class Publish:
    """Publish; then acknowledge by the number, unless it is None. An `empty` one that is retained deletes."""

    notification: dict[str, Any]
    number: int | None
    retain: bool
    empty: bool = False


@dataclass(frozen=True)
class Acknowledged:
    """The client has the message of quality 1 that was sent to it under this number."""

    number: int


@dataclass(frozen=True)
class Asked:
    """One subscription as it was asked for, with the quality that it is granted."""

    pattern: str
    query: TopicQuery
    quality: int = 0
    subscription_id: int | None = None
    no_local: bool = False
    retained: int = ALWAYS  # when it gets retained messages


@dataclass(frozen=True)
class Subscribe:
    """Subscribe to each that is not a problem, in place of any of the same topic filter; then acknowledge."""

    number: int
    wanted: tuple[Asked | Problem, ...]


@dataclass(frozen=True)
class Unsubscribe:
    """End the subscriptions of these topic filters; then acknowledge."""

    number: int
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class Close:
    """End the connection, after what was sent before."""

    why: str


@dataclass(frozen=True)
class LastWill:
    """What is published when a client is gone without a word, so many seconds later unless it has come back."""

    notification: dict[str, Any]
    durable: bool
    retain: bool
    delay: int
    size: int = 0  # bytes of it, about


Action = Send | Admit | Publish | Acknowledged | Subscribe | Unsubscribe | Close


class Session:
    """The state of one connection: who it is, its will, its topic aliases, its topic filters."""

    def __init__(
        self,
        settings: GatewaySettings,
        visitor_of: Callable[[str | None], Visitor],
        new_id: str,
        *,
        stores: bool = False,
        full: str = "",
    ) -> None:
        self._settings = settings
        self._visitor_of = visitor_of
        self._new_id = new_id
        self._stores = stores
        self._full = full  # why nobody more is let in
        self._aliases: dict[int, str] = {}
        self._will: LastWill | None = None
        self._asked_expiry = 0
        self._own_id = False
        self.version = 5
        self.expiry = 0  # seconds that what it asked for outlives the connection
        self.visitor = STRANGER
        self.admitted = False
        self.patterns: set[str] = set()

    def receive(self, message: Incoming) -> list[Action]:
        """Take in a packet; what to do about it."""
        try:
            if isinstance(message, mqtt5.ConnectPacket):
                return self._connect(message)
            if not self.admitted:
                raise ProtocolError("the first packet must be CONNECT")
            handler = self._HANDLERS.get(type(message))
            if handler is None:
                raise ProtocolError(f"{type(message).__name__} has no place here")
            return handler(self, message)
        except ProtocolError as error:
            return self.fault(str(error))

    def fault(self, why: str, code: mqtt5.DisconnectReasonCode = Done.PROTOCOL_ERROR) -> list[Action]:
        """What to do when the connection cannot go on."""
        if not self.admitted:
            return [Close(why)]
        return [Send(mqtt5.DisconnectPacket(reason_code=code, reason_str=why[:_REASON])), Close(why)]

    def take_will(self) -> LastWill | None:
        """What to publish now that the connection has ended, if anything."""
        will, self._will = self._will, None
        return will

    def welcome(self, *, present: bool) -> mqtt5.ConnAckPacket:
        """The answer to CONNECT; `present` says whether the session was there before."""
        return mqtt5.ConnAckPacket(
            session_present=present,
            session_expiry_interval=None if self.expiry == self._asked_expiry else self.expiry,
            assigned_client_id=None if self._own_id else self._new_id,
            topic_alias_max=_ALIASES,
            max_qos=mqtt5.QoS.AT_LEAST_ONCE,
            retain_available=self._stores,
            max_packet_size=self._settings.line_bytes,
            shared_subscription_available=False,
        )

    # ------------------------------------------------------------------ by type

    def _connect(self, message: mqtt5.ConnectPacket) -> list[Action]:
        if self.admitted:
            raise ProtocolError("a second CONNECT")
        codes = mqtt5.ConnAckReasonCode
        if self._full:
            return self._refuse(codes.SERVER_BUSY, self._full)
        if self.version == 4 and not message.client_id and not message.clean_start:
            return self._refuse(codes.CLIENT_ID_NOT_VALID, "a session needs a client id to be found by")
        try:
            if message.authentication_method is not None:
                return self._refuse(codes.BAD_AUTHENTICATION_METHOD, "there is no authentication beyond the password")
            password = None if message.password is None else bytes(message.password).decode(errors="replace")
            self.visitor = self._visitor_of(password)
            if self.visitor is STRANGER:
                return self._refuse(codes.NOT_AUTHORIZED, "the password must be a token (see contrada token)")
            if (will := message.will) is not None:
                self.visitor.require(Role.PUBLISH)
                if will.qos == mqtt5.QoS.EXACTLY_ONCE:
                    return self._refuse(codes.QUALITY_NOT_SUPPORTED, "a will of quality 2 is not carried")
                if will.retain and not self._stores and self.version == 5:
                    return self._refuse(codes.RETAIN_NOT_SUPPORTED, "nothing is retained here")
                notification = notification_of_message(will.topic, bytes(will.payload or b""), will.user_properties)
                keeps = will.qos == mqtt5.QoS.AT_LEAST_ONCE and self._stores, will.retain and self._stores
                size = len(will.payload or b"") + sum(len(text) for _, text in will.user_properties or ())
                self._will = LastWill(notification, *keeps, will.will_delay_interval, len(will.topic) + size)
        except Problem as problem:
            code = codes.BAD_USER_NAME_OR_PASSWORD if problem.kind == "unauthenticated" else codes.NOT_AUTHORIZED
            if problem.kind in _CONNECT_CODES:
                code = _CONNECT_CODES[problem.kind]
            return self._refuse(code, str(problem))
        except ContradaError as error:
            return self._refuse(codes.PAYLOAD_FORMAT_INVALID, f"the will: {error}")
        self.admitted = True
        self._own_id = bool(message.client_id)
        longest = int(self._settings.session_expiry)
        self._asked_expiry = message.session_expiry_interval
        if self.version == 4:
            self._asked_expiry = 0 if message.clean_start else longest
        self.expiry = min(self._asked_expiry, longest)
        return [
            Admit(
                message.client_id or self._new_id,
                message.keep_alive * 1.5,
                message.clean_start,
                message.receive_max,
                message.max_packet_size,
            )
        ]

    def _refuse(self, code: mqtt5.ConnAckReasonCode, why: str) -> list[Action]:
        return [Send(mqtt5.ConnAckPacket(reason_code=code, reason_str=why[:_REASON])), Close(why)]

    @property
    def may_publish(self) -> bool:
        """Whether the client was let in, as somebody who may publish."""
        return self.admitted and Role.PUBLISH in self.visitor.roles

    def _plain_publish(self, message: PlainPublish) -> list[Action]:
        try:
            self.visitor.require(Role.PUBLISH)
            return [Publish(notification_of_message(message.topic, message.payload), None, retain=False)]
        except ContradaError as error:
            return self._refuse_publish(problem_of(error), None)

    def _publish(self, message: mqtt5.PublishPacket) -> list[Action]:
        if message.qos == mqtt5.QoS.EXACTLY_ONCE:
            return self.fault("quality 2 is not carried: publish with 0 or 1", Done.QOS_NOT_SUPPORTED)
        if message.retain and not self._stores and self.version == 5:
            return self.fault("nothing is retained here", Done.RETAIN_NOT_SUPPORTED)
        topic = message.topic
        if message.topic_alias is not None:
            if not 1 <= message.topic_alias <= _ALIASES:
                return self.fault(f"topic aliases go from 1 to {_ALIASES}", Done.TOPIC_ALIAS_INVALID)
            topic = topic or self._aliases.get(message.topic_alias, "")
            if not topic:
                return self.fault("a topic alias that stands for nothing yet", Done.TOPIC_ALIAS_INVALID)
            self._aliases[message.topic_alias] = topic
        if message.packet_id == 0:
            raise ProtocolError("a packet without a number: 0 is none")
        payload = bytes(message.payload)
        try:
            self.visitor.require(Role.PUBLISH)
            notification = notification_of_message(topic, payload, message.user_properties)
        except ContradaError as error:
            return self._refuse_publish(problem_of(error), message.packet_id)
        return [Publish(notification, message.packet_id, message.retain, empty=not payload)]

    def _refuse_publish(self, problem: Problem, number: int | None) -> list[Action]:
        """By its number, or by ending the connection: that is how MQTT refuses what has none."""
        if number is not None:
            return [Send(refused_publish(number, problem))]
        return self.fault(str(problem), Done(refused_publish(1, problem).reason_code.value))

    def _acknowledged(self, message: mqtt5.PubAckPacket) -> list[Action]:
        return [Acknowledged(message.packet_id)]

    def _subscribe(self, message: mqtt5.SubscribePacket) -> list[Action]:
        self._check(message.packet_id, message.topic_filters)
        size = sum(len(text) for _, text in message.user_properties or ())
        if size * len(message.topic_filters) > self._settings.line_bytes:
            raise ProtocolError(
                f"{size} characters of user properties for each of {len(message.topic_filters)} topic filters are "
                f"together more than {self._settings.line_bytes}: subscribe to fewer at a time"
            )
        wanted: list[Asked | Problem] = []
        patterns = set(self.patterns)
        for each in message.topic_filters:
            try:
                self.visitor.require(Role.SUBSCRIBE)
                query = topic_query(each.pattern, message.user_properties)
                patterns.add(each.pattern)
                if len(patterns) > self._settings.subscriptions:
                    raise Problem("limit", f"a connection has at most {self._settings.subscriptions} subscriptions")
            except FilterSyntaxError as error:
                wanted.append(Problem("bad-filter", str(error)))
            except ContradaError as error:
                wanted.append(problem_of(error))
            else:
                quality = min(int(each.max_qos), 1) if self._stores else 0
                asked = (quality, message.subscription_id, each.no_local, int(each.retain_handling))
                wanted.append(Asked(each.pattern, query, *asked))
        return [Subscribe(message.packet_id, tuple(wanted))]

    def _unsubscribe(self, message: mqtt5.UnsubscribePacket) -> list[Action]:
        self._check(message.packet_id, message.patterns)
        return [Unsubscribe(message.packet_id, tuple(message.patterns))]

    def _check(self, number: int, patterns: Sequence[object]) -> None:
        """Nobody else waits while a packet with a hundred thousand topic filters is read."""
        if not number or not patterns:
            raise ProtocolError("a packet without a " + ("topic filter" if number else "number: 0 is none"))
        if len(patterns) > self._settings.subscriptions:
            most = self._settings.subscriptions
            raise ProtocolError(f"{len(patterns)} topic filters in one packet; a connection has at most {most}")

    def _ping(self, message: mqtt5.PingReqPacket) -> list[Action]:
        return [Send(mqtt5.PingRespPacket())]

    def _disconnect(self, message: mqtt5.DisconnectPacket) -> list[Action]:
        if message.session_expiry_interval is not None:
            if message.session_expiry_interval and not self._asked_expiry:
                raise ProtocolError("a session that was to end with the connection cannot be prolonged")
            self.expiry = min(message.session_expiry_interval, int(self._settings.session_expiry))
        if message.reason_code != Done.DISCONNECT_WITH_WILL_MESSAGE:
            self._will = None
        return [Close("the client disconnected")]

    _HANDLERS: Final[dict[type, Callable[[Session, Any], list[Action]]]] = {
        PlainPublish: _plain_publish,
        mqtt5.PublishPacket: _publish,
        mqtt5.PubAckPacket: _acknowledged,
        mqtt5.SubscribePacket: _subscribe,
        mqtt5.UnsubscribePacket: _unsubscribe,
        mqtt5.PingReqPacket: _ping,
        mqtt5.DisconnectPacket: _disconnect,
    }


def refused_publish(number: int, problem: Problem) -> mqtt5.PubAckPacket:
    """The acknowledgement of a message of quality 1 that was not taken."""
    code = _PUBLISH_CODES.get(problem.kind, mqtt5.PubAckReasonCode.UNSPECIFIED_ERROR)
    return mqtt5.PubAckPacket(number, reason_code=code, reason_str=str(problem)[:_REASON])


def subscribed(number: int, outcomes: Sequence[int | Problem]) -> mqtt5.SubAckPacket:
    """The acknowledgement of a SUBSCRIBE: the qualities granted, or why not."""
    codes = mqtt5.SubAckReasonCode
    granted = [
        _SUBSCRIBE_CODES.get(outcome.kind, codes.UNSPECIFIED_ERROR) if isinstance(outcome, Problem) else codes(outcome)
        for outcome in outcomes
    ]
    reasons = "; ".join(str(outcome) for outcome in outcomes if isinstance(outcome, Problem))
    return mqtt5.SubAckPacket(number, granted, reason_str=reasons[:_REASON] or None)
