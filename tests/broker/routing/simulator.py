"""A deterministic overlay: virtual clock, seeded delays, lossy faults, and the real `Router` at every broker.

A link carries messages in order, each after a random delay. When it is cut, what is under way is lost, and each end
notices after a delay of its own; until then it goes on sending into the void. A healed link comes up at both ends
after a handshake. A broker that crashes loses everything; its clients come back to it and subscribe again.
Deliveries are compared with a central matcher that evaluates every filter by its definition. Filters are encoded,
decoded, and compared with a notification once for the whole overlay, since their meaning is the same everywhere.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contrada.broker.core.ports import EncodedFilter
from contrada.broker.protocol.messages import NotificationId
from contrada.broker.protocol.peer_messages import Flow
from contrada.broker.routing.actions import Install, Send, StandDown
from contrada.broker.routing.router import Router
from contrada.forwarding.codec.msgpack import decode_filter, encode_filter

if TYPE_CHECKING:
    from collections.abc import Callable

DETECTION = 3.0


@dataclass
class SimulatedBroker:
    router: Router
    interests: dict[str, dict[bytes, object]] = field(default_factory=lambda: defaultdict(dict))
    subscriptions: dict[int, object] = field(default_factory=dict)
    advertised: list[object] = field(default_factory=list)
    published: itertools.count = field(default_factory=itertools.count)


@dataclass
class Wire:
    """One link, its two ends in order. `session` counts its lives; messages of an earlier one are lost.

    `joined` is the life that each end is in: one that has not noticed a new life yet speaks into the old one.
    """

    ends: tuple[str, str]
    up: bool = False
    session: int = 0
    joined: dict[str, int] = field(default_factory=dict)
    ready_at: dict[str, float] = field(default_factory=dict)  # when the last message to an end arrives


class Simulator:
    def __init__(self, seed: int, *, advertisements: bool = False, stale_after: float = 60.0) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.advertisements = advertisements
        self.stale_after = stale_after
        self.brokers: dict[str, SimulatedBroker] = {}
        self.wires: dict[frozenset[str], Wire] = {}
        self.deliveries: Counter[tuple[int, NotificationId]] = Counter()
        self.crossings: Counter[NotificationId] = Counter()
        self.messages: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()  # by type of message
        self.stood_down: list[str] = []
        self._ends: dict[tuple[str, str], tuple[str, Wire]] = {}  # (a broker, a neighbour's id) to the neighbour
        self._encoded: dict[object, bytes] = {}
        self._decoded: dict[bytes, object] = {}
        self._covers: dict[tuple[int, int], bool] = {}
        self._lives: Counter[str] = Counter()
        self._going_on: set[Router] = set()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._subscription_ids = itertools.count()

    # Building and breaking

    def add_broker(self, name: str, id: str = "") -> None:
        """Start a broker; `id` is its name, unless somebody made a mistake."""
        router = Router(
            id or name,
            decode=self._decode,
            incarnation=1 + len(self.brokers) + 1000 * self._lives[name],
            advertisements=self.advertisements,
            stale_after=self.stale_after,
        )
        self.brokers[name] = SimulatedBroker(router)

    def _encode(self, f: object) -> bytes:
        encoded = self._encoded.get(f)
        if encoded is None:
            encoded = self._encoded[f] = encode_filter(f)
            self._decoded[encoded] = decode_filter(encoded)
        return encoded

    def _encoded_filter(self, f: object) -> EncodedFilter:
        return EncodedFilter(f, self._encode(f))

    def _decode(self, encoded: bytes) -> object:
        return self._decoded[encoded]

    def _matches(self, f: object, notification: dict, memory: dict[int, bool]) -> bool:
        known = memory.get(id(f))
        if known is None:
            known = memory[id(f)] = f.matches(notification)
        return known

    def _is_covered(self, g: object, f: object) -> bool:
        known = self._covers.get((id(g), id(f)))
        if known is None:
            known = self._covers[id(g), id(f)] = g.covers(f)
        return known

    def connect(self, a: str, b: str) -> None:
        wire = self.wires.setdefault(frozenset((a, b)), Wire((a, b)))
        assert not wire.up
        wire.up = True
        for end, other in (wire.ends, wire.ends[::-1]):
            self._ends[end, self.brokers[other].router.broker] = other, wire
        wire.session += 1
        session = wire.session
        for end, other in (wire.ends, wire.ends[::-1]):
            at = self.now + self.random.uniform(0.0, 1.0)
            wire.ready_at[end] = at
            self._at(at, lambda end=end, other=other: self._up(wire, session, end, other))

    def cut(self, a: str, b: str) -> None:
        wire = self.wires[frozenset((a, b))]
        wire.up = False
        session = wire.session
        for end, other in (wire.ends, wire.ends[::-1]):
            at = self.now + self.random.uniform(0.0, DETECTION)
            self._at(at, lambda end=end, other=other: self._down(wire, session, end, other))

    def crash(self, name: str) -> None:
        """Lose a broker with its state; its links go with it. `restart` brings it back, under the same name."""
        for key, wire in self.wires.items():
            if name in key and wire.up:
                self.cut(*wire.ends)
        self._lives[name] += 1
        old = self.brokers[name]
        self.add_broker(name)
        self.brokers[name].published = old.published  # ids continue, as the node's do
        for id, f in old.subscriptions.items():
            self._subscribe(name, id, f)
        for f in old.advertised:
            self.advertise(name, f)

    def _up(self, wire: Wire, session: int, end: str, other: str) -> None:
        if wire.up and wire.session == session:
            wire.joined[end] = session
            self._act(end, self.brokers[end].router.link_up(self.brokers[other].router.broker))

    def _down(self, wire: Wire, session: int, end: str, other: str) -> None:
        if wire.session == session:  # a link that is up again resets both ends by itself
            self._act(end, self.brokers[end].router.link_down(self.brokers[other].router.broker, self.now))

    # Clients

    def subscribe(self, name: str, f: object) -> int:
        id = next(self._subscription_ids)
        self._subscribe(name, id, f)
        return id

    def _subscribe(self, name: str, id: int, f: object) -> None:
        broker = self.brokers[name]
        f = self._decode(self._encode(f))
        broker.subscriptions[id] = f
        self._act(name, broker.router.subscribe(self._encoded_filter(f)))

    def unsubscribe(self, name: str, id: int) -> None:
        broker = self.brokers[name]
        self._act(name, broker.router.unsubscribe(self._encoded_filter(broker.subscriptions.pop(id)).key))

    def advertise(self, name: str, f: object) -> None:
        self.brokers[name].advertised.append(f)
        self._act(name, self.brokers[name].router.advertise(self._encoded_filter(f)))

    def publish(self, name: str, notification: dict) -> NotificationId:
        id = NotificationId(name, next(self.brokers[name].published))
        self._handle(name, id, 0, notification, None, {})
        return id

    # The run

    def run(self) -> None:
        """Until nothing is under way and every fault has been noticed."""
        while self._events:
            self.now, _, event = heapq.heappop(self._events)
            event()

    def run_for(self, seconds: float) -> None:
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = until

    def tick(self) -> None:
        for name, broker in self.brokers.items():
            self._act(name, broker.router.tick(self.now))

    def _at(self, when: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), event))

    def _act(self, name: str, actions: list) -> None:
        for action in actions:
            if isinstance(action, Send):
                kind = type(action.message).__name__
                self.messages[kind] += 1
                self._send(name, action.neighbour, kind, lambda other, m=action.message: self._hear(other, name, m))
            elif isinstance(action, StandDown):
                self.stood_down.append(name)
                for key, wire in self.wires.items():
                    if name in key and wire.up:
                        self.cut(*wire.ends)
            elif isinstance(action, Install):
                self.brokers[name].interests[action.neighbour][action.key] = action.filter
            else:
                del self.brokers[name].interests[action.neighbour][action.key]
        router = self.brokers[name].router
        if router.busy and router not in self._going_on:
            self._going_on.add(router)
            self._at(self.now + self.random.expovariate(100.0), lambda: self._go_on(name, router))

    def _go_on(self, name: str, router: Router) -> None:
        self._going_on.discard(router)
        if self.brokers[name].router is router:
            self._act(name, router.go_on())

    def _hear(self, name: str, source: str, message: object) -> None:
        self._act(name, self.brokers[name].router.receive(self.brokers[source].router.broker, message))

    def _send(self, source: str, neighbour: str, kind: str, arrive: Callable[[str], None]) -> None:
        target, wire = self._ends[source, neighbour]
        if not wire.up or wire.joined.get(source) != wire.session:
            self.lost[kind] += 1
            return
        at = max(wire.ready_at[target], self.now + self.random.expovariate(10.0))
        wire.ready_at[target] = at
        session = wire.session
        lives = self._lives[source], self._lives[target]

        def arrived() -> None:
            if wire.up and wire.session == session and lives == (self._lives[source], self._lives[target]):
                arrive(target)
            else:
                self.lost[kind] += 1

        self._at(at, arrived)

    def _handle(
        self,
        name: str,
        sent: NotificationId,
        hops: int,
        notification: dict,
        source: str | None,
        memory: dict[int, bool],
    ) -> None:
        broker = self.brokers[name]
        if broker.router.unseen(sent.broker, (sent.sequence,)) is not None or hops > broker.router.hop_limit:
            return
        for id, f in broker.subscriptions.items():
            if self._matches(f, notification, memory):
                self.deliveries[id, sent] += 1
        matched = [
            other
            for other, filters in broker.interests.items()
            if any(self._matches(f, notification, memory) for f in filters.values())
        ]
        for other in sorted(each for each in matched if each in broker.router.tree_links and each != source):
            self.crossings[sent] += 1
            self._send(name, other, "Forward", lambda to: self._handle(to, sent, hops + 1, notification, name, memory))

    # What should be

    def reachable(self, name: str) -> set[str]:
        links: dict[str, list[str]] = defaultdict(list)
        for wire in self.wires.values():
            if wire.up:
                for end, other in (wire.ends, wire.ends[::-1]):
                    links[end].append(other)
        seen, waiting = {name}, [name]
        while waiting:
            for other in links[waiting.pop()]:
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return seen

    def expected(self, origin: str, notification: dict) -> set[int]:
        """Subscriptions that a central matcher would serve."""
        memory: dict[int, bool] = {}
        return {
            id
            for name in self.reachable(origin)
            for id, f in self.brokers[name].subscriptions.items()
            if self._matches(f, notification, memory)
        }

    def fewest_crossings(self, origin: str, notification: dict) -> int:
        """Links of the tree in use between the origin and the brokers that have somebody to serve."""
        tree = self.brokers[origin].router.topology.tree()
        memory: dict[int, bool] = {}

        def needed(name: str, parent: str | None) -> int:
            below = sum(needed(other, name) for other in tree[name] if other != parent)
            wanted = any(self._matches(f, notification, memory) for f in self.brokers[name].subscriptions.values())
            return below + (parent is not None and bool(below or wanted))

        return needed(origin, None)

    def check_quiet(self) -> None:
        """The routing tables are what a fresh computation from the current subscriptions would give."""
        assert not self._events
        trees: dict[str, dict[str, frozenset[str]]] = {}
        for name, broker in self.brokers.items():
            tree = trees[name] = broker.router.topology.tree()
            first = min(tree)
            if first in trees and tree == trees[first]:
                trees[name] = trees[first]
            else:
                assert set(tree) == self.reachable(name)
                assert sum(map(len, tree.values())) == 2 * (len(tree) - 1), "a tree has one link fewer than brokers"
        for name, broker in self.brokers.items():
            router, tree = broker.router, trees[name]
            router._check()
            for other in router.tree_links:
                assert trees[other] == tree
                for flow in Flow:
                    sent, held = (
                        router.flow_state(other, flow).sent,
                        self.brokers[other].router.flow_state(name, flow).asked,
                    )
                    assert set(sent) == set(held)
                installed = self.brokers[other].interests[name]
                assert set(installed) == set(self.brokers[other].router.flow_state(name).asked)
                if not self.advertisements:
                    self._check_interest(installed, self._behind(tree, name, other))

    def _check_interest(self, installed: dict, behind: set[str]) -> None:
        wanted = [f for name in behind for f in self.brokers[name].subscriptions.values()]
        assert set(installed.values()) <= set(wanted)
        for f in wanted:
            assert any(self._is_covered(g, f) for g in installed.values()), f"nothing installed covers {f}"

    def _behind(self, tree: dict[str, frozenset[str]], name: str, seen_from: str) -> set[str]:
        return {name}.union(*(self._behind(tree, other, name) for other in tree[name] if other != seen_from))
