"""The routing state machine over random histories, against a central matcher; the benchmark runs thousands of them."""

from __future__ import annotations

import pytest

from contrada.broker.protocol.peer_messages import Digest, Flow, bucket_of, filter_key
from contrada.broker.routing.flow import FlowState
from contrada.forwarding.codec.msgpack import encode_filter
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.filter import Filter, as_filters
from contrada.forwarding.language.text.parse import parse
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText
from tests.broker.routing.scenarios import calm, check, faulty, populate, publish_and_compare, random_overlay
from tests.broker.routing.simulator import Simulator


def filter_of(expression) -> Filter:
    (only,) = as_filters(expression)
    return only


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_deliveries_equal_a_central_matcher_without_faults(first):
    for seed in range(first, first + 25):
        check(calm(seed))


def test_fifty_brokers():
    simulator = random_overlay(99, brokers=50, extra_links=40)
    populate(simulator, 60)
    simulator.run()
    simulator.check_quiet()
    check(publish_and_compare(simulator, 30))


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_deliveries_are_right_again_after_faults_and_never_double(first):
    for seed in range(first, first + 15):
        check(faulty(seed))


@pytest.mark.parametrize("seed", range(20))
def test_with_advertisements_only_advertisers_are_told(seed):
    simulator = random_overlay(seed, brokers=6, extra_links=2, advertisements=True)
    rng = simulator.random
    names = sorted(simulator.brokers)
    publisher = rng.choice(names)
    simulator.advertise(publisher, filter_of(attr("x") >= 10))
    far = [simulator.subscribe(name, filter_of(attr("x") < 5)) for name in names]
    near = [simulator.subscribe(name, filter_of(attr("x") >= 15)) for name in names]
    simulator.run()
    simulator.check_quiet()
    id = simulator.publish(publisher, {"x": 20})
    simulator.run()
    assert simulator.deliveries == {(subscription, id): 1 for subscription in near}
    assert far
    installed = [
        f for broker in simulator.brokers.values() for filters in broker.interests.values() for f in filters.values()
    ]
    assert installed
    assert all(str(f) == "x >= 15" for f in installed), "nobody advertised what the others want"


def test_an_unsubscribed_cover_leaves_no_gap():
    simulator = random_overlay(1, brokers=2, extra_links=0)
    simulator.run()
    wide = simulator.subscribe("b00", filter_of(attr("x") > 0))
    narrow = simulator.subscribe("b00", filter_of(attr("x") > 5))
    simulator.run()
    assert [str(f) for f in simulator.brokers["b01"].interests["b00"].values()] == ["x > 0"]
    simulator.unsubscribe("b00", wide)
    while simulator._events:  # at every moment of the change, what the narrow one wants arrives
        simulator.run_for(0.001)
        assert any(f.matches({"x": 6}) for f in simulator.brokers["b01"].interests["b00"].values())
    assert [str(f) for f in simulator.brokers["b01"].interests["b00"].values()] == ["x > 5"]
    assert narrow in simulator.brokers["b00"].subscriptions


def test_a_reconnected_link_carries_only_differences():
    simulator = random_overlay(1, brokers=2, extra_links=0)
    for i in range(500):
        simulator.subscribe("b00", filter_of(attr("x") == i))
    simulator.run()
    simulator.cut("b00", "b01")
    simulator.run()
    simulator.subscribe("b00", filter_of(attr("x") == -1))
    sent: list[int] = []
    replace = simulator.brokers["b00"].router.flow_state("b01")._replace
    simulator.brokers["b00"].router.flow_state("b01")._replace = lambda: (
        sent.append(len((reply := replace()).filters)) or reply
    )
    simulator.connect("b00", "b01")
    simulator.run()
    simulator.check_quiet()
    assert 1 <= sum(sent) < 100, "one bucket of 64 differs, not all 501 filters"


def test_state_of_a_lost_neighbour_expires():
    simulator = random_overlay(1, brokers=3, extra_links=0)
    for name in sorted(simulator.brokers):
        simulator.subscribe(name, filter_of(attr("x") == 1))
    simulator.run()
    for wire in simulator.wires.values():
        simulator.cut(*wire.ends)
    simulator.run()
    simulator.tick()
    simulator.now += 1000.0
    simulator.tick()
    simulator.run()
    for broker in simulator.brokers.values():
        assert broker.router.links == {}
        assert len(broker.router.topology.states) == 1
        assert not any(broker.interests.values())
    for wire in simulator.wires.values():
        simulator.connect(*wire.ends)
    simulator.run()
    simulator.check_quiet()
    check(publish_and_compare(simulator, 5))


def test_the_same_filter_of_many_clients_travels_once():
    simulator = random_overlay(3, brokers=4, extra_links=1)
    ids = [simulator.subscribe("b00", filter_of(attr("x") == 1)) for _ in range(5)]
    simulator.run()
    before = simulator.messages["Change"]
    for id in ids[:-1]:
        simulator.unsubscribe("b00", id)
    simulator.run()
    assert simulator.messages["Change"] == before
    simulator.unsubscribe("b00", ids[-1])
    simulator.run()
    simulator.check_quiet()
    for broker in simulator.brokers.values():
        for neighbour in broker.router.links:
            assert len(broker.router.flow_state(neighbour, Flow.SUBSCRIPTIONS).asked) == 0


GEOTEXT = "post matches {{{words}}} within BOX({box})"
HIDING = [
    ("x > 0", "x > 5", {"x": 6}),
    ("area inside BOX(0 0, 9 9)", "area inside BOX(1 1, 5 5)", {"area": Box(2, 2, 3, 3)}),
    ("area intersects BOX(0 0, 9 9)", "area overlaps BOX(1 1, 5 5)", {"area": Box(2, 2, 8, 8)}),
    (
        GEOTEXT.format(words='"ipad"', box="0 0, 9 9"),
        GEOTEXT.format(words='"ipad", "sale"', box="1 1, 5 5"),
        {"post": GeoText(["ipad", "sale"], at=(2, 2))},
    ),
]


@pytest.mark.parametrize(("wide", "narrow", "wanted"), HIDING)
def test_an_unsubscribed_cover_of_any_type_leaves_no_gap_over_two_links(wide, narrow, wanted):
    """At every moment of the change, what the hidden filter wants arrives from two brokers away."""
    wide, narrow = filter_of(parse(wide)), filter_of(parse(narrow))
    simulator = random_overlay(1, brokers=1, extra_links=0)
    for name, before in (("b01", "b00"), ("b02", "b01")):
        simulator.add_broker(name)
        simulator.connect(name, before)
    simulator.run()
    cover = simulator.subscribe("b00", wide)
    hidden = simulator.subscribe("b00", narrow)
    simulator.run()
    for name, before in (("b01", "b00"), ("b02", "b01")):
        assert list(simulator.brokers[name].interests[before].values()) == [wide]
    simulator.unsubscribe("b00", cover)
    published = []
    for _ in range(200):  # in four seconds, each link needs some tenths of one
        published.append(simulator.publish("b02", wanted))
        simulator.run_for(0.02)
    simulator.run()
    assert simulator.deliveries == {(hidden, id): 1 for id in published}
    assert list(simulator.brokers["b02"].interests["b01"].values()) == [narrow]


def test_a_digest_finds_what_differs_and_nothing_else():
    """Held and wanted that differ by any few filters: only buckets that hold one of them travel."""
    ours, theirs = FlowState(Flow.SUBSCRIPTIONS), FlowState(Flow.SUBSCRIPTIONS)
    encoded = {}
    for i in range(300):
        f = filter_of(attr("x") == i)
        body = encode_filter(f)
        key = filter_key(body)
        encoded[key] = body
        if i % 100:
            ours.want(key, f)
        if i % 100 != 1:
            theirs.asked.add(key, body)
    ours.heard = theirs.digest()
    (answer,) = ours.tell(1000, encoded.__getitem__)
    different = {bucket_of(key) for key in set(ours.wanted) ^ set(theirs.asked)}
    assert set(answer.buckets) == different
    assert {bucket_of(filter_key(body)) for body in answer.filters} <= different
    change = theirs.take_replace(answer)
    assert set(theirs.asked) == set(ours.wanted)
    assert len(change.added) + len(change.removed) == 6


def test_a_digest_that_lies_is_set_right():
    """Whatever a neighbour claims to hold, afterwards both ends agree, or hold nothing of the other's."""
    simulator = random_overlay(1, brokers=2, extra_links=0)
    simulator.subscribe("b00", filter_of(attr("x") == 1))
    simulator.run()
    router = simulator.brokers["b00"].router
    lie = Digest(Flow.SUBSCRIPTIONS, tuple(range(64)))
    simulator._act("b00", router.receive("b01", lie))
    simulator.run()
    simulator.check_quiet()


# Two brokers of one id


def test_a_namesake_that_started_later_takes_over():
    """a - b - c - a': each a hears of the other by flooding only, and the elder leaves."""
    simulator = Simulator(3)
    for name in ("a", "b", "c"):
        simulator.add_broker(name)
    simulator.add_broker("twin", id="a")
    for ends in (("a", "b"), ("b", "c"), ("c", "twin")):
        simulator.connect(*ends)
    simulator.run()
    assert simulator.stood_down == ["a"]
    assert simulator.messages["LinkStates"] < 100, "they do not outbid each other for ever"
    wanted = simulator.subscribe("b", filter_of(attr("x") == 1))
    simulator.run()
    id = simulator.publish("twin", {"x": 1})
    simulator.run()
    assert simulator.deliveries == {(wanted, id): 1}


@pytest.mark.parametrize("clock", ["right", "set back"])
def test_a_restart_is_not_taken_for_a_namesake(clock):
    simulator = random_overlay(1, brokers=4, extra_links=2)
    simulator.run()
    for _ in range(3):
        if clock == "set back":
            simulator._lives["b01"] -= 2
        simulator.crash("b01")
        for wire in simulator.wires.values():
            if not wire.up:
                simulator.connect(*wire.ends)
        simulator.run()
    simulator.check_quiet()
    assert simulator.stood_down == []
    populate(simulator, 10)
    simulator.run()
    check(publish_and_compare(simulator, 10))
