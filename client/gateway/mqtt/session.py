"""One MQTT connection: packets in, actions out. No I/O, no clock: who drives it does what the actions say, in order.

    CONNECT → Admit or Refuse        PUBLISH → Publish        SUBSCRIBE → Subscribe        UNSUBSCRIBE → Unsubscribe
    PINGREQ → Send        DISCONNECT → Close        anything out of place → Send a DISCONNECT that says why, and Close

A will is published when the connection ends in any other way than by a DISCONNECT without one. Quality 0 is carried; a
message of quality 1 is taken, and acknowledged when the broker has accepted it; subscriptions are granted quality 0.
Sessions are not kept; messages are retained where the broker stores (`stores`): CONNACK says both.
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
Done = mqtt5.DisconnectReasonCode
_PUBLISH_CODES: Final = {
    "bad-notification": mqtt5.PubAckReasonCode.PAYLOAD_FORMAT_INVALID,
    "forbidden": mqtt5.PubAckReasonCode.NOT_AUTHORIZED,
    "unauthenticated": mqtt5.PubAckReasonCode.NOT_AUTHORIZED,
    "limit": mqtt5.PubAckReasonCode.QUOTA_EXCEEDED,
}
_SUBSCRIBE_CODES: Final = {
    "bad-notification": mqtt5.SubAckReasonCode.TOPIC_FILTER_INVALID,
    "bad-filter": mqtt5.SubAckReasonCode.TOPIC_FILTER_INVALID,
    "forbidden": mqtt5.SubAckReasonCode.NOT_AUTHORIZED,
    "unauthenticated": mqtt5.SubAckReasonCode.NOT_AUTHORIZED,
    "limit": mqtt5.SubAckReasonCode.QUOTA_EXCEEDED,
}


@dataclass(frozen=True)
class Send:
    """Send a packet."""

    message: mqtt5.Packet


@dataclass(frozen=True)
class Admit:
    """The client is in: from now on it may be silent for so many seconds, 0 for ever. Replace who has its id."""

    client_id: str
    silence: float
    message: mqtt5.Packet


@dataclass(frozen=True)
class Publish:
    """Publish; then acknowledge by the number, unless it is None."""

    notification: dict[str, Any]
    number: int | None
    retain: bool


@dataclass(frozen=True)
class Subscribe:
    """Subscribe to each query that is not a problem, in place of any of the same topic filter; then acknowledge."""

    number: int
    wanted: tuple[tuple[str, TopicQuery | Problem], ...]
    subscription_id: int | None
    no_local: frozenset[str]


@dataclass(frozen=True)
class Unsubscribe:
    """End the subscriptions of these topic filters; then acknowledge."""

    number: int
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class Close:
    """End the connection, after what was sent before."""

    why: str


Action = Send | Admit | Publish | Subscribe | Unsubscribe | Close


class Session:
    """The state of one connection: who it is, its will, its topic aliases, its topic filters."""

    def __init__(
        self,
        settings: GatewaySettings,
        visitor_of: Callable[[str | None], Visitor],
        new_id: str,
        *,
        stores: bool = False,
    ) -> None:
        self._settings = settings
        self._visitor_of = visitor_of
        self._new_id = new_id
        self._stores = stores
        self._aliases: dict[int, str] = {}
        self._will: mqtt5.Will | None = None
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

    def take_will(self) -> dict[str, Any] | None:
        """The notification to publish when the connection has ended, if any."""
        will, self._will = self._will, None
        if will is None:
            return None
        try:
            return notification_of_message(will.topic, bytes(will.payload or b""))
        except ContradaError:
            return None  # checked at CONNECT

    # ------------------------------------------------------------------ by type

    def _connect(self, message: mqtt5.ConnectPacket) -> list[Action]:
        if self.admitted:
            raise ProtocolError("a second CONNECT")
        codes = mqtt5.ConnAckReasonCode
        try:
            if message.authentication_method is not None:
                return self._refuse(codes.BAD_AUTHENTICATION_METHOD, "there is no authentication beyond the password")
            password = None if message.password is None else bytes(message.password).decode(errors="replace")
            self.visitor = self._visitor_of(password)
            if self.visitor is STRANGER:
                return self._refuse(codes.NOT_AUTHORIZED, "the password must be a token (see contrada token)")
            if message.will is not None:
                self.visitor.require(Role.PUBLISH)
                notification_of_message(message.will.topic, bytes(message.will.payload or b""))
        except Problem as problem:
            code = codes.BAD_USER_NAME_OR_PASSWORD if problem.kind == "unauthenticated" else codes.NOT_AUTHORIZED
            return self._refuse(code, str(problem))
        except ContradaError as error:
            return self._refuse(codes.PAYLOAD_FORMAT_INVALID, f"the will: {error}")
        self.admitted = True
        self._will = message.will
        answer = mqtt5.ConnAckPacket(
            session_expiry_interval=0 if message.session_expiry_interval else None,
            assigned_client_id=None if message.client_id else self._new_id,
            topic_alias_max=_ALIASES,
            max_qos=mqtt5.QoS.AT_LEAST_ONCE,
            retain_available=self._stores,
            max_packet_size=self._settings.line_bytes,
            shared_subscription_available=False,
        )
        return [Admit(message.client_id or self._new_id, message.keep_alive * 1.5, answer)]

    def _refuse(self, code: mqtt5.ConnAckReasonCode, why: str) -> list[Action]:
        return [Send(mqtt5.ConnAckPacket(reason_code=code, reason_str=why[:_REASON])), Close(why)]

    def _plain_publish(self, message: PlainPublish) -> list[Action]:
        try:
            self.visitor.require(Role.PUBLISH)
            return [Publish(notification_of_message(message.topic, message.payload), None, retain=False)]
        except ContradaError as error:
            problem = problem_of(error)
            return self.fault(str(problem), Done(_PUBLISH_CODES[problem.kind].value))

    def _publish(self, message: mqtt5.PublishPacket) -> list[Action]:
        if message.qos == mqtt5.QoS.EXACTLY_ONCE:
            return self.fault("quality 2 is not carried: publish with 0 or 1", Done.QOS_NOT_SUPPORTED)
        topic = message.topic
        if message.topic_alias is not None:
            if not 1 <= message.topic_alias <= _ALIASES:
                return self.fault(f"topic aliases go from 1 to {_ALIASES}", Done.TOPIC_ALIAS_INVALID)
            topic = topic or self._aliases.get(message.topic_alias, "")
            if not topic:
                return self.fault("a topic alias that stands for nothing yet", Done.TOPIC_ALIAS_INVALID)
            self._aliases[message.topic_alias] = topic
        try:
            self.visitor.require(Role.PUBLISH)
            notification = notification_of_message(topic, bytes(message.payload))
        except ContradaError as error:
            problem = problem_of(error)
            if message.packet_id is None:
                code = _PUBLISH_CODES[problem.kind]
                return self.fault(str(problem), Done(code.value))
            return [Send(refused_publish(message.packet_id, problem))]
        return [Publish(notification, message.packet_id, message.retain)]

    def _subscribe(self, message: mqtt5.SubscribePacket) -> list[Action]:
        self._check_count(message.topic_filters)
        wanted: list[tuple[str, TopicQuery | Problem]] = []
        patterns = set(self.patterns)
        for each in message.topic_filters:
            try:
                self.visitor.require(Role.SUBSCRIBE)
                query: TopicQuery | Problem = topic_query(each.pattern, message.user_properties)
                patterns.add(each.pattern)
                if len(patterns) > self._settings.subscriptions:
                    query = Problem("limit", f"a connection has at most {self._settings.subscriptions} subscriptions")
            except FilterSyntaxError as error:
                query = Problem("bad-filter", str(error))
            except ContradaError as error:
                query = problem_of(error)
            wanted.append((each.pattern, query))
        no_local = frozenset(each.pattern for each in message.topic_filters if each.no_local)
        return [Subscribe(message.packet_id, tuple(wanted), message.subscription_id, no_local)]

    def _unsubscribe(self, message: mqtt5.UnsubscribePacket) -> list[Action]:
        self._check_count(message.patterns)
        return [Unsubscribe(message.packet_id, tuple(message.patterns))]

    def _check_count(self, patterns: Sequence[object]) -> None:
        """Nobody else waits while a packet with a hundred thousand topic filters is read."""
        if len(patterns) > self._settings.subscriptions:
            most = self._settings.subscriptions
            raise ProtocolError(f"{len(patterns)} topic filters in one packet; a connection has at most {most}")

    def _ping(self, message: mqtt5.PingReqPacket) -> list[Action]:
        return [Send(mqtt5.PingRespPacket())]

    def _disconnect(self, message: mqtt5.DisconnectPacket) -> list[Action]:
        if message.reason_code != Done.DISCONNECT_WITH_WILL_MESSAGE:
            self._will = None
        return [Close("the client disconnected")]

    _HANDLERS: Final[dict[type, Callable[[Session, Any], list[Action]]]] = {
        PlainPublish: _plain_publish,
        mqtt5.PublishPacket: _publish,
        mqtt5.SubscribePacket: _subscribe,
        mqtt5.UnsubscribePacket: _unsubscribe,
        mqtt5.PingReqPacket: _ping,
        mqtt5.DisconnectPacket: _disconnect,
    }


def refused_publish(number: int, problem: Problem) -> mqtt5.PubAckPacket:
    """The acknowledgement of a message of quality 1 that was not taken."""
    code = _PUBLISH_CODES.get(problem.kind, mqtt5.PubAckReasonCode.UNSPECIFIED_ERROR)
    return mqtt5.PubAckPacket(number, reason_code=code, reason_str=str(problem)[:_REASON])


def subscribed(number: int, outcomes: list[Problem | None]) -> mqtt5.SubAckPacket:
    """The acknowledgement of a SUBSCRIBE: quality 0, or why not."""
    codes = mqtt5.SubAckReasonCode
    granted = [
        codes.GRANTED_QOS_AT_MOST_ONCE
        if problem is None
        else _SUBSCRIBE_CODES.get(problem.kind, codes.UNSPECIFIED_ERROR)
        for problem in outcomes
    ]
    reasons = "; ".join(str(problem) for problem in outcomes if problem is not None)
    return mqtt5.SubAckPacket(number, granted, reason_str=reasons[:_REASON] or None)
