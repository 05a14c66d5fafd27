"""Whole brokers without sockets, linked by queues: links and brokers fail, and everything comes right again."""

from __future__ import annotations

import random

import pytest

from contrada.broker.core.admin import status
from contrada.broker.protocol.messages import (
    Bye,
    Link,
    Unsubscribe,
)
from contrada.broker.protocol.wire import Code
from tests.broker.overlay.linked_cores import Overlay, line


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
    (dial,) = overlay.cores["b"].links.dials
    ups = []
    for _ in range(60):
        if "a" in overlay.cores["b"].overlay.neighbours:
            ups.append(overlay.now)
            (link,) = overlay.cores["a"].overlay.neighbours.values()
            overlay.cores["a"].sessions.close(link.session, Bye("go away"))
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
    (link,) = overlay.cores["a"].overlay.neighbours.values()
    overlay.publish("a", *({"x": i} for i in range(500)))
    overlay.full.add(("a", link.session.connection))
    for start in range(500, 1500, 500):
        overlay.publish("a", *({"x": start + i} for i in range(500)), request=start)
    overlay.kill("b")
    overlay.run(4.0)
    totals = overlay.cores["a"].overlay.interfaces["b"].totals
    assert totals["lost"] + totals["unconfirmed"] == 1500, "the neighbour had not given credit back yet"
    assert totals["lost"] >= 500


def test_a_neighbour_that_reconnects_before_it_was_missed_is_forwarded_to():
    overlay = line("a", "b", "c")
    overlay.subscribe("b", "x > 0")
    overlay.subscribe("c", "x > 0")
    (dial,) = overlay.cores["b"].links.dials
    overlay.wires.pop(overlay.wires.pop(("b", dial.connection)))
    overlay.cores["b"].disconnected(dial.connection, "reset", overlay.now)
    overlay.run(1.0)
    assert overlay.cores["a"].overlay.interfaces["b"].totals["ups"] == 2
    overlay.publish("a", {"x": 1})
    assert overlay.delivered("b") == [1]
    assert overlay.delivered("c") == [1]
    overlay.subscribe("a", "x > 0")
    overlay.publish("c", {"x": 2})
    assert overlay.delivered("a") == [2]


def test_stale_interest_is_forgotten():
    overlay = line("a", "b", stale_after=20.0)
    overlay.subscribe("b", "x > 0")
    table = overlay.tables["a"]
    assert len(table.filters) == 1
    overlay.kill("b")
    overlay.run(4.0)
    assert overlay.links() == set()
    assert len(table.filters) == 1, "it may come back soon"
    overlay.run(20.0)
    assert not table.filters
    overlay.publish("a", {"x": 1})


def test_a_link_that_takes_nothing_keeps_what_waits_for_it():
    overlay = line("a", "b")
    overlay.subscribe("b", "x >= 0")
    (connection,) = (c.session.connection for c in overlay.cores["a"].overlay.neighbours.values())
    overlay.full.add(("a", connection))
    for start in range(0, 1000, 100):
        overlay.publish("a", *({"x": start + i} for i in range(100)), request=1 + start)
    assert not overlay.delivered("b")
    overlay.full.clear()
    overlay.run(0.5)
    assert overlay.delivered("b") == list(range(1000))


def test_of_two_namesakes_at_one_neighbour_the_later_is_linked(caplog):
    overlay = Overlay()
    overlay.add("n", stale_after=10.0)
    overlay.add("old", "n", id="x", first_sequence=1000, stale_after=10.0)
    overlay.run(2.0)
    overlay.add("new", "n", id="x", first_sequence=2000)
    overlay.run(20.0)
    assert {link.incarnation for link in overlay.cores["n"].overlay.neighbours.values()} == {2000}
    assert overlay.cores["new"].overlay.neighbours.keys() == {"n"}
    assert not overlay.cores["old"].overlay.neighbours
    assert "two brokers of one id" in caplog.text
    assert overlay.cores["n"].overlay.interfaces["x"].totals["ups"] == 2, "the link does not go back and forth"
    overlay.kill("new")
    overlay.run(30.0)
    assert "bad frame" not in caplog.text
    assert overlay.cores["old"].overlay.neighbours.keys() == {"n"}, "it finds its place when the other is gone"


def test_of_two_namesakes_far_apart_the_earlier_stands_down_and_comes_back(caplog):
    overlay = Overlay()
    overlay.add("m")
    overlay.add("n", "m")
    overlay.add("old", "m", id="x", first_sequence=1000, stale_after=20.0)
    overlay.run(2.0)
    overlay.add("new", "n", id="x", first_sequence=2000)
    overlay.run(6.0)
    assert not overlay.cores["old"].overlay.neighbours
    assert status(overlay.cores["old"], overlay.now)["overlay"]["stands_down"]
    assert overlay.cores["new"].overlay.neighbours.keys() == {"n"}
    assert "two brokers of one id" in caplog.text
    assert sum(core.counters["received"] for core in overlay.cores.values()) < 500
    overlay.client("old")
    overlay.say("old", b"client", Link("z", False))
    assert overlay.heard["old", b"client"][-1].code == Code.DUPLICATE
    overlay.kill("new")
    overlay.run(120.0)
    assert overlay.cores["old"].overlay.neighbours.keys() == {"m"}


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
        dials = [dial for dial in overlay.cores[name].links.dials if dial.connection is not None]
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
