"""Distances on WGS 84 by geographiclib: positions to positions, edges and rings, edges searched step by step.

Positions are (longitude, latitude) in degrees; a shape is (vertices, filled) as in `distance`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from geographiclib.geodesic import Geodesic

from tests.naive.relate import OUT, locate

if TYPE_CHECKING:
    from collections.abc import Sequence

    Position = tuple[float, float]

STEPS = 100
GOLDEN = (5**0.5 - 1) / 2


def of_positions(a: Position, b: Position) -> float:
    return float(Geodesic.WGS84.Inverse(a[1], a[0], b[1], b[0], Geodesic.DISTANCE)["s12"])


def of_edge(p: Position, a: Position, b: Position) -> float:
    """The smallest of many steps along the edge, and what a golden-section search finds around it."""

    def away(t: float) -> float:
        return of_positions(p, (a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])))

    if a == b:
        return away(0.0)
    steps = [away(k / STEPS) for k in range(STEPS + 1)]
    best = min(range(STEPS + 1), key=steps.__getitem__)
    low, high = max(best - 1, 0) / STEPS, min(best + 1, STEPS) / STEPS
    found = steps[best]
    first, second = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_first, at_second = away(first), away(second)
    for _ in range(60):
        if at_first < at_second:
            high, second, at_second = second, first, at_first
            first = high - GOLDEN * (high - low)
            at_first = away(first)
        else:
            low, first, at_first = first, second, at_second
            second = low + GOLDEN * (high - low)
            at_second = away(second)
        found = min(found, at_first, at_second)
    return found


def of_shape(p: Position, vertices: Sequence[Position], filled: bool) -> float:
    if filled and any(locate((p[0] + turn, p[1]), vertices) != OUT for turn in (-360, 0, 360)):
        return 0.0
    edges = [*vertices, vertices[0]] if filled else [*vertices]
    return of_positions(p, vertices[0]) if len(edges) == 1 else min(of_edge(p, a, b) for a, b in pairwise(edges))
