"""The curves of docs/scaling.md: what an overlay of many brokers and many subscriptions costs each broker.

Everything here is the real routing core, driven in one process: the simulator for what travels and what is held, the
router and the covering set by themselves for time and memory.
"""

from __future__ import annotations

import random
import statistics
import time
import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from contrada import Box, attr
from contrada.broker.protocol.peer_frames import encode_peer
from contrada.broker.protocol.peer_messages import Change, Flow, LinkState, LinkStates
from contrada.broker.routing.router import Router
from contrada.broker.routing.topology import Topology
from contrada.forwarding.codec.msgpack import decode_filter, encode_filter
from contrada.forwarding.covering.covering_set import CoveringSet
from contrada.forwarding.language.filter import as_filters
from tests.broker.routing.scenarios import random_overlay
from tests.broker.routing.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.harness import Report
    from contrada.forwarding.language.filter import Filter


def nested(rng: random.Random, number: int) -> Filter:
    """Ranges and boxes of all sizes, so that many lie in others."""
    if number % 2:
        low, width = rng.uniform(0, 1000), rng.choice([1, 5, 20, 100, 300])
        return as_filters((attr("price") >= low) & (attr("price") <= low + width))[0]
    x, y, side = rng.uniform(0, 1000), rng.uniform(0, 1000), rng.choice([2, 10, 40, 150, 400])
    return as_filters(attr("area").inside(Box(x, y, x + side, y + side)))[0]


def apart(number: int, shift: float = 0.0) -> Filter:
    """Small boxes that do not meet: covering saves nothing. Those shifted by 1 stand between the others."""
    x, y = 2.0 * (number % 1000) + shift, 2.0 * (number // 1000) + shift
    return as_filters(attr("area").inside(Box(x, y, x + 0.9, y + 0.9)))[0]


def cpu_ms(call: Callable[[], object], repeat: int) -> float:
    """Median processor time of a call, which other work on the machine does not lengthen much."""
    call()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e3 * statistics.median(times)


def random_links(rng: random.Random, brokers: int) -> set[tuple[str, str]]:
    """A random tree, and half as many links again."""
    names = [f"b{number:04}" for number in range(brokers)]
    links = {(names[i], names[rng.randrange(i)]) for i in range(1, brokers)}
    while len(links) < brokers * 3 // 2:
        a, b = rng.sample(names, 2)
        links.add((max(a, b), min(a, b)))
    return links


def settled(brokers: int) -> Simulator:
    """An overlay that has found its tree, without the flooding that finds it: every broker is told all states."""
    simulator = Simulator(5)
    names = [f"b{number:04}" for number in range(brokers)]
    for name in names:
        simulator.add_broker(name)
    neighbours: dict[str, set[str]] = {name: set() for name in names}
    for ends in random_links(random.Random(7), brokers) if brokers > 2 else pairwise(names):
        simulator.connect(*ends)
        for a, b in (ends, ends[::-1]):
            neighbours[a].add(b)
    simulator._events.clear()
    for wire in simulator.wires.values():
        wire.joined = dict.fromkeys(wire.ends, wire.session)
    routers = {name: broker.router for name, broker in simulator.brokers.items()}
    for name, router in routers.items():
        for other in neighbours[name]:
            router.link_up(other)
    own = (router.topology.state_of(name) for name, router in routers.items())
    everything = LinkStates(tuple(state for state in own if state is not None))
    for name, router in routers.items():
        router.receive(min(neighbours[name]), everything)
    for name, router in routers.items():
        for other in neighbours[name]:
            for flow in Flow:
                simulator._act(other, routers[other].receive(name, router.flow_state(other, flow).digest()))
    simulator.run()
    return simulator


def covered(simulator: Simulator, subscriptions: int) -> dict[str, Any]:
    """Filters on the links of the tree, with covering and without."""
    simulator.run()
    rng = random.Random(1)
    names = sorted(simulator.brokers)
    start = time.perf_counter()
    simulator.messages.clear()
    for number in range(subscriptions):
        simulator.subscribe(rng.choice(names), nested(rng, number))
        if number % 100 == 99:
            simulator.run()
    simulator.run()
    routers = {name: broker.router for name, broker in simulator.brokers.items()}
    sent = [len(r.flow_state(other).wanted.shown) for r in routers.values() for other in r.tree_links]
    held = [sum(len(r.flow_state(other).asked) for other in r.tree_links) for r in routers.values()]
    without = (len(names) - 1) * subscriptions  # each link carries what is on its one side, and what is on its other
    return {
        "brokers": len(names),
        "subscriptions": subscriptions,
        "on links": sum(sent),
        "without covering": without,
        "ratio": sum(sent) / without,
        "most on a link": max(sent),
        "most held by a broker": max(held),
        "messages per subscription": simulator.messages["Change"] / subscriptions,
        "s": time.perf_counter() - start,
    }


def covering(report: Report) -> None:
    """What covering saves, as the issue asks it."""
    row = covered(random_overlay(5, brokers=10, extra_links=0), 10_000)
    report.table("What covering saves: nested boxes and ranges", [row])
    report.target("filters on links, with covering over without", row["ratio"], 0.3, at_least=False)


def topology_costs(brokers: int) -> dict[str, Any]:
    """All link states on the wire, and the tree derived from them."""
    links = random_links(random.Random(3), brokers)
    neighbours: dict[str, set[str]] = {}
    for a, b in links:
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    states = [LinkState(name, 10**15, frozenset(others), 100, 10**15) for name, others in sorted(neighbours.items())]
    topology = Topology(states[-1])
    for state in states[:-1]:
        topology.update(state)

    def grow() -> None:
        topology._parents = None
        topology.tree_links  # noqa: B018  # derives the tree

    def depth(broker: str) -> int:
        parent = topology._tree_parents()[broker]
        return 0 if parent is None else 1 + depth(parent)

    return {
        "brokers": brokers,
        "links": len(links),
        "all link states, kB": sum(map(len, encode_peer(LinkStates(tuple(states))))) / 1e3,
        "tree, ms": cpu_ms(grow, 20),
        "depth": max(map(depth, neighbours)),
    }


def change_costs(shown: int) -> dict[str, Any]:
    """Adding and removing one filter where so many are shown."""
    filters: CoveringSet[int] = CoveringSet()
    for number in range(shown):
        filters.add(number, apart(number))
    places = random.Random(1).choices(range(shown), k=1000)

    def change() -> None:
        filters.add(shown, apart(places.pop(), shift=1.0))
        filters.remove(shown)

    return {"shown": shown, "add and remove, ms": cpu_ms(change, 200)}


def filter_bytes(count: int) -> dict[str, Any]:
    """Routing state of filters that came from one neighbour and were told to another."""
    router = Router("m", decode=decode_filter)
    for other in ("a", "z"):
        router.link_up(other)
        router.receive(other, LinkStates((LinkState(other, 1, frozenset(("m",))),)))
        router.receive(other, router.flow_state(other).digest())
    bodies = [encode_filter(apart(number)) for number in range(2 * count)]
    messages = [Change(Flow.SUBSCRIPTIONS, tuple(bodies[at : at + 100]), ()) for at in range(0, 2 * count, 100)]
    half = len(messages) // 2
    for message in messages[:half]:  # what is loaded and remembered once is no cost of a filter
        router.receive("a", message)
    tracemalloc.start()
    for message in messages[half:]:
        router.receive("a", message)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"filters": count, "kB each": used / count / 1e3, "bytes on the wire": sum(map(len, bodies)) / len(bodies)}


def scaling(report: Report) -> None:
    """Tables and plots of docs/scaling.md."""
    by_size = [covered(random_overlay(5, brokers=10, extra_links=0), n) for n in (500, 1000, 2000, 4000, 8000)]
    by_brokers = [covered(random_overlay(5, brokers=n, extra_links=0), 1000) for n in (5, 10, 20, 40, 80)]
    large = [covered(settled(brokers), 20) for brokers in (100, 1000)]
    changes = [change_costs(shown) for shown in (1000, 8000, 64_000, 256_000)]
    trees = [topology_costs(brokers) for brokers in (100, 1000, 3000)]
    report.table("Filters as subscriptions grow", by_size)
    report.table("Filters as the overlay grows", by_brokers)
    report.table("Large overlays with redundant links", large)
    report.table("A change of one filter as the shown ones grow", changes)
    report.table("Link states and the tree as the overlay grows", trees)
    report.table("Routing state of a filter", [filter_bytes(2000)])
    xs = [row["subscriptions"] for row in by_size]
    report.plot(
        "routing_scaling",
        {
            "on the fullest link": (xs, [row["most on a link"] for row in by_size]),
            "held by the fullest broker": (xs, [row["most held by a broker"] for row in by_size]),
            "subscriptions": (xs, xs),
        },
        x="subscriptions in 10 brokers",
        y="filters",
        log="xy",
    )
    brokers = [row["brokers"] for row in by_brokers]
    report.plot(
        "routing_scaling_brokers",
        {
            "filters held by the fullest broker": (brokers, [row["most held by a broker"] for row in by_brokers]),
            "messages per subscription": (brokers, [row["messages per subscription"] for row in by_brokers]),
        },
        x="brokers, with 1,000 subscriptions in all",
        y="",
        log="xy",
    )
    report.plot(
        "routing_scaling_change",
        {"add and remove": ([row["shown"] for row in changes], [row["add and remove, ms"] for row in changes])},
        x="filters shown on the link",
        y="ms",
        log="xy",
    )
