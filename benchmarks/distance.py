"""Points within a distance: tables and the index of distance constraints beside shapely's STRtree with `dwithin`.

100,000 circles over a square of side 10,000, and points spread evenly over it. The tree holds the centres; it has one
distance for a search, so for circles of different sizes it is asked for the largest radius, and what it finds is
compared with each circle's own, in numpy. It is asked in both ways that people write: `query(point, …)` for each point,
of which a set is made as of ours, and `query(points, …)` for all at once, whose answer stays arrays.

Ours are what users call, `match`, `match_many`, `match_bodies` and `match_pairs` of columns, which answers in arrays;
and beside them the index alone, by arrays. All have been asked before, so that ours has made its grid. How many were
found is compared. Rivals take turns, and processor time is counted: all are of one thread.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from benchmarks.harness import Report
from contrada import ForwardingTable, Point, attr
from contrada.forwarding.batches.columns import Column, Columns
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.values import Kind
from contrada.forwarding.types.plugged import Settings
from contrada.forwarding.types.shape import ShapeType
from contrada.spatial.relations.relate import EXACT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

CIRCLES = 100_000
POINTS = 4_000
SINGLE = 500  # points that are asked about one by one
SIDE = 10_000.0
ROUNDS = 7


class Rival:
    """Centres in an STRtree, and the radius of each."""

    def __init__(self, centres: NDArray[np.float64], radii: NDArray[np.float64]) -> None:
        self._tree = shapely.STRtree(shapely.points(centres))
        self._centres, self._radii = centres, radii
        self._largest = float(radii.max())
        self._alike = bool((radii == self._largest).all())

    def all_at_once(self, places: NDArray[np.float64], points: NDArray[np.object_]) -> int:
        """How many pairs of a point and a circle that it is in there are."""
        which, found = self._tree.query(points, predicate="dwithin", distance=self._largest)
        if self._alike:
            return len(found)
        x, y = (places[which] - self._centres[found]).T
        return int((np.hypot(x, y) <= self._radii[found]).sum())

    def one_by_one(self, places: NDArray[np.float64], points: NDArray[np.object_]) -> int:
        """The same, a set of circles for each point."""
        pairs = 0
        for (px, py), point in zip(places.tolist(), points, strict=True):
            found = self._tree.query(point, predicate="dwithin", distance=self._largest)
            if not self._alike:
                x, y = (self._centres[found] - (px, py)).T
                found = found[np.hypot(x, y) <= self._radii[found]]
            pairs += len(set(found.tolist()))
        return pairs


def index_of(radii: NDArray[np.float64], centres: NDArray[np.float64]) -> ShapeType:
    """The index of distance constraints that a table has, alone."""
    index = ShapeType(Settings(EXACT, "rk-tree", None))
    pairs = zip(radii.tolist(), centres.tolist(), strict=True)
    handles = [index.handle(1, Constraint("pos", "within", Distance(r, Point(x, y)))) for r, (x, y) in pairs]
    index.store_made()
    index.post_many(handles)
    return index


def compare(radii: NDArray[np.float64], rng: np.random.Generator) -> dict[str, float]:
    """Microseconds per point of all, and how many circles a point is in."""
    centres, places = rng.uniform(0, SIDE, (len(radii), 2)), rng.uniform(0, SIDE, (POINTS, 2))
    index, rival = index_of(radii, centres), Rival(centres, radii)
    pairs = zip(radii.tolist(), centres.tolist(), strict=True)
    table = ForwardingTable.packed([(n, attr("pos").within(r, of=Point(*at))) for n, (r, at) in enumerate(pairs)])
    notifications: list[dict[str, object]] = [{"pos": Point(x, y)} for x, y in places.tolist()]
    bodies: list[bytes] = [encode_notification(each) for each in notifications]  # type: ignore[arg-type]  # points
    columns, points = Columns(POINTS, [Column("pos", Kind.POINT, places)]), shapely.points(places)
    ways: dict[str, tuple[int, Callable[[], Any]]] = {
        "index": (POINTS, lambda: int(index.search_places(1, places)[1][-1])),
        "match_pairs": (POINTS, lambda: len(table.match_pairs(columns)[0])),
        "match_bodies": (POINTS, lambda: sum(map(len, table.match_bodies(bodies)[0]))),
        "match_many": (POINTS, lambda: sum(map(len, table.match_many(notifications)))),
        "match": (SINGLE, lambda: sum(len(table.match(each)) for each in notifications[:SINGLE])),
        "STRtree, all": (POINTS, lambda: rival.all_at_once(places, points)),
        "STRtree, each": (SINGLE, lambda: rival.one_by_one(places[:SINGLE], points[:SINGLE])),
    }
    index.search_places(1, np.tile(places, (1 + CIRCLES // (8 * POINTS), 1)))
    for _ in range(1 + CIRCLES // (8 * POINTS)):
        table.match_pairs(columns)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        found: dict[int, set[int]] = {}
        for way, (count, ask) in ways.items():
            began = time.process_time()
            found.setdefault(count, set()).add(ask())
            times[way].append((time.process_time() - began) / count * 1e6)
        assert all(len(each) == 1 for each in found.values()), found
    return {"hits": max(found[POINTS]) / POINTS, **{way: statistics.median(each) for way, each in times.items()}}


def main() -> int:
    """Circles of one size, and of many."""
    report = Report("distance")
    rng = np.random.default_rng(18)
    rows = []
    for what, radii in (
        ("all 20", np.full(CIRCLES, 20.0)),
        ("all 50", np.full(CIRCLES, 50.0)),
        ("5 to 50", np.exp(rng.uniform(np.log(5), np.log(50), CIRCLES))),
        ("5 to 200", np.exp(rng.uniform(np.log(5), np.log(200), CIRCLES))),
    ):
        rows.append({"radii": what, **compare(radii, rng)})
    report.table(f"points within {CIRCLES:,} circles, µs per point", rows)
    for row in rows:
        for ours, theirs in (
            ("index", "STRtree, all"),
            ("match_pairs", "STRtree, all"),
            ("match_pairs", "STRtree, each"),
            ("match_bodies", "STRtree, each"),
            ("match_many", "STRtree, each"),
            ("match", "STRtree, each"),
        ):
            report.target(f"radii: {row['radii']}, {ours} over {theirs}", row[theirs] / row[ours], 10)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
