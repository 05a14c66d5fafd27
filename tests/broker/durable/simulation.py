"""Brokers, their clients and their disks in virtual time: a seed decides what happens, and an auditor what must hold.

    alone       a
    line        a ── b ── c
    triangle    a ── b ── c ── a: one link stands by, and the tree re-forms around whoever is killed
    square      a ── b ── c ── d ── a

What a seed decides: who publishes what and where, who takes and acknowledges, when disks get to work, at which of its
operations a broker is killed or its power is cut, when disks are full or fail to sync, when subscribers are killed,
which wires are cut and how far messages get, how the clocks jump. In every other world brokers die four times as often.

At the end everybody is well and gets what waits. Then the auditor (`delivery_auditor.py`) compares what was
acknowledged anywhere with what every durable subscription got, wherever it is. In circles a younger notification may
overtake an older one that waits on the disk of a broker that is away: there, order is not checked.
"""

from __future__ import annotations

from collections import defaultdict, deque
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.broker.protocol.messages import Keep
from contrada.broker.protocol.wire import Full
from contrada.client.engine.kept_requests import Stage
from contrada.client.engine.states import Phase
from contrada.errors import ContradaError
from contrada.forwarding.codec.msgpack import encode_filter, encode_notification
from contrada.forwarding.language.text.parse import parse
from tests.broker.durable.delivery_auditor import Auditor
from tests.broker.durable.simulated_parties import Host, SimulatedClient

if TYPE_CHECKING:
    from collections.abc import Callable

VALUES = 3
STORM = 4


class Shape(NamedTuple):
    """Whom each broker dials; where publishers are; where subscribers are, and the value that each asks for."""

    wires: dict[str, tuple[str, ...]]
    publishers: dict[str, str]
    subscribers: dict[str, tuple[str, int]]
    ordered: bool = True


_THREE = {"s0": ("c", 0), "s1": ("a", 1), "s2": ("b", 2), "s3": ("c", 1), "s4": ("a", 2)}
SHAPES = {
    "alone": Shape({"a": ()}, {"a": "a", "a2": "a"}, {"s0": ("a", 0), "s1": ("a", 1), "s2": ("a", 2)}),
    "line": Shape({"a": (), "b": ("a",), "c": ("b",)}, {"a": "a", "b": "b", "c": "c"}, _THREE),
    "triangle": Shape({"a": (), "b": ("a",), "c": ("b", "a")}, {"a": "a", "b": "b", "c": "c"}, _THREE, False),
    "square": Shape(
        {"a": (), "b": ("a",), "c": ("b",), "d": ("c", "a")}, {"a": "a", "b": "b", "d": "d"}, _THREE, False
    ),
}
_LATE = {"alone": "s1"}  # who asks for everything that was before it
_LIMITED = {"alone": "s2", "line": "s4", "triangle": "s4", "square": "s4"}  # who loses the oldest of more than four


class World:
    """Everything, and time. Invariants are checked in one turn of `check_every`."""

    def __init__(self, seed: int, shape: str, *, check_every: int = 1) -> None:
        self.random = Random(seed)
        self.shape = SHAPES[shape]
        self.check_every = check_every
        self.now = 0.0
        self.wall = 1_800_000_000.0
        self.crashes = 0
        self.cuts = 0
        self.connections = 0
        self.x = 0
        self.auditor = Auditor()
        self.wires: dict[tuple[str, bytes], tuple[str, bytes]] = {}  # each end to the other
        self.queues: dict[tuple[str, bytes], deque[Any]] = defaultdict(deque)  # towards each end
        self.hosts = {name: Host(self, name, peers) for name, peers in self.shape.wires.items()}
        self.publishers: dict[str, SimulatedClient] = {}
        self.subscribers: dict[str, SimulatedClient] = {}
        self.places = dict(self.shape.subscribers)
        self.confirmed: set[str] = set()
        self.dropped: dict[str, int] = defaultdict(int)
        self.late, self.limited = _LATE.get(shape), _LIMITED[shape]
        for host in self.hosts.values():
            host.start()
        if len(self.hosts) > 1:
            self.spin(2.0)
        self.publishers = {
            name: SimulatedClient(self.hosts[at], f"p-{name}") for name, at in self.shape.publishers.items()
        }
        self.subscribers = {name: self.subscriber(name) for name in self.places}
        while len(self.hosts) > 1 and not self.all_live():  # who is not linked need not know of them
            assert self.now < 60, "the subscriptions were never confirmed"
            self.spin(0.25)  # no longer than that: what is published now is theirs
        self.happenings = self._happenings(STORM if seed % 2 else 1)

    # -- time --------------------------------------------------------------------------------------------

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
            for end in list(self.queues):
                moving |= self.carry(end, 1000)

    def tick(self, seconds: float) -> None:
        """Time passes for everybody."""
        self.now += seconds
        self.wall += seconds
        for client in (*self.publishers.values(), *self.subscribers.values()):
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

    def subscriber(self, name: str) -> SimulatedClient:
        """Somebody who makes a durable subscription, or takes it up."""
        where, value = self.places[name]
        client = SimulatedClient(self.hosts[where], name)
        wanted = (encode_filter(parse(f"a = {value}")),)
        since = "all" if name == self.late else None
        limits = (4, Full.DROP_OLDEST) if name == self.limited else ()
        keep = Keep(*limits)._replace(attempts=1000)
        client.inbox = client.core.subscribe_durably(wanted, 8, name, since, keep, auto=False)
        client.perform()
        return client

    def publish(self, publisher: SimulatedClient, value: int, key: str, retain: str = "") -> None:
        """Publish durably what those get who ask for this value."""
        self.x += 1
        self.auditor.published[self.x] = publisher.name, value
        self.confirmed |= {name for name, each in self.subscribers.items() if each.inbox.stage is Stage.LIVE}
        self.auditor.owed[self.x] = set(self.confirmed)
        content = encode_notification({"a": value, "n": self.x})
        submission = publisher.core.publish([content], durable=True, key=key, retain=retain)
        publisher.submissions[self.x] = submission
        publisher.perform()

    def look(self) -> None:
        """See what became of what was asked for."""
        self.auditor.hear(self.publishers.values())
        for name, client in list(self.subscribers.items()):
            core = client.host.core
            if core is not None and (subscription := core.durable._by_name.get(name)) is not None:
                self.dropped[name] = max(self.dropped[name], subscription.dropped)
            if client.inbox.stage is Stage.ENDED:  # the disk did not take it: try again
                assert client.inbox.error.code == "storage", client.inbox.error
                self.kill_subscriber(name)

    def kill_subscriber(self, name: str) -> None:
        """Kill a subscriber, and let another one come for it."""
        client = self.subscribers[name]
        client.host.clients.pop(client.connection, None)
        self.subscribers[name] = self.subscriber(name)

    def all_live(self) -> bool:
        return all(each.inbox.stage is Stage.LIVE for each in self.subscribers.values())

    # -- what happens ------------------------------------------------------------------------------------

    def _happenings(self, storm: int) -> dict[Callable[[Host], None], float]:
        """What may happen, at a broker if it is about one, and how often each does."""
        return {
            self._publish: 26,
            lambda host: host.turn(): 20,
            lambda host: host.write(): 15,
            self._carry: 15 if len(self.hosts) > 1 else 0,
            self._take: 10,
            self._pass_time: 8,
            self._crash_soon: 1.5 * storm,
            self._kill: storm,
            self._cut_wire: 2,
            self._kill_subscriber: 1,
            self._jump: 0.7,
            self._fill: 1.2,
            self._fail_sync: 0.5,
            self._checkpoint: 0.9,
        }

    def _publish(self, _host: Host) -> None:
        random = self.random
        publisher = random.choice(list(self.publishers.values()))
        if publisher.core.outbox.has_room and publisher.core.phase is not Phase.CLOSED:
            key = f"key-{self.x + 1}" if random.random() < 0.8 else ""
            self.publish(publisher, random.randrange(VALUES), key, random.choice(("", "", "", "north", "south")))

    def _carry(self, _host: Host) -> None:
        if self.queues:
            self.carry(self.random.choice(list(self.queues)), self.random.randrange(1, 6))

    def _take(self, _host: Host) -> None:
        self.subscribers[self.random.choice(list(self.places))].take(self.auditor, 0.9)

    def _pass_time(self, _host: Host) -> None:
        self.tick(self.random.choice((0.1, 0.5, 2.0)))

    def _crash_soon(self, host: Host) -> None:
        host.disk.crash_in = self.random.randrange(12)

    def _kill(self, host: Host) -> None:
        if host.core is not None:
            host.die()

    def _cut_wire(self, _host: Host) -> None:
        if self.wires:
            self.cuts += 1
            self.drop_wire(self.random.choice(list(self.wires)))

    def _kill_subscriber(self, _host: Host) -> None:
        self.kill_subscriber(self.random.choice(list(self.places)))

    def _jump(self, _host: Host) -> None:
        self.wall += self.random.choice((-500.0, 5.0))

    def _fill(self, host: Host) -> None:
        host.disk.write_error = self.random.choice((28, 5))

    def _fail_sync(self, host: Host) -> None:
        host.disk.sync_error = 5

    def _checkpoint(self, host: Host) -> None:
        if host.core is not None:
            host.core.durable.upkeep.checkpoint()

    def steps(self, count: int) -> None:
        """Let so many things happen."""
        random, hosts = self.random, list(self.hosts.values())
        for happening in random.choices(list(self.happenings), list(self.happenings.values()), k=count):
            host = random.choice(hosts)
            happening(host)
            for each in hosts:
                if each.core is None and random.random() < 0.25:
                    each.start()
            if random.random() < 0.2:
                host.disk.write_error = 0
            self.look()

    def heal(self) -> None:
        """Disks and wires are well, some brokers are started again, and everybody gets what waits."""
        for host in self.hosts.values():
            host.disk.heal()
            if host.core is not None and (host.core.durable.store.failure or self.random.random() < 0.5):
                host.die()
            if host.core is None:
                host.start()
            assert host.core is not None
        for _ in range(400):
            self.tick(0.5)
            self.exhaust()
            for client in self.subscribers.values():
                client.take_all(self.auditor)
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
        return published and self.all_live() and not any(self.waiting().values())

    def check(self) -> None:
        wants = {name: value for name, (_, value) in self.places.items()}
        self.auditor.check(wants, self.dropped, ordered=self.shape.ordered)


def simulate(seed: int, shape: str, steps: int = 400, *, check_every: int = 1) -> World:
    """One run."""
    try:
        world = World(seed, shape, check_every=check_every)
        world.steps(steps)
        world.heal()
        world.check()
    except (AssertionError, ContradaError) as error:
        raise AssertionError(f"{shape}, seed {seed}: {error}") from error
    return world
