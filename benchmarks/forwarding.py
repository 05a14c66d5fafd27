"""The forwarding table against SFF's printed times, its own growth, and the engines one would use instead.

    python -m benchmarks.forwarding [--quick] [--only NAME ...]

Parts: `sff` (workloads Z and C), `changes` (adding, memory, the longest pause), `churn` (a million filters replaced),
`loading` (a saved table in a fresh process), `regions` (the region mix, beside an STRtree with a dictionary and beside
koncorde), `conditions` (an area and a kind, beside the areas alone and a look-up), `growth`, `simplifier` (Fig. 4b and
Table 3, scenario 2, of [SIENA-2D]) and `contains` (the substring index beside pyahocorasick).

Times are the processor's, of work in one thread: what the clock shows on a machine with nothing else to do. Where it
matters, the clock's stand beside them.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.forwarding_churn import churn
from benchmarks.forwarding_loading import loading
from benchmarks.forwarding_rivals import Shapely, koncorde
from benchmarks.forwarding_workloads import Comparing, RegionMix, Zipf, star, three_constraints
from benchmarks.harness import Report, data_directory, seconds
from benchmarks.region_conditions import conditions
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Workload, interfaces, filters of each, SFF's microseconds per notification, how many times faster we mean to be.
SFF = [
    ("Z", 100, 100, 29.0, 1.0),
    ("Z", 10_000, 1, 19.0, 1.0),
    ("Z", 1_000, 100, 580.0, 4.0),
    ("Z", 100_000, 1, 650.0, 4.0),
    ("Z", 1_000, 500, 9_700.0, 4.0),
    ("C", 10, 25_000, 2_100.0, 10.0),
]


def spent(call: Callable[[], Any], *, repeat: int = 3, budget: float = 2.0) -> float:
    """Median seconds of processor time."""
    return seconds(call, repeat=repeat, budget=budget, clock=time.process_time)


def fill(table: ForwardingTable, pairs: Sequence[tuple[Any, Filter]]) -> float:
    """Add all; filters per second. The workload's own objects are not collected meanwhile, as in `seconds`."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    table.add_many(pairs)
    took = time.process_time() - start
    gc.enable()
    return len(pairs) / took


def one_by_one(table: ForwardingTable, notifications: Sequence[Any]) -> float:
    """Seconds per notification of single `match` calls."""

    def run() -> None:
        for notification in notifications:
            table.match(notification)

    return spent(run) / len(notifications)


def against_sff(report: Report, quick: bool) -> None:
    rows = []
    for workload, interfaces, each, printed, bound in SFF:
        if quick and interfaces * each > 100_000:
            continue
        source = Zipf() if workload == "Z" else Comparing()
        pairs = [(f"I{i % interfaces}", made) for i, made in enumerate(source.filters(interfaces * each))]
        table = ForwardingTable()
        adding = fill(table, pairs)
        notifications = source.notifications(1_000 if quick else 4_000)
        many = spent(lambda t=table, n=notifications: t.match_many(n)) / len(notifications) * 1e6
        clock = seconds(lambda t=table, n=notifications: t.match_many(n), repeat=3) / len(notifications) * 1e6
        single = one_by_one(table, notifications[:1000]) * 1e6
        first = spent(lambda t=table, n=notifications: t.match_many(n[:1000])) / 1000 * 1e6
        answers = table.match_many(notifications)
        stats = table.stats()
        what = f"{workload} {interfaces:,} × {each:,}"
        rows.append(
            {
                "workload": what,
                "constraints": sum(len(made) for _, made in pairs),
                "SFF µs": printed,
                "match_many µs": many,
                "by the clock": clock,
                "ratio": printed / many,
                "match µs": single,
                "interfaces found": sum(map(len, answers)) / len(answers),
                "covered": stats.covered,
                "adds/s": round(adding),
                "MB": stats.bytes / 1e6,
            }
        )
        report.target(f"{what}: SFF / match_many", printed / many, bound)
        report.target(f"{what}: single match, above match_many", single - first, 15, at_least=False, unit="µs")
        if (workload, interfaces) == ("Z", 1_000) and each == 100:
            report.target("adds in bulk", adding, 50_000, unit="filters/s")
    report.table("Against SFF 2.0.1 (C++), per notification", rows)


def changes(report: Report, quick: bool) -> None:
    count = 100_000 if quick else 1_000_000
    # In a process of its own, so that the memory is the table's.
    command = [sys.executable, "-m", "benchmarks.forwarding", "--child", str(count)]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    report.table(f"Changing a table of {count:,} filters of three constraints", [measured])
    report.target(f"memory of {count:,} filters", measured["RSS GB"], 1.5, at_least=False, unit="GB")
    report.target("adds one by one", measured["single adds/s"], 10_000, unit="filters/s")
    report.target("longest add or remove, processor time", measured["longest ms"], 5, at_least=False, unit="ms")
    clock = measured["longest by the clock ms"]
    report.target("longest add or remove, by the clock", clock, 5, at_least=False, unit="ms")


def child(count: int) -> None:
    """Build a large table and change it, timing each change; print what came out as JSON."""
    table = ForwardingTable()
    table.add_many([("warm", each) for each in three_constraints(300, seed=9)])
    table.match({"price": 1})
    table.remove_interface("warm")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    source = three_constraints(count)
    i = 0
    while piece := list(islice(source, 10_000)):
        table.add_many([(f"I{(i + j) % 5000}", each) for j, each in enumerate(piece)])
        i += len(piece)
    building = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    more = list(three_constraints(20_000, seed=5))
    adds, removes, ids, added, removed = [], [], [], [], []
    gc.collect()
    gc.disable()
    for j, each in enumerate(more):
        start, cpu = time.perf_counter(), time.thread_time()
        ids += table.add(f"I{j % 5000}", each)
        adds.append(time.perf_counter() - start)
        added.append(time.thread_time() - cpu)
    for id in ids:
        start, cpu = time.perf_counter(), time.thread_time()
        table.remove(id)
        removes.append(time.perf_counter() - start)
        removed.append(time.thread_time() - cpu)
    print(
        json.dumps(
            {
                "filters": len(table),
                "RSS GB": peak / 1e6,
                "GB before": before / 1e6,
                "table GB": table.stats().bytes / 1e9,
                "building s": building,
                "single adds/s": len(added) / sum(added),
                "by the clock": len(adds) / sum(adds),
                "removes/s": len(removed) / sum(removed),
                "longest ms": max(added + removed) * 1e3,  # of the change itself, whatever else runs on the machine
                "longest by the clock ms": max(adds + removes) * 1e3,
            }
        )
    )


def region_mix(report: Report, quick: bool, installed: Path | None) -> None:
    source = RegionMix()
    filters = source.filters(2_000 if quick else 10_000)
    notifications = source.notifications(1_000 if quick else 4_000)
    table = ForwardingTable()
    table.add_many(list(enumerate(filters)))
    many = len(notifications) / spent(lambda: table.match_many(notifications))
    clock = len(notifications) / seconds(lambda: table.match_many(notifications), repeat=3)
    rival = Shapely(source.rows)
    some = notifications[:500]
    theirs = len(some) / spent(lambda: [rival.match(each) for each in some])
    same = [rival.match(each) for each in some] == table.match_many(some)
    points = [each for each in notifications if isinstance(each["area"], Point)]
    on_points = len(points) / spent(lambda: table.match_many(points))
    rows = [
        {"engine": "ForwardingTable.match_many", "notifications": "points and polygons", "per second": many},
        {"engine": "the same by the clock", "notifications": "points and polygons", "per second": clock},
        {"engine": "ForwardingTable.match_many", "notifications": "points", "per second": on_points},
        {"engine": "shapely STRtree and dict", "notifications": "points and polygons", "per second": theirs},
    ]
    measured = koncorde(source.rows, points, installed)
    if isinstance(measured, str):
        report.console.print(f"koncorde was not measured: {measured}")
    else:
        rows.append({"engine": "koncorde (node)", "notifications": "points", "per second": measured})
    report.table(f"Region mix, {len(filters):,} filters", rows)
    report.target("region mix", many, 20_000, unit="notifications/s")
    report.target("region mix: same answers as shapely", float(same), 1, unit="")


def growth(report: Report, quick: bool) -> None:
    sizes = [1_000, 3_000, 10_000, 30_000, 100_000] + ([] if quick else [300_000])
    lines: dict[str, tuple[list[float], list[float]]] = {"Z, one filter each": ([], []), "C, 10 interfaces": ([], [])}
    for (xs, ys), one in zip(lines.values(), (True, False), strict=True):
        source = Zipf(11) if one else Comparing(12)
        notifications = source.notifications(1_000)
        table = ForwardingTable()
        held = 0
        for size in sizes:
            more = source.filters(size - held)
            table.add_many([(held + i if one else i % 10, each) for i, each in enumerate(more)])
            held = size
            xs.append(size)
            ys.append(spent(lambda t=table, n=notifications: t.match_many(n)) * 1e6 / len(notifications))
    report.table(
        "Growth: µs per notification",
        [{"filters": size, **{name: ys[i] for name, (_, ys) in lines.items()}} for i, size in enumerate(sizes)],
    )
    report.plot("forwarding-growth", lines, x="filters", y="µs per notification", log="xy")


def simplifier(report: Report, quick: bool, data: Path | None) -> None:
    rng = np.random.default_rng(6)
    operators = [op for op in Operator if op.mask]

    def synthetic() -> Region:
        x, y = (0.2 + 0.6 * rng.random(2)) * 1000
        return Region(star(rng, float(x), float(y), 200 + 300 * rng.random(), 20))

    def predicates(regions: Sequence[Region], count: int, simplify: bool) -> ForwardingTable:
        draws = np.random.default_rng(7)
        table = ForwardingTable(simplify=simplify)
        made = []
        for i in range(0, len(regions) - 1, 2):
            two = [Constraint("area", operators[int(draws.integers(len(operators)))], r) for r in regions[i : i + 2]]
            made.append((int(draws.integers(count)), Filter(two)))
        table.add_many(made)
        return table

    rows: list[dict[str, Any]] = []
    lines: dict[str, tuple[list[float], list[float]]] = {}
    sizes = [1_000, 2_000] if quick else [1_000, 2_500, 5_000, 10_000]
    regions = [synthetic() for _ in range(sizes[-1])]
    queries = [{"area": synthetic()} for _ in range(20)]
    for count in (5, 15, 25):
        for size in sizes:
            row: dict[str, Any] = {"predicates": count, "constraints": size}
            for simplify in (False, True):
                table = predicates(regions[:size], count, simplify)
                took = spent(lambda t=table: t.match_many(queries), budget=1.0) / len(queries) * 1e3
                row["simplified ms" if simplify else "ms"] = took
                xs, ys = lines.setdefault(f"{count} predicates{', simplified' if simplify else ''}", ([], []))
                xs.append(size)
                ys.append(took)
                if simplify:
                    row["active"] = table.stats().active
            rows.append(row)
    report.table("Fig. 4b: filters of two region constraints", rows)
    report.plot("forwarding-fig4b", lines, x="constraints", y="ms per notification")
    if data is None:
        report.console.print("Table 3 needs the GIS data: --data DIR or $CONTRADA_DATA")
        return
    rows = []
    for name in ("london_buildings",) if quick else ("london_buildings", "osm_natural"):
        stored = np.load(data / f"{name}.npz")
        coords, offsets = stored["coords"] * float(stored["scale"]), stored["offsets"]
        chosen = np.flatnonzero(stored["paper_subset"])
        if name == "osm_natural":  # one area is one universe
            chosen = chosen[stored["region"][chosen] == b"isle-of-wight"]
        real = [Region(coords[offsets[i] : offsets[i + 1]]) for i in chosen.tolist()]
        low, high = np.min([r.bounds[:2] for r in real], axis=0), np.max([r.bounds[2:] for r in real], axis=0)
        moving = []
        for _ in range(20):
            x, y = low + rng.random(2) * (high - low)
            radius = float(np.min(high - low)) * (0.05 + 0.2 * rng.random())
            moving.append({"area": Region(star(rng, float(x), float(y), radius, 10))})
        row = {"data": name, "constraints": len(real)}
        for simplify in (False, True):
            table = predicates(real, 25, simplify)
            took = spent(lambda t=table, m=moving: t.match_many(m), budget=1.0) / len(moving) * 1e3
            row["simplified ms" if simplify else "ms"] = took
        rows.append(row)
    report.table("Table 3, scenario 2: 25 predicates, filters of two constraints, region type A", rows)


def contains(report: Report, quick: bool) -> None:
    import ahocorasick

    rng = np.random.default_rng(8)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz "))
    rows = []
    for count in (1_000, 100_000) if quick else (1_000, 100_000, 300_000):
        patterns = list({"".join(rng.choice(letters, int(rng.integers(4, 16)))) for _ in range(count)})
        texts = ["".join(rng.choice(letters, 200)) for _ in range(500)]
        table = ForwardingTable(simplify=False)
        start = time.process_time()
        table.add_many([(i, attr("text").contains(each)) for i, each in enumerate(patterns)])
        ours_built = time.process_time() - start
        start = time.process_time()
        automaton = ahocorasick.Automaton()
        for i, each in enumerate(patterns):
            automaton.add_word(each, i)
        automaton.make_automaton()
        built = time.process_time() - start
        notifications = [{"text": each} for each in texts]
        ours = spent(lambda t=table, n=notifications: t.match_many(n)) / len(texts) * 1e6
        theirs = spent(lambda a=automaton, t=texts: [{i for _, i in a.iter(each)} for each in t]) / len(texts) * 1e6
        assert table.match_many(notifications) == [{i for _, i in automaton.iter(each)} for each in texts]
        one = iter(range(1000))

        def change(t: ForwardingTable = table, n: Iterator[int] = one) -> None:
            t.remove(t.add("one more", attr("text").contains(f"one more pattern {next(n)}"))[0])

        changed = spent(change, repeat=100) * 1e3  # the first call, which loads kernels, does not count
        rows.append(
            {
                "patterns": len(patterns),
                "ours µs": ours,
                "pyahocorasick µs": theirs,
                "ours built s": ours_built,
                "pyahocorasick built s": built,
                "add and remove one: ours ms": changed,
                "pyahocorasick ms": built * 1e3,
            }
        )
        if count == 100_000:
            report.target("substrings, 100,000 patterns: pyahocorasick / ours, per text", theirs / ours, 1)
            report.target("substrings, 100,000 patterns: pyahocorasick / ours, one change", built * 1e3 / changed, 100)
    report.table("Substrings: 200 letters of text against patterns of 4 to 15", rows)
    rows = []
    for name, some, text in alike():
        for beside in (False, True):
            table = ForwardingTable(simplify=False)
            conditions = [attr("text").contains(each) & (attr("kind") == 1) for each in some]
            table.add_many(
                [(i, both if beside else attr("text").contains(some[i])) for i, both in enumerate(conditions)]
            )
            took = spent(lambda t=table, s=text: t.match({"kind": 1, "text": s})) * 1e3 / len(text) * 1e6
            rows.append({"patterns": name, "verified only": beside, "ms per million letters": took})
    report.table("Substrings made to resemble the text, of up to 256 letters", rows)
    report.target(
        "substrings made to resemble the text: 50 ms / the worst million letters",
        50 / max(row["ms per million letters"] for row in rows),
        1,
    )


def alike() -> Iterator[tuple[str, list[str], str]]:
    """Sets of patterns, and a text of a million letters that each of them nearly is everywhere."""
    text = "a" * 1_000_000
    yield "64 runs of one letter", ["a" * n for n in range(193, 257)], text
    for count in (64, 10_000):
        others = [chr(letter) for letter in range(33, 127) if letter != ord("a")]
        some = ["a" * (255 - i % 128) + others[i // 128] + "a" * (i % 128) for i in range(count)]
        yield f"{count:,} that differ from the text in one letter", some, text
    rng = np.random.default_rng(9)
    text = "".join(rng.choice(["a", "b"], 1_000_000))
    some = [text[at : at + size] + "c" for at, size in rng.integers((0, 9), (999_000, 255), (10_000, 2)).tolist()]
    yield "10,000 that differ from a part of random text in their last letter", some, text
    a, b = "a", "ab"
    while len(b) < 1_000_000:
        a, b = b, b + a
    yield "1,020 Fibonacci words", [b[:n] + end for n in range(1, 256) for end in ("", "a", "b", "c")], b[:1_000_000]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, under a minute")
    parser.add_argument("--data", help="directory of the GIS data sets; default $CONTRADA_DATA")
    parser.add_argument("--only", nargs="*", help="parts to run; default all")
    parser.add_argument("--koncorde", type=Path, help="where koncorde is installed, or will be")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return 0
    report = Report("forwarding" + ("-" + "-".join(arguments.only) if arguments.only else ""))
    data = data_directory(arguments.data)
    parts = {
        "sff": lambda: against_sff(report, arguments.quick),
        "changes": lambda: changes(report, arguments.quick),
        "churn": lambda: churn(report, arguments.quick),
        "loading": lambda: loading(report, arguments.quick),
        "regions": lambda: region_mix(report, arguments.quick, arguments.koncorde),
        "conditions": lambda: conditions(report, arguments.quick),
        "growth": lambda: growth(report, arguments.quick),
        "simplifier": lambda: simplifier(report, arguments.quick, data),
        "contains": lambda: contains(report, arguments.quick),
    }
    for name, part in parts.items():
        if not arguments.only or name in arguments.only:
            part()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
