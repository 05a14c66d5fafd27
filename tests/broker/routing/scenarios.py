"""Random topologies, clients and notifications for the simulator, and whole scenarios made of them, each from a seed.

`calm` and `faulty` are what the tests run by the dozen and `benchmarks/routing.py` by the thousand. Both end at quiet
points, where the routing tables must be those of a fresh start, and publish there, comparing every delivery with
a central matcher and every crossing of a link with the fewest that the tree allows.
"""

from __future__ import annotations

import random
from collections import Counter

from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.filter import Filter, as_filters
from contrada.spatial.geometry.region import Box, Point
from contrada.spatial.textual.geotext import GeoText
from tests.broker.routing.simulator import DETECTION, Simulator

WORDS = ("ipad", "sale", "storm", "lamp")
MOST_BROKERS = 50


def random_filter(rng: random.Random) -> Filter:
    kind = rng.randrange(7)
    low, width = rng.randrange(20), rng.choice([1, 2, 5, 20])
    x, y, side = rng.randrange(20), rng.randrange(20), rng.choice([2, 5, 20])
    box = Box(x, y, x + side, y + side)
    if kind == 0:
        f = (attr("x") >= low) & (attr("x") <= low + width)
    elif kind == 1:
        f = (attr("x") > low) & (attr("s") == rng.choice("abc"))
    elif kind == 2:
        f = attr("s").prefix(rng.choice(["", "a", "ab", "b"]))
    elif kind == 3:
        f = attr("area").inside(box)
    elif kind == 4:
        f = rng.choice([attr("area").intersects(box), attr("area").overlaps(box), attr("area").disjoint(box)])
    elif kind == 5:
        f = attr("post").matches(rng.sample(WORDS, rng.randint(1, 2)), within=box)
    else:
        f = (attr("x") != low) & attr("s").exists()
    return as_filters(f)[0]


def random_notification(rng: random.Random) -> dict:
    x, y = rng.uniform(0, 25), rng.uniform(0, 25)
    whole = {
        "x": rng.randrange(22),
        "s": rng.choice(["", "a", "ab", "abc", "b", "c"]),
        "area": rng.choice([Point(x, y), Box(x, y, x + rng.choice([1, 3]), y + 2)]),
        "post": GeoText(rng.sample(WORDS, 3), at=(y, x)),
    }
    return {name: value for name, value in whole.items() if rng.random() < 0.8}


def random_overlay(seed: int, *, brokers: int, extra_links: int, advertisements: bool = False) -> Simulator:
    """A connected overlay: a random tree, and some links more."""
    simulator = Simulator(seed, advertisements=advertisements)
    rng = simulator.random
    names = [f"b{i:02}" for i in range(brokers)]
    rng.shuffle(names)
    for name in names:
        simulator.add_broker(name)
    for i in range(1, brokers):
        simulator.connect(names[i], names[rng.randrange(i)])
    for _ in range(extra_links):
        a, b = rng.choice(names), rng.choice(names)
        if a != b and frozenset((a, b)) not in simulator.wires:
            simulator.connect(a, b)
    return simulator


def any_overlay(seed: int) -> Simulator:
    """From 2 to `MOST_BROKERS` brokers, small ones far more often; one in ten advertises."""
    rng = random.Random(seed)
    brokers = round(2 * (MOST_BROKERS / 2) ** rng.random() ** 2)
    return random_overlay(
        seed, brokers=brokers, extra_links=rng.randint(0, brokers // 2), advertisements=rng.random() < 0.1
    )


def populate(simulator: Simulator, count: int) -> list[tuple[str, int]]:
    """Subscribe at random brokers, with pauses in which some of it spreads."""
    rng = simulator.random
    names = sorted(simulator.brokers)
    made = []
    for _ in range(count):
        name = rng.choice(names)
        made.append((name, simulator.subscribe(name, random_filter(rng))))
        if rng.random() < 0.3:
            simulator.run_for(rng.random())
    if simulator.advertisements:
        for name in names:
            simulator.advertise(name, random_filter(rng))
    return made


def publish_and_compare(simulator: Simulator, count: int) -> Counter[str]:
    """Publish at random brokers of a quiet overlay, and compare with the central matcher."""
    rng = simulator.random
    names = sorted(simulator.brokers)
    tally: Counter[str] = Counter()
    for _ in range(count):
        origin, notification = rng.choice(names), random_notification(rng)
        if simulator.advertisements and not any(f.matches(notification) for f in simulator.brokers[origin].advertised):
            continue  # nobody promised that it would arrive
        expected = simulator.expected(origin, notification)
        simulator.deliveries.clear()
        id = simulator.publish(origin, notification)
        simulator.run()
        got = {subscription for subscription, _ in simulator.deliveries}
        tally["published"] += 1
        tally["wanted"] += len(expected)
        tally["missed"] += len(expected - got)
        tally["unwanted"] += len(got - expected)
        tally["twice"] += sum(n > 1 for n in simulator.deliveries.values())
        tally["crossings"] += simulator.crossings.pop(id, 0)
        tally["fewest"] += simulator.fewest_crossings(origin, notification)
    return tally


def calm(seed: int) -> Counter[str]:
    """Subscribe and unsubscribe while messages travel, then publish."""
    simulator = any_overlay(seed)
    rng = simulator.random
    made = populate(simulator, rng.randint(5, 40))
    for name, id in rng.sample(made, len(made) // 3):
        simulator.unsubscribe(name, id)
        if rng.random() < 0.3:
            simulator.run_for(rng.random())
    simulator.run()
    simulator.check_quiet()
    return publish_and_compare(simulator, 6)


def faulty(seed: int) -> Counter[str]:
    """Cut, heal and crash while clients come, go and publish; compare when it is quiet, healed or not, then healed."""
    simulator = any_overlay(seed)
    rng = simulator.random
    names = sorted(simulator.brokers)
    made = dict.fromkeys(populate(simulator, rng.randint(5, 25)))
    tally: Counter[str] = Counter()
    promised: dict[tuple[int, object], None] = {}
    for _ in range(rng.randint(4, 12)):
        wire = rng.choice(sorted(simulator.wires.values(), key=lambda w: w.ends))
        roll = rng.random()
        if roll < 0.5:
            simulator.cut(*wire.ends) if wire.up else simulator.connect(*wire.ends)
        elif roll < 0.6:
            simulator.crash(rng.choice(names))
        elif roll < 0.8 and made:
            name, id = made.popitem()[0]
            simulator.unsubscribe(name, id)
        else:
            name = rng.choice(names)
            made[name, simulator.subscribe(name, random_filter(rng))] = None
        origin, notification = rng.choice(names), random_notification(rng)
        expected = simulator.expected(origin, notification)
        id = simulator.publish(origin, notification)
        promised.update(dict.fromkeys((subscription, id) for subscription in expected))
        tally["published during"] += 1
        simulator.run_for(rng.choice([0.1, 1.0, 2 * DETECTION]))
    simulator.run()
    tally["wanted during"] = len(promised)
    tally["lost during"] = len(promised.keys() - simulator.deliveries.keys())
    tally["twice during"] = sum(n > 1 for n in simulator.deliveries.values())
    simulator.check_quiet()
    tally += publish_and_compare(simulator, 3)
    for wire in simulator.wires.values():
        if not wire.up:
            simulator.connect(*wire.ends)
    simulator.run()
    simulator.check_quiet()
    assert simulator.reachable(names[0]) == set(names)
    tally += publish_and_compare(simulator, 3)
    return tally


def check(tally: Counter[str]) -> None:
    """Assert that nothing went wrong in a scenario."""
    wrong = {name: tally[name] for name in ("missed", "unwanted", "twice", "twice during") if tally[name]}
    assert not wrong
    assert tally["crossings"] == tally["fewest"]
