"""Who takes part in a simulated world: brokers with their disks, the wires between them, and clients.

Both ends are the product's own state machines: the broker's core with a real journal on a simulated disk, and the
engine that both clients drive. Between them is a network that loses what is under way when one end dies.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from contrada.broker.core.core import Core
from contrada.broker.core.ports import Codec
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.wire import Role
from contrada.broker.sessions.session import Sent
from contrada.broker.sessions.sessions import Identity
from contrada.client.engine.actions import Connect, Hangup, Send
from contrada.client.engine.core import Core as ClientCore
from contrada.client.engine.states import Input
from contrada.client.options import Options
from contrada.errors import ContradaError
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification
from contrada.forwarding.journal.journal import Journal
from tests.client.reference import ReferenceTable
from tests.forwarding.journal.simulated_disk import Crash, SimulatedDisk

if TYPE_CHECKING:
    from tests.broker.durable.delivery_auditor import Auditor
    from tests.broker.durable.simulation import World

_DATA = Path("/data/journal")
_EVERYONE = Identity("", frozenset(Role))


class SimulatedClient:
    """The engine of a client, and its connection to a broker."""

    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.name = name
        options = Options(name=name, backoff=0.1, backoff_max=1.0, attempt_timeout=2.0, connect_timeout=1e6)
        self.core = ClientCore(options, random=Random(host.random.random()))
        self.connection = b""
        self.inbox: Any = None  # of a subscriber
        self.submissions: dict[int, Any] = {}
        self.core.start(host.now)
        self.perform()

    def perform(self) -> None:
        """Do what the engine asks for."""
        while actions := self.core.take_actions():
            for action in actions:
                if isinstance(action, Connect):
                    self.host.connections += 1
                    self.connection = b"%s-%d" % (self.name.encode(), self.host.connections)
                    self.host.clients[self.connection] = self
                elif isinstance(action, Send):
                    self.host.under_way.append((self.connection, action.frames))
                elif isinstance(action, Hangup):
                    self.host.clients.pop(self.connection, None)
        self.core.take_changed()

    def hear(self, frames: list[bytes]) -> None:
        """Something has come from the broker."""
        self.core.receive(frames, self.host.now)
        self.perform()

    def cut(self) -> None:
        """The connection is gone."""
        self.core.failed(Input.CUT, "the broker is gone", self.host.now)
        self.perform()

    def take(self, auditor: Auditor, acknowledged: float) -> None:
        """A subscriber takes what has come; what it acknowledges it is done with."""
        random = self.host.random
        while self.inbox.buffer:
            notification = self.core.take(self.inbox)
            auditor.delivered[self.name].append((decode_notification(notification._body)["n"], notification.id))
            if random.random() < acknowledged:
                self.core.acknowledge(self.inbox, notification.position, run=random.random() < 0.3)
        self.core.flush()
        self.perform()

    def take_all(self, auditor: Auditor) -> None:
        """A subscriber takes what has come, and is done with everything."""
        self.take(auditor, 1.0)
        for position in list(self.inbox.unacknowledged):
            self.core.acknowledge(self.inbox, position, run=False)
        self.core.flush()
        self.perform()

    def tick(self) -> None:
        """Time has passed."""
        self.core.tick(self.host.now)
        self.core.flush()
        self.perform()


class Wires:
    """The connections that one broker has dialled: a `Transport`."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name

    def open(self, connection: bytes, peer: Any) -> None:
        far = peer.url.removeprefix("tcp://").removesuffix(":1")
        if self.world.hosts[far].core is None:
            raise ContradaError("nobody listens there")
        self.world.connections += 1
        there = (far, b"%s-%d" % (self.name.encode(), self.world.connections))
        self.world.wires[self.name, connection] = there
        self.world.wires[there] = (self.name, connection)

    def silence(self, connection: bytes) -> str:
        return "no answer"

    def close(self, connection: bytes) -> None:
        self.world.drop_wire((self.name, connection))


class Host:
    """One broker, its disk, and the clients that are connected to it. While it is dead its `core` is None."""

    def __init__(self, world: World, name: str, peers: tuple[str, ...]) -> None:
        self.world = world
        self.name = name
        self.peers = peers
        self.random = world.random
        self.disk = SimulatedDisk(world.random)
        self.core: Core | None = None
        self.clients: dict[bytes, SimulatedClient] = {}
        self.connections = 0
        self.turns = 0
        self.under_way: list[tuple[bytes, Any]] = []
        self.jobs: list[Any] = []

    @property
    def now(self) -> float:
        return self.world.now

    def start(self) -> None:
        """Start the broker; that touches the disk, and may end as it began."""
        world = self.world
        kept = {"data": "/data", "data_bytes": 4000, "data_seconds": 30}
        patience = {"heartbeat": 1.0, "timeout": 10.0, "stale_after": 20.0}
        settings = Settings(id=self.name, **kept, **patience, peers=[f"tcp://{peer}:1" for peer in self.peers])
        try:
            journal = Journal.open(_DATA, disk=self.disk, file_bytes=2000, clock=lambda: int(world.wall * 1e9))
            core = Core(
                settings,
                ReferenceTable(),
                Codec(decode_notification, decode_filter),
                lambda _user: _EVERYONE,
                id=self.name,
                first_sequence=int(world.wall * 1e6),
                now=self.now,
            )
            core.links.transport = Wires(world, self.name)
            core.durable.open(journal, lambda: world.wall)
            core.durable.store.beside = lambda job, done: self.jobs.append((job, done))
            self.core = core
        except Crash:
            self.die()
        except ContradaError:  # the disk does not take it: somebody sees to the disk
            self.core = None
            self.disk.kill()

    def die(self) -> None:
        """The process is gone, or everything that the disk did not have yet."""
        self.world.crashes += 1
        self.core = None
        self.jobs.clear()
        self.under_way.clear()
        if self.random.random() < 0.5:
            self.disk.kill()
        else:
            self.disk.cut_power()
        for client in list(self.clients.values()):
            client.cut()
        for near, _ in [each for each in self.world.wires.items() if each[0][0] == self.name]:
            self.world.drop_wire(near)

    def turn(self) -> None:
        """The broker takes in what has come, and does what follows."""
        if self.core is None:
            return
        under_way, self.under_way = self.under_way, []
        for connection, frames in under_way:
            if connection in self.clients:
                self.core.receive(connection, None, frames, self.now)
        self.core.turn(self.now)
        self.core.flush(self.send)
        self.turns += 1
        if self.turns % self.world.check_every == 0:
            self.core._check()
            self.core.overlay.router._check()

    def send(self, connection: bytes, frames: Any) -> Sent:
        """The broker says something, to another one or to a client."""
        assert self.core is not None
        if (far := self.world.wires.get((self.name, connection))) is not None:
            self.world.queues[far].append(list(frames))
        elif (client := self.clients.get(connection)) is not None:
            client.hear(frames)
        elif not self.core.links.is_dialled(connection):
            return Sent.GONE
        return Sent.OK

    def write(self) -> None:
        """The disk does one of the things that it was asked to."""
        if self.jobs and self.core is not None:
            job, done = self.jobs.pop(0)
            try:
                job()
                done()
            except Crash:
                self.die()
