"""How rings lie to one another: a plane sweep over all of them, O(n log n) whatever they are.

Each ring is simple; between them everything is still possible. As in `sweep`, a line passes over the vertices, and the
edges that it cuts are kept from below to above in a skip list. Here edges may meet at a position: several rings have a
vertex there, or one ring's edge passes through another's vertex. All that happens at a position is done together:

1. edges that end there are removed; an edge that passes through stays, and there may be one such;
2. edges that start there are put in by their direction, which no two may share: those run along each other;
3. the edges next to one another around the position are compared. Properly crossing ones are a fault, and so are two
   that do not agree about the face between them.

A face is named by the innermost ring around it, -1 for none. All rings are counter-clockwise here: above an edge that
goes to the right is the inside of its ring, below it what the ring is in, its *parent*; of an edge that goes to the
left the reverse. A ring's parent becomes known where the ring starts. Where rings cross at a position, the faces do not
agree; where they only touch, they do. Proper crossings are found as by Shamos and Hoey: left of the first the order is
right, and the two edges become neighbours at some position before it.

Rings of one part and the points at which they touch make a graph, which has a cycle iff they cut the part's interior
in two: a forest of rings is kept, and a point that two rings of one tree share is a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.predicates import orient
from contrada.spatial.geometry.sweep import LEVELS, find, height, insert, smaller, sorted_rows
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.compound.rows import Ints
    from contrada.spatial.geometry.rings import Floats

# What may be wrong with two rings.
APART: Final = 0  # nothing
CROSSING: Final = 1
ALONG: Final = 2
CUT: Final = 3

_UNKNOWN: Final = -2


@kernel
def vertex_rows(xy: Floats, offsets: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the rows of the vertices in the order of the sweep; and by row, its ring and the edge that leads to it.

    Rings are closed: the last row of each is no vertex, and edge e goes from row e to row e + 1.
    """
    rings = offsets.shape[0] - 1
    rows = np.empty(xy.shape[0] - rings, np.int64)
    ring_of = np.empty(xy.shape[0], np.int64)
    before = np.empty(xy.shape[0], np.int64)
    keys = np.empty((rows.shape[0], 2))
    n = 0
    for ring in range(rings):
        for row in range(offsets[ring], offsets[ring + 1]):
            ring_of[row] = ring
            before[row] = row - 1
            if row < offsets[ring + 1] - 1:
                rows[n] = row
                keys[n, 0], keys[n, 1] = xy[row, 0], xy[row, 1]
                n += 1
        before[offsets[ring]] = offsets[ring + 1] - 2
    return rows[sorted_rows(keys)], ring_of, before


@kernel
def find_direction(xy: Floats, upper: Ints, x: float, y: float, qx: float, qy: float, below: Ints) -> None:
    """Fill in, for each level, the last edge below a step from the point towards q, which is to the right of it."""
    head = xy.shape[0] - 1
    at = head
    for level in range(LEVELS - 1, -1, -1):
        while upper[level, at] != head:
            edge = upper[level, at]
            side = height(xy, edge, x, y)
            if side < 0 or (side == 0 and height(xy, edge, qx, qy) <= 0):
                break
            at = edge
        below[level] = at


@kernel
def runs_along(xy: Floats, edge: int, x: float, y: float, qx: float, qy: float) -> bool:
    """Whether an edge, or the end of the list, goes from or through the point straight towards q."""
    head = xy.shape[0] - 1
    return edge != head and height(xy, edge, x, y) == 0 and height(xy, edge, qx, qy) == 0


@kernel
def remove_ended(xy: Floats, upper: Ints, below: Ints, x: float, y: float) -> int:
    """Remove the edges that end at the point, given those below it; return an edge that passes through it, or -1.

    Returns -2 when several pass: they cross there.
    """
    head = xy.shape[0] - 1
    passing = -1
    for level in range(LEVELS):
        at = below[level]
        edge = upper[level, at]
        while edge != head and height(xy, edge, x, y) == 0:
            end = edge + 1 if smaller(xy, edge, edge + 1) else edge
            if xy[end, 0] == x and xy[end, 1] == y:
                upper[level, at] = upper[level, edge]
            else:
                if level == 0:
                    passing = edge if passing == -1 else -2
                at = edge
            edge = upper[level, at]
    return passing


@kernel
def starting(xy: Floats, edge: int, row: int) -> int:
    """The row of the far end of one of a vertex's two edges if the sweep meets it later, and -1 if not."""
    far = edge + 1 if edge == row else edge
    return far if smaller(xy, row, far) else -1


@kernel
def cross_properly(xy: Floats, e: int, other: Floats, f: int) -> bool:
    """Whether edge e and edge f of the other rows cross at a point within both."""
    ax, ay, bx, by = xy[e, 0], xy[e, 1], xy[e + 1, 0], xy[e + 1, 1]
    cx, cy, dx, dy = other[f, 0], other[f, 1], other[f + 1, 0], other[f + 1, 1]
    if max(ax, bx) < min(cx, dx) or max(cx, dx) < min(ax, bx) or max(ay, by) < min(cy, dy) or max(cy, dy) < min(ay, by):
        return False
    if orient(ax, ay, bx, by, cx, cy) * orient(ax, ay, bx, by, dx, dy) >= 0:
        return False
    return orient(cx, cy, dx, dy, ax, ay) * orient(cx, cy, dx, dy, bx, by) < 0


@kernel
def _root(forest: Ints, ring: int) -> int:
    while forest[ring] != ring:
        forest[ring] = forest[forest[ring]]
        ring = forest[ring]
    return ring


@kernel
def _join(
    forest: Ints, touching: Ints, count: int, part_of: Ints, seen: Ints, first_of: Ints, now: int
) -> tuple[int, int]:
    """Note that rings touch at one point; return two rings of a part that it makes a cycle of, or (-1, -1)."""
    for k in range(count):
        root = _root(forest, touching[k])
        if seen[root, 0] == now:
            return seen[root, 1], touching[k]
        seen[root, 0], seen[root, 1] = now, touching[k]
    for k in range(count):
        part = part_of[touching[k]]
        root = _root(forest, touching[k])
        if first_of[part, 0] == now:
            forest[root] = _root(forest, first_of[part, 1])
        else:
            first_of[part, 0], first_of[part, 1] = now, root
    return -1, -1


@kernel
def _agree(xy: Floats, upper: Ints, lower: int, x: float, y: float, ring_of: Ints, parents: Ints) -> tuple[int, int]:
    """Compare the edges around the point, from the one below it to the one above it, each with the next.

    Return two that cross or do not agree about the face between them, or (-1, -1). Rings that start there get parents.
    """
    head = xy.shape[0] - 1
    e = lower
    while True:
        f = upper[0, e]
        inner = -1
        if e != head:
            inner = ring_of[e] if smaller(xy, e, e + 1) else parents[ring_of[e]]
        if f == head:
            # Above everything there is nothing that anything is in.
            return (-1, -1) if inner == -1 else (e, e)
        rightwards = smaller(xy, f, f + 1)
        if parents[ring_of[f]] == _UNKNOWN:
            parents[ring_of[f]] = inner  # its lower edge there, which goes to the right
        if inner != (parents[ring_of[f]] if rightwards else ring_of[f]):
            return (f, f) if e == head else (e, f)
        if e != head and cross_properly(xy, e, xy, f):
            return e, f
        if height(xy, f, x, y) != 0:
            return -1, -1
        e = f


@kernel
def survey(xy: Floats, offsets: Ints, part_of: Ints, parents: Ints, touches: Floats) -> tuple[int, int, int, int]:
    """Return (fault, e, f, n): what is wrong, with which edges or for CUT rings, and at how many points rings touch.

    Ring k, closed, simple and counter-clockwise, is xy[offsets[k] : offsets[k + 1]], and belongs to part part_of[k].
    When nothing is wrong `parents` gets the ring that each ring is in, or -1, and `touches`, with a row for each
    vertex, the points at which rings touch. Where rings cross because faces do not agree, e and f are edges next to it.
    """
    rows, ring_of, before = vertex_rows(xy, offsets)
    rings = offsets.shape[0] - 1
    head = xy.shape[0] - 1
    upper = np.full((LEVELS, xy.shape[0]), head, np.int64)
    levels_of = np.zeros(xy.shape[0], np.int64)
    below, beside = np.empty(LEVELS, np.int64), np.empty(LEVELS, np.int64)
    parents[:] = _UNKNOWN
    forest = np.arange(rings)
    seen, first_of = np.full((rings, 2), -1, np.int64), np.full((rings, 2), -1, np.int64)
    touching = np.empty(rings + 1, np.int64)
    count = 0
    k = 0
    while k < rows.shape[0]:
        first = k
        x, y = xy[rows[k], 0], xy[rows[k], 1]
        while k < rows.shape[0] and xy[rows[k], 0] == x and xy[rows[k], 1] == y:
            touching[k - first] = ring_of[rows[k]]  # a ring has each position once
            k += 1
        find(xy, upper, x, y, below)
        passing = remove_ended(xy, upper, below, x, y)
        if passing == -2:
            return CROSSING, upper[0, below[0]], upper[0, upper[0, below[0]]], 0
        here = k - first
        if passing >= 0:
            touching[here] = ring_of[passing]
            here += 1
        if here > 1:
            touches[count, 0], touches[count, 1] = x, y
            count += 1
        for row in rows[first:k]:
            for edge in (before[row], row):
                far = starting(xy, edge, row)
                if far >= 0:
                    qx, qy = xy[far, 0], xy[far, 1]
                    find_direction(xy, upper, x, y, qx, qy, beside)
                    if runs_along(xy, upper[0, beside[0]], x, y, qx, qy):
                        return ALONG, edge, upper[0, beside[0]], 0
                    insert(upper, levels_of, beside, edge)
        e, f = _agree(xy, upper, below[0], x, y, ring_of, parents)
        if e >= 0:
            return CROSSING, e, f, 0
        if here > 1:
            one, other = _join(forest, touching, here, part_of, seen, first_of, first)
            if one >= 0:
                return CUT, one, other, count
    return APART, -1, -1, count
