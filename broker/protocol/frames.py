"""Messages to frames and back: pure, strict, and bounded.

A message is one ZeroMQ multipart message: a head frame, then attachments.

    head          one msgpack array: the message's type number, then its fields in order
    attachment    the bytes of one notification longer than `INLINE_BYTES`, in the order of the head's nil bodies

`decode` accepts exactly what `encode` can produce and raises `ProtocolError` for everything else. Arrays are bounded
before they are allocated, so that the cost of a hostile head is proportional to its length.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.broker.protocol import durable_frames, wire
from contrada.broker.protocol import messages as msg
from contrada.broker.protocol.fields import (
    arity,
    array,
    bad,
    detach,
    encoded_filters,
    index_name,
    integer,
    integer_rows,
    member,
    read_bodies,
    seconds,
    text,
    unpack,
)
from contrada.broker.protocol.wire import LIST_LENGTH, MAX_INTEGER, MAX_SUBSCRIPTION
from contrada.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_pack: Callable[[Any], bytes] = msgpack.Packer(autoreset=True).pack
_DEPTH = 16  # of a REPLY's document; nothing else nests


# ------------------------------------------------------------------------------------------------ encoding


def encode(message: msg.Message) -> list[bytes]:
    """Write a message as frames."""
    return _ENCODERS[type(message)](message)


def ack_frames(acks: Sequence[tuple[int, int]]) -> list[bytes]:
    """Write an ACK from pairs of request and sequence number."""
    return [_pack((wire.ACK, acks))]


def _encode_publish(m: msg.Publish) -> list[bytes]:
    bodies, attachments = detach(m.notifications)
    return [_pack((wire.PUBLISH, m.request, bodies)), *attachments]


def _encode_deliver(m: msg.Deliver) -> list[bytes]:
    """Write a DELIVER. A broker joins its own from envelopes packed once for all receivers (`sessions.batch`)."""
    bodies, attachments = detach([entry.body for entry in m.entries])
    head: list[Any] = [wire.DELIVER]
    for entry, body in zip(m.entries, bodies, strict=True):
        head += (*entry.id, entry.publisher, body), entry.subscriptions
    return [_pack(head), *attachments]


def _encode_welcome(m: msg.Welcome) -> list[bytes]:
    head = (
        wire.WELCOME,
        m.version,
        m.broker,
        m.session,
        m.publisher,
        sorted(m.roles),
        m.heartbeat,
        m.timeout,
        m.limits,
    )
    return [_pack(head)]


def _encode_link(m: msg.Link) -> list[bytes]:
    """As brokers knew it before, unless the last fields are not what they took for granted."""
    told: tuple[Any, ...] = (m.crs, m.relations) if m.relations != "exact" else (m.crs,) if m.crs != wire.PLANE else ()
    if m.custody:
        told = m.crs, m.relations, True
    return [_pack((wire.LINK, m.broker, m.advertisements, m.incarnation, *told))]


def _fields(kind: int) -> Callable[[Any], list[bytes]]:
    """Make the encoder for the messages whose head is their fields."""
    return lambda message: [_pack((kind, *(getattr(message, name) for name in message.__slots__)))]


_ENCODERS: dict[type, Callable[[Any], list[bytes]]] = {
    msg.Hello: lambda m: [_pack((wire.HELLO, wire.MAGIC, m.oldest, m.newest, m.name))],
    msg.Welcome: _encode_welcome,
    msg.Subscribe: _fields(wire.SUBSCRIBE),
    msg.Unsubscribe: _fields(wire.UNSUBSCRIBE),
    msg.Publish: _encode_publish,
    msg.Deliver: _encode_deliver,
    msg.Ack: _fields(wire.ACK),
    msg.Credit: _fields(wire.CREDIT),
    msg.Ping: _fields(wire.PING),
    msg.Pong: _fields(wire.PONG),
    msg.Error: lambda m: [_pack((wire.ERROR, m.request, m.code, cut(m.reason), m.fatal))],
    msg.Bye: lambda m: [_pack((wire.BYE, cut(m.reason)))],
    msg.Dropped: _fields(wire.DROPPED),
    msg.Status: _fields(wire.STATUS),
    msg.Explain: _fields(wire.EXPLAIN),
    msg.ListSubscriptions: _fields(wire.LIST_SUBSCRIPTIONS),
    msg.ListReceivers: _fields(wire.LIST_RECEIVERS),
    msg.Reply: _fields(wire.REPLY),
    msg.Advertise: _fields(wire.ADVERTISE),
    msg.Unadvertise: _fields(wire.UNADVERTISE),
    msg.Attach: _fields(wire.ATTACH),
    msg.IndexLoad: _fields(wire.INDEX_LOAD),
    msg.IndexAdd: _fields(wire.INDEX_ADD),
    msg.IndexRemove: _fields(wire.INDEX_REMOVE),
    msg.Link: _encode_link,
    **durable_frames.ENCODERS,
}


def cut(reason: str) -> str:
    """Make a reason short enough to send, without half a character at its end."""
    encoded = reason.encode(errors="replace")
    if len(encoded) <= wire.REASON_BYTES:
        return encoded.decode()
    return encoded[: wire.REASON_BYTES - 3].decode(errors="ignore") + "…"


# ------------------------------------------------------------------------------------------------ decoding


def decode(frames: Sequence[bytes], limits: msg.Limits = msg.Limits()) -> msg.Message:  # noqa: B008  # an immutable tuple
    """Read the message in these frames. `limits` bounds what is accepted before anything is allocated."""
    if not 1 <= len(frames) <= 1 + LIST_LENGTH:
        bad(f"{len(frames)} frames; a message has 1 to {1 + LIST_LENGTH}")
    if (size := sum(map(len, frames))) > limits.message_bytes:
        bad(f"a message of {size} bytes; the limit is {limits.message_bytes}")
    head = unpack(frames[0])
    read = _DECODERS.get(head[0]) if type(head) is tuple and head and type(head[0]) is int else None
    if read is None:
        bad("the head is not a msgpack array that begins with a message type")
    if len(frames) > 1 and head[0] not in _ATTACHING:
        bad("only PUBLISH, STORE and what delivers have attachments")
    return read(head[1:], frames[1:], limits)


def request_of(frames: Sequence[bytes]) -> int:
    """Find the request number of a message that `decode` refused, or 0 if there is none to be found."""
    try:
        head = unpack(frames[0])
        if head[0] in _REQUESTS:
            return integer("request", head[1])
    except (ProtocolError, TypeError, LookupError):
        pass
    return 0


_ATTACHING = frozenset((wire.PUBLISH, wire.DELIVER, wire.STORE, wire.DELIVER_DURABLE))
_REQUESTS = frozenset(
    (
        wire.STORE,
        wire.SUBSCRIBE_DURABLE,
        wire.DURABLE_QUERY,
        wire.SUBSCRIBE,
        wire.UNSUBSCRIBE,
        wire.PUBLISH,
        wire.STATUS,
        wire.EXPLAIN,
        wire.ADVERTISE,
        wire.UNADVERTISE,
        wire.ATTACH,
        wire.INDEX_LOAD,
        wire.INDEX_ADD,
        wire.INDEX_REMOVE,
    )
)


def _hello(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Hello:
    magic, oldest, newest, name = arity("HELLO", fields, 4)
    if magic != wire.MAGIC:
        bad("HELLO does not begin with the magic word: the peer speaks another protocol")
    oldest = integer("oldest", oldest, 1, 65_535)
    return msg.Hello(oldest, integer("newest", newest, oldest, 65_535), text("name", name))


def _welcome(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Welcome:
    version, broker, session, publisher, roles, heartbeat, timeout, limits = arity("WELCOME", fields, 8)
    arity("limits", array("limits", limits, 64), len(msg.Limits._fields))
    return msg.Welcome(
        integer("version", version, 1, 65_535),
        text("broker", broker),
        integer("session", session, 1),
        text("publisher", publisher),
        frozenset(member("role", wire.Role, role) for role in array("roles", roles, len(wire.Role), 0)),
        seconds("heartbeat", heartbeat),
        seconds("timeout", timeout),
        msg.Limits(*(integer(name, value, 1) for name, value in zip(msg.Limits._fields, limits, strict=True))),
    )


def _subscribe(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Subscribe:
    request, subscription, filters, policy, credit, queue = arity("SUBSCRIBE", fields, 6)
    return msg.Subscribe(
        integer("request", request, 1),
        integer("subscription", subscription, 0, MAX_SUBSCRIPTION),
        encoded_filters(filters),
        member("policy", wire.Policy, policy),
        integer("credit", credit),
        integer("queue", queue),
    )


def _unsubscribe(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Unsubscribe:
    request, subscription = arity("UNSUBSCRIBE", fields, 2)
    return msg.Unsubscribe(integer("request", request, 1), integer("subscription", subscription, 0, MAX_SUBSCRIPTION))


def _advertise(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Advertise:
    request, advertisement, filters = arity("ADVERTISE", fields, 3)
    number = integer("advertisement", advertisement, 0, MAX_SUBSCRIPTION)
    return msg.Advertise(integer("request", request, 1), number, encoded_filters(filters))


def _unadvertise(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Unadvertise:
    request, advertisement = arity("UNADVERTISE", fields, 2)
    return msg.Unadvertise(integer("request", request, 1), integer("advertisement", advertisement, 0, MAX_SUBSCRIPTION))


def _publish(fields: tuple[Any, ...], attachments: Sequence[bytes], limits: msg.Limits) -> msg.Publish:
    request, bodies = arity("PUBLISH", fields, 2)
    bodies = read_bodies(array("notifications", bodies, limits.batch), attachments, limits)
    return msg.Publish(integer("request", request, 1), bodies)


def _deliver(fields: tuple[Any, ...], attachments: Sequence[bytes], limits: msg.Limits) -> msg.Deliver:
    if not fields or len(fields) % 2:
        bad("DELIVER has pairs of envelope and subscriptions")
    envelopes, lists = fields[::2], fields[1::2]
    if {*map(type, envelopes)} != {tuple} or {*map(len, envelopes)} != {4}:
        bad("an envelope must be an array of 4")
    brokers, sequences, publishers, bodies = zip(*envelopes, strict=True)  # checked by column: entries are many
    for name, column in (("broker", brokers), ("publisher", publishers)):
        for each in {*column} if {*map(type, column)} == {str} else column:
            text(name, each)
    if {*map(type, sequences)} != {int} or min(sequences) < 1 or max(sequences) > MAX_INTEGER:
        bad(f"sequence must be an integer from 1 to {MAX_INTEGER}")
    for subscriptions in lists:
        for subscription in array("subscriptions", subscriptions, LIST_LENGTH):
            if type(subscription) is not int or not 0 <= subscription <= MAX_SUBSCRIPTION:
                bad(f"subscription must be an integer from 0 to {MAX_SUBSCRIPTION}")
    ids = map(msg.NotificationId, brokers, sequences)
    return msg.Deliver(tuple(map(msg.Delivered, ids, publishers, read_bodies(bodies, attachments, limits), lists)))


def _ack(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Ack:
    (entries,) = arity("ACK", fields, 1)
    rows = integer_rows("acks", entries, ("request", 1, MAX_INTEGER), ("sequence", 0, MAX_INTEGER))
    return msg.Ack(tuple(msg.Acked(*row) for row in rows))


def _credit(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Credit:
    (grants,) = arity("CREDIT", fields, 1)
    rows = integer_rows("grants", grants, ("subscription", 0, MAX_SUBSCRIPTION), ("credit", 1, MAX_INTEGER))
    return msg.Credit(tuple(msg.Grant(*row) for row in rows))


def _dropped(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Dropped:
    (drops,) = arity("DROPPED", fields, 1)
    bounds = ("subscription", 0, MAX_SUBSCRIPTION), ("dropped", 1, MAX_INTEGER), ("total", 1, MAX_INTEGER)
    return msg.Dropped(tuple(msg.Drop(*row) for row in integer_rows("drops", drops, *bounds)))


def _ping(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Ping:
    return msg.Ping(integer("nonce", *arity("PING", fields, 1)))


def _pong(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Pong:
    return msg.Pong(integer("nonce", *arity("PONG", fields, 1)))


def _error(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Error:
    request, code, reason, fatal = arity("ERROR", fields, 4)
    if type(fatal) is not bool:
        bad("fatal must be a boolean")
    reason = text("reason", reason, wire.REASON_BYTES)
    return msg.Error(integer("request", request), member("code", wire.Code, code), reason, fatal)


def _bye(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Bye:
    (reason,) = arity("BYE", fields, 1)
    return msg.Bye(text("reason", reason, wire.REASON_BYTES))


def _status(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Status:
    (request,) = arity("STATUS", fields, 1)
    return msg.Status(integer("request", request, 1))


def _explain(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Explain:
    request, notification, session, subscription = arity("EXPLAIN", fields, 4)
    broker, sequence = arity("notification", array("notification", notification, 2), 2)
    return msg.Explain(
        integer("request", request, 1),
        msg.NotificationId(text("broker", broker), integer("sequence", sequence, 1)),
        integer("session", session),
        integer("subscription", subscription, 0, MAX_SUBSCRIPTION),
    )


def _list_subscriptions(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.ListSubscriptions:
    request, after = arity("LIST_SUBSCRIPTIONS", fields, 2)
    return msg.ListSubscriptions(integer("request", request, 1), integer("after", after))


def _list_receivers(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.ListReceivers:
    request, notifications = arity("LIST_RECEIVERS", fields, 2)
    ids = [
        arity("notification", array("notification", each, 2), 2)
        for each in array("notifications", notifications, wire.ASKED_AT_ONCE)
    ]
    return msg.ListReceivers(
        integer("request", request, 1),
        tuple(msg.NotificationId(text("broker", broker), integer("sequence", number, 1)) for broker, number in ids),
    )


def _reply(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Reply:
    request, document = arity("REPLY", fields, 2)
    if type(document) is not dict:
        bad("a REPLY's document must be a map")
    return msg.Reply(integer("request", request, 1), _document(document, _DEPTH))


def _link(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Link:
    broker, advertisements, incarnation, *more = arity("LINK", fields, min(max(len(fields), 3), 6))
    if type(advertisements) is not bool:
        bad("advertisements must be a boolean")
    link = msg.Link(text("broker", broker), advertisements, integer("incarnation", incarnation))
    if more:
        link = replace(link, crs=text("crs", more[0]))
    if len(more) > 1:
        link = replace(link, relations=text("relations", more[1]))
    if len(more) > 2 and more[2] is not True:
        bad("custody is true, or is not said")
    return replace(link, custody=len(more) > 2)


def _attach(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Attach:
    request, subscription, name, policy, credit, queue = arity("ATTACH", fields, 6)
    return msg.Attach(
        integer("request", request, 1),
        integer("subscription", subscription, 0, MAX_SUBSCRIPTION),
        index_name("name", name),
        member("policy", wire.Policy, policy),
        integer("credit", credit),
        integer("queue", queue),
    )


def _index_load(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.IndexLoad:
    request, path, shard = arity("INDEX_LOAD", fields, 3)
    return msg.IndexLoad(integer("request", request, 1), text("path", path, wire.REASON_BYTES), text("shard", shard))


def _index_add(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.IndexAdd:
    request, id, name, encoded = arity("INDEX_ADD", fields, 4)
    (filter,) = encoded_filters((encoded,))
    return msg.IndexAdd(integer("request", request, 1), index_name("id", id), index_name("name", name), filter)


def _index_remove(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.IndexRemove:
    request, id = arity("INDEX_REMOVE", fields, 2)
    return msg.IndexRemove(integer("request", request, 1), index_name("id", id))


def _document(value: Any, depth: int) -> Any:
    """Plain values only, arrays as lists, and no deeper than `_DEPTH`."""
    if depth == 0:
        bad(f"a REPLY's document nests deeper than {_DEPTH}")
    if type(value) is dict:
        for key in value:
            if type(key) is not str:
                bad("the keys of a REPLY's document must be strings")
        return {key: _document(item, depth - 1) for key, item in value.items()}
    if type(value) is tuple:
        return [_document(item, depth - 1) for item in value]
    if value is not None and type(value) not in (bool, int, float, str):
        bad(f"a REPLY's document holds plain values, not {type(value).__name__}")
    return value


_DECODERS: dict[int, Callable[[tuple[Any, ...], Sequence[bytes], msg.Limits], msg.Message]] = {
    wire.HELLO: _hello,
    wire.WELCOME: _welcome,
    wire.SUBSCRIBE: _subscribe,
    wire.UNSUBSCRIBE: _unsubscribe,
    wire.PUBLISH: _publish,
    wire.DELIVER: _deliver,
    wire.ACK: _ack,
    wire.CREDIT: _credit,
    wire.PING: _ping,
    wire.PONG: _pong,
    wire.ERROR: _error,
    wire.BYE: _bye,
    wire.DROPPED: _dropped,
    wire.STATUS: _status,
    wire.EXPLAIN: _explain,
    wire.LIST_SUBSCRIPTIONS: _list_subscriptions,
    wire.LIST_RECEIVERS: _list_receivers,
    wire.REPLY: _reply,
    wire.ADVERTISE: _advertise,
    wire.UNADVERTISE: _unadvertise,
    wire.ATTACH: _attach,
    wire.INDEX_LOAD: _index_load,
    wire.INDEX_ADD: _index_add,
    wire.INDEX_REMOVE: _index_remove,
    wire.LINK: _link,
    **durable_frames.DECODERS,
}
