"""Whole brokers without sockets, linked by queues: links are made, and notifications cross them."""

from __future__ import annotations

import pytest

from contrada.broker.core.admin import status
from contrada.broker.overlay.neighbour import WINDOW
from contrada.broker.protocol.messages import (
    Ack,
    Credit,
    Deliver,
    Error,
    Grant,
    Link,
    Unsubscribe,
)
from contrada.broker.protocol.peer_messages import Change, Flow, Forward, LinkState, LinkStates, Run
from contrada.broker.protocol.wire import Code, Role
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.spatial.relations.relate import Uniform
from tests.broker.overlay.linked_cores import Overlay, as_broker, line, one, shown


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
    assert overlay.cores["b"].overlay.interfaces["a"].totals["received"] == 2, "nobody behind wants the 1"
    overlay.say("a", b"client", Unsubscribe(200, 1))
    overlay.publish("c", {"x": 6})
    assert overlay.cores["b"].overlay.interfaces["c"].totals["received"] == 1
    assert not overlay.delivered("a")


def test_brokers_that_relate_regions_unlike_do_not_link():
    overlay = Overlay()
    overlay.add("a", discretization="uniform", density=2)
    overlay.add("b", "a")
    overlay.run(5.0)
    assert not overlay.links()
    overlay = Overlay()
    overlay.add("a", discretization="uniform", density=2, halo=True)
    overlay.add("b", "a", discretization=Uniform(2.0, halo=True))
    overlay.run(5.0)
    assert overlay.links() == {("a", "b"), ("b", "a")}


def test_absence_and_everything_are_told_to_neighbours_and_cover():
    overlay = line("a", "b", "c")
    overlay.subscribe("c", "not y exists", 1)
    overlay.subscribe("c", 'not y exists and not s suffix "b"', 2)
    assert shown(overlay, "a") == ["y not exists"]
    overlay.publish("a", {"x": 1}, {"x": 2, "y": 1}, {"x": 3, "s": "b"})
    assert overlay.delivered("c") == [1, 3]
    overlay.subscribe("c", "true", 3)
    assert shown(overlay, "a") == ["true"]
    overlay.publish("a", {"x": 1}, {"x": 2, "y": 1})
    assert overlay.delivered("c") == [1, 2]
    overlay.say("c", b"client", Unsubscribe(200, 3))
    assert shown(overlay, "a") == ["y not exists"]


def test_unsubscribing_a_cover_brings_back_what_it_hid():
    overlay = line("a", "b", "c")
    overlay.subscribe("c", "x > 0", 1)
    overlay.subscribe("c", "x > 5", 2)
    overlay.subscribe("b", "y > 5")
    assert shown(overlay, "a") == ["x > 0", "y > 5"]
    overlay.say("c", b"client", Unsubscribe(200, 1))
    assert shown(overlay, "a") == ["x > 5", "y > 5"]
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


def test_a_topology_has_a_most(monkeypatch):
    monkeypatch.setattr("contrada.broker.routing.topology.MOST_BROKERS", 50)
    overlay = line("a", "b")
    as_broker(overlay)
    lies = [LinkState(f"x{i}", 1, frozenset((f"x{i + 1}", "evil"))) for i in range(1000)]
    for start in range(0, 1000, 200):
        overlay.say("a", b"client", LinkStates(tuple(lies[start : start + 200])))
    assert len(overlay.cores["a"].overlay.router.topology.states) == 50
    assert len(overlay.cores["b"].overlay.router.topology.states) == 50
    monkeypatch.setattr("contrada.broker.overlay.report.LIST_LENGTH", 20)
    document = status(overlay.cores["a"], overlay.now)["overlay"]
    assert (document["known"], len(document["brokers"])) == (50, 20)
    overlay.subscribe("b", "x > 0")
    overlay.publish("b", {"x": 1})
    assert overlay.delivered("b") == [1]


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


def test_linked_brokers_have_the_same_coordinates():
    overlay = Overlay()
    overlay.add("a")
    overlay.add("b", "a", crs="lonlat")
    overlay.add("c", "b", crs="lonlat")
    overlay.run(5.0)
    assert overlay.links() == {("b", "c"), ("c", "b")}
    overlay.client("a")
    overlay.heard.clear()
    overlay.say("a", b"client", Link("z", False, 1, "lonlat"))
    refusal = overlay.heard["a", b"client"][-1]
    assert refusal.code == Code.VERSION
    assert "crs is lonlat at z and plane here" in refusal.reason


def test_a_broker_has_a_most_of_links(monkeypatch):
    monkeypatch.setattr("contrada.broker.overlay.links.MOST_LINKS", 1)
    overlay = line("a", "b")
    overlay.client("a", b"client-2")
    overlay.say("a", b"client-2", Link("z", False))
    assert overlay.heard["a", b"client-2"][-1].code == Code.LIMIT
    assert overlay.links() == {("a", "b"), ("b", "a")}


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
    totals = overlay.cores["a"].overlay.interfaces["evil"].totals
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
    totals = overlay.cores["a"].overlay.interfaces["evil"].totals
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


def test_what_was_wanted_before_the_first_link_is_told_over_turns_and_as_a_whole():
    overlay = Overlay()
    first = overlay.add("a")
    overlay.client("a")
    for number in range(300):
        overlay.subscribe("a", f"x = {number}", number)
    told = []
    real = first.overlay.interest_changed
    first.overlay.interest_changed = lambda *change: (told.append(1), real(*change))
    first.leftovers.most = 10
    overlay.add("b", "a")
    heard = []
    receive = overlay.cores["b"].overlay.router.receive
    overlay.cores["b"].overlay.router.receive = lambda *words: (heard.append(words[1]), receive(*words))[1]
    turns = []
    turn = first.turn
    first.turn = lambda now: (told.clear(), turn(now), turns.append(len(told)))
    overlay.run()
    assert sum(turns) == 300
    assert max(turns) <= 10
    filters = [len(each.add) for each in heard if isinstance(each, Change)]
    assert sum(filters) == 300
    assert len(filters) < 30, "not one by one"
    overlay.client("b")
    overlay.publish("b", {"x": 7})
    assert overlay.delivered("a") == [7]


def test_a_subscription_that_ends_while_it_is_told_leaves_nothing_behind():
    overlay = Overlay()
    first = overlay.add("a")
    overlay.client("a")
    overlay.subscribe("a", " or ".join(f"x = {number}" for number in range(40)))
    overlay.subscribe("a", "x = 50", 2)
    first.leftovers.most = 3
    overlay.add("b", "a")
    overlay.cores["b"].tick(1.0)
    told = first.overlay.router.interests._local[Flow.SUBSCRIPTIONS]
    for _ in range(100):
        overlay.deliver()
        if 0 < len(told) < 40:
            break
    assert 0 < len(told) < 40
    overlay.say("a", b"client", Unsubscribe(200, 1))
    overlay.run()
    assert len(told) == 1
    assert shown(overlay, "b") == ["x = 50"]
