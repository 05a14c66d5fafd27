"""Three linked brokers, each with a disk and clients of its own, in virtual time: custody over links, by a seed.

    line        a ── b ── c
    triangle    a ── b ── c ── a: one link stands by, and the tree re-forms around whoever is killed

Brokers are the product's own cores with real journals on simulated disks, clients the engine that both clients drive;
between brokers are wires that lose what is under way when they are cut or an end dies. A seed decides who publishes
where, which broker is killed at which operation of its disk or has its power cut, which wire is cut, when disks are
full or fail to sync, how far messages get, and how the clocks jump. At the end everybody is well, and the auditor of
`simulation.py` checks what was acknowledged anywhere against what every durable subscription got, wherever it is.

In a triangle a younger notification may overtake an older one that waits on the disk of a broker that is away: order is
checked in the line.
"""

from __future__ import annotations

from collections import defaultdict, deque
from random import Random
from typing import Any

from contrada.broker.core.core import Core
from contrada.broker.core.ports import Codec
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.messages import Keep
from contrada.broker.sessions.session import Sent
from contrada.client.engine.kept_requests import Stage
from contrada.client.engine.states import Phase
from contrada.errors import ContradaError
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification, encode_filter, encode_notification
from contrada.forwarding.journal.journal import Journal
from contrada.forwarding.language.text.parse import parse
from tests.broker.durable.simulation import DATA, EVERYONE, VALUES, Auditor, SimClient
from tests.client.reference import ReferenceTable
from tests.forwarding.journal.simulated_disk import Crash, SimulatedDisk

WIRES = {"line": {"a": (), "b": ("a",), "c": ("b",)}, "triangle": {"a": (), "b": ("a",), "c": ("b", "a")}}
SUBSCRIBERS = {"s0": ("c", 0), "s1": ("a", 1), "s2": ("b", 2), "s3": ("c", 1), "s4": ("a", 2)}


class Wires:
    """The connections that one broker has dialled: a `Transport`."""

    def __init__(self, world: LinkedWorld, name: str) -> None:
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
    """One broker, its disk, and the clients that are connected to it."""

    def __init__(self, world: LinkedWorld, name: str, peers: tuple[str, ...]) -> None:
        self.world = world
        self.name = name
        self.peers = peers
        self.random = world.random
        self.disk = SimulatedDisk(world.random)
        self.core: Core | None = None
        self.clients: dict[bytes, SimClient] = {}
        self.connections = 0
        self.under_way: list[tuple[bytes, Any]] = []
        self.jobs: list[Any] = []

    @property
    def now(self) -> float:
        return self.world.now

    def start(self) -> None:
        wall = self.world.wall
        peers = [f"tcp://{peer}:1" for peer in self.peers]
        settings = Settings(
            id=self.name,
            data="/data",
            data_bytes=4000,
            data_seconds=30,
            heartbeat=1.0,
            timeout=10.0,
            stale_after=20.0,
            peers=peers,
        )
        try:
            journal = Journal.open(DATA, disk=self.disk, file_bytes=2000, clock=lambda: int(self.world.wall * 1e9))
            core = Core(
                settings,
                ReferenceTable(),
                Codec(decode_notification, decode_filter),
                lambda _user: EVERYONE,
                id=self.name,
                first_sequence=int(wall * 1e6),
                now=self.now,
            )
            core.links.transport = Wires(self.world, self.name)
            core.durable.open(journal, lambda: self.world.wall)
            core.durable.store.beside = lambda job, done: self.jobs.append((job, done))
            self.core = core
        except Crash:
            self.die()
        except ContradaError:  # the disk does not take it: somebody sees to the disk
            self.core = None
            self.disk.kill()

    def die(self) -> None:
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
        if self.core is None:
            return
        under_way, self.under_way = self.under_way, []
        for connection, frames in under_way:
            if connection in self.clients:
                self.core.receive(connection, None, frames, self.now)
        self.core.turn(self.now)
        self.core.flush(self.send)
        self.core._check()
        self.core.overlay.router._check()

    def send(self, connection: bytes, frames: Any) -> Sent:
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


class LinkedWorld:
    """Everything, and time."""

    def __init__(self, seed: int, shape: str) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.wall = 1_800_000_000.0
        self.ordered = shape == "line"
        self.crashes = 0
        self.cuts = 0
        self.connections = 0
        self.x = 0
        self.auditor = Auditor()
        self.wires: dict[tuple[str, bytes], tuple[str, bytes]] = {}  # each end to the other
        self.queues: dict[tuple[str, bytes], deque[Any]] = defaultdict(deque)  # towards each end
        self.hosts = {name: Host(self, name, peers) for name, peers in WIRES[shape].items()}
        self.wants = {name: value for name, (_, value) in SUBSCRIBERS.items()}
        for host in self.hosts.values():
            host.start()
        self.spin(2.0)
        self.publishers = {name: SimClient(host, f"p-{name}") for name, host in self.hosts.items()}
        self.subscribers = {name: self.subscriber(name) for name in SUBSCRIBERS}
        while not all(each.inbox.stage is Stage.LIVE for each in self.subscribers.values()):
            assert self.now < 60, "the subscriptions were never confirmed"
            self.spin(0.25)  # no longer than that: what is published now is theirs

    def spin(self, seconds: float) -> None:
        """Let everything happen, for a while."""
        until = self.now + seconds
        while self.now < until:
            self.tick(0.25)
            self.exhaust()

    def exhaust(self) -> None:
        """Until nothing moves."""
        moving = True
        while moving:
            moving = False
            for host in self.hosts.values():
                moving |= host.core is not None and bool(host.under_way or host.jobs)
                host.turn()
                while host.jobs:
                    host.write()
                moving |= bool(host.core and (host.core.busy or host.core.pending))
            moving |= any(self.carry(end, 1000) for end in list(self.queues))

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds
        for client in (*getattr(self, "publishers", {}).values(), *getattr(self, "subscribers", {}).values()):
            client.tick()
        for host in self.hosts.values():
            if host.core is not None:
                host.core.tick(self.now)
                host.core.flush(host.send)

    # -- wires -------------------------------------------------------------------------------------------

    def carry(self, end: tuple[str, bytes], most: int) -> bool:
        """Let some messages arrive at the end of a wire; whether any did."""
        queue = self.queues[end]
        core = self.hosts[end[0]].core
        if core is None or end not in self.wires:
            del self.queues[end]
            return False
        some = [queue.popleft() for _ in range(min(most, len(queue)))]
        for frames in some:
            core.receive(end[1], None, frames, self.now)
        return bool(some)

    def drop_wire(self, end: tuple[str, bytes]) -> None:
        """A wire is cut: what is under way is lost. Who dialled notices at once, the other by its silence."""
        far = self.wires.pop(end, None)
        if far is None:
            return
        self.wires.pop(far, None)
        for each in (end, far):
            self.queues.pop(each, None)
            core = self.hosts[each[0]].core
            if core is not None and core.links.is_dialled(each[1]):
                core.disconnected(each[1], "cut", self.now)

    # -- clients -----------------------------------------------------------------------------------------

    def subscriber(self, name: str) -> SimClient:
        where, value = SUBSCRIBERS[name]
        client = SimClient(self.hosts[where], name)
        wanted = (encode_filter(parse(f"a = {value}")),)
        client.inbox = client.core.subscribe_durably(wanted, 8, name, None, Keep(attempts=1000), auto=False)
        client.perform()
        return client

    def publish(self, publisher: SimClient) -> None:
        if not publisher.core.outbox.has_room or publisher.core.phase is Phase.CLOSED:
            return
        self.x += 1
        value = self.random.randrange(VALUES)
        self.auditor.published[self.x] = publisher.name, value
        self.auditor.owed[self.x] = set(self.wants)
        key = f"key-{self.x}" if self.random.random() < 0.8 else ""
        content = encode_notification({"a": value, "n": self.x})
        publisher.submissions[self.x] = publisher.core.publish([content], durable=True, key=key)
        publisher.perform()

    def look(self) -> None:
        self.auditor.hear(self.publishers.values())
        for name, client in list(self.subscribers.items()):
            if client.inbox.stage is Stage.ENDED:
                assert client.inbox.error.code == "storage", client.inbox.error
                self.kill_subscriber(name)

    def kill_subscriber(self, name: str) -> None:
        client = self.subscribers[name]
        self.hosts[SUBSCRIBERS[name][0]].clients.pop(client.connection, None)
        self.subscribers[name] = self.subscriber(name)

    # -- what happens ------------------------------------------------------------------------------------

    def step(self) -> None:
        random = self.random
        choice = random.random()
        host = self.hosts[random.choice("abc")]
        if choice < 0.25:
            self.publish(random.choice(list(self.publishers.values())))
        elif choice < 0.45:
            host.turn()
        elif choice < 0.60:
            host.write()
        elif choice < 0.75 and self.queues:
            self.carry(random.choice(list(self.queues)), random.randrange(1, 6))
        elif choice < 0.84:
            self.subscribers[random.choice(list(self.wants))].take(self.auditor, 0.9)
        elif choice < 0.92:
            self.tick(random.choice((0.1, 0.5, 2.0)))
        elif choice < 0.935:
            host.disk.crash_in = random.randrange(12)
        elif choice < 0.945:
            if host.core is not None:
                host.die()
        elif choice < 0.955 and self.wires:
            self.cuts += 1
            self.drop_wire(random.choice(list(self.wires)))
        elif choice < 0.965:
            self.kill_subscriber(random.choice(list(self.wants)))
        elif choice < 0.972:
            self.wall += random.choice((-500.0, 5.0))
        elif choice < 0.978:
            host.disk.write_error = random.choice((28, 5))
        elif choice < 0.982:
            host.disk.sync_error = 5
        elif host.core is not None and random.random() < 0.5:
            host.core.durable.upkeep.checkpoint()
        for each in self.hosts.values():
            if each.core is None and random.random() < 0.2:
                each.start()
        if random.random() < 0.2:
            host.disk.write_error = 0
        self.look()

    def heal(self) -> None:
        """Disks and wires are well, and everybody gets what waits."""
        for host in self.hosts.values():
            if host.core is not None:
                host.die()
            host.disk.kill()
            host.start()
            assert host.core is not None
        for _ in range(400):
            self.tick(0.5)
            self.exhaust()
            for name in self.wants:
                client = self.subscribers[name]
                client.take(self.auditor, 1.0)
                for position in list(client.inbox.unacknowledged):
                    client.core.acknowledge(client.inbox, position, run=False)
                client.core.flush()
                client.perform()
            self.look()
            if self.at_rest():
                return
        raise AssertionError(f"something never came to its end: {self.waiting()}")

    def waiting(self) -> dict[str, dict[str, int]]:
        """How many notifications wait at each broker, for a subscription or a neighbour."""
        cores = {name: host.core for name, host in self.hosts.items() if host.core is not None}
        return {
            name: {each.title: len(each.queue) for each in core.durable.state.by_number.values() if len(each.queue)}
            for name, core in cores.items()
        }

    def at_rest(self) -> bool:
        published = all(not publisher.submissions for publisher in self.publishers.values())
        live = all(each.inbox.stage is Stage.LIVE for each in self.subscribers.values())
        return published and live and not any(self.waiting().values())

    def check(self) -> None:
        self.auditor.check(self.wants, dict.fromkeys(self.wants, 0), ordered=self.ordered)


def simulate_links(seed: int, steps: int = 500, shape: str = "") -> LinkedWorld:
    """One run."""
    world = LinkedWorld(seed, shape or ("triangle" if seed % 3 == 2 else "line"))
    try:
        for _ in range(steps):
            world.step()
        world.heal()
        world.check()
    except (AssertionError, ContradaError) as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    return world
