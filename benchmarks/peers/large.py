"""A region that thousands of filters match: the table, a CR-tree of its own, and shapely's tree with `relate`.

By processor time, the best of some rounds in which all have their turn.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from benchmarks.forwarding_matching import fastest
from contrada import CRTree, ForwardingTable, Region, attr
from contrada.spatial.relations.relation import INTERSECTS

if TYPE_CHECKING:
    from benchmarks.harness import Report
    from benchmarks.peers.fences import Fences

ANSWERS = 10_785
_RELATED = "FF*FF****"  # disjoint


def large_answers(report: Report, work: Fences) -> None:
    """One filter for each polygon, asked for a region with about `ANSWERS` answers."""
    regions = [Region(ring) for ring in work.rings]
    tree = CRTree.bulk(np.arange(len(regions)), regions, [INTERSECTS] * len(regions))
    query = _query(tree, work, min(ANSWERS, len(regions) // 5))
    pairs = [(str(n), attr("area").intersects(region)) for n, region in enumerate(regions)]
    table = ForwardingTable.packed(pairs)
    polygons = np.array([shapely.Polygon(ring) for ring in work.rings])
    shapely.prepare(polygons)
    other, shape = shapely.STRtree(polygons), shapely.Polygon(query.coords)

    def relate() -> set[int]:
        near = other.query(shape)
        return {*near[~shapely.relate_pattern(polygons[near], shape, _RELATED)].tolist()}

    answer = relate()
    if table.match({"area": query}) != {str(n) for n in answer} or {*tree.search(query).tolist()} != answer:
        raise SystemExit("answers of thousands of filters are not the same")
    calls = {
        "CRTree.search": partial(tree.search, query),
        "Contrada, match": partial(table.match, {"area": query}),
        "Contrada, match_pairs": partial(table.match_pairs, [{"area": query}]),
        "shapely STRtree and relate": relate,
    }
    took = fastest(calls, 25)
    rows: list[dict[str, Any]] = [{"engine": name, "ms": 1e3 * each} for name, each in took.items()]
    report.table(f"A region with {len(answer):,} answers of {len(regions):,} filters", rows)
    match = took["Contrada, match"]
    report.target("match over CRTree.search, a large answer", match / took["CRTree.search"], 3.0, at_least=False)
    report.target("STRtree and relate over match, a large answer", took["shapely STRtree and relate"] / match, 20.0)


def _query(tree: CRTree, work: Fences, wanted: int) -> Region:
    """A region of 40 vertices around the middle of the polygons, as large as it takes."""
    low = np.min([ring.min(axis=0) for ring in work.rings], axis=0)
    high = np.max([ring.max(axis=0) for ring in work.rings], axis=0)
    small, large = 0.0, 1.0
    for _ in range(20):
        reach = (small + large) / 2
        angles = np.arange(40) * (math.pi / 20)
        spokes = reach / 2 * (0.7 + 0.06 * (np.arange(40) * 7 % 5))
        offsets = np.column_stack((spokes * np.cos(angles), spokes * np.sin(angles)))
        query = Region((low + high) / 2 + offsets * (high - low))
        if len(tree.search(query)) < wanted:
            small = reach
        else:
            large = reach
    return query
