"""A broker, its clients and its disk in virtual time: a seed decides what happens, and an auditor what must hold.

Both ends are the product's own state machines: the broker's core with a real journal on a simulated disk, and the
engine that both clients drive. Between them is a network that loses everything under way when one end dies. What a
seed decides: who publishes what, who takes and acknowledges, when the disk gets to work, at which of its operations the
broker is killed or the power is cut, when the disk is full or its syncs fail, when a subscriber is killed, how the
clock jumps.

At the end the disk is well, everybody comes back, and what waits is delivered. Then (`Auditor`):

    acknowledged ⊆ delivered    to every durable subscription that was confirmed before and matches
    no phantoms                 what is delivered was published, as it is
    order                       of one publisher at one subscription: that in which it was published
    one id                      however often a notification is delivered, and the id that its publisher was told
    drops = counted             what a subscription with limits did not get, the broker says it has dropped
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgpack

from contrada.broker.core.core import Core
from contrada.broker.core.ports import Codec
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.messages import Keep
from contrada.broker.protocol.wire import Full, Role
from contrada.broker.sessions.session import Sent
from contrada.broker.sessions.sessions import Identity
from contrada.client.engine.actions import Connect, Hangup, Send
from contrada.client.engine.core import Core as ClientCore
from contrada.client.engine.kept_requests import Stage
from contrada.client.engine.states import Input, Phase
from contrada.client.options import Options
from contrada.errors import ContradaError, Refused
from contrada.forwarding.journal.journal import Journal
from tests.broker.table_top import equals
from tests.forwarding.journal.simulated_disk import Crash, SimulatedDisk
from tests.naive.delivery import NaiveTable, read_filter, read_notification

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA = Path("/data/journal")
EVERYONE = Identity("", frozenset(Role))
VALUES = 3


class Auditor:
    """What was promised, and what was done."""

    def __init__(self) -> None:
        self.published: dict[int, tuple[str, int]] = {}  # x: publisher and value
        self.owed: dict[int, set[str]] = {}  # x: the subscriptions that were confirmed when it was published
        self.ids: dict[int, Any] = {}  # x: what its publisher was told, when it was acknowledged
        self.delivered: dict[str, list[tuple[int, Any]]] = defaultdict(list)
        self.refused: set[int] = set()

    def hear(self, publishers: Iterable[SimClient]) -> None:
        """Publishers hear what became of what they published."""
        for publisher in publishers:
            for x, submission in list(publisher.submissions.items()):
                if submission.done:
                    del publisher.submissions[x]
                    if submission.error is None:
                        self.ids[x] = submission.ids[0]
                    elif isinstance(submission.error, Refused):
                        self.refused.add(x)

    def check(self, wants: dict[str, int], dropped: dict[str, int], *, ordered: bool = True) -> None:
        for name, found in self.delivered.items():
            first: dict[int, Any] = {}
            for x, id in found:
                assert x in self.published, f"{name} got {x}, which nobody has published"
                assert self.published[x][1] == wants[name], f"{name} got {x}, which it does not match"
                assert first.setdefault(x, id) == id, f"{name} got {x} under two ids"
                assert self.ids.get(x, id) == id, f"{name} got {x} as {id}, acknowledged as {self.ids[x]}"
            by_publisher: dict[str, list[int]] = defaultdict(list)
            for x in first:
                by_publisher[self.published[x][0]].append(x)
            for publisher, order in by_publisher.items():
                assert not ordered or order == sorted(order), (
                    f"{name} got what {publisher} published in another order: {order}"
                )
        for name, value in wants.items():
            got = {x for x, _ in self.delivered[name]}
            missing = [x for x in self.ids if self.published[x][1] == value and name in self.owed[x] and x not in got]
            assert len(missing) <= dropped[name], f"{name} never got {missing}; {dropped[name]} were counted as dropped"


class SimClient:
    """The engine of a client, and its connection."""

    def __init__(self, world: Any, name: str) -> None:
        self.world = world
        self.name = name
        options = Options(name=name, backoff=0.1, backoff_max=1.0, attempt_timeout=2.0, connect_timeout=1e6)
        self.core = ClientCore(options, random=Random(world.random.random()))
        self.connection = b""
        self.inbox: Any = None  # of a subscriber
        self.submissions: dict[int, Any] = {}
        self.core.start(world.now)
        self.perform()

    def perform(self) -> None:
        while self.core.has_actions:
            for action in self.core.take_actions():
                if isinstance(action, Connect):
                    self.world.connections += 1
                    self.connection = b"%s-%d" % (self.name.encode(), self.world.connections)
                    self.world.clients[self.connection] = self
                elif isinstance(action, Send):
                    self.world.under_way.append((self.connection, action.frames))
                elif isinstance(action, Hangup):
                    self.world.clients.pop(self.connection, None)
        self.core.take_changed()

    def hear(self, frames: list[bytes]) -> None:
        self.core.receive(frames, self.world.now)
        self.perform()

    def cut(self) -> None:
        self.core.failed(Input.CUT, "the broker is gone", self.world.now)
        self.perform()

    def take(self, auditor: Auditor, acknowledged: float) -> None:
        """A subscriber takes what has come; what it acknowledges it is done with."""
        random = self.world.random
        while self.inbox.buffer:
            notification = self.core.take(self.inbox)
            auditor.delivered[self.name].append((msgpack.unpackb(notification._body)["n"], notification.id))
            if random.random() < acknowledged:
                self.core.acknowledge(self.inbox, notification.position, run=random.random() < 0.3)
        self.core.flush()
        self.perform()

    def tick(self) -> None:
        self.core.tick(self.world.now)
        self.core.flush()
        self.perform()


class World:
    """Everything, and time."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.now = 0.0
        self.wall = 1_800_000_000.0
        self.disk = SimulatedDisk(random)
        self.auditor = Auditor()
        self.clients: dict[bytes, SimClient] = {}
        self.connections = 0
        self.under_way: list[tuple[bytes, Any]] = []
        self.jobs: list[Any] = []
        self.broker: Core | None = None
        self.crashes = 0
        self.x = 0
        self.wants = {f"s{number}": number % VALUES for number in range(3)}
        self.keeps = {name: Keep() for name in self.wants}
        self.keeps["s2"] = Keep(notifications=4, when_notifications=Full.DROP_OLDEST)
        self.dropped = dict.fromkeys(self.wants, 0)
        self.start()
        self.publishers = [SimClient(self, f"p{number}") for number in range(2)]
        self.subscribers = {name: self.subscriber(name) for name in self.wants}

    # -- the broker --------------------------------------------------------------------------------------

    def start(self) -> None:
        try:
            journal = Journal.open(DATA, disk=self.disk, file_bytes=2000, clock=lambda: int(self.wall * 1e9))
            settings = Settings(data="/data", data_bytes=4000, data_seconds=30, heartbeat=2.0, timeout=10.0)
            codec = Codec(read_notification, read_filter)
            self.broker = Core(
                settings,
                NaiveTable(),
                codec,
                lambda _user: EVERYONE,
                id="b-1",
                first_sequence=int(self.wall * 1e6),
                now=self.now,
            )
            self.broker.durable.open(journal, lambda: self.wall)
            self.broker.durable.store.beside = lambda job, done: self.jobs.append((job, done))
        except Crash:
            self.die()
        except ContradaError:  # the disk does not take it: somebody sees to the disk
            self.broker = None
            self.disk.kill()

    def die(self) -> None:
        """The process is gone, or everything that the disk did not have yet."""
        self.crashes += 1
        self.broker = None
        self.jobs.clear()
        self.under_way.clear()
        if self.random.random() < 0.5:
            self.disk.kill()
        else:
            self.disk.cut_power()
        for client in list(self.clients.values()):
            client.cut()

    def guarded(self, function: Any, *arguments: Any) -> None:
        """Do something that touches the disk."""
        try:
            function(*arguments)
        except Crash:
            self.die()

    def turn(self) -> None:
        if self.broker is None:
            return
        under_way, self.under_way = self.under_way, []
        for connection, frames in under_way:
            if connection in self.clients:
                self.broker.receive(connection, None, frames, self.now)
        self.broker.turn(self.now)
        self.broker.flush(self.send)
        self.broker._check()
        for name in self.wants:
            subscription = self.broker.durable._by_name.get(name)
            if subscription is not None:
                self.dropped[name] = max(self.dropped[name], subscription.dropped)

    def send(self, connection: bytes, frames: Any) -> Sent:
        client = self.clients.get(connection)
        if client is None:
            return Sent.GONE
        client.hear(frames)
        return Sent.OK

    def write(self) -> None:
        """The disk does one of the things that it was asked to."""
        if self.jobs and self.broker is not None:
            job, done = self.jobs.pop(0)
            job()
            done()

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds
        for client in [*self.publishers, *self.subscribers.values()]:
            client.tick()
        if self.broker is not None:
            self.broker.tick(self.now)

    # -- clients -----------------------------------------------------------------------------------------

    def subscriber(self, name: str) -> SimClient:
        client = SimClient(self, name)
        since = "all" if name == "s1" else None  # it may come late: then it gets what was before, too
        client.inbox = client.core.subscribe_durably(
            equals("a", self.wants[name]), 8, name, since, self.keeps[name], auto=False
        )
        client.perform()
        return client

    def publish(self, publisher: SimClient) -> None:
        if not publisher.core.outbox.has_room or publisher.core.phase is Phase.CLOSED:
            return
        self.x += 1
        value = self.random.randrange(VALUES)
        self.auditor.published[self.x] = publisher.name, value
        live = {name for name, each in self.subscribers.items() if each.inbox.stage is Stage.LIVE}
        self.confirmed = getattr(self, "confirmed", set()) | live
        self.auditor.owed[self.x] = set(self.confirmed)
        key = f"key-{self.x}" if self.random.random() < 0.8 else ""
        content = msgpack.packb({"a": value, "n": self.x})
        retain = self.random.choice(("", "", "", "north", "south"))
        publisher.submissions[self.x] = publisher.core.publish([content], durable=True, key=key, retain=retain)
        publisher.perform()

    def look(self) -> None:
        self.auditor.hear(self.publishers)
        for name, client in list(self.subscribers.items()):
            if client.inbox.stage is Stage.ENDED:  # the disk did not take it: try again
                assert client.inbox.error.code == "storage", client.inbox.error
                self.kill_subscriber(name)

    def take(self, name: str) -> None:
        self.subscribers[name].take(self.auditor, 0.9)

    def kill_subscriber(self, name: str) -> None:
        client = self.subscribers[name]
        self.clients.pop(client.connection, None)
        self.subscribers[name] = self.subscriber(name)

    # -- what happens ------------------------------------------------------------------------------------

    def step(self) -> None:
        random = self.random
        choice = random.random()
        if choice < 0.30:
            self.publish(random.choice(self.publishers))
        elif choice < 0.55:
            self.turn()
        elif choice < 0.72:
            self.guarded(self.write)
        elif choice < 0.86:
            self.take(random.choice(list(self.wants)))
        elif choice < 0.94:
            self.tick(random.choice((0.1, 0.5, 3.0)))
        elif choice < 0.955:
            self.disk.crash_in = random.randrange(12)
        elif choice < 0.965:
            self.die()
        elif choice < 0.975:
            self.kill_subscriber(random.choice(list(self.wants)))
        elif choice < 0.98:
            self.wall += random.choice((-500.0, 5.0))
        elif choice < 0.985:
            self.disk.write_error = random.choice((28, 5))
        elif choice < 0.988:
            self.disk.sync_error = 5
        elif self.broker is not None and random.random() < 0.5:
            self.broker.durable.upkeep.checkpoint()
        if self.broker is None and random.random() < 0.3:
            self.start()
        if random.random() < 0.2:
            self.disk.write_error = 0
        self.look()

    def heal(self) -> None:
        """The disk is well, and everybody gets what waits."""
        if self.broker is not None:
            self.die()
        self.disk.kill()
        self.start()
        assert self.broker is not None
        for _ in range(400):
            self.tick(0.5)
            for _ in range(4):
                self.turn()
                while self.jobs:
                    self.write()
                    self.turn()
                for name in self.wants:
                    client = self.subscribers[name]
                    while client.inbox.buffer:
                        notification = client.core.take(client.inbox)
                        x = msgpack.unpackb(notification._body)["n"]
                        self.auditor.delivered[name].append((x, notification.id))
                        client.core.acknowledge(client.inbox, notification.position, run=False)
                    for position in list(client.inbox.unacknowledged):
                        client.core.acknowledge(client.inbox, position, run=False)
                    client.core.flush()
                    client.perform()
                self.look()
            if self.at_rest():
                return
        raise AssertionError("something never came to its end")

    def at_rest(self) -> bool:
        assert self.broker is not None
        published = all(not publisher.submissions for publisher in self.publishers)
        live = all(each.inbox.stage is Stage.LIVE for each in self.subscribers.values())
        waiting = sum(len(each.queue) for each in self.broker.durable.state.by_number.values())
        return published and live and not waiting and not self.under_way and self.broker.durable.idle

    def check(self) -> None:
        self.auditor.check(self.wants, self.dropped)


def simulate(seed: int, steps: int = 400) -> World:
    """One run."""
    world = World(seed)
    try:
        for _ in range(steps):
            world.step()
        world.heal()
        world.check()
    except (AssertionError, ContradaError) as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    return world
