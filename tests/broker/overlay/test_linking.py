"""Whole brokers without sockets, linked by queues: links come and go, and notifications cross them."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from typing import Any

import pytest

from contrada.broker.core import Core, Identity
from contrada.broker.frames import encode
from contrada.broker.messages import (
    Ack,
    Advertise,
    Bye,
    Credit,
    Deliver,
    Error,
    Grant,
    Hello,
    Link,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from contrada.broker.overlay.frames import decode_peer, encode_peer
from contrada.broker.overlay.linking import WINDOW
from contrada.broker.overlay.messages import Change, Flow, Forward, LinkState, LinkStates, Run
from contrada.broker.session import Sent
from contrada.broker.settings import Settings
from contrada.broker.switchboard import Codec
from contrada.broker.wire import Code, Policy, Role
from contrada.errors import ContradaError
from contrada.forwarding.codec import decode_filter, decode_notification, encode_filter, encode_notification
from contrada.forwarding.filter import as_filters
from tests.client.reference import ReferenceTable


class Overlay:
    """Brokers by id. A dialled connection is a pair of queues; a client is a list of what it heard."""

    def __init__(self) -> None:
        self.now = 0.0
        self.cores: dict[str, Core] = {}
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
        core = Core(
            options,
            ReferenceTable(),
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

            def close(self, connection: bytes) -> None:
                far = overlay.wires.pop((name, connection), None)
                if far is not None:
                    overlay.wires.pop(far, None)

        core.transport = Lines()
        self.cores[name] = core
        return core

    def kill(self, name: str) -> None:
        """Gone without a word: what it dialled is noticed by a heartbeat, who dialled it notices at once."""
        del self.cores[name]
        for near, far in list(self.wires.items()):
            if near[0] == name:
                del self.wires[near], self.wires[far]
                if far[0] in self.cores and self.cores[far[0]].is_dialled(far[1]):
                    self.cores[far[0]].disconnected(far[1], "killed", self.now)

    def run(self, seconds: float = 1.0) -> None:
        """Let time pass, in steps of a tick."""
        for _ in range(int(seconds / 0.25)):
            self.now += 0.25
            for core in self.cores.values():
                core.tick(self.now)
            self.settle()

    def settle(self) -> None:
        moving = True
        while moving:
            moving = False
            for name, core in list(self.cores.items()):
                core.turn(self.now)
                core.flush(lambda connection, frames, name=name: self._send(name, connection, frames))
                core._check()
                core.router._check()
            for (name, connection), queue in list(self.queues.items()):
                while queue and name in self.cores:
                    self.cores[name].receive(connection, None, queue.popleft(), self.now)
                    moving = True

    def _send(self, name: str, connection: bytes, frames: list[bytes]) -> Sent:
        if (name, connection) in self.full:
            return Sent.FULL
        if connection.startswith(b"client"):
            self.heard[name, connection].append(decode_peer(frames))
        elif (name, connection) in self.wires:
            self.queues[self.wires[name, connection]].append(list(frames))
        elif not self.cores[name].is_dialled(connection):
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
        from contrada.forwarding.language import parse

        encoded = tuple(encode_filter(f) for f in as_filters(parse(text)))
        defaults = {"policy": Policy.BLOCK, "credit": 10**6, "queue": 0}
        self.say(name, client, Subscribe(100 + number, number, encoded, **{**defaults, **options}))

    def advertise(self, name: str, text: str, number: int = 1, client: bytes = b"client") -> None:
        from contrada.forwarding.language import parse

        encoded = tuple(encode_filter(f) for f in as_filters(parse(text)))
        self.say(name, client, Advertise(300 + number, number, encoded))

    def publish(self, name: str, *notifications: dict, client: bytes = b"client", request: int = 7) -> None:
        self.say(name, client, Publish(request, tuple(map(encode_notification, notifications))))

    def delivered(self, name: str, client: bytes = b"client") -> list[Any]:
        """The values of x that a client got since it was last asked."""
        heard = self.heard.pop((name, client), [])
        return [decode_notification(e.body)["x"] for m in heard if isinstance(m, Deliver) for e in m.entries]

    def links(self) -> set[tuple[str, str]]:
        return {(name, other) for name, core in self.cores.items() for other in core.neighbours}


def line(*names: str, **settings: Any) -> Overlay:
    overlay = Overlay()
    for before, name in zip((None, *names), names, strict=False):
        overlay.add(name, *([before] if before else []), **settings)
        overlay.client(name)
    overlay.run()
    return overlay


def test_a_notification_crosses_a_line_of_three_and_comes_once():
    overlay = line("a", "b", "c")
    overlay.subscribe("a", "x > 5")
    overlay.subscribe("c", "x > 3")
    overlay.publish("a", {"x": 4}, {"x": 6}, {"x": 1})
    assert overlay.delivered("a") == [6]
    assert overlay.delivered("c") == [4, 6]
    overlay.publish("c", {"x": 4}, {"x": 6})
    assert overlay.delivered("a") == [6]
    assert overlay.delivered("c") == [4, 6]
    assert overlay.cores["b"].interests["a"].totals["received"] == 2, "nobody behind wants the 1"
    overlay.say("a", b"client", Unsubscribe(200, 1))
    overlay.publish("c", {"x": 6})
    assert overlay.cores["b"].interests["c"].totals["received"] == 1
    assert not overlay.delivered("a")


def test_unsubscribing_a_cover_brings_back_what_it_hid():
    overlay = line("a", "b", "c")
    overlay.subscribe("c", "x > 0", 1)
    overlay.subscribe("c", "x > 5", 2)
    overlay.subscribe("b", "y > 5")
    assert sorted(str(f) for _, f in overlay.cores["a"].table.filters.values()) == ["x > 0", "y > 5"]
    overlay.say("c", b"client", Unsubscribe(200, 1))
    assert sorted(str(f) for _, f in overlay.cores["a"].table.filters.values()) == ["x > 5", "y > 5"]
    overlay.publish("a", {"x": 6}, {"x": 3})
    assert overlay.delivered("c") == [6]


def test_subscriptions_from_before_the_first_link_are_spread():
    overlay = Overlay()
    overlay.add("a")
    overlay.client("a")
    overlay.subscribe("a", "x > 5 or x < 0")
    overlay.add("b", "a")
    overlay.client("b")
    overlay.run()
    overlay.publish("b", {"x": 6}, {"x": 3}, {"x": -1})
    assert overlay.delivered("a") == [6, -1]


def test_brokers_that_dial_each_other_end_with_one_link():
    overlay = Overlay()
    overlay.add("a", "b")
    overlay.add("b", "a")
    for name in "ab":
        overlay.client(name)
    overlay.run(20.0)
    assert overlay.links() == {("a", "b"), ("b", "a")}
    assert len(overlay.wires) == 2
    assert sum(core.counters["sessions_opened"] for core in overlay.cores.values()) < 8, "and do not go on trying"
    overlay.subscribe("b", "x = 1")
    overlay.publish("a", {"x": 1})
    assert overlay.delivered("b") == [1]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_whoever_comes_first_of_two_that_dial_each_other(order):
    overlay = Overlay()
    for name in order:
        overlay.add(name, *set("ab") - {name})
        overlay.run(3.0)
    overlay.run(10.0)
    assert overlay.links() == {("a", "b"), ("b", "a")}
    assert len(overlay.wires) == 2


def test_a_ring_reroutes_around_a_killed_broker_and_takes_it_back():
    overlay = Overlay()
    names = "abcde"
    for i, name in enumerate(names):
        overlay.add(name, names[i - 1])
        overlay.client(name)
    overlay.run(6.0)
    assert len(overlay.links()) == 10
    overlay.subscribe("c", "x > 0")
    overlay.publish("a", {"x": 1})
    assert overlay.delivered("c") == [1]
    overlay.kill("b")
    overlay.run(4.0)
    overlay.publish("a", {"x": 2})
    assert overlay.delivered("c") == [2]
    overlay.add("b", "a")
    overlay.client("b")
    overlay.run(8.0)
    assert len(overlay.links()) == 10
    overlay.publish("b", {"x": 3})
    overlay.publish("a", {"x": 4})
    assert overlay.delivered("c") == [3, 4]


def test_a_silent_neighbour_is_lost_after_three_heartbeats_and_found_again():
    overlay = line("a", "b")
    wires = dict(overlay.wires)
    overlay.wires.clear()  # packets vanish, nothing is told
    overlay.dark = {"a"}
    for near in wires:
        overlay.wires[near] = ("nowhere", b"")
    overlay.run(4.0)
    assert overlay.links() == set()
    overlay.wires.clear()
    overlay.dark.clear()
    overlay.run(12.0)
    assert len(overlay.links()) == 2


def test_a_link_that_comes_and_goes_is_redialled_less_and_less_often():
    overlay = line("a", "b")
    (dial,) = overlay.cores["b"].dials
    ups = []
    for _ in range(60):
        if "a" in overlay.cores["b"].neighbours:
            ups.append(overlay.now)
            (link,) = overlay.cores["a"].neighbours.values()
            overlay.cores["a"]._close(link.session, Bye("go away"))
        overlay.run(1.0)
    assert dial.failures > 4
    assert len(ups) < 25
    overlay.run(20.0)
    assert overlay.links() == {("a", "b"), ("b", "a")}
    overlay.kill("a")
    assert dial.failures == 1, "it had lasted"


def test_what_a_lost_link_may_have_lost_is_counted():
    overlay = line("a", "b")
    overlay.subscribe("b", "x >= 0")
    (link,) = overlay.cores["a"].neighbours.values()
    overlay.publish("a", *({"x": i} for i in range(500)))
    overlay.full.add(("a", link.session.connection))
    for start in range(500, 1500, 500):
        overlay.publish("a", *({"x": start + i} for i in range(500)), request=start)
    overlay.kill("b")
    overlay.run(4.0)
    totals = overlay.cores["a"].interests["b"].totals
    assert totals["lost"] + totals["unconfirmed"] == 1500, "the neighbour had not given credit back yet"
    assert totals["lost"] >= 500


def test_a_topology_has_a_most(monkeypatch):
    monkeypatch.setattr("contrada.broker.overlay.topology.MOST_BROKERS", 50)
    overlay = line("a", "b")
    as_broker(overlay)
    lies = [LinkState(f"x{i}", 1, frozenset((f"x{i + 1}", "evil"))) for i in range(1000)]
    for start in range(0, 1000, 200):
        overlay.say("a", b"client", LinkStates(tuple(lies[start : start + 200])))
    assert len(overlay.cores["a"].router.topology.states) == 50
    assert len(overlay.cores["b"].router.topology.states) == 50
    overlay.subscribe("b", "x > 0")
    overlay.publish("b", {"x": 1})
    assert overlay.delivered("b") == [1]


def test_a_neighbour_that_reconnects_before_it_was_missed_is_forwarded_to():
    overlay = line("a", "b", "c")
    overlay.subscribe("b", "x > 0")
    overlay.subscribe("c", "x > 0")
    (dial,) = overlay.cores["b"].dials
    overlay.wires.pop(overlay.wires.pop(("b", dial.connection)))
    overlay.cores["b"].disconnected(dial.connection, "reset", overlay.now)
    overlay.run(1.0)
    assert overlay.cores["a"].interests["b"].totals["ups"] == 2
    overlay.publish("a", {"x": 1})
    assert overlay.delivered("b") == [1]
    assert overlay.delivered("c") == [1]
    overlay.subscribe("a", "x > 0")
    overlay.publish("c", {"x": 2})
    assert overlay.delivered("a") == [2]


def test_stale_interest_is_forgotten():
    overlay = line("a", "b", stale_after=20.0)
    overlay.subscribe("b", "x > 0")
    table = overlay.cores["a"].table
    assert len(table.filters) == 1
    overlay.kill("b")
    overlay.run(4.0)
    assert overlay.links() == set()
    assert len(table.filters) == 1, "it may come back soon"
    overlay.run(20.0)
    assert not table.filters
    overlay.publish("a", {"x": 1})


def test_a_blocking_subscriber_holds_back_a_publisher_two_brokers_away():
    overlay = line("a", "b", "c", queue=100)
    overlay.subscribe("c", "x >= 0", credit=0, queue=10)
    sent = 0
    while sent < 10 * WINDOW:
        heard = overlay.heard[("a", b"client")]
        if sent > 20 and not any(isinstance(m, Ack) and m.entries[-1].request == 1000 + sent - 500 for m in heard):
            break
        overlay.publish("a", *({"x": sent + i} for i in range(500)), request=1000 + sent)
        sent += 500
    assert sent <= 3 * WINDOW, "the publisher was never held back"
    while True:
        overlay.say("c", b"client", Credit((Grant(1, 1000),)))
        overlay.run(0.25)
        if _count(overlay, "c") == sent:
            break
    assert overlay.delivered("c") == list(range(sent))


def _count(overlay: Overlay, name: str) -> int:
    return sum(len(m.entries) for m in overlay.heard[name, b"client"] if isinstance(m, Deliver))


def test_a_link_that_takes_nothing_keeps_what_waits_for_it():
    overlay = line("a", "b")
    overlay.subscribe("b", "x >= 0")
    (connection,) = (c.session.connection for c in overlay.cores["a"].neighbours.values())
    overlay.full.add(("a", connection))
    for start in range(0, 1000, 100):
        overlay.publish("a", *({"x": start + i} for i in range(100)), request=1 + start)
    assert not overlay.delivered("b")
    overlay.full.clear()
    overlay.run(0.5)
    assert overlay.delivered("b") == list(range(1000))


def test_links_need_the_role_peer():
    overlay = Overlay()
    overlay.add("a", roles=frozenset((Role.PUBLISH, Role.SUBSCRIBE)))
    overlay.add("b", "a")
    overlay.run(5.0)
    assert overlay.links() == set()
    overlay.client("a")
    overlay.heard.clear()
    overlay.say("a", b"client", Link("evil", False))
    (refusal,) = overlay.heard["a", b"client"]
    assert (refusal.code, refusal.fatal) == (Code.UNAUTHORISED, False)
    overlay.say("a", b"client", one("x", 1, b""))
    assert overlay.heard["a", b"client"][-1].code == Code.BAD_FRAME


def test_a_broker_does_not_link_with_itself_or_its_namesake():
    overlay = Overlay()
    overlay.add("a", "a")
    overlay.run(5.0)
    assert overlay.links() == set()
    overlay.client("a")
    overlay.heard.clear()
    overlay.say("a", b"client", Link("a", False))
    assert overlay.heard["a", b"client"][-1].code == Code.DUPLICATE
    overlay.say("a", b"client", Link("b", True))
    assert overlay.heard["a", b"client"][-1].code == Code.VERSION


def test_of_two_namesakes_at_one_neighbour_the_later_is_linked(caplog):
    overlay = Overlay()
    overlay.add("n", stale_after=10.0)
    overlay.add("old", "n", id="x", first_sequence=1000, stale_after=10.0)
    overlay.run(2.0)
    overlay.add("new", "n", id="x", first_sequence=2000)
    overlay.run(20.0)
    assert {link.incarnation for link in overlay.cores["n"].neighbours.values()} == {2000}
    assert overlay.cores["new"].neighbours.keys() == {"n"}
    assert not overlay.cores["old"].neighbours
    assert "two brokers of one id" in caplog.text
    assert overlay.cores["n"].interests["x"].totals["ups"] == 2, "the link does not go back and forth"
    overlay.kill("new")
    overlay.run(30.0)
    assert "bad frame" not in caplog.text
    assert overlay.cores["old"].neighbours.keys() == {"n"}, "it finds its place when the other is gone"


def test_of_two_namesakes_far_apart_the_earlier_stands_down_and_comes_back(caplog):
    overlay = Overlay()
    overlay.add("m")
    overlay.add("n", "m")
    overlay.add("old", "m", id="x", first_sequence=1000, stale_after=20.0)
    overlay.run(2.0)
    overlay.add("new", "n", id="x", first_sequence=2000)
    overlay.run(6.0)
    assert not overlay.cores["old"].neighbours
    assert overlay.cores["new"].neighbours.keys() == {"n"}
    assert "two brokers of one id" in caplog.text
    assert sum(core.counters["received"] for core in overlay.cores.values()) < 500
    overlay.client("old")
    overlay.say("old", b"client", Link("z", False))
    assert overlay.heard["old", b"client"][-1].code == Code.DUPLICATE
    overlay.kill("new")
    overlay.run(120.0)
    assert overlay.cores["old"].neighbours.keys() == {"m"}


def one(origin: str, sequence: int, body: bytes, hops: int = 1) -> Forward:
    return Forward((Run(origin, "p", hops, (sequence,), (body,)),))


def as_broker(overlay: Overlay, name: str = "a") -> list:
    """A hostile broker, linked."""
    overlay.client(name)
    overlay.say(name, b"client", Link("evil", False))
    overlay.heard[name, b"client"].clear()
    return overlay.heard[name, b"client"]


def test_bad_filters_end_the_link_and_leave_nothing():
    overlay = Overlay()
    overlay.add("a")
    heard = as_broker(overlay)
    overlay.say("a", b"client", Change(Flow.SUBSCRIPTIONS, (b"junk",), ()))
    assert isinstance(heard[-1], Error)
    assert (heard[-1].code, heard[-1].fatal) == (Code.BAD_FILTER, True)
    assert overlay.links() == set()


def test_notifications_are_handled_once_and_not_beyond_the_hop_limit():
    overlay = Overlay()
    overlay.add("a", hop_limit=3)
    overlay.client("a", b"client-2")
    overlay.subscribe("a", "x exists", client=b"client-2")
    as_broker(overlay)
    body = encode_notification({"x": 1})
    overlay.heard[("a", b"client-2")].clear()
    for hops, origin in ((1, ("o", 1)), (1, ("o", 1)), (4, ("o", 2)), (3, ("o", 3)), (1, ("a", 9))):
        overlay.say("a", b"client", one(*origin, body, hops))
    overlay.say("a", b"client", one("o", 4, b"junk"))
    got = [e for m in overlay.heard[("a", b"client-2")] if isinstance(m, Deliver) for e in m.entries]
    assert [tuple(e.id) for e in got] == [("o", 1), ("o", 3)]
    totals = overlay.cores["a"].interests["evil"].totals
    assert {name: totals[name] for name in ("received", "duplicates", "expired", "invalid")} == {
        "received": 6,
        "duplicates": 2,
        "expired": 1,
        "invalid": 1,
    }


def test_of_a_run_only_the_bad_ones_are_left_out():
    overlay = Overlay()
    overlay.add("a")
    overlay.client("a", b"client-2")
    overlay.subscribe("a", "x exists", client=b"client-2")
    as_broker(overlay)
    good = [encode_notification({"x": x}) for x in range(4)]
    overlay.say("a", b"client", one("o", 2, good[2]))
    overlay.heard[("a", b"client-2")].clear()
    bodies = (good[1], good[2], b"junk", good[3], good[3])
    overlay.say("a", b"client", Forward((Run("o", "p", 1, (1, 2, 9, 3, 3), bodies),)))
    got = [e for m in overlay.heard[("a", b"client-2")] if isinstance(m, Deliver) for e in m.entries]
    assert [(tuple(e.id), e.body) for e in got] == [(("o", 1), good[1]), (("o", 3), good[3])]
    totals = overlay.cores["a"].interests["evil"].totals
    assert (totals["received"], totals["duplicates"], totals["invalid"]) == (6, 2, 1)


def test_forwards_beyond_the_window_end_the_link():
    overlay = Overlay()
    overlay.add("a")
    overlay.client("a", b"client-2")
    overlay.subscribe("a", "x exists", client=b"client-2", credit=0, queue=1)
    heard = as_broker(overlay)
    for start in range(0, WINDOW + 1000, 1000):
        body = encode_notification({"x": start})
        overlay.say("a", b"client", Forward((Run("o", "p", 1, tuple(range(start + 1, start + 1001)), (body,) * 1000),)))
    errors = [m for m in heard if isinstance(m, Error)]
    assert errors[0].code == Code.FLOW


# Advertisements


def shown(overlay: Overlay, name: str) -> list[str]:
    """The filters in a broker's table."""
    return sorted(str(f) for _, f in overlay.cores[name].table.filters.values())


def test_subscriptions_travel_only_towards_advertisers():
    overlay = line("a", "b", "c", advertisements=True)
    overlay.subscribe("a", "x > 5", 1)
    overlay.subscribe("a", "x < -5 and y > 5", 2)
    assert shown(overlay, "b") == []
    overlay.advertise("c", "x > 0")
    assert shown(overlay, "b") == ["x > 5"]
    assert shown(overlay, "c") == ["x > 5"]
    overlay.publish("c", {"x": 6}, {"x": 6, "y": 6})
    assert overlay.delivered("a") == [6, 6]
    overlay.subscribe("a", "x > 7", 3)
    overlay.subscribe("a", "x < 0", 4)
    assert shown(overlay, "c") == ["x > 5"], "one is covered, the other nobody advertises"
    overlay.say("c", b"client", Unadvertise(310, 1))
    assert shown(overlay, "b") == shown(overlay, "c") == []
    overlay.advertise("c", "y = 9", 2)
    assert shown(overlay, "c") == ["x < 0", "x > 5"], "what is advertised with a y may have any x"


def test_advertisements_end_with_their_session_and_wake_with_the_first_link():
    overlay = Overlay()
    overlay.add("a", advertisements=True)
    overlay.client("a")
    overlay.client("a", b"client-2")
    overlay.advertise("a", "x > 0", client=b"client-2")
    overlay.add("b", "a", advertisements=True)
    overlay.client("b")
    overlay.subscribe("b", "x > 5")
    overlay.run()
    assert shown(overlay, "a") == ["x > 5"]
    overlay.say("a", b"client-2", Bye())
    assert shown(overlay, "a") == []


def test_a_broker_without_advertisements_takes_them_and_tells_nobody():
    overlay = line("a", "b")
    overlay.advertise("a", "x > 0")
    assert isinstance(overlay.heard["a", b"client"][-1], Ack)
    assert len(overlay.cores["b"].router.flow_state("a", Flow.ADVERTISEMENTS).held) == 0
    overlay.say("a", b"client", Unadvertise(310, 1))
    assert isinstance(overlay.heard["a", b"client"][-1], Ack)


def test_advertisements_that_are_refused():
    overlay = line("a", "b", advertisements=True)
    heard = overlay.heard["a", b"client"]
    overlay.advertise("a", "x > 0", 1)
    overlay.advertise("a", "x > 0", 1)
    assert heard[-1].code == Code.DUPLICATE
    overlay.say("a", b"client", Unadvertise(310, 7))
    assert heard[-1].code == Code.UNKNOWN
    overlay.say("a", b"client", Advertise(311, 8, (b"junk",)))
    assert heard[-1].code == Code.BAD_FILTER
    overlay.say("a", b"client", Link("z", True))
    assert heard[-1].code == Code.BAD_FRAME, "a session that advertises is a client's"
    overlay.add("c", "a", roles=frozenset((Role.SUBSCRIBE,)), advertisements=True)
    overlay.client("c")
    overlay.advertise("c", "x > 0")
    assert overlay.heard["c", b"client"][-1].code == Code.UNAUTHORISED


# Whole brokers under faults


@pytest.mark.parametrize("seed", range(12))
def test_whole_brokers_deliver_again_whatever_happened(seed):
    """Connections that reset at one end, brokers that vanish and return, clients that come and go; then quiet."""
    rng = random.Random(seed)
    names = "abcdef"[: rng.randint(2, 6)]
    peers = {name: rng.sample(names[:i], min(i, rng.randint(1, 2))) for i, name in enumerate(names)}
    wanted: dict[tuple[str, int], int] = {}
    overlay = Overlay()

    def start(name: str) -> None:
        overlay.add(name, *peers[name], first_sequence=1 + int(1000 * overlay.now))
        overlay.client(name)
        for (at, number), low in wanted.items():
            if at == name:
                overlay.subscribe(name, f"x > {low}", number)

    for name in names:
        start(name)
    overlay.run(1.0)
    for number in range(1, 25):
        roll, name = rng.random(), rng.choice(names)
        dials = [dial for dial in overlay.cores[name].dials if dial.connection is not None]
        if roll < 0.3 and dials:
            connection = rng.choice(dials).connection
            far = overlay.wires.pop((name, connection), None)
            overlay.wires.pop(far, None)
            overlay.cores[name].disconnected(connection, "reset", overlay.now)
        elif roll < 0.45:
            overlay.kill(name)
            overlay.run(rng.choice([0.0, 0.5, 5.0]))
            start(name)
        elif roll < 0.6 and wanted:
            at, which = rng.choice(sorted(wanted))
            del wanted[at, which]
            overlay.say(at, b"client", Unsubscribe(5000 + number, which))
        else:
            wanted[name, number] = rng.randrange(10)
            overlay.subscribe(name, f"x > {wanted[name, number]}", number)
        overlay.publish(rng.choice(names), {"x": 20}, request=9000 + number)
        overlay.run(rng.choice([0.0, 0.25, 1.0]))
    overlay.run(30.0)
    assert overlay.links() == {
        pair for name in names for other in peers[name] for pair in ((name, other), (other, name))
    }
    for name in names:
        overlay.delivered(name)
    for x, origin in enumerate(names, 3):
        overlay.publish(origin, {"x": x}, request=9100 + x)
        for name in names:
            expected = [x] if any(at == name and low < x for (at, _), low in wanted.items()) else []
            assert overlay.delivered(name) == expected, (origin, name)
