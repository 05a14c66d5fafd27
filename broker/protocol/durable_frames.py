"""The messages of durable publishing and subscribing to frames and back: rows of the tables in `frames.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.broker.protocol import messages as msg
from contrada.broker.protocol import wire
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
    text,
)
from contrada.broker.protocol.wire import INDEX_NAME_BYTES, LIST_LENGTH, MAX_INTEGER, MAX_SUBSCRIPTION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_pack: Callable[[Any], bytes] = msgpack.Packer(autoreset=True).pack
ALL = "all"


def _encode_store(m: msg.Store) -> list[bytes]:
    bodies, attachments = detach(m.notifications)
    return [_pack((wire.STORE, m.request, bodies, m.key, m.retain)), *attachments]


def _encode_subscribe(m: msg.SubscribeDurable) -> list[bytes]:
    wanted = (m.name, m.filters, m.interface)
    return [_pack((wire.SUBSCRIBE_DURABLE, m.request, m.subscription, *wanted, m.credit, m.since, m.keep))]


def _encode_deliver(m: msg.DeliverDurable) -> list[bytes]:
    bodies, attachments = detach([entry.body for entry in m.entries])
    rows = [
        (*entry.id, entry.publisher, body, entry.position, entry.attempt, entry.time)
        for entry, body in zip(m.entries, bodies, strict=True)
    ]
    return [_pack((wire.DELIVER_DURABLE, m.subscription, rows)), *attachments]


ENCODERS: dict[type, Callable[[Any], list[bytes]]] = {
    msg.Store: _encode_store,
    msg.SubscribeDurable: _encode_subscribe,
    msg.Acknowledge: lambda m: [_pack((wire.ACKNOWLEDGE, m.entries))],
    msg.DeliverDurable: _encode_deliver,
    msg.DurableQuery: lambda m: [_pack((wire.DURABLE_QUERY, m.request, m.action, m.name, m.behind))],
}


def _store(fields: tuple[Any, ...], attachments: Sequence[bytes], limits: msg.Limits) -> msg.Store:
    request, bodies, key, retain = arity("STORE", fields, 4)
    bodies = read_bodies(array("notifications", bodies, limits.batch), attachments, limits)
    if (key or retain) and len(bodies) != 1:
        bad("a STORE with a key has one notification")
    return msg.Store(
        integer("request", request, 1),
        bodies,
        text("key", key, INDEX_NAME_BYTES),
        text("retain", retain, INDEX_NAME_BYTES),
    )


def _subscribe(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.SubscribeDurable:
    request, subscription, name, filters, interface, credit, since, keep = arity("SUBSCRIBE_DURABLE", fields, 8)
    interface = text("interface", interface, INDEX_NAME_BYTES)
    if interface and filters != ():
        bad("a durable subscription has filters, or an interface of the index")
    return msg.SubscribeDurable(
        integer("request", request, 1),
        integer("subscription", subscription, 0, MAX_SUBSCRIPTION),
        index_name("name", name),
        () if interface else encoded_filters(filters),
        interface,
        integer("credit", credit),
        _since(since),
        _keep(*arity("keep", array("keep", keep, 16), 7)),
    )


def _since(value: Any) -> msg.Since:
    if value is None or value == ALL:
        return value if value is None else ALL
    if type(value) is tuple:
        broker, sequence = arity("since", value, 2)
        return msg.NotificationId(text("broker", broker), integer("sequence", sequence, 1))
    return integer("since", value)


def _keep(
    count: Any, when_notifications: Any, size: Any, when_bytes: Any, age: Any, when_age: Any, attempts: Any
) -> msg.Keep:
    keep = msg.Keep(
        integer("notifications", count),
        member("when_notifications", wire.Full, when_notifications),
        integer("bytes", size),
        member("when_bytes", wire.Full, when_bytes),
        integer("age", age),
        member("when_age", wire.Full, when_age),
        integer("attempts", attempts),
    )
    if keep.when_age is wire.Full.REFUSE:
        bad("nothing can be refused for its age: when_age is drop-oldest or dead-letter")
    return keep


def _acknowledge(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.Acknowledge:
    (entries,) = arity("ACKNOWLEDGE", fields, 1)
    position = (0, MAX_INTEGER)
    bounds = ("subscription", 0, MAX_SUBSCRIPTION), ("first", *position), ("last", *position)
    return msg.Acknowledge(tuple(msg.Acknowledgement(*row) for row in integer_rows("entries", entries, *bounds)))


def _deliver(fields: tuple[Any, ...], attachments: Sequence[bytes], limits: msg.Limits) -> msg.DeliverDurable:
    subscription, entries = arity("DELIVER_DURABLE", fields, 2)
    rows = [arity("entry", array("entry", row, 7), 7) for row in array("entries", entries, LIST_LENGTH)]
    bodies = read_bodies((row[3] for row in rows), attachments, limits)
    checked = tuple(
        msg.Stored(
            msg.NotificationId(text("broker", broker), integer("sequence", sequence, 1)),
            text("publisher", publisher),
            body,
            integer("position", position, 1),
            integer("attempt", attempt, 1),
            integer("time", time),
        )
        for (broker, sequence, publisher, _, position, attempt, time), body in zip(rows, bodies, strict=True)
    )
    return msg.DeliverDurable(integer("subscription", subscription, 0, MAX_SUBSCRIPTION), checked)


def _query(fields: tuple[Any, ...], _a: Sequence[bytes], _l: msg.Limits) -> msg.DurableQuery:
    request, action, name, behind = arity("DURABLE_QUERY", fields, 4)
    return msg.DurableQuery(
        integer("request", request, 1),
        member("action", wire.DurableAction, action),
        text("name", name, INDEX_NAME_BYTES),
        integer("behind", behind),
    )


DECODERS: dict[int, Callable[[tuple[Any, ...], Sequence[bytes], msg.Limits], msg.Message]] = {
    wire.STORE: _store,
    wire.SUBSCRIBE_DURABLE: _subscribe,
    wire.ACKNOWLEDGE: _acknowledge,
    wire.DELIVER_DURABLE: _deliver,
    wire.DURABLE_QUERY: _query,
}
