"""Distances along roads from one place or many: Dijkstra's expansion over junctions, within a radius.

    first   int64   (j + 1,)  the arcs that leave junction i are first[i] up to first[i + 1]
    to      int32   (2r,)     where an arc leads; roads from a junction to itself have none
    length  float64 (2r,)

Scratch is as large as the network and is used again: `distance` is infinite everywhere between calls, and what a call
has reached is listed in `touched`, which is put back in order before it returns. A call costs what it reaches,
O(k log k), whatever the size of the network, and ends before that where its allowance does (spatial/allowance.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


PER_JUNCTION = 80  # units of an allowance, for a junction: twice what it takes on a square of roads


class Graph(NamedTuple):
    """Junctions, their arcs, and roads."""

    first: NDArray[np.int64]
    to: NDArray[np.int32]
    length: NDArray[np.float64]
    ends: NDArray[np.int32]  # (r, 2) junctions of roads
    road_length: NDArray[np.float64]  # (r,)


class Scratch(NamedTuple):
    """Room for one expansion at a time."""

    distance: NDArray[np.float64]  # (j,)
    wanted: NDArray[np.uint8]  # (j,) 1 where the caller waits for the distance; zero between calls
    touched: NDArray[np.int32]  # (j,)
    keys: NDArray[np.float64]  # a binary heap: distances,
    junctions: NDArray[np.int32]  # and whose they are


def make_graph(ends: NDArray[np.int32], lengths: NDArray[np.float64], junctions: int) -> Graph:
    """Return the graph of roads between junctions."""
    roads = np.flatnonzero(ends[:, 0] != ends[:, 1]).astype(np.int32)
    leave = np.concatenate([ends[roads, 0], ends[roads, 1]])
    order = np.argsort(leave, kind="stable")
    first = np.zeros(junctions + 1, np.int64)
    np.cumsum(np.bincount(leave, minlength=junctions), out=first[1:])
    via = np.concatenate([roads, roads])[order]
    to = np.concatenate([ends[roads, 1], ends[roads, 0]])[order]
    return Graph(first, to, lengths[via], ends, lengths)


def make_scratch(graph: Graph) -> Scratch:
    """Return scratch for a graph. Every junction may be a seed, and every arc may put its end into the heap once."""
    junctions = len(graph.first) - 1
    room = junctions + len(graph.to) + 4
    return Scratch(
        np.full(junctions, np.inf),
        np.zeros(junctions, np.uint8),
        np.empty(junctions, np.int32),
        np.empty(room),
        np.empty(room, np.int32),
    )


@inline_kernel
def _push(keys: NDArray[np.float64], junctions: NDArray[np.int32], size: int, key: float, junction: int) -> None:
    """Put a junction into a heap of that size."""
    hole = size
    while hole > 0 and keys[(hole - 1) >> 1] > key:
        keys[hole] = keys[(hole - 1) >> 1]
        junctions[hole] = junctions[(hole - 1) >> 1]
        hole = (hole - 1) >> 1
    keys[hole] = key
    junctions[hole] = junction


@kernel
def expand(
    first: NDArray[np.int64],
    to: NDArray[np.int32],
    length: NDArray[np.float64],
    scratch: Scratch,
    seeds: NDArray[np.int32],
    starts: NDArray[np.float64],
    radius: float,
    wanted: int,
    left: NDArray[np.int64],
) -> int:
    """Find the distances of junctions up to the radius, from seeds that are `starts` away; how many were touched.

    Ends early when so many junctions marked `wanted` have their distances; -1 never. What is farther than where it
    ended has a distance too large, or none, and never one within the radius unless all that are wanted are found. What
    is left of the allowance is below 0 where that ended it, and distances mean nothing.
    """
    distance, marks, touched, keys, junctions = scratch
    spare = left[0]
    count = 0
    size = 0
    for i in range(seeds.size):
        junction = seeds[i]
        start = starts[i]
        if start > radius or start >= distance[junction]:
            continue
        if distance[junction] == np.inf:
            touched[count] = junction
            count += 1
        distance[junction] = start
        _push(keys, junctions, size, start, junction)
        size += 1
    while size > 0 and wanted != 0 and spare >= 0:
        key = keys[0]
        junction = junctions[0]
        size -= 1
        last = keys[size]
        moved = junctions[size]
        at = 0
        child = 1
        while child < size:
            if child + 1 < size and keys[child + 1] < keys[child]:
                child += 1
            if keys[child] >= last:
                break
            keys[at] = keys[child]
            junctions[at] = junctions[child]
            at = child
            child = 2 * at + 1
        keys[at] = last
        junctions[at] = moved
        if key > distance[junction]:
            continue
        spare -= PER_JUNCTION
        if marks[junction]:
            wanted -= 1
        # As with the seeds; shared by both, as an inlined function, it makes searches several per cent slower.
        for arc in range(first[junction], first[junction + 1]):
            farther = key + length[arc]
            other = to[arc]
            if farther > radius or farther >= distance[other]:
                continue
            if distance[other] == np.inf:
                touched[count] = other
                count += 1
            distance[other] = farther
            _push(keys, junctions, size, farther, other)
            size += 1
    left[0] = spare
    return count


@kernel
def forget(scratch: Scratch, count: int) -> None:
    """Put scratch back in order after `expand`."""
    for i in range(count):
        scratch.distance[scratch.touched[i]] = np.inf
