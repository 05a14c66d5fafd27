"""The slow twin of road networks and of the indexes over them: every edge tried, every node visited, every definition.

Distances are added up in whole grains, as Python's integers, over all nodes and edges: no roads, junctions or radius.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from contrada.spatial.road.index.base import RoadSubscription

    XY = tuple[float, float]


@dataclass
class NaiveRoads:
    """Nodes, edges and lengths as they are given."""

    xy: Sequence[XY]
    edges: Sequence[tuple[int, int]]
    lengths: Sequence[float] | None = None
    d_max: float = 1.0
    weights: Mapping[str, float] = field(default_factory=dict)
    other_weight: float = 1.0

    def __post_init__(self) -> None:
        if self.lengths is None:
            self.lengths = [math.hypot(a[0] - b[0], a[1] - b[1]) for a, b in self._segments()]
        total = math.fsum(self.lengths)
        self.grain = 2.0 ** (math.frexp(total)[1] - 51) if total else 1.0
        self.grains = [round(length / self.grain) for length in self.lengths]
        self.near: dict[int, list[tuple[int, int]]] = {}
        for (u, v), length in zip(self.edges, self.grains, strict=True):
            self.near.setdefault(u, []).append((v, length))
            self.near.setdefault(v, []).append((u, length))

    def _segments(self) -> list[tuple[XY, XY]]:
        return [(self.xy[u], self.xy[v]) for u, v in self.edges]

    def snap(self, point: XY) -> tuple[int, int]:
        """The edge and the offset on it, in grains."""
        x, y = point
        best = (math.inf, -1, 0.0)
        for number, ((ax, ay), (bx, by)) in enumerate(self._segments()):
            dx, dy = bx - ax, by - ay
            square = dx * dx + dy * dy
            t = min(max(((x - ax) * dx + (y - ay) * dy) / square, 0.0), 1.0) if square > 0 else 0.0
            ex, ey = x - (ax + t * dx), y - (ay + t * dy)
            best = min(best, (ex * ex + ey * ey, number, t))
        _, edge, t = best
        length = self.grains[edge]
        return edge, min(round(t * (length * self.grain) / self.grain), length)

    def distance(self, a: XY, b: XY) -> float:
        edge, offset = self.snap(a)
        other, there = self.snap(b)
        ways = [abs(there - offset)] if edge == other else []
        found = self._from([(self.edges[edge][0], offset), (self.edges[edge][1], self.grains[edge] - offset)])
        for node, rest in ((self.edges[other][0], there), (self.edges[other][1], self.grains[other] - there)):
            if node in found:
                ways.append(found[node] + rest)
        return min(ways) * self.grain if ways else math.inf

    def _from(self, starts: list[tuple[int, int]]) -> dict[int, int]:
        heap = [(distance, node) for node, distance in starts]
        heapq.heapify(heap)
        found: dict[int, int] = {}
        while heap:
            distance, node = heapq.heappop(heap)
            if node not in found:
                found[node] = distance
                for other, length in self.near[node]:
                    heapq.heappush(heap, (distance + length, other))
        return found

    def likeness(self, keywords: Collection[str], tokens: Collection[str]) -> float:
        def weigh(words: Collection[str]) -> Fraction:
            return sum(
                (Fraction(round(self.weights.get(w, self.other_weight) * 2**24), 2**24) for w in words), Fraction()
            )

        whole = weigh(set(keywords))
        return float(weigh(set(keywords) & set(tokens))) / float(whole) if whole else 0.0

    def similar(self, s: RoadSubscription, tokens: Collection[str], at: XY) -> bool:
        distance = self.distance(at, s.at)
        if distance > self.d_max:
            return False
        words = self.likeness(s.keywords, tokens)
        return s.alpha * (1.0 - distance / self.d_max) + (1.0 - s.alpha) * words >= s.tau


class NaiveRoadIndex:
    """Subscriptions by id."""

    def __init__(self, roads: NaiveRoads) -> None:
        self.roads = roads
        self.subscriptions: dict[int, RoadSubscription] = {}

    def insert(self, subscription: RoadSubscription) -> None:
        self.subscriptions[subscription.id] = subscription

    def remove(self, id: int) -> None:
        del self.subscriptions[id]

    def search(self, tokens: Collection[str], at: XY) -> list[int]:
        return sorted(s.id for s in self.subscriptions.values() if self.roads.similar(s, tokens, at))
