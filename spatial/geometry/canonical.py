"""One compiled pass from loose vertices to a canonical ring, or to the fault and where it is.

The canonical ring of a simple polygon is counter-clockwise, starts at its lexicographically smallest vertex and has no
repeated and no exactly collinear vertex, so that two polygons are the same point set iff their arrays are equal.

A vertex whose neighbours lie on either side of it on one line can be dropped without turning the edges next to it, so
dropping one never makes another collinear: one pass is enough. A vertex whose neighbours lie on the same side is a
spike, which no cleaning may hide. -0.0 becomes 0.0. Cost: O(n) and the search for contacts, O(n log n) in the worst
case: a quick proof that there is none (`simple`), and where that fails the walk over run boxes for small rings, a plane
sweep (`sweep`) for large ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.predicates import MAX_MAGNITUDE, MIN_MAGNITUDE, orient
from contrada.spatial.geometry.rings import box_rows, fill_boxes, self_contact
from contrada.spatial.geometry.simple import surely_simple, word_count
from contrada.spatial.geometry.sweep import sweep_contact
from contrada.spatial.geometry.wkt import format_number
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.rings import Floats

SOUND: Final = 0
NOT_FINITE: Final = 1
MAGNITUDE: Final = 2
TOO_FEW: Final = 3
ZERO_AREA: Final = 4
SPIKE: Final = 5
CONTACT: Final = 6

MAX_VERTICES: Final = 100_000
"""How many vertices a region may be given with."""

_SWEPT_ABOVE: Final = 2_000


@kernel
def _bad_coordinate(c: float) -> int:
    if c == 0.0:
        return SOUND
    size = abs(c)
    if not size < np.inf:
        return NOT_FINITE
    return SOUND if MIN_MAGNITUDE <= size <= MAX_MAGNITUDE else MAGNITUDE


@kernel
def _same(points: Floats, i: int, j: int) -> bool:
    return bool(points[i, 0] == points[j, 0] and points[i, 1] == points[j, 1])


@kernel
def _turn(points: Floats, i: int, j: int, k: int) -> int:
    return orient(points[i, 0], points[i, 1], points[j, 0], points[j, 1], points[k, 0], points[k, 1])


@kernel
def _between(points: Floats, i: int, j: int, k: int) -> bool:
    """Whether point j, in line with i and k, lies strictly between them."""
    axis = 0 if points[i, 0] != points[k, 0] else 1
    a, b, c = points[i, axis], points[j, axis], points[k, axis]
    return bool(a < b < c or c < b < a)


@kernel
def contact(xy: Floats, boxes: Floats) -> tuple[int, int]:
    """Return a pair of edges of a ring of corners that touch where a simple ring's would not, or (-1, -1)."""
    return self_contact(xy, boxes) if xy.shape[0] <= _SWEPT_ABOVE else sweep_contact(xy)


@kernel
def canonical_ring(points: Floats) -> tuple[int, int, int, int, int, Floats, Floats]:
    """Return (fault, i, i2, j, j2, xy, boxes) of the ring through `points`, closed or not.

    `xy` and `boxes` are the canonical ring as `rings` describes it, when the fault is SOUND. Otherwise the vertex of
    `points` at fault is i; for CONTACT the edges from vertex i to i2 and from j to j2 touch.
    """
    none = np.empty((0, 2))
    no_boxes = np.empty((0, 4))
    m = points.shape[0]
    for i in range(m):
        for axis in range(2):
            fault = _bad_coordinate(points[i, axis])
            if fault != SOUND:
                return fault, i, axis, 0, 0, none, no_boxes

    kept = np.empty(m, np.int64)
    n = 0
    for i in range(m):
        if n == 0 or not _same(points, i, kept[n - 1]):
            kept[n] = i
            n += 1
    while n > 1 and _same(points, kept[n - 1], kept[0]):
        n -= 1
    distinct = n if n < 3 else 2
    for k in range(2, n):
        if not _same(points, kept[k], kept[0]) and not _same(points, kept[k], kept[1]):
            distinct = 3
            break
    if distinct < 3:
        return TOO_FEW, distinct, 0, 0, 0, none, no_boxes

    corners = np.empty(n, np.int64)
    size = 0
    spike = -1
    for k in range(n):
        before = kept[k - 1] if k > 0 else kept[n - 1]
        here = kept[k]
        after = kept[k + 1] if k + 1 < n else kept[0]
        if _turn(points, before, here, after) != 0:
            corners[size] = here
            size += 1
        elif spike < 0 and not _between(points, before, here, after):
            spike = here
    if size == 0:
        return ZERO_AREA, kept[0], 0, 0, 0, none, no_boxes
    if spike >= 0:
        return SPIKE, spike, 0, 0, 0, none, no_boxes

    lowest = 0
    for k in range(1, size):
        x, y = points[corners[k], 0], points[corners[k], 1]
        lx, ly = points[corners[lowest], 0], points[corners[lowest], 1]
        if x < lx or (x == lx and y < ly):
            lowest = k
    before = corners[lowest - 1] if lowest > 0 else corners[size - 1]
    here = corners[lowest]
    after = corners[lowest + 1] if lowest + 1 < size else corners[0]
    turn = _turn(points, before, here, after)

    xy = np.empty((size + 1, 2))
    k = lowest
    for i in range(size + 1):
        xy[i, 0] = points[corners[k], 0] + 0.0
        xy[i, 1] = points[corners[k], 1] + 0.0
        k += turn
        if k == size:
            k = 0
        elif k < 0:
            k = size - 1
    boxes = np.empty((box_rows(size), 4))
    fill_boxes(xy, boxes)
    mbr = boxes[boxes.shape[0] - 1]
    words = np.empty(word_count(size), np.uint64)
    if surely_simple(xy.reshape(-1), 0, size, mbr[0], mbr[1], mbr[2], mbr[3], words):
        return SOUND, 0, 0, 0, 0, xy, boxes
    i, j = contact(xy, boxes)
    if i >= 0:
        source = np.empty(4, np.int64)
        for which, at in enumerate((i, i + 1, j, j + 1)):
            source[which] = corners[(lowest + turn * at) % size]
        return CONTACT, source[0], source[1], source[2], source[3], none, no_boxes
    return SOUND, 0, 0, 0, 0, xy, boxes


def describe_fault(fault: int, at: tuple[int, int, int, int], points: Floats) -> str:
    """Say what `canonical_ring` found wrong with the ring through `points`, and where."""
    i = at[0]
    if fault == TOO_FEW:
        return f"{i} distinct vertices; a region has at least 3"
    if fault == ZERO_AREA:
        return "zero area: all vertices lie on one line"
    where = _vertex(i, points)
    if fault == NOT_FINITE:
        return f"{where} has a coordinate that is not finite"
    if fault == MAGNITUDE:
        return f"{where} has a coordinate outside the supported range: 0, or 1e-100 to 1e100 in magnitude"
    if fault == SPIKE:
        return f"spike: the boundary runs back on itself at {where}"
    assert fault == CONTACT
    return _describe_contact(at, points)


def _describe_contact(at: tuple[int, int, int, int], points: Floats) -> str:
    """Say how two edges touch: they run along each other, a vertex of one lies on the other, or they cross."""
    (a, b), (c, d) = edges = at[:2], at[2:]
    first, second = (f"the edge from {_vertex(p, points)} to {_vertex(q, points)}" for p, q in edges)
    p, q, r, s = (tuple(points[k].tolist()) for k in at)
    if orient(*p, *q, *r) == 0 == orient(*p, *q, *s):
        return f"self-intersection: {first} runs along {second}"
    for vertex, edge, name in ((c, (p, q), first), (d, (p, q), first), (a, (r, s), second), (b, (r, s), second)):
        position = tuple(points[vertex].tolist())
        for end, corner in zip(edge, edges[0] if name is first else edges[1], strict=True):
            if end == position:
                return f"self-intersection: {_vertex(vertex, points)} is also vertex {corner}"
        if orient(*edge[0], *edge[1], *position) == 0:
            return f"self-intersection: {_vertex(vertex, points)} lies on {name}"
    return f"self-intersection: {first} crosses {second}"


def _vertex(i: int, points: Floats) -> str:
    x, y = points[i].tolist()
    return f"vertex {i} at ({format_number(x)}, {format_number(y)})"
