"""Places on roads: where points of the plane are put, and how far apart places are.

road    int32 (n,)     the road of each
facts   float64 (n, 3) its distance from the road's first junction, and the coordinates it was put at
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.road.graph.edge_tree import nearest
from contrada.spatial.road.graph.expansion import Graph, Scratch, expand, forget
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALONG = 0
X = 1
Y = 2

PER_PLACE = 20  # units of an allowance, for a place whose distance is asked for


class Edges(NamedTuple):
    """Edges as a point finds its place on them: a tree over their segments, and where each is on its road."""

    segments: NDArray[np.float64]  # (m, 4) by position in the tree
    order: NDArray[np.int32]  # (m,) the edge of a position
    boxes: NDArray[np.float64]  # of the tree's blocks
    length: NDArray[np.float64]  # (m,) by edge, as all below
    road: NDArray[np.int32]
    start: NDArray[np.float64]
    way: NDArray[np.float64]
    xy: NDArray[np.float64]  # (m, 4)


@kernel
def locate(
    edges: Edges, grain: float, points: NDArray[np.float64], found: NDArray[np.int32], facts: NDArray[np.float64]
) -> None:
    """Put points on their nearest edges: `found` gets the edges, `facts` the offset on the edge, and x and y."""
    for i in range(points.shape[0]):
        edge, fraction = nearest(edges.segments, edges.order, edges.boxes, points[i, 0], points[i, 1])
        length = edges.length[edge]
        offset = min(np.rint(fraction * length / grain) * grain, length)
        # The coordinates of the rounded place, so that bounds by the straight line hold of it.
        part = offset / length if length > 0.0 else 0.0
        found[i] = edge
        facts[i, ALONG] = offset
        facts[i, X] = edges.xy[edge, 0] + part * (edges.xy[edge, 2] - edges.xy[edge, 0])
        facts[i, Y] = edges.xy[edge, 1] + part * (edges.xy[edge, 3] - edges.xy[edge, 1])


@kernel
def expand_to(
    graph: Graph,
    scratch: Scratch,
    road: int,
    along: float,
    roads: NDArray[np.int32],
    radius: float,
    left: NDArray[np.int64],
) -> int:
    """Expand from a place until both ends of all these roads have their distances; how many junctions were touched."""
    left[0] -= PER_PLACE * roads.size
    ends, marks = graph.ends, scratch.wanted
    wanted = 0
    for other in roads:
        for side in range(2):
            wanted += 1 - marks[ends[other, side]]
            marks[ends[other, side]] = 1
    starts = np.array([along, graph.road_length[road] - along])
    touched = expand(graph.first, graph.to, graph.length, scratch, ends[road], starts, radius, wanted, left)
    for other in roads:
        marks[ends[other, 0]] = 0
        marks[ends[other, 1]] = 0
    return touched


@kernel
def distance_to(
    ends: NDArray[np.int32],
    road_length: NDArray[np.float64],
    distance: NDArray[np.float64],
    road: int,
    along: float,
    other: int,
    there: float,
) -> float:
    """Return how far a place is from the one that was expanded from: through either end of its road, or along it."""
    far: float = min(distance[ends[other, 0]] + there, distance[ends[other, 1]] + (road_length[other] - there))
    return min(far, abs(there - along)) if other == road else far


@kernel
def distances(
    graph: Graph,
    scratch: Scratch,
    road: int,
    along: float,
    roads: NDArray[np.int32],
    alongs: NDArray[np.float64],
    radius: float,
    left: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the distances from one place to others by one expansion; infinite beyond the radius."""
    touched = expand_to(graph, scratch, road, along, roads, radius, left)
    found = np.empty(roads.size)
    for i in range(roads.size):
        far = distance_to(graph.ends, graph.road_length, scratch.distance, road, along, roads[i], alongs[i])
        found[i] = far if far <= radius else np.inf
    forget(scratch, touched)
    return found
