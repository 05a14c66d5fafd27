"""Random topologies, clients and notifications for the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.attr import attr
from contrada.spatial.region import Box, Point
from tests.broker.overlay.simulator import Simulator

if TYPE_CHECKING:
    import random


def random_filter(rng: random.Random) -> object:
    kind = rng.randrange(5)
    low, width = rng.randrange(20), rng.choice([1, 2, 5, 20])
    if kind == 0:
        return (attr("x") >= low) & (attr("x") <= low + width)
    if kind == 1:
        return (attr("x") > low) & (attr("s") == rng.choice("abc"))
    if kind == 2:
        return (attr("s").prefix(rng.choice(["", "a", "ab", "b"]))).filters[0]
    if kind == 3:
        side = rng.choice([2, 5, 20])
        x, y = rng.randrange(20), rng.randrange(20)
        return attr("area").inside(Box(x, y, x + side, y + side)).filters[0]
    return ((attr("x") != low) & attr("s").exists()).filters[0]


def random_notification(rng: random.Random) -> dict:
    whole = {
        "x": rng.randrange(22),
        "s": rng.choice(["", "a", "ab", "abc", "b", "c"]),
        "area": Point(rng.uniform(0, 25), rng.uniform(0, 25)),
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


def check_publications(simulator: Simulator, count: int) -> None:
    """Publish at random brokers: deliveries equal the central matcher's, once each, and no link is crossed in vain."""
    rng = simulator.random
    for _ in range(count):
        origin = rng.choice(sorted(simulator.brokers))
        notification = random_notification(rng)
        expected = simulator.expected(origin, notification)
        fewest = simulator.fewest_crossings(origin, notification)
        simulator.deliveries.clear()
        id = simulator.publish(origin, notification)
        simulator.run()
        assert simulator.deliveries == dict.fromkeys(((subscription, id) for subscription in expected), 1)
        assert simulator.crossings.pop(id, 0) == fewest
