"""Roads: edges joined through the nodes where only two meet, so that expansions stop at junctions alone.

    o──o──o──o      four nodes, three edges, of lengths 1, 2, 3; the two in the middle have two edges each
    J        J      two junctions, one road of length 6
       ·            a point 0.5 along the second edge is 1.5 along the road

A *junction* is a node with any number of edges but two; on a ring without one, the node of its first edge stands in.
Every edge is part of one road, at `start`, in the road's direction (`way` 1) or against it (-1): a point at `offset`
from the edge's first node is at `start + way * offset` from the road's first junction. City maps have two or three
times as many nodes as junctions. Lengths are exact multiples of a grain (`checking.py`), so nothing is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


class EdgeRoads(NamedTuple):
    """Where edges are on roads, by edge; and the roads."""

    road: NDArray[np.int32]  # (m,)
    start: NDArray[np.float64]  # (m,) of the edge's first node on the road
    way: NDArray[np.float64]  # (m,) 1 or -1
    ends: NDArray[np.int32]  # (r, 2) nodes that are junctions
    length: NDArray[np.float64]  # (r,)


@kernel
def join_edges(ends: NDArray[np.int32], lengths: NDArray[np.float64], nodes: int) -> EdgeRoads:
    """Join edges into roads; O(n + m)."""
    edges = ends.shape[0]
    first = np.zeros(nodes + 1, np.int64)
    for e in range(edges):
        first[ends[e, 0] + 1] += 1
        first[ends[e, 1] + 1] += 1
    for node in range(nodes):
        first[node + 1] += first[node]
    filled = first[:-1].copy()
    at_node = np.empty(2 * edges, np.int32)
    for e in range(edges):
        for side in range(2):
            node = ends[e, side]
            at_node[filled[node]] = e
            filled[node] += 1
    road = np.full(edges, -1, np.int32)
    start = np.zeros(edges)
    way = np.ones(edges)
    road_ends = np.empty((edges, 2), np.int32)
    road_length = np.empty(edges)
    roads = 0
    for ring in range(2):  # first from junctions; what is left are rings
        for e in range(edges):
            for side in range(2):
                begin = ends[e, side]
                if road[e] >= 0 or (ring == 0 and first[begin + 1] - first[begin] == 2):
                    continue
                edge = e
                node = begin
                along = 0.0
                while True:
                    road[edge] = roads
                    if ends[edge, 0] == node:
                        start[edge] = along
                        node = ends[edge, 1]
                    else:
                        start[edge] = along + lengths[edge]
                        way[edge] = -1.0
                        node = ends[edge, 0]
                    along += lengths[edge]
                    if first[node + 1] - first[node] != 2 or node == begin:
                        break
                    other = at_node[first[node]]
                    edge = at_node[first[node] + 1] if other == edge else other
                road_ends[roads, 0] = begin
                road_ends[roads, 1] = node
                road_length[roads] = along
                roads += 1
    return EdgeRoads(road, start, way, road_ends[:roads].copy(), road_length[:roads].copy())
