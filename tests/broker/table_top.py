"""A broker core on a table top: clients are lists of messages, the transport is a function, time is a number."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgpack

from contrada.broker.core.core import Core
from contrada.broker.core.ports import Codec
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.frames import decode, encode
from contrada.broker.protocol.messages import Ack, Deliver, Dropped, Hello, Limits, Message, Publish, Subscribe
from contrada.broker.protocol.wire import Policy, Role
from contrada.broker.sessions.session import Sent
from contrada.broker.sessions.sessions import Identity
from tests.naive.delivery import NaiveTable, read_filter, read_notification

ALL = frozenset(Role) - {Role.PEER}


def body(**attributes: Any) -> bytes:
    return msgpack.packb(attributes)


def equals(name: str, value: Any) -> tuple[bytes, ...]:
    return (msgpack.packb([name, value]),)


class TableTop:
    """A core, the inboxes of its clients, and which of their connections are full or gone."""

    def __init__(self, roles: frozenset[Role] = ALL, limits: Limits = Limits(), **settings: Any) -> None:  # noqa: B008  # an immutable tuple
        self.now = 0.0
        self.identities: dict[str | None, Identity | None] = {None: Identity("", roles)}
        self.table = NaiveTable()
        self.core = Core(
            Settings(limits=limits, **settings),
            self.table,
            Codec(read_notification, read_filter),
            self.identities.get,
            id="b-1",
        )
        self.inbox: dict[bytes, list[Message]] = defaultdict(list)
        self.full: set[bytes] = set()
        self.gone: set[bytes] = set()

    def raw(self, client: bytes, *frames: bytes, user: str | None = None) -> None:
        self.core.receive(client, user, list(frames), self.now)

    def say(self, client: bytes, *messages: Message, user: str | None = None) -> None:
        for message in messages:
            self.raw(client, *encode(message), user=user)

    def turn(self) -> None:
        if self.core.congested:
            self.now = max(self.now, self.core.retry_at)  # long enough to try full connections again
        self.core.turn(self.now)
        self.core.flush(self.send)
        self.core._check()

    def tick(self, seconds: float = 0.0) -> None:
        self.now += seconds
        self.core.tick(self.now)
        self.core.flush(self.send)
        self.core._check()

    def send(self, connection: bytes, frames: Any) -> Sent:
        if connection in self.gone:
            return Sent.GONE
        if connection in self.full:
            return Sent.FULL
        self.inbox[connection].append(decode(frames))
        return Sent.OK

    def heard(self, client: bytes) -> list[Message]:
        """What a client received since it was last asked."""
        self.turn()
        return self.inbox.pop(client, [])

    def connect(self, *clients: bytes, user: str | None = None) -> None:
        for client in clients:
            self.say(client, Hello(1, 1, client.decode()), user=user)
            self.heard(client)

    def subscribe(
        self, client: bytes, id: int, value: Any, policy: Policy = Policy.BLOCK, credit: int = 1000, queue: int = 0
    ) -> None:
        request = 1_000_000 + id
        self.say(client, Subscribe(request, id, equals("a", value), policy, credit, queue))
        assert any(isinstance(m, Ack) and m.entries[0].request == request for m in self.heard(client))

    def publish(self, client: bytes, request: int, *values: Any) -> None:
        self.say(client, Publish(request, tuple(body(a=value, n=n) for n, value in enumerate(values))))


def delivered(messages: list[Message]) -> list[tuple[int, tuple[int, ...]]]:
    """(sequence, subscriptions) of every entry."""
    return [(e.id.sequence, e.subscriptions) for m in messages if isinstance(m, Deliver) for e in m.entries]


def acked(messages: list[Message]) -> list[int]:
    return [a.request for m in messages if isinstance(m, Ack) for a in m.entries]


def dropped(messages: list[Message]) -> list[tuple[int, int, int]]:
    return [tuple(d) for m in messages if isinstance(m, Dropped) for d in m.entries]
