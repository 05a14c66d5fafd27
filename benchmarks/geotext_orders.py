"""What the order of subscribing costs: the same subscriptions in turn, sorted, clustered and grown one by one.

A partition is decided on a sample of a node's subscriptions. If the sample follows the order in which they came, an
order with a period or a trend deceives it. Each order is held against the same subscriptions shuffled; `counted` is
candidates verified and nodes visited, which do not depend on the machine. Asked: at most 1.5.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.geotext_workloads import Message, Subscriptions, World, measure_index
from contrada.spatial.textual.protocol import Subscription
from contrada.spatial.textual.registry import textual_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from benchmarks.harness import Report
    from contrada.spatial.textual.base import StoredIndex

TREES = ("rk-tree", "ap-tree")
CITIES = (16, 17, 1_000)
GROWN = 50_000  # subscriptions inserted one by one
ASKED = 1.5


def cities_in_turn(count: int, cities: int, *, words: int = 1, seed: int = 1) -> Subscriptions:
    """Subscription i is in city i mod `cities`: a word that all cities share, a small box near its centre."""
    rng = np.random.default_rng(seed)
    centres = rng.random((cities, 2))
    xy = centres[np.arange(count) % cities] + rng.normal(0, 0.0005, (count, 2))
    half = np.full((count, 2), 0.005)  # those of a city overlap: a sample of one city sees nothing to divide
    keywords = rng.integers(0, words, count).astype(np.int32)
    vocabulary = [f"w{i}" for i in range(words)]
    return Subscriptions(np.arange(count + 1), keywords, vocabulary, np.hstack([xy - half, xy + half]))


def reordered(some: Subscriptions, order: NDArray[np.int64]) -> Subscriptions:
    """The same subscriptions in another order."""
    counts = np.diff(some.offsets)[order]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    places = np.repeat(some.offsets[:-1][order] - offsets[:-1], counts) + np.arange(int(offsets[-1]))
    return Subscriptions(offsets, some.keywords[places], some.vocabulary, some.boxes[order])


def orders(some: Subscriptions, *, seed: int = 3) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Orders of subscribing, by name: the first is shuffled, which the others are held against."""
    rng = np.random.default_rng(seed)
    count = len(some)
    yield "shuffled", rng.permutation(count)
    yield "as drawn", np.arange(count)
    yield "by x", np.argsort(some.boxes[:, 0], kind="stable")
    yield "by y, falling", np.argsort(-some.boxes[:, 1], kind="stable")
    first_words = some.keywords[some.offsets[:-1]]
    yield "by keyword", np.argsort(first_words, kind="stable")
    yield "by keyword and x", np.lexsort((some.boxes[:, 0], first_words))
    by_x = np.argsort(some.boxes[:, 0], kind="stable")
    for period in (16, 64, 1_000, max(2, count // 1_024)):
        # The subscriptions of a strip of the map come at every period-th place: clusters, and in turn.
        yield f"strips in turn, {period}", by_x[np.argsort(np.arange(count) % -(-count // period), kind="stable")]
    cells = np.floor(some.boxes[:, 0] * 8) * 8 + np.floor(some.boxes[:, 1] * 8)
    yield "clustered", np.lexsort((rng.random(count), rng.permutation(4_096)[cells.astype(np.int64) % 4_096]))


def objects(some: Subscriptions, order: NDArray[np.int64]) -> Iterator[Subscription]:
    """Subscriptions one by one."""
    for i in order.tolist():
        words = some.keywords[some.offsets[i] : some.offsets[i + 1]].tolist()
        x1, y1, x2, y2 = some.boxes[i].tolist()
        yield Subscription(i, frozenset(some.vocabulary[w] for w in words), (x1, y1, x2, y2))


def grown(name: str, some: Subscriptions, order: NDArray[np.int64]) -> tuple[StoredIndex, float]:
    """An index that began empty, and the longest insertion in milliseconds."""
    index = textual_index(name).build(())
    longest = 0.0
    for subscription in objects(some, order):
        start = time.perf_counter()
        index.insert(subscription)
        longest = max(longest, time.perf_counter() - start)
    return index, 1e3 * longest


def messages_at(some: Subscriptions, count: int, *, seed: int = 5) -> list[Message]:
    """Messages of up to four words at the centres of subscriptions."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(some), count)
    made = []
    for i in chosen.tolist():
        words = rng.choice(some.keywords, 4).tolist() + some.keywords[some.offsets[i] : some.offsets[i + 1]].tolist()
        x1, y1, x2, y2 = some.boxes[i].tolist()
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        made.append(Message(frozenset(some.vocabulary[w] for w in words), (x, y, x, y)))
    return made


def sample_orders(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """Build, search and search again after `rebuild()`, for every order; grow from empty."""
    worlds = {f"{cities} cities": cities_in_turn(len(subscriptions), cities) for cities in CITIES}
    worlds["the world"] = subscriptions
    worst: dict[str, float] = dict.fromkeys(TREES, 0.0)
    rows: list[dict[str, Any]] = []
    for where, some in worlds.items():
        messages = messages_at(some, count)
        for name in TREES:
            best = 0.0
            for how, order in orders(some):
                cost = measure_index(reordered(some, order).build(name), messages)
                counted = cost.verified + cost.nodes
                best = best or counted
                rows.append(
                    {
                        "world": where,
                        "index": name,
                        "order": how,
                        "ms": cost.milliseconds,
                        "verified": cost.verified,
                        "nodes": cost.nodes,
                        "counted over shuffled": counted / best,
                    }
                )
                worst[name] = max(worst[name], counted / best)
    report.table(f"Orders of subscribing, {len(subscriptions):,} subscriptions", rows)
    for name, ratio in worst.items():
        report.target(f"{name}, any order over shuffled, counted", ratio, ASKED, at_least=False)
    _growth(report, subscriptions.first(GROWN), count)


def _growth(report: Report, some: Subscriptions, count: int) -> None:
    rows: list[dict[str, Any]] = []
    messages = messages_at(some, count)
    worst: dict[str, float] = dict.fromkeys(TREES, 0.0)
    for name in TREES:
        for how, order in orders(some):
            index, longest = grown(name, some, order)
            before = measure_index(index, messages)
            index.rebuild()  # type: ignore[attr-defined]  # both trees have it
            after = measure_index(index, messages)
            ratio = (before.verified + before.nodes) / (after.verified + after.nodes)
            worst[name] = max(worst[name], ratio)
            rows.append(
                {
                    "index": name,
                    "order": how,
                    "verified": before.verified,
                    "after rebuild": after.verified,
                    "counted over rebuilt": ratio,
                    "longest insertion, ms": longest,
                }
            )
    report.table(f"Grown from empty one by one, {len(some):,} subscriptions", rows)
    for name, ratio in worst.items():
        report.target(f"{name}, grown from empty over rebuilt, counted", ratio, ASKED, at_least=False)
