"""Regions with holes and in several parts: relations and the CR-tree. `make bench-compound ARGS="--data DIR --quick"`.

Relations of one region of 40 vertices to 2,000 others, all with a hole, or all in two parts, against `shapely.relate`;
and real shapes, dissolved from census blocks, under a CR-tree against a shapely STRtree and a prepared query. A
district is the blocks of a cell of a grid, some left out: lakes, where they lie within. Every third district has those
of the cell after the next as well, as counties have islands. Without `--data` only the relations are run.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import shapely

from benchmarks import region_workloads as workloads
from benchmarks.harness import Report, data_directory, seconds
from benchmarks.regions import Stored, each
from contrada.errors import InvalidRegion
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.relations.relate import pack, relate_codes
from contrada.spatial.relations.relation import RELATIONS
from tests.naive import faces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.region_workloads import Random

_LEFT_OUT = 0.06  # of the blocks
_CELL = 0.014  # degrees


def holed(random: Random) -> Region:
    """A polygon of 28 vertices with a hole of 12 near its middle."""
    while True:
        shell = workloads.synthetic(random, vertices=28)
        hole = workloads.synthetic(random, vertices=12).coords
        x1, y1, x2, y2 = shell.bounds
        low, high = hole.min(axis=0), hole.max(axis=0)
        scaled = (hole - low) / (high - low) * (0.3 * (x2 - x1), 0.3 * (y2 - y1)) + (
            x1 + 0.35 * (x2 - x1),
            y1 + 0.35 * (y2 - y1),
        )
        try:
            return Region(shell.coords, holes=[scaled])
        except InvalidRegion:
            continue


def in_two(random: Random) -> Region:
    """Two polygons of 20 vertices side by side."""
    while True:
        left, right = (workloads.synthetic(random).coords for _ in range(2))
        cut = random.uniform(300, 700)
        left = left * (cut / 1000 * 0.95, 1)
        right = right * ((1000 - cut) / 1000 * 0.95, 1) + (cut, 0)
        try:
            return Region.of({"type": "MultiPolygon", "coordinates": [[left], [right]]})
        except InvalidRegion:
            continue


def relations(report: Report, seeds: range, quick: bool) -> None:
    """One region against 2,000."""
    kinds: dict[str, Callable[[Random], Region]] = {"with a hole": holed, "in two parts": in_two}
    for name, make in kinds.items():
        rows = []
        for seed in seeds:
            random = np.random.default_rng(seed)
            regions = [make(random) for _ in range(2000)]
            query = make(random)
            rings = pack(regions)
            shapes = np.array([region.to_shapely() for region in regions])
            prepared = query.to_shapely()
            shapely.prepare(prepared)
            ours, theirs = [], []
            for _ in range(3):  # by turns: a busy machine slows both
                ours.append(seconds(lambda: relate_codes(query, rings)))  # noqa: B023  # called at once
                theirs.append(seconds(lambda: shapely.relate(prepared, shapes)))  # noqa: B023  # called at once
            codes = relate_codes(query, rings)
            checked = range(20 if quick else 60)
            wrong = sum(RELATIONS[codes[i]] is not faces.relate(query, regions[i]) for i in checked)
            exact, geos = min(ours) / 2e3 * 1e6, min(theirs) / 2e3 * 1e6
            rows.append({"seed": seed, "exact µs/pair": exact, "shapely.relate µs/pair": geos, "wrong": wrong})
        report.table(f"One region of 40 vertices {name} against 2,000", rows)
        ratio = median(row["shapely.relate µs/pair"] / row["exact µs/pair"] for row in rows)
        report.target(f"relate over shapely.relate, {name}", ratio, 6)
        report.target(f"wrong relations, {name}", sum(row["wrong"] for row in rows), 0, at_least=False, unit="wrong")


def districts(directory: Path, quick: bool) -> list[Region]:
    """Blocks dissolved by the cells of a grid."""
    blocks = workloads.load(directory, "census blocks")
    starts = blocks.offsets[:-1]
    first = blocks.coords[starts]
    random = np.random.default_rng(18)
    cells = np.floor((first - first.min(axis=0)) / _CELL).astype(np.int64)
    width = int(cells[:, 0].max()) + 1
    numbers = cells[:, 1] * width + cells[:, 0]
    kept = random.random(len(numbers)) >= _LEFT_OUT
    by_cell: dict[int, list[int]] = {}
    for block in np.flatnonzero(kept).tolist():
        by_cell.setdefault(int(numbers[block]), []).append(block)
    rings = list(blocks.rings())
    made = []
    for number in sorted(by_cell)[:: 4 if quick else 1]:
        chosen = [*by_cell[number], *(by_cell.get(number + 2, []) if number % 3 == 0 else [])]
        union = shapely.unary_union([shapely.Polygon(rings[block]) for block in chosen])
        try:
            made.append(Region.of(union))
        except InvalidRegion:  # blocks that overlap by a rounding make rings that are none
            continue
    return made


def real_shapes(report: Report, directory: Path, seeds: range, quick: bool) -> None:
    """The CR-tree over districts against a STRtree."""
    regions = districts(directory, quick)
    compound = [region for region in regions if region.is_compound]
    extents = np.array([region.bounds for region in regions])
    universe = Box(*extents[:, :2].min(axis=0).tolist(), *extents[:, 2:].max(axis=0).tolist())
    report.table(
        "Districts",
        [
            {
                "regions": len(regions),
                "compound": len(compound),
                "parts": sum(len(region.parts) for region in regions),
                "holes": sum(len(region.holes) for region in regions),
                "vertices": sum(map(len, regions)),
            }
        ],
    )
    rows = []
    for kind in (*workloads.TYPES, "districts"):
        ratios, ours, theirs = [], [], []
        for seed in seeds:
            random = np.random.default_rng(seed)
            stored = Stored(regions, random)
            if kind == "districts":
                queries = [compound[k] for k in random.integers(0, len(compound), 20)]
            else:
                queries = workloads.queries(random, kind, universe, 5 if quick else 15)
            shapes = [query.to_shapely() for query in queries]
            for query, shape in zip(queries, shapes, strict=True):
                answer = np.sort(stored.tree.search(query))
                assert np.array_equal(answer, stored.scan(query)), "the index disagrees with the linear scan"
                assert np.array_equal(answer, stored.peer(shape)), "the index disagrees with the peer"
            tree, peer = each(stored.tree.search, queries), each(stored.peer, shapes)
            ours.append(1e3 * tree)
            theirs.append(1e3 * peer)
            ratios.append(peer / tree)
        rows.append(
            {"queries": kind, "CR-tree ms": median(ours), "STRtree ms": median(theirs), "ratio": median(ratios)}
        )
        report.target(f"CR-tree over STRtree + prepared relate, {kind}", median(ratios), 10)
    report.table("Districts with holes and parts, ms per query", rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="directory of the polygon files; $CONTRADA_DATA by default")
    parser.add_argument("--quick", action="store_true", help="fewer seeds, queries and districts")
    arguments = parser.parse_args()
    seeds = range(1 if arguments.quick else 3)
    directory = data_directory(arguments.data)
    report = Report("compound")
    relations(report, seeds, arguments.quick)
    if directory is not None:
        real_shapes(report, directory, seeds, arguments.quick)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
