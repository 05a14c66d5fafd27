"""Whole brokers without sockets, linked by queues."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from contrada.broker.core.core import Core
from contrada.broker.core.ports import Codec
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.messages import (
    Advertise,
    Deliver,
    Hello,
    Link,
    Publish,
    Subscribe,
)
from contrada.broker.protocol.peer_frames import decode_peer, encode_peer
from contrada.broker.protocol.peer_messages import Change, Forward, LinkStates, Run
from contrada.broker.protocol.wire import Policy, Role
from contrada.broker.sessions.session import Sent
from contrada.broker.sessions.sessions import Identity
from contrada.errors import ContradaError
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification, encode_filter, encode_notification
from contrada.forwarding.language.filter import as_filters
from tests.client.reference import ReferenceTable


class Overlay:
    """Brokers by id. A dialled connection is a pair of queues; a client is a list of what it heard."""

    def __init__(self) -> None:
        self.now = 0.0
        self.cores: dict[str, Core] = {}
        self.tables: dict[str, ReferenceTable] = {}
        self.wires: dict[tuple[str, bytes], tuple[str, bytes]] = {}  # each end to the other
        self.queues: dict[tuple[str, bytes], deque] = defaultdict(deque)  # towards each end
        self.heard: dict[tuple[str, bytes], list] = defaultdict(list)
        self.full: set[tuple[str, bytes]] = set()
        self.dark: set[str] = set()  # hosts that cannot be reached

    def add(
        self,
        name: str,
        *peers: str,
        roles: frozenset[Role] = frozenset(Role),
        id: str = "",
        first_sequence: int = 1,
        **settings: Any,
    ) -> Core:
        """Start a broker on the host `name`, which is its id too unless another is given."""
        options = Settings(
            id=id or name, peers=[f"tcp://{peer}:1" for peer in peers], heartbeat=1.0, timeout=1000.0, **settings
        )
        self.tables[name] = table = ReferenceTable()
        core = Core(
            options,
            table,
            Codec(decode_notification, decode_filter),
            lambda _: Identity("", roles),
            id=id or name,
            first_sequence=first_sequence,
            now=self.now,
        )
        overlay = self

        class Lines:
            def open(self, connection: bytes, peer: Any) -> None:
                host = peer.url.removeprefix("tcp://").removesuffix(":1")
                if host not in overlay.cores or host in overlay.dark:
                    raise ContradaError("nobody listens there")
                far = (host, b"%s/%s" % (name.encode(), connection))
                overlay.wires[name, connection] = far
                overlay.wires[far] = (name, connection)

            def silence(self, connection: bytes) -> str:
                return "no answer"

            def close(self, connection: bytes) -> None:
                far = overlay.wires.pop((name, connection), None)
                if far is not None:
                    overlay.wires.pop(far, None)

        core.links.transport = Lines()
        self.cores[name] = core
        return core

    def kill(self, name: str) -> None:
        """Gone without a word: what it dialled is noticed by a heartbeat, who dialled it notices at once."""
        del self.cores[name]
        for near, far in list(self.wires.items()):
            if near[0] == name:
                del self.wires[near], self.wires[far]
                if far[0] in self.cores and self.cores[far[0]].links.is_dialled(far[1]):
                    self.cores[far[0]].disconnected(far[1], "killed", self.now)

    def run(self, seconds: float = 1.0) -> None:
        """Let time pass, in steps of a tick."""
        for _ in range(int(seconds / 0.25)):
            self.now += 0.25
            for core in self.cores.values():
                core.tick(self.now)
            self.settle()

    def settle(self) -> None:
        while self.deliver() or any(core.leftovers for core in self.cores.values()):
            pass

    def deliver(self) -> bool:
        """Let every broker have a turn, and hear what the others said in it; whether they said something."""
        moving = False
        for name, core in list(self.cores.items()):
            core.turn(self.now)
            core.flush(lambda connection, frames, name=name: self._send(name, connection, frames))
            core._check()
            core.overlay.router._check()
        for (name, connection), queue in list(self.queues.items()):
            while queue and name in self.cores:
                self.cores[name].receive(connection, None, queue.popleft(), self.now)
                moving = True
        return moving

    def _send(self, name: str, connection: bytes, frames: list[bytes]) -> Sent:
        if (name, connection) in self.full:
            return Sent.FULL
        if connection.startswith(b"client"):
            self.heard[name, connection].append(decode_peer(frames))
        elif (name, connection) in self.wires:
            self.queues[self.wires[name, connection]].append(list(frames))
        elif not self.cores[name].links.is_dialled(connection):
            return Sent.GONE
        return Sent.OK

    # Clients

    def say(self, name: str, client: bytes, *messages: Any) -> None:
        for message in messages:
            frames = encode_peer(message) if isinstance(message, (Change, Forward, LinkStates)) else encode(message)
            self.cores[name].receive(client, None, frames, self.now)
        self.settle()

    def client(self, name: str, client: bytes = b"client") -> None:
        self.say(name, client, Hello(1, 1, client.decode()))

    def subscribe(self, name: str, text: str, number: int = 1, client: bytes = b"client", **options: Any) -> None:
        from contrada.forwarding.language.text.parse import parse

        encoded = tuple(encode_filter(f) for f in as_filters(parse(text)))
        defaults = {"policy": Policy.BLOCK, "credit": 10**6, "queue": 0}
        self.say(name, client, Subscribe(100 + number, number, encoded, **{**defaults, **options}))

    def advertise(self, name: str, text: str, number: int = 1, client: bytes = b"client") -> None:
        from contrada.forwarding.language.text.parse import parse

        encoded = tuple(encode_filter(f) for f in as_filters(parse(text)))
        self.say(name, client, Advertise(300 + number, number, encoded))

    def publish(self, name: str, *notifications: dict, client: bytes = b"client", request: int = 7) -> None:
        self.say(name, client, Publish(request, tuple(map(encode_notification, notifications))))

    def delivered(self, name: str, client: bytes = b"client") -> list[Any]:
        """The values of x that a client got since it was last asked."""
        heard = self.heard.pop((name, client), [])
        return [decode_notification(e.body)["x"] for m in heard if isinstance(m, Deliver) for e in m.entries]

    def links(self) -> set[tuple[str, str]]:
        return {(name, other) for name, core in self.cores.items() for other in core.overlay.neighbours}


def line(*names: str, **settings: Any) -> Overlay:
    overlay = Overlay()
    for before, name in zip((None, *names), names, strict=False):
        overlay.add(name, *([before] if before else []), **settings)
        overlay.client(name)
    overlay.run()
    return overlay


def one(origin: str, sequence: int, body: bytes, hops: int = 1) -> Forward:
    return Forward((Run(origin, "p", hops, (sequence,), (body,)),))


def as_broker(overlay: Overlay, name: str = "a") -> list:
    """A hostile broker, linked."""
    overlay.client(name)
    overlay.say(name, b"client", Link("evil", False))
    overlay.heard[name, b"client"].clear()
    return overlay.heard[name, b"client"]


def shown(overlay: Overlay, name: str) -> list[str]:
    """The filters in a broker's table."""
    return sorted(str(f) for _, f in overlay.tables[name].filters.values())
