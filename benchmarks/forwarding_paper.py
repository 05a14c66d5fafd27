"""Section 5 of [SIENA-2D] by the forwarding table: `make bench-forwarding_paper ARGS="--data DIR --quick"`.

Fig. 4a (one constraint for each of N predicates), Fig. 4b (filters of two, in a few predicates or in many) and both
scenarios of Table 3 (real polygons, query types A, B, C), counting and selective, exact and sampled, with and without
the simplifier. Fig. 5 and what the CR-tree alone takes are in benchmarks/regions.py, with the same workloads.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import region_workloads as workloads
from benchmarks.harness import Report, data_directory
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.region import Region
from contrada.spatial.relations.relate import EXACT, Uniform
from contrada.spatial.relations.relation import RELATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.region_workloads import Polygons
    from contrada.spatial.relations.relate import Discretization

OPERATORS = [Operator(relation.value) for relation in RELATIONS]
WAYS = ("counting", "selective")
FIGURE_4, TABLE_3 = 2_000, 10_000  # points per half-length of the universe


def filters(random: np.random.Generator, regions: Sequence[Region], constraints: int) -> list[Filter]:
    """Filters of so many regions each, operators at random."""
    made = [
        Constraint("area", OPERATORS[int(op)], r)
        for op, r in zip(random.integers(0, 8, len(regions)), regions, strict=True)
    ]
    return [Filter(made[i : i + constraints]) for i in range(0, len(made) - constraints + 1, constraints)]


def filled(
    made: Sequence[Filter], predicates: int, way: str, discretization: Discretization = EXACT, simplify: bool = False
) -> ForwardingTable[int]:
    """A table of so many predicates."""
    table: ForwardingTable[int] = ForwardingTable(discretization, matching=way, simplify=simplify)
    table.add_many([(i % predicates, each) for i, each in enumerate(made)])
    return table


def milliseconds(table: ForwardingTable[int], queries: Sequence[Region]) -> float:
    """Processor time of one `match`, the median of some regions, of a table that has seen what comes."""
    for query in [*queries] * 4:
        table.match({"area": query})
    times = []
    for query in queries:
        start = time.process_time()
        table.match({"area": query})
        times.append(time.process_time() - start)
    return 1e3 * median(times)


def milliseconds_by_filter(table: ForwardingTable[int], queries: Sequence[Region]) -> float:
    """As `milliseconds`, of `match_filters`, which asks for all filters: nothing is cut short."""
    times = []
    for query in queries:
        start = time.process_time()
        table.match_filters({"area": query})
        times.append(time.process_time() - start)
    return 1e3 * median(times)


def figure_4a(report: Report, quick: bool) -> None:
    random = np.random.default_rng(4)
    sizes = [500, 2000] if quick else [500, 1000, 2000, 5000, 10_000]
    regions = [workloads.synthetic(random) for _ in range(sizes[-1])]
    queries = [workloads.synthetic(random) for _ in range(10)]
    sampled = Uniform(FIGURE_4 / workloads.half_length(workloads.UNIT))
    rows = []
    for size in sizes:
        made = filters(random, regions[:size], 1)
        row: dict[str, Any] = {"constraints": size}
        for name, discretization in (("exact", EXACT), ("Uniform(2000)", sampled)):
            row[f"{name} ms"] = milliseconds(filled(made, size, "counting", discretization), queries)
        rows.append(row)
    report.table(
        "Fig. 4a by the table: N predicates of one constraint (counting and selective are the same here)", rows
    )
    columns = [name for name in rows[0] if name != "constraints"]
    lines = {name: (sizes, [row[name] for row in rows]) for name in columns}
    report.plot("forwarding-paper-fig4a", lines, x="constraints", y="ms per notification", log="xy")


def figure_4b(report: Report, quick: bool) -> None:
    random = np.random.default_rng(5)
    sizes = [1000, 2000] if quick else [1000, 2500, 5000, 10_000]
    regions = [workloads.synthetic(random) for _ in range(sizes[-1])]
    queries = [workloads.synthetic(random) for _ in range(20)]
    sampled = Uniform(FIGURE_4 / workloads.half_length(workloads.UNIT))
    rows: list[dict[str, Any]] = []
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for predicates in (1, 5, 15, 25, None):
        for size in sizes:
            made = filters(random, regions[:size], 2)
            count = predicates or len(made)
            row: dict[str, Any] = {"predicates": count, "constraints": size}
            for way in WAYS:
                for simplify in (False, True):
                    what = f"{way}, simplified" if simplify else way
                    table = filled(made, count, way, simplify=simplify)
                    row[f"{what} ms"] = milliseconds(table, queries)
                    xs, ys = lines.setdefault(f"{predicates or 'N / 2'} predicates, {what}", ([], []))
                    xs.append(size)
                    ys.append(row[f"{what} ms"])
            row["active"] = table.stats().active
            table = filled(made, count, "auto")
            row["auto ms"] = milliseconds(table, queries)
            row["auto, every filter ms"] = milliseconds_by_filter(table, queries)
            if size == sizes[-1]:
                row["counting, Uniform(2000) ms"] = milliseconds(filled(made, count, "counting", sampled), queries[:5])
            else:
                row["counting, Uniform(2000) ms"] = "-"
            rows.append(row)
        if predicates is not None:
            grown = rows[-1]["counting ms"] / rows[-2]["counting ms"]
            report.target(f"Fig. 4b, {predicates} predicates: twice the constraints", grown, 1.3, at_least=False)
    last = {row["predicates"]: row for row in rows if row["constraints"] == sizes[-1]}
    one, most = last[1], last[max(last)]
    for name in ("auto ms", "auto, every filter ms"):
        grown = most[name] / one[name]
        report.target(f"Fig. 4b, {name}: {max(last):,} predicates over 1", grown, 1.3, at_least=False)
    report.table("Fig. 4b by the table: filters of two constraints", rows)
    report.plot("forwarding-paper-fig4b", lines, x="constraints", y="ms per notification", log="y")


def table_3(report: Report, sets: list[Polygons], quick: bool) -> None:
    first, second = [], []
    for polygons in sets:
        random = np.random.default_rng(6)
        regions = [Region(ring) for ring in polygons.rings()]
        sampled = Uniform(TABLE_3 / workloads.half_length(polygons.universe))
        queries = {
            kind: workloads.queries(random, kind, polygons.universe, 5 if quick else 15) for kind in workloads.TYPES
        }
        single, double = filters(random, regions, 1), filters(random, regions, 2)
        rows = {kind: {"set": polygons.name, "constraints": len(regions), "type": kind} for kind in workloads.TYPES}
        for name, discretization in (("exact", EXACT), ("Uniform(10000)", sampled)):
            table = filled(single, len(single), "counting", discretization)
            for kind in workloads.TYPES:
                rows[kind][f"{name} ms"] = milliseconds(table, queries[kind])
        first += rows.values()
        rows = {kind: {"set": polygons.name, "constraints": len(regions), "type": kind} for kind in workloads.TYPES}
        for way in WAYS:
            for name, discretization, simplify in (
                ("exact", EXACT, False),
                ("simplified", EXACT, True),
                ("Uniform(10000)", sampled, False),
            ):
                table = filled(double, 25, way, discretization, simplify)
                for kind in workloads.TYPES:
                    rows[kind][f"{way}, {name} ms"] = milliseconds(table, queries[kind])
        second += rows.values()
    report.table("Table 3, scenario 1, by the table: one constraint per filter, one filter per predicate", first)
    report.table("Table 3, scenario 2: 25 predicates, filters of two constraints", second)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="directory of the polygon files; $CONTRADA_DATA by default")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller")
    parser.add_argument("--only", choices=("figure-4a", "figure-4b", "table-3"), action="append")
    arguments = parser.parse_args()
    report = Report("forwarding_paper")
    wanted = arguments.only or ["figure-4a", "figure-4b", "table-3"]
    if "figure-4a" in wanted:
        figure_4a(report, arguments.quick)
    if "figure-4b" in wanted:
        figure_4b(report, arguments.quick)
    directory = data_directory(arguments.data)
    if "table-3" in wanted and directory is not None:
        names = ["London"] if arguments.quick else list(workloads.NAMES)
        table_3(report, [workloads.load(directory, name) for name in names], arguments.quick)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
