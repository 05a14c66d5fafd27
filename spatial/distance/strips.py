"""Edges of two paths that may be near one another: trees of strips.

Boxes tell long slanted edges badly apart: of two bundles of parallel diagonals all boxes meet. So a node of the tree
over a path's edges keeps two boxes, around the *first* ends of its edges, those further to the left, and around the
*second* ones. Whatever is between, the hull of both boxes, holds its edges; of neighbours in a bundle it is a strip.

    ends    float64 (n, 4)      the edges, first end first, in the order of the tree
    bounds  float64 (nodes, 8)  the box of the first ends, x1 y1 x2 y2, and that of the second ones

Node 0 has all edges; children of node k, which has edges low to high, are 2k + 1 and 2k + 2, with the edges before and
from the middle on. Nodes of at most LEAF edges are leaves. A node is cut where the widest of the four coordinates has
its median, which is found by random pivots: nobody can prepare a path against them. Making a tree is O(n log n).

Two nodes are apart when some direction separates their hulls by more than what is near reaches in that direction. Tried
are both axes, and the directions across the strips. What is near reaches `east` along x and `north` along y, as an
ellipse does: in the plane both are the length asked for. All roundings are on the side of not being apart.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.distance.geodesic import ALL_AROUND, reach
from contrada.spatial.geometry.compound.rows import edge_count, edge_rows
from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.geometry.rings import Floats

    Ints = NDArray[np.int64]

LEAF: Final = 4
_ERROR: Final = 2.0**-46  # above all roundings of a sum of products of differences, relative to the terms
_DEEPEST: Final = 64  # more than a number of edges can be halved


@kernel
def _choose(ends: Floats, low: int, high: int, middle: int, side: int) -> None:
    """Reorder edges low to high so that none before the middle has a larger coordinate `side` than any behind."""
    high -= 1
    while low < high:
        pivot = ends[np.random.randint(low, high + 1), side]
        i, j = low, high
        while i <= j:
            while ends[i, side] < pivot:
                i += 1
            while ends[j, side] > pivot:
                j -= 1
            if i <= j:
                for k in range(4):
                    ends[i, k], ends[j, k] = ends[j, k], ends[i, k]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@kernel
def strips_of(xy: Floats) -> tuple[Floats, Floats]:
    """The ends and the bounds of the tree over a path's edges, single or compound."""
    count = edge_count(xy)
    rows = np.empty(count, np.int64)
    edge_rows(xy, rows)
    ends = np.empty((count, 4))
    for i in range(count):
        a = rows[i]
        b = a + 1
        if xy[b, 0] < xy[a, 0] or (xy[b, 0] == xy[a, 0] and xy[b, 1] < xy[a, 1]):
            a, b = b, a
        ends[i, 0], ends[i, 1], ends[i, 2], ends[i, 3] = xy[a, 0], xy[a, 1], xy[b, 0], xy[b, 1]
    nodes = 1
    most = count
    while most > LEAF:
        most = (most + 1) // 2
        nodes = 2 * nodes + 1
    bounds = np.empty((nodes, 8))
    stack = np.empty((_DEEPEST, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, count
    size = 1
    while size > 0:
        size -= 1
        node, low, high = stack[size, 0], stack[size, 1], stack[size, 2]
        widest, side = -1.0, 0
        for k in range(4):
            least = most_of = ends[low, k]
            for i in range(low + 1, high):
                least = min(least, ends[i, k])
                most_of = max(most_of, ends[i, k])
            at = (k // 2) * 4 + k % 2
            bounds[node, at], bounds[node, at + 2] = least, most_of
            if most_of - least > widest:
                widest, side = most_of - least, k
        if high - low > LEAF:
            middle = (low + high) // 2
            _choose(ends, low, high, middle, side)
            stack[size, 0], stack[size, 1], stack[size, 2] = 2 * node + 1, low, middle
            stack[size + 1, 0], stack[size + 1, 1], stack[size + 1, 2] = 2 * node + 2, middle, high
            size += 2
    return ends, bounds


@inline_kernel
def _furthest(x: float, node: Floats, side: int) -> float:
    """How far the corners of a node's boxes are from x, or y by side."""
    far = max(abs(node[side] - x), abs(node[side + 2] - x))
    return float(max(far, max(abs(node[side + 4] - x), abs(node[side + 6] - x))))


@inline_kernel
def _extent(u: float, v: float, x: float, y: float, node: Floats, first: int) -> tuple[float, float]:
    """From where to where the box from `first` on reaches in a direction, seen from (x, y)."""
    a, b = u * (node[first] - x), u * (node[first + 2] - x)
    c, d = v * (node[first + 1] - y), v * (node[first + 3] - y)
    return min(a, b) + min(c, d), max(a, b) + max(c, d)


@kernel
def _separates(
    u: float, v: float, a: Floats, b: Floats, x: float, y: float, turn: float, east: float, north: float,
    across: float, along: float,
) -> bool:  # fmt: skip
    """Whether a direction separates two nodes, of which nothing is further than (across, along) from (x, y)."""
    a_low, a_high = _extent(u, v, x, y, a, 0)
    low, high = _extent(u, v, x, y, a, 4)
    a_low, a_high = min(a_low, low), max(a_high, high)
    b_low, b_high = _extent(u, v, x + turn, y, b, 0)
    low, high = _extent(u, v, x + turn, y, b, 4)
    gap = max(min(b_low, low) - a_high, a_low - max(b_high, high))
    reach = math.hypot(u * east, v * north)
    return gap > reach + _ERROR * (reach + abs(u) * across + abs(v) * along)


@kernel
def apart(a: Floats, b: Floats, turn: float, east: float, north: float) -> bool:
    """Whether nothing of one node is near anything of another that is moved to the left by `turn`."""
    x, y = a[0], a[1]
    across = max(_furthest(x, a, 0), _furthest(x + turn, b, 0))
    along = max(_furthest(y, a, 1), _furthest(y, b, 1))
    if turn != 0.0:
        across += abs(x) + abs(turn)  # of which the sum is rounded
    if _separates(1.0, 0.0, a, b, x, y, turn, east, north, across, along):
        return True
    if _separates(0.0, 1.0, a, b, x, y, turn, east, north, across, along):
        return True
    for k in range(2):
        node = a if k == 0 else b
        u = 0.5 * (node[1] + node[3]) - 0.5 * (node[5] + node[7])
        v = 0.5 * (node[4] + node[6]) - 0.5 * (node[0] + node[2])
        if (u != 0.0 or v != 0.0) and _separates(u, v, a, b, x, y, turn, east, north, across, along):
            return True
    return False


@kernel
def reach_between(a: Floats, b: Floats, length: float) -> tuple[float, float]:
    """How far `length` metres reach between two nodes, in degrees: from the one that is nearer to the equator."""
    low, high = min(a[1], a[5]), max(a[3], a[7])
    others_low, others_high = min(b[1], b[5]), max(b[3], b[7])
    if max(abs(low), abs(high)) <= max(abs(others_low), abs(others_high)):
        return reach(low, high, length)
    return reach(others_low, others_high, length)


@kernel
def first_leaves(count: int, others: int) -> Ints:
    """A stack for `next_leaves` of two trees of so many edges: its first row says how many of the others count."""
    stack = np.empty((2 * _DEEPEST, 6), np.int64)
    stack[0, 0] = 1
    stack[1, 0], stack[1, 1], stack[1, 2] = 0, 0, count
    stack[1, 3], stack[1, 4], stack[1, 5] = 0, 0, others
    return stack


@kernel
def next_leaves(stack: Ints, a: Floats, b: Floats, turn: float, length: float, degrees: bool) -> int:
    """Go on to two leaves that may be within `length` of one another, metres if bounds are in degrees.

    Returns the row of the stack that has them: node, low and high of one and of the other; -1 when there are no more.
    """
    east = north = length
    while stack[0, 0] > 0:
        row = stack[0, 0]
        top = stack[row]
        stack[0, 0] -= 1
        mine, theirs = a[top[0]], b[top[3]]
        if degrees:
            east, north = reach_between(mine, theirs, length)
        if apart(mine, theirs, turn, east, north):
            continue
        low, high = top[1], top[2]
        others_low, others_high = top[4], top[5]
        if high - low <= LEAF and others_high - others_low <= LEAF:
            if east == ALL_AROUND and turn != 0.0:
                continue  # longitudes say nothing here: once is enough
            return int(row)
        stack[row + 1] = top
        if high - low >= others_high - others_low:
            top[0], top[2] = 2 * top[0] + 1, (low + high) // 2
            stack[row + 1, 0], stack[row + 1, 1] = top[0] + 1, top[2]
        else:
            top[3], top[5] = 2 * top[3] + 1, (others_low + others_high) // 2
            stack[row + 1, 3], stack[row + 1, 4] = top[3] + 1, top[5]
        stack[0, 0] += 2
    return -1
