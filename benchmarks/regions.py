"""Regions, relations and the CR-tree: section 5 of [SIENA-2D]. `make bench-regions ARGS="--data DIR --quick"`.

Fig. 4a (matching time against the number of constraints), Fig. 5 (precision against density) and scenario 1 of Table 3
(real polygons, query types A, B, C), with what a Python user would write as the peer: a shapely STRtree, a prepared
query and vectorised predicates. Fig. 4b and scenario 2 need predicates: see the forwarding benchmark. Without `--data`
only the synthetic parts are run.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from benchmarks import region_workloads as workloads
from benchmarks.harness import Report, data_directory, seconds
from contrada.spatial.cr_tree.tree import CRTree
from contrada.spatial.geometry.region import Point, Region
from contrada.spatial.relations.relate import EXACT, Uniform, pack, relate_codes
from contrada.spatial.relations.relation import DISJOINT, RELATIONS
from tests.naive import relate as rational

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.region_workloads import Polygons
    from contrada.spatial.relations.relate import Discretization

    Ints = NDArray[np.int64]

PAPER_DENSITY = 2000
DENSER = 12_000
TABLE_3_DENSITY = 10_000


class Stored:
    """Constraints in the forms that the rivals take them in."""

    def __init__(self, regions: list[Region], random: np.random.Generator) -> None:
        self.regions = regions
        self.ids = np.arange(len(regions))
        self.codes = random.integers(0, 8, len(regions))  # "choosing 2D operators uniformly at random"
        self.masks = 1 << self.codes
        self.rings = pack(regions)
        self.tree = CRTree.bulk(self.ids, regions, self.masks)
        self.shapes = np.array([region.to_shapely() for region in regions])
        self.strtree = shapely.STRtree(self.shapes)

    def scan(self, query: Region, discretization: Discretization = EXACT) -> Ints:
        """The linear scan: every relation, then the operator of each constraint."""
        return self.ids[relate_codes(query, self.rings, discretization) == self.codes]

    def peer(self, query: Any) -> Ints:
        """What a careful user of shapely would write: relations are computed only where the prepared query hits."""
        shapely.prepare(query)
        hit = self.strtree.query(query, predicate="intersects")
        found = np.full(len(self.ids), DISJOINT)
        near = self.shapes[hit]
        inner = shapely.contains_properly(query, near)
        found[hit[inner]] = _CODE_OF["contains"]
        found[hit[~inner]] = [_code_of_matrix(m) for m in shapely.relate(query, near[~inner])]
        return self.ids[found == self.codes]


_CODE_OF = {relation.value: relation.code for relation in RELATIONS}
_KNOWN: dict[str, int] = {}


def _code_of_matrix(matrix: str) -> int:
    """Return the code of the relation that a DE-9IM matrix describes. There are few, so they are remembered."""
    if matrix not in _KNOWN:
        interiors, boundaries = matrix[0] != "F", matrix[4] != "F"
        a_leaves, b_leaves = matrix[2] != "F", matrix[6] != "F"
        if not interiors:
            name = "meets" if boundaries else "disjoint"
        elif a_leaves and b_leaves:
            name = "overlaps"
        elif a_leaves:
            name = "covers" if boundaries else "contains"
        elif b_leaves:
            name = "covered-by" if boundaries else "inside"
        else:
            name = "equals"
        _KNOWN[matrix] = _CODE_OF[name]
    return _KNOWN[matrix]


def each(call: Any, items: list[Any], budget: float = 4.0) -> float:
    """Median over the items of the median seconds of call(item)."""
    return median(seconds(lambda item=item: call(item), repeat=3, budget=budget / len(items)) for item in items)


def relations(report: Report, seeds: range, quick: bool) -> None:
    """One region against 2,000: exact, sampled, shapely; and how often sampling errs."""
    density = {d: Uniform(d / workloads.half_length(workloads.UNIT)) for d in (PAPER_DENSITY, DENSER)}
    rows = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        regions = [workloads.synthetic(random) for _ in range(2000)]
        query = workloads.synthetic(random)
        rings = pack(regions)
        shapes = np.array([region.to_shapely() for region in regions])
        prepared = query.to_shapely()
        shapely.prepare(prepared)
        exact = seconds(lambda: relate_codes(query, rings))  # noqa: B023  # called at once
        sampled = seconds(lambda: relate_codes(query, rings, density[PAPER_DENSITY]))  # noqa: B023  # called at once
        geos = seconds(lambda: shapely.relate(prepared, shapes))  # noqa: B023  # called at once
        codes = relate_codes(query, rings)
        checked = range(50 if quick else 250)
        truth = [rational.relate(query.coords.tolist(), regions[i].coords.tolist()).code for i in checked]
        errors = {}
        for d, trials in ((PAPER_DENSITY, 10 if quick else 40), (DENSER, 5 if quick else 20)):
            others = [workloads.synthetic(random) for _ in range(trials)]
            errors[d] = np.mean([relate_codes(q, rings, density[d]) != relate_codes(q, rings) for q in others])
        rows.append(
            {
                "seed": seed,
                "exact µs/pair": exact / 2e3 * 1e6,
                "Uniform(2000) µs/pair": sampled / 2e3 * 1e6,
                "shapely.relate µs/pair": geos / 2e3 * 1e6,
                "wrong (oracle)": int(sum(c != t for c, t in zip(codes[: len(truth)].tolist(), truth, strict=True))),
                "error % at 2000": 100 * float(errors[PAPER_DENSITY]),
                "error % at 12000": 100 * float(errors[DENSER]),
            }
        )
    report.table("One region of 20 vertices against 2,000", rows)

    def middle(column: str) -> float:
        return median(row[column] for row in rows)

    report.target("exact relate over shapely.relate", middle("shapely.relate µs/pair") / middle("exact µs/pair"), 6)
    wrong = sum(row["wrong (oracle)"] for row in rows)
    report.target("exact relate against rational arithmetic", wrong, 0, at_least=False, unit="wrong")
    report.target("exact relate over Uniform(2000)", middle("Uniform(2000) µs/pair") / middle("exact µs/pair"), 10)
    report.target("Uniform(2000), wrong relations", middle("error % at 2000"), 0.09, at_least=False, unit="%")
    report.target("Uniform(12000), wrong relations", middle("error % at 12000"), 0.015, at_least=False, unit="%")


def figure_4a(report: Report, quick: bool) -> None:
    """Matching time against the number of synthetic constraints."""
    random = np.random.default_rng(4)
    regions = [workloads.synthetic(random) for _ in range(2000 if quick else 10_000)]
    queries = [workloads.synthetic(random) for _ in range(3 if quick else 5)]
    sampled = Uniform(PAPER_DENSITY / workloads.half_length(workloads.UNIT))
    rows = []
    for count in (500, 1000, 2000, 5000, 10_000):
        if count > len(regions):
            break
        stored = Stored(regions[:count], random)
        sampled_tree = CRTree.bulk(stored.ids, stored.regions, stored.masks, sampled)
        shapes = {id(q): q.to_shapely() for q in queries}
        times = {
            "shapely, linear": each(lambda q: shapely.relate(shapes[id(q)], stored.shapes), queries),  # noqa: B023  # called at once
            "Uniform(2000), linear": each(lambda q: stored.scan(q, sampled), queries),  # noqa: B023  # called at once
            "Uniform(2000), CR-tree": each(sampled_tree.search, queries),
            "exact, linear": each(stored.scan, queries),
            "exact, CR-tree": each(stored.tree.search, queries),
        }
        rows.append({"constraints": count, **{name: 1e3 * t for name, t in times.items()}})
    report.table("Fig. 4a: matching time in ms, synthetic worst case", rows)
    counts = [row["constraints"] for row in rows]
    lines = {name: (counts, [row[name] for row in rows]) for name in rows[0] if name != "constraints"}
    report.plot("regions-fig4a", lines, x="constraints", y="ms per region", log="xy")


def figure_5(report: Report, sets: list[Polygons], quick: bool) -> None:
    """How much the answers change from one density to the next."""
    densities = [0, 10_000, 20_000, 30_000, 40_000, 50_000]
    lines: dict[str, tuple[list[float], list[float]]] = {}
    rows = []
    for polygons in sets:
        random = np.random.default_rng(5)
        ids = np.arange(len(polygons))
        masks = 1 << random.integers(0, 8, len(ids))
        half = workloads.half_length(polygons.universe)
        trees = [CRTree.bulk(ids, (polygons.coords, polygons.offsets), masks, Uniform(d / half)) for d in densities]
        for kind in workloads.TYPES:
            queries = workloads.queries(random, kind, polygons.universe, 5 if quick else 30)
            answers = [[np.sort(tree.search(q)) for q in queries] for tree in trees]
            gains = [
                100 * float(np.mean([len(np.setxor1d(a, b)) for a, b in zip(low, high, strict=True)])) / len(ids)
                for low, high in pairwise(answers)
            ]
            lines[f"{polygons.name}, {kind}"] = ([float(d) for d in densities[:-1]], gains)
            rows.append({"set": polygons.name, "type": kind, **dict(zip(map(str, densities), gains, strict=False))})
    report.table("Fig. 5: incremental precision gain in %, from each density to the next 10,000", rows)
    report.plot("regions-fig5", lines, x="points per half-length", y="incremental precision gain, %")


def table_3(report: Report, sets: list[Polygons], seeds: range, quick: bool) -> None:
    """Scenario 1: one constraint per polygon, with and without the CR-tree, and the peer."""
    rows = []
    largest = max(sets, key=len)
    for polygons in sets:
        regions = [Region(ring) for ring in polygons.rings()]
        half = workloads.half_length(polygons.universe)
        sampled = Uniform(TABLE_3_DENSITY / half)
        runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in workloads.TYPES}
        for seed in seeds:
            random = np.random.default_rng(seed)
            stored = Stored(regions, random)
            sampled_tree = CRTree.bulk(stored.ids, regions, stored.masks, sampled)
            for kind in workloads.TYPES:
                queries = workloads.queries(random, kind, polygons.universe, 5 if quick else 15)
                runs[kind].append(_search_times(stored, queries, sampled, sampled_tree))
        for kind in workloads.TYPES:
            row = {column: median(run[column] for run in runs[kind]) for column in runs[kind][0]}
            rows.append({"set": polygons.name, "type": kind, "constraints": len(polygons), **row})
            if polygons is largest:
                bound = {"A": 15, "B": 20, "C": 100}[kind]
                report.target(f"CR-tree over linear scan, {polygons.name} {kind}", row["over linear"], bound)
            if polygons.name in _OVER_PEER:
                bound = _OVER_PEER[polygons.name][kind]
                report.target(f"CR-tree over STRtree + relate, {polygons.name} {kind}", row["over STRtree"], bound)
    report.table("Table 3, scenario 1: ms per region (Uniform at 10,000 points per half-length)", rows)


def _search_times(stored: Stored, queries: list[Region], sampled: Uniform, sampled_tree: CRTree) -> dict[str, float]:
    """Milliseconds per query of each rival, whose answers must be the same; and what the tree did."""
    shapes = [query.to_shapely() for query in queries]
    for query, shape in zip(queries, shapes, strict=True):
        answer = np.sort(stored.tree.search(query))
        assert np.array_equal(answer, stored.scan(query)), "the index disagrees with the linear scan"
        assert np.array_equal(answer, stored.peer(shape)), "the index disagrees with the peer"
    before = stored.tree.counters
    tree = 1e3 * each(stored.tree.search, queries)
    after = stored.tree.counters
    searches = after.searches - before.searches
    linear = 1e3 * each(stored.scan, queries)
    peer = 1e3 * each(stored.peer, shapes)
    return {
        "Uniform, linear": 1e3 * each(lambda q: stored.scan(q, sampled), queries[:3], 1.0),
        "Uniform, CR-tree": 1e3 * each(sampled_tree.search, queries),
        "exact, linear": linear,
        "STRtree": peer,
        "CR-tree": tree,
        "nodes": (after.nodes_visited - before.nodes_visited) / searches,
        "evaluated": (after.relations_evaluated - before.relations_evaluated) / searches,
        "answer": float(np.mean([len(stored.tree.search(q)) for q in queries])),
        "over linear": linear / tree,
        "over STRtree": peer / tree,
    }


_OVER_PEER = {"census blocks": {"A": 20, "B": 20, "C": 5}, "London": {"A": 5, "B": 5, "C": 3}}


def point_queries(report: Report, polygons: Polygons, seeds: range) -> None:
    """One point per call, against every polygon."""
    times = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        ids = np.arange(len(polygons))
        tree = CRTree.bulk(ids, (polygons.coords, polygons.offsets), 1 << random.integers(0, 8, len(ids)))
        x1, y1, x2, y2 = polygons.universe.bounds
        anywhere = [Point(*p) for p in random.uniform((x1, y1), (x2, y2), (250, 2)).tolist()]
        at_home = [Point(*p) for p in polygons.coords[random.integers(0, len(polygons.coords), 250)].tolist()]
        points = [*anywhere, *at_home]

        def ask(tree: CRTree = tree, points: list[Point] = points) -> None:
            for point in points:
                tree.search(point)

        times.append(1e6 * seconds(ask, budget=0.5) / len(points))
    report.table("Point queries, one call each", [{"set": polygons.name, "µs per call": median(times)}])
    report.target("point query through the Python API", median(times), 20, at_least=False, unit="µs")


def building(report: Report, polygons: Polygons, seeds: range) -> None:
    """Loading a file of polygons at once, and one by one."""
    rows = []
    compiled = CRTree()
    compiled.insert(0, polygons.universe, 1)
    compiled.remove(0)
    for seed in seeds:
        random = np.random.default_rng(seed)
        ids = np.arange(len(polygons))
        masks = 1 << random.integers(0, 8, len(ids))
        bulk = seconds(lambda: CRTree.bulk(ids, (polygons.coords, polygons.offsets), masks))  # noqa: B023  # called at once
        of_id = masks.tolist()
        rings = list(enumerate(polygons.rings()))
        start = time.perf_counter()
        regions = [Region(ring) for _, ring in rings]
        made = time.perf_counter()
        tree = CRTree()
        for id, region in enumerate(regions):
            tree.insert(id, region, of_id[id])
        inserted = time.perf_counter()
        for id in range(len(regions)):
            tree.remove(id)
        removed = time.perf_counter()
        from_regions = seconds(lambda: CRTree.bulk(ids, regions, masks))  # noqa: B023  # called at once
        rows.append(
            {
                "seed": seed,
                "bulk ms": 1e3 * bulk,
                "bulk/s": len(ids) / bulk,
                "Region()/s": len(ids) / (made - start),
                "insert/s": len(ids) / (inserted - made),
                "remove/s": len(ids) / (removed - inserted),
                "one by one over bulk": (inserted - start) / bulk,
                "of regions: bulk ms": 1e3 * from_regions,
                "of regions: inserts over bulk": (inserted - made) / from_regions,
            }
        )
    report.table(
        f"Building the tree: {polygons.name}, from coordinates (validated either way), then from regions", rows
    )
    report.target(
        "bulk load over one by one, from coordinates", median(row["one by one over bulk"] for row in rows), 20
    )
    report.target("insertions per second", median(row["insert/s"] for row in rows), 30_000, unit="/s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="directory of the polygon files; $CONTRADA_DATA by default")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and queries")
    parser.add_argument("--only", choices=sorted(_PARTS), action="append", help="run some parts only")
    arguments = parser.parse_args()
    seeds = range(1 if arguments.quick else 3)
    directory = data_directory(arguments.data)
    report = Report("regions")
    sets = _sets(directory) if directory is not None else []
    for name, part in _PARTS.items():
        if arguments.only is None or name in arguments.only:
            part(report, sets, seeds, arguments.quick)
    return report.finish()


def _sets(directory: Path) -> list[Polygons]:
    return [workloads.load(directory, name) for name in workloads.NAMES]


_PARTS: dict[str, Any] = {
    "relations": lambda report, _, seeds, quick: relations(report, seeds, quick),
    "figure-4a": lambda report, _, __, quick: figure_4a(report, quick),
    "building": lambda report, sets, seeds, _: sets and building(report, max(sets, key=len), seeds),
    "points": lambda report, sets, seeds, _: sets and point_queries(report, max(sets, key=len), seeds),
    "table-3": lambda report, sets, seeds, quick: sets and table_3(report, sets, seeds, quick),
    "figure-5": lambda report, sets, _, quick: sets and figure_5(report, sets, quick),
}


if __name__ == "__main__":
    raise SystemExit(main())
