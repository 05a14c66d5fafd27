"""[AP-TREE]'s experiments in shape: Figures 9 to 17, ours beside what its prose prints.

The paper ran C++ on a 3.4 GHz Xeon, messages of nine keywords at points, 5 million subscriptions unless it says so.
Sweeps of a parameter take at most a million, and those that insert one by one 200,000. `rk-tree` is ours.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.geotext_memory import peak_of_build
from benchmarks.geotext_workloads import World, measure_index
from contrada.spatial.textual.partition_tree.ap_tree import APTree
from contrada.spatial.textual.protocol import Subscription
from contrada.spatial.textual.store import _renumber
from contrada.spatial.textual.vocabulary import Vocabulary

if TYPE_CHECKING:
    from benchmarks.geotext_workloads import Message, Subscriptions
    from benchmarks.harness import Report
    from contrada.spatial.textual.base import StoredIndex

RIVALS = {"ap-tree": 1.0, "rq-tree": 2.0, "iq-tree": 3.0, "rt++": 5.0}  # how many times faster the AP-tree is to be
NINE = (9, 9)
SWEEP, INSERTED = 1_000_000, 200_000


def tree_bytes(index: StoredIndex) -> int:
    """Bytes of an index without the subscriptions."""
    return sum(array.nbytes for array in index._arrays().values())


def _built(subscriptions: Subscriptions, name: str, **options: Any) -> tuple[StoredIndex, float]:
    start = time.perf_counter()
    index = subscriptions.build(name, **options)
    return index, time.perf_counter() - start


class _Reordered(APTree):
    """An AP-tree over another keyword order than tf."""

    def _build(self) -> None:
        words = self.vocabulary.size - 1
        order = (
            np.arange(words)[::-1] if self.options["order"] == "idf" else np.random.default_rng(0).permutation(words)
        )
        rank = np.zeros(words + 1, np.int32)
        rank[order + 1] = np.arange(1, words + 1)
        _renumber(self.store.rows, self.store.used, rank)
        df = self.vocabulary.df
        self.vocabulary = Vocabulary(
            [self.vocabulary.word(i + 1) for i in order.tolist()], np.concatenate([df[:1], df[order + 1]])
        )
        super()._build()

    defaults = {**APTree.defaults, "order": "random"}  # noqa: RUF012  # read, never changed


def figure_9(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """Fanout f and leaf size θ_q."""
    subscriptions, messages = subscriptions.first(SWEEP), world.messages(count, tokens=NINE)
    for letter, option, values in (("a", "fanout", (50, 100, 200, 400, 800)), ("b", "leaf", (5, 10, 20, 40, 100, 400))):
        rows = []
        for value in values:
            index, took = _built(subscriptions, "ap-tree", **{option: value})
            cost = measure_index(index, messages)
            rows.append(
                {
                    option: value,
                    "ms": cost.milliseconds,
                    "nodes": cost.nodes,
                    "verified": cost.verified,
                    "build, s": took,
                    "MB": tree_bytes(index) / 1e6,
                }
            )
        report.table(
            f"[AP-TREE], Fig. 9({letter}): ap-tree by {option} (paper: best at f = 200; flat below θ_q = 40)", rows
        )
        report.plot(
            f"{report.name}{letter}",
            {"ap-tree": (values, [row["ms"] for row in rows])},
            x=option,
            y="ms per message",
            log="x",
        )


def figure_10(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """Keyword order."""
    subscriptions, messages = subscriptions.first(SWEEP), world.messages(count, tokens=NINE)
    rows: list[dict[str, Any]] = []
    for order in ("tf", "idf", "random"):
        if order == "tf":
            index: StoredIndex = subscriptions.build("ap-tree")
        else:
            s = subscriptions
            index = _Reordered.build_arrays(
                np.arange(len(s)), s.offsets, s.keywords, s.vocabulary, s.boxes, order=order
            )
        cost = measure_index(index, messages)
        rows.append({"order": order, "ms": cost.milliseconds, "nodes": cost.nodes, "verified": cost.verified})
    report.table("[AP-TREE], Fig. 10: ap-tree by keyword order (paper: tf best on all sets)", rows)
    report.plot(
        report.name,
        {"ms": (range(3), [row["ms"] for row in rows])},
        x="tf | idf | random",
        y="ms per message",
    )


def figure_11(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """Variants: optimal and heuristic cuts, no choice by cost, and no cost model at all."""
    subscriptions, messages = subscriptions.first(SWEEP), world.messages(count, tokens=NINE)
    variants = {
        "DP": {"cuts": "dp"},
        "HR": {},
        "KFirst": {"first": "keyword"},
        "SFirst": {"first": "space"},
        "Trie-Qd": {"first": "trie"},
    }
    rows: list[dict[str, Any]] = []
    for name, options in variants.items():
        index, took = _built(subscriptions, "ap-tree", **options)
        cost = measure_index(index, messages)
        rows.append(
            {
                "variant": name,
                "ms": cost.milliseconds,
                "verified": cost.verified,
                "build, s": took,
                "MB": tree_bytes(index) / 1e6,
            }
        )
    report.table("[AP-TREE], Fig. 11: variants of the ap-tree (paper: DP and HR alike, the others far behind)", rows)
    report.plot(
        report.name,
        {"ms": (range(5), [row["ms"] for row in rows])},
        x=" | ".join(variants),
        y="ms per message",
        log="y",
    )


def figure_12(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """Against the rivals: time, build time, size. The figures to reach."""
    messages = world.messages(count, tokens=NINE)
    rows: list[dict[str, Any]] = []
    best = {}
    for name in ("rk-tree", *RIVALS):
        index, took = _built(subscriptions, name)
        cost = measure_index(index, messages, rounds=3)
        best[name] = cost
        rows.append(
            {
                "index": name,
                "ms": cost.milliseconds,
                "nodes": cost.nodes,
                "verified": cost.verified,
                "matched": cost.matched,
                "build, s": took,
                "MB": tree_bytes(index) / 1e6,
            }
        )
        del index
    size = f"{len(subscriptions):,}"
    report.table(
        f"[AP-TREE], Fig. 12: over rivals, {size} subscriptions (paper: RQ before IQ before R^t, AP far ahead)", rows
    )
    report.plot(report.name, {"ms": (range(5), [row["ms"] for row in rows])}, x=" | ".join(best), y="ms", log="y")
    if len(subscriptions) >= 5_000_000:
        for name, factor in RIVALS.items():
            if name != "ap-tree":
                ratio = best[name].milliseconds / best["ap-tree"].milliseconds
                report.target(f"ap-tree over {name}, {size} subscriptions", ratio, factor)
        verified = best["ap-tree"].verified / best["ap-tree"].matched
        report.target(f"ap-tree candidates per match, {size} subscriptions", verified, 8, at_least=False, unit="")
    if len(subscriptions) >= 2_000_000:
        some = subscriptions.first(2_000_000)
        times = {}
        for name in ("ap-tree", "keyword-first"):
            index = some.build(name)
            times[name] = measure_index(index, messages, rounds=3).milliseconds
        report.target("ap-tree over keyword-first, 2,000,000", times["keyword-first"] / times["ap-tree"], 10)


def _sweep(
    report: Report,
    world: World,
    subscriptions: Subscriptions,
    messages: int,
    title: str,
    values: dict[float, dict[str, Any]],
    log: str,
) -> None:
    """RK-, AP-, RQ- and IQ-tree over workloads that differ in one parameter."""
    lines: dict[str, list[float]] = {name: [] for name in ("rk-tree", "ap-tree", "rq-tree", "iq-tree")}
    rows = []
    count, asked = min(SWEEP, len(subscriptions)), world.messages(messages, tokens=NINE)
    for value, how in values.items():
        some = world.subscriptions(count, **how)
        for name, line in lines.items():
            line.append(measure_index(some.build(name), asked).milliseconds)
        rows.append({"value": f"{value:g}", **{f"{name}, ms": line[-1] for name, line in lines.items()}})
    report.table(f"[AP-TREE], {title}, {count:,} subscriptions", rows)
    report.plot(
        report.name,
        {name: (list(values), line) for name, line in lines.items()},
        x=title.split(":")[1].split("(")[0].strip(),
        y="ms per message",
        log=log,
    )


def figure_13(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """Keywords per subscription."""
    values: dict[float, dict[str, Any]] = {k: {"keywords": (k, k)} for k in range(1, 6)}
    title = "Fig. 13: keywords per subscription (paper: close at one, AP far ahead from two)"
    _sweep(report, world, subscriptions, count, title, values, "y")


def figure_14(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """Region sizes."""
    values: dict[float, dict[str, Any]] = {100 * a: {"area": (a, a)} for a in (1e-8, 1e-6, 1e-4, 1e-2, 1e-1)}
    title = "Fig. 14: region in % of the space (paper: AP most stable; IQ before RQ when tiny)"
    _sweep(report, world, subscriptions, count, title, values, "xy")


def figure_15(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """Growth of the AP-tree and of ours, with build time and memory."""
    messages = world.messages(count, tokens=NINE)
    whole = len(subscriptions)
    sizes = [n for n in (100_000, 1_000_000, 5_000_000, 10_000_000) if n < whole] + [whole]
    lines: dict[str, list[float]] = {"ap-tree": [], "rk-tree": []}
    rows: list[dict[str, Any]] = []
    for name, line in lines.items():
        for size in sizes:
            index, took = _built(subscriptions.first(size), name)
            cost = measure_index(index, messages, rounds=3)
            line.append(cost.milliseconds)
            megabytes = (tree_bytes(index) + sum(a.nbytes for a in index.store.rows) + index.store._map.nbytes) / 1e6
            rows.append(
                {
                    "index": name,
                    "subscriptions": size,
                    "ms": cost.milliseconds,
                    "verified": cost.verified,
                    "matched": cost.matched,
                    "per match": cost.verified / max(cost.matched, 1e-9),
                    "build, s": took,
                    "tree, MB": tree_bytes(index) / 1e6,
                    "with subscriptions, MB": megabytes,
                }
            )
            del index
            if size == 20_000_000:
                report.target(f"{name}, nine keywords, 20 million", line[-1], 0.4, at_least=False, unit="ms")
        at = sizes.index(1_000_000) if 1_000_000 in sizes else 0
        if len(sizes) > at + 1:
            what = f"{name}, growth of time from {sizes[at]:,} to {whole:,}"
            report.target(what, line[-1] / line[at], whole / sizes[at], at_least=False)
    report.table("[AP-TREE], Fig. 15: as subscriptions grow (paper: 0.4 ms at 20 million)", rows)
    report.plot(
        report.name,
        {name: (sizes, line) for name, line in lines.items()},
        x="subscriptions",
        y="ms per message",
        log="xy",
    )


def memory(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """What a build takes in a process of its own: seconds, and resident memory at its peak."""
    rows: list[dict[str, Any]] = []
    for name in ("ap-tree", "rk-tree"):
        took, peak = peak_of_build(subscriptions, name)
        rows.append({"index": name, "build, s": took, "peak, MB": peak})
        if len(subscriptions) == 5_000_000:
            report.target(f"{name}, build of 5 million", took, 180, at_least=False, unit="s")
            report.target(f"{name}, its peak resident memory", peak, 2_000, at_least=False, unit="MB")
    report.table(f"Building {len(subscriptions):,} in a fresh process", rows)


def _objects(subscriptions: Subscriptions, begin: int, end: int) -> list[Subscription]:
    s = subscriptions
    return [
        Subscription(
            i,
            frozenset(s.vocabulary[w] for w in s.keywords[s.offsets[i] : s.offsets[i + 1]].tolist()),
            tuple(s.boxes[i].tolist()),
        )
        for i in range(begin, end)
    ]


def _maintained(
    subscriptions: Subscriptions, share: float, messages: list[Message], name: str, **options: Any
) -> dict[str, Any]:
    """Build over the first so many, insert the rest one by one, then match."""
    begin = int(len(subscriptions) * share)
    index = subscriptions.first(begin).build(name, **options)
    later = _objects(subscriptions, begin, len(subscriptions))
    warm = subscriptions.first(0).build(name, **options)
    for subscription in later[:1_000]:  # so that no compilation is timed
        warm.insert(subscription)
    times = np.empty(len(later))
    for i, subscription in enumerate(later):
        start = time.perf_counter()
        index.insert(subscription)
        times[i] = time.perf_counter() - start
    return {
        "match, ms": measure_index(index, messages).milliseconds,
        "insert, ms": 1e3 * float(times.mean()),
        "longest, ms": 1e3 * float(times.max()),
        "inserts/s": 1 / float(times.mean()),
        "rebuilt": getattr(index, "rebuilt", 0),
    }


def figure_16(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """The drift threshold θ_KL."""
    subscriptions, messages = subscriptions.first(INSERTED), world.messages(count, tokens=NINE)
    values = (0.0001, 0.001, 0.01, 0.1, 0.5)
    rows = [{"drift": v, **_maintained(subscriptions, 0.2, messages, "ap-tree", drift=v)} for v in values]
    report.table("[AP-TREE], Fig. 16: ap-tree by θ_KL, 80 % inserted (paper: smaller matches faster, costs more)", rows)
    report.plot(
        report.name,
        {"match": (values, [r["match, ms"] for r in rows]), "insert": (values, [r["insert, ms"] for r in rows])},
        x="θ_KL",
        y="ms",
        log="xy",
    )


def figure_17(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """Maintenance: matching and insertion after building over a part, or nothing. The paper's AP needs 0.12 ms."""
    subscriptions, messages = subscriptions.first(INSERTED), world.messages(count, tokens=NINE)
    shares = (0.0, 0.1, 0.5, 0.9)
    lines: dict[str, list[float]] = {}
    rows = []
    for label, name, options in (
        ("AP-Tree", "ap-tree", {}),
        ("RK-Tree", "rk-tree", {}),
        ("AP-Tree-NR", "ap-tree", {"drift": 1e9}),
        ("IQ-Tree", "iq-tree", {}),
        ("RQ-Tree", "rq-tree", {}),
    ):
        for share in shares:
            row = _maintained(subscriptions, share, messages, name, **options)
            lines.setdefault(f"{label} match", []).append(row["match, ms"])
            lines.setdefault(f"{label} insert", []).append(row["insert, ms"])
            rows.append({"index": label, "built, %": 100 * share, **row})
    report.table(
        "[AP-TREE], Fig. 17: maintenance (paper: AP inserts in 0.12 ms; NR matches worse when little was built)", rows
    )
    report.plot(
        report.name,
        {k: ([100 * s for s in shares], v) for k, v in lines.items()},
        x="built, %",
        y="ms",
        log="y",
    )
    for label in ("AP-Tree", "RK-Tree"):
        rate = min(row["inserts/s"] for row in rows if row["index"] == label)
        report.target(f"{label}, insertions one by one, with rebuilds, the slowest share", rate, 20_000, unit="/s")


FIGURES = {
    "fig9": figure_9,
    "fig10": figure_10,
    "fig11": figure_11,
    "fig12": figure_12,
    "fig13": figure_13,
    "fig14": figure_14,
    "fig15": figure_15,
    "memory": memory,
    "fig16": figure_16,
    "fig17": figure_17,
}
