"""Cells of a road network, and how near each pair of them can be ([ROADS], Eq. 3 to 6).

The paper cuts the plane into the 256 leaves of a quadtree and keeps for each pair the smallest ratio of network to
Euclidean distance between vertices, times the Euclidean distance. That is no lower bound for points in the middle of
edges, and has no value where the Euclidean distance is 0. Here a cell is a block of whole *roads* (`kd_order.py`), and

    bounds[a, b]   the least network distance between a junction of a road of a and one of a road of b

found by one expansion per cell, from all its junctions at once. It is a lower bound for all points: a path from a point
on a road to one on another leaves the first through one of its ends, arrives through an end of the other, and has all
of the way between these in it. Infinite where the distance is beyond D_max or no road leads. Besides, no network
distance is less than `stretch` times the Euclidean one, `stretch` being the least ratio of an edge's length to that of
its straight line (the paper's η⁻ over edges, where it is sound): the larger of the two holds, `lower_bounds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.road.graph.expansion import Graph, Scratch, expand, forget
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVELS = 8  # 256 cells, as the paper has


class Cells(NamedTuple):
    """The cells of roads."""

    of_road: NDArray[np.int32]  # (r,)
    boxes: NDArray[np.float64]  # (c, 4) around the edges of its roads
    bounds: NDArray[np.float64]  # (c, c)
    stretch: float  # no network distance is less than so many times the Euclidean one,
    slack: float  # less this, which is more than coordinates are rounded by


@kernel
def cell_bounds(
    graph: Graph, scratch: Scratch, of_road: NDArray[np.int32], cells: int, radius: float
) -> NDArray[np.float64]:
    """Return `bounds`: one expansion per cell, O(c · (j + r) log j) without a radius."""
    first, to, length, ends, _ = graph
    bounds = np.full((cells, cells), np.inf)
    starts = np.zeros(2 * of_road.size)
    seeds = np.empty(2 * of_road.size, np.int32)
    left = np.array([np.int64(1) << 62])  # a network's own, and no search's
    for cell in range(cells):
        bounds[cell, cell] = 0.0
        count = 0
        for road in range(of_road.size):
            if of_road[road] == cell:
                seeds[count] = ends[road, 0]
                seeds[count + 1] = ends[road, 1]
                count += 2
        touched = expand(first, to, length, scratch, seeds[:count], starts[:count], radius, -1, left)
        for road in range(of_road.size):
            near = min(scratch.distance[ends[road, 0]], scratch.distance[ends[road, 1]])
            bounds[cell, of_road[road]] = min(bounds[cell, of_road[road]], near)
        forget(scratch, touched)
    return bounds


@kernel
def lower_bounds(cells: Cells, road: int, x: float, y: float) -> NDArray[np.float64]:
    """Return, by cell, a lower bound of the distance from a place on a road, at x and y, to the places of the cell."""
    boxes, stretch, slack = cells.boxes, cells.stretch, cells.slack
    lower: NDArray[np.float64] = cells.bounds[cells.of_road[road]].copy()
    for other in range(lower.size):
        dx = max(boxes[other, 0] - x, x - boxes[other, 2], 0.0)
        dy = max(boxes[other, 1] - y, y - boxes[other, 3], 0.0)
        lower[other] = max(lower[other], stretch * (np.sqrt(dx * dx + dy * dy) - slack))
    return lower
