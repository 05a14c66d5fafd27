"""The routing state machine over thousands of random histories, against a central matcher."""

from __future__ import annotations

import pytest

from contrada.broker.overlay.messages import Flow
from contrada.forwarding.attr import attr
from contrada.forwarding.filter import Filter
from tests.broker.overlay.scenarios import check_publications, random_filter, random_overlay
from tests.broker.overlay.simulator import DETECTION, Simulator

BATCHES = range(4)


def filter_of(expression) -> Filter:
    (only,) = expression.filters if isinstance(expression, Filter) else (Filter((expression,)),)
    return only


def populate(simulator: Simulator, count: int) -> list[tuple[str, int]]:
    rng = simulator.random
    names = sorted(simulator.brokers)
    made = []
    for _ in range(count):
        name = rng.choice(names)
        made.append((name, simulator.subscribe(name, filter_of(random_filter(rng)))))
        if rng.random() < 0.3:
            simulator.run_for(rng.random())
    return made


@pytest.mark.parametrize("batch", BATCHES)
def test_deliveries_equal_a_central_matcher_without_faults(batch):
    for seed in range(batch * 25, batch * 25 + 25):
        simulator = random_overlay(seed, brokers=2 + seed % 13, extra_links=seed % 5)
        made = populate(simulator, 30)
        rng = simulator.random
        for name, id in rng.sample(made, 12):
            simulator.unsubscribe(name, id)
            if rng.random() < 0.3:
                simulator.run_for(rng.random())
        simulator.run()
        simulator.check_quiet()
        check_publications(simulator, 8)


def test_fifty_brokers():
    simulator = random_overlay(99, brokers=50, extra_links=40)
    populate(simulator, 150)
    simulator.run()
    simulator.check_quiet()
    check_publications(simulator, 30)


@pytest.mark.parametrize("batch", BATCHES)
def test_deliveries_are_right_again_after_faults_and_never_double(batch):
    for seed in range(1000 + batch * 12, 1000 + batch * 12 + 12):
        simulator = random_overlay(seed, brokers=3 + seed % 8, extra_links=seed % 6)
        rng = simulator.random
        made = dict.fromkeys(populate(simulator, 20))
        for _ in range(12):
            wire = rng.choice(sorted(simulator.wires.values(), key=lambda w: w.ends))
            roll = rng.random()
            if roll < 0.5:
                simulator.cut(*wire.ends) if wire.up else simulator.connect(*wire.ends)
            elif roll < 0.6:
                simulator.crash(rng.choice(sorted(simulator.brokers)))
            elif roll < 0.8 and made:
                name, id = made.popitem()[0]
                simulator.unsubscribe(name, id)
            else:
                name = rng.choice(sorted(simulator.brokers))
                made[name, simulator.subscribe(name, filter_of(random_filter(rng)))] = None
            simulator.publish(rng.choice(sorted(simulator.brokers)), {"x": rng.randrange(22), "s": "ab"})
            simulator.run_for(rng.choice([0.1, 1.0, 2 * DETECTION]))
        simulator.run()
        assert set(simulator.deliveries.values()) <= {1}, "at most once, also during faults"
        simulator.check_quiet()
        check_publications(simulator, 4)
        for wire in simulator.wires.values():
            if not wire.up:
                simulator.connect(*wire.ends)
        simulator.run()
        simulator.check_quiet()
        assert all(simulator.reachable(name) == set(simulator.brokers) for name in simulator.brokers)
        check_publications(simulator, 4)


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
    answer = simulator.brokers["b00"].router.flow_state("b01").answer
    simulator.brokers["b00"].router.flow_state("b01").answer = lambda *args: (
        sent.append(len((reply := answer(*args)).filters)) or reply
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
    for broker in simulator.brokers.values():
        assert broker.router.links == {}
        assert len(broker.router.topology.states) == 1
        assert not any(broker.interests.values())
    for wire in simulator.wires.values():
        simulator.connect(*wire.ends)
    simulator.run()
    simulator.check_quiet()
    check_publications(simulator, 5)


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
            assert len(broker.router.flow_state(neighbour, Flow.SUBSCRIPTIONS).held) == 0
