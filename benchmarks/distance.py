"""Points within a distance: the index of distance constraints beside shapely's STRtree with `dwithin`.

100,000 circles over a square of side 10,000, and points spread evenly over it. The tree holds the centres; it has one
distance for a search, so for circles of different sizes it is asked for the largest radius, and what it finds is
compared with each circle's own, in numpy. Both are given all points at once, ours as an array of coordinates, and once
more as objects, which is what tables do; the tree has an array of shapely's points. Both have been asked before, so
that ours has made its grid. Answers are compared. Rivals take turns, and processor time is counted: both are of one
thread.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import shapely

from benchmarks.harness import Report
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.types.plugged import Settings
from contrada.forwarding.types.shape import ShapeType
from contrada.spatial.geometry.point import Point
from contrada.spatial.relations.relate import EXACT

if TYPE_CHECKING:
    from numpy.typing import NDArray

CIRCLES = 100_000
POINTS = 4_000
SIDE = 10_000.0
ROUNDS = 7


class Rival:
    """Centres in an STRtree, and the radius of each."""

    def __init__(self, centres: NDArray[np.float64], radii: NDArray[np.float64]) -> None:
        self._tree = shapely.STRtree(shapely.points(centres))
        self._centres, self._radii = centres, radii
        self._largest = float(radii.max())

    def search(self, places: NDArray[np.float64], points: NDArray[np.object_]) -> int:
        """How many pairs of a point and a circle that it is in there are."""
        which, found = self._tree.query(points, predicate="dwithin", distance=self._largest)
        if (self._radii == self._largest).all():
            return len(found)
        x, y = (places[which] - self._centres[found]).T
        return int((np.hypot(x, y) <= self._radii[found]).sum())


def compare(radii: NDArray[np.float64], rng: np.random.Generator) -> dict[str, float]:
    """Microseconds per point of both, and the ratios of their medians."""
    centres, places = rng.uniform(0, SIDE, (len(radii), 2)), rng.uniform(0, SIDE, (POINTS, 2))
    ours = ShapeType(Settings(EXACT, "rk-tree", None))
    pairs = zip(radii.tolist(), centres.tolist(), strict=True)
    handles = [ours.handle(1, Constraint("pos", "within", Distance(r, Point(x, y)))) for r, (x, y) in pairs]
    ours.store_made()
    ours.post_many(handles)
    rival = Rival(centres, radii)
    points, given = [Point(x, y) for x, y in places.tolist()], shapely.points(places)
    names = [1] * len(points)
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    ours.search_places(1, np.tile(places, (1 + CIRCLES // (8 * POINTS), 1)))
    for _ in range(ROUNDS):
        began = time.process_time()
        _, ends = ours.search_places(1, places)
        arrays = time.process_time()
        found = ours.search(names, points)
        between = time.process_time()
        theirs = rival.search(places, given)
        for taken, seconds in zip(
            times, (arrays - began, between - arrays, time.process_time() - between), strict=True
        ):
            taken.append(seconds)
        assert sum(len(each) for each in found if each is not None) == theirs == ends[-1]
    mine, objects, its = (statistics.median(each) / POINTS * 1e6 for each in times)
    return {
        "hits": theirs / POINTS,
        "ours, µs": mine,
        "with objects, µs": objects,
        "STRtree, µs": its,
        "ratio": its / mine,
        "with objects": its / objects,
    }


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
    report.table(f"points within {CIRCLES:,} circles, per point", rows)
    for row in rows:
        report.target(f"radii: {row['radii']}, over STRtree dwithin", row["ratio"], 10)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
