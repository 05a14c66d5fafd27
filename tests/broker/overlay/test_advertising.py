"""Whole brokers without sockets, linked by queues: subscriptions travel towards those who advertise."""

from __future__ import annotations

from contrada.broker.protocol.messages import (
    Ack,
    Advertise,
    Bye,
    Link,
    Unadvertise,
)
from contrada.broker.protocol.peer_messages import Flow
from contrada.broker.protocol.wire import Code, Role
from tests.broker.overlay.linked_cores import Overlay, line, shown


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
    assert len(overlay.cores["b"].overlay.router.flow_state("a", Flow.ADVERTISEMENTS).asked) == 0
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
