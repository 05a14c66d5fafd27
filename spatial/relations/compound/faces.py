"""The faces that two regions make of the plane, in O((n + m) log (n + m)) whatever their rings: one sweep over both.

Each region has its own list of the edges that the sweep line cuts (`survey`): edges of one region do not cross, though
several may meet at a position. At every position that has a vertex of either region, edges that end there are removed
from the lists and those that start there are put in. Then every edge that goes on from there to the right, because it
starts there or because it passes through what is a contact, is looked up in the other region's list, by its direction:
the edge below it tells whether it runs inside or outside of the other region, unless an edge of the other runs along
it.

A stretch of a boundary between contacts and vertices has a left end, and is seen there. So every stretch is seen, which
decides (`relating`). Proper crossings are looked for among the edges next to the position, and the first of all is
found, as in `red_blue`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.compound.rows import closed_rings
from contrada.spatial.geometry.compound.survey import (
    cross_properly,
    find_direction,
    remove_ended,
    runs_along,
    starting,
    vertex_rows,
)
from contrada.spatial.geometry.sweep import LEVELS, find, insert, smaller
from contrada.spatial.relations.red_blue import around_point
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.compound.rows import Ints
    from contrada.spatial.geometry.rings import Floats

BOTH: Final = 1
ONLY_A: Final = 2
ONLY_B: Final = 4
ALL_FACES: Final = BOTH | ONLY_A | ONLY_B
TOUCH: Final = 8


@kernel
def _before(axy: Floats, a: int, bxy: Floats, b: int) -> bool:
    return bool(axy[a, 0] < bxy[b, 0] or (axy[a, 0] == bxy[b, 0] and axy[a, 1] < bxy[b, 1]))


@kernel
def _advance(
    xy: Floats,
    rows: Ints,
    k: int,
    before: Ints,
    upper: Ints,
    levels_of: Ints,
    x: float,
    y: float,
    out: Ints,
    below: Ints,
) -> tuple[int, int, int]:
    """Bring a region's list past a position; return the next row, how many edges start, and one that passes or -1.

    `out` gets the edges that start, `below` the edges next below.
    """
    beside = np.empty(LEVELS, np.int64)
    find(xy, upper, x, y, below)
    passing = remove_ended(xy, upper, below, x, y)
    count = 0
    while k < rows.shape[0] and xy[rows[k], 0] == x and xy[rows[k], 1] == y:
        for edge in (before[rows[k]], rows[k]):
            far = starting(xy, edge, rows[k])
            if far >= 0:
                find_direction(xy, upper, x, y, xy[far, 0], xy[far, 1], beside)
                insert(upper, levels_of, beside, edge)
                out[count] = edge
                count += 1
        k += 1
    return k, count, passing


@kernel
def _beside(
    xy: Floats,
    edge: int,
    other: Floats,
    upper: Ints,
    x: float,
    y: float,
    beside: Ints,
    within: int,
    without: int,
) -> int:
    """The faces on both sides of an edge that goes on from the position to the right."""
    rightwards = smaller(xy, edge, edge + 1)
    far = edge + 1 if rightwards else edge
    qx, qy = xy[far, 0], xy[far, 1]
    find_direction(other, upper, x, y, qx, qy, beside)
    above = upper[0, beside[0]]
    if runs_along(other, above, x, y, qx, qy):
        return BOTH if rightwards == smaller(other, above, above + 1) else ONLY_A | ONLY_B
    below = beside[0]
    return within if below != other.shape[0] - 1 and smaller(other, below, below + 1) else without


@kernel
def _cross(axy: Floats, a_around: Ints, a_count: int, bxy: Floats, b_around: Ints, b_count: int) -> bool:
    """Whether of the edges around the position one of A crosses one of B. Those through it cross none through it."""
    for i in range(a_count):
        last = b_count if i == 0 or i == a_count - 1 else min(b_count, 1)
        for k in range(last):
            if cross_properly(axy, a_around[i], bxy, b_around[k]):
                return True
        if last < b_count and cross_properly(axy, a_around[i], bxy, b_around[b_count - 1]):
            return True
    return False


@kernel
def sweep_faces(a_rows: Floats, b_rows: Floats) -> int:
    """Return which faces two regions make, and TOUCH if their boundaries do; all, once they are known to overlap."""
    axy, a_offsets = closed_rings(a_rows)
    bxy, b_offsets = closed_rings(b_rows)
    a_order, _, a_before = vertex_rows(axy, a_offsets)
    b_order, _, b_before = vertex_rows(bxy, b_offsets)
    a_upper = np.full((LEVELS, axy.shape[0]), axy.shape[0] - 1, np.int64)
    b_upper = np.full((LEVELS, bxy.shape[0]), bxy.shape[0] - 1, np.int64)
    a_levels, b_levels = np.zeros(axy.shape[0], np.int64), np.zeros(bxy.shape[0], np.int64)
    a_below, b_below, beside = np.empty(LEVELS, np.int64), np.empty(LEVELS, np.int64), np.empty(LEVELS, np.int64)
    a_out, b_out = np.empty(axy.shape[0] + 1, np.int64), np.empty(bxy.shape[0] + 1, np.int64)
    a_around, b_around = np.empty(axy.shape[0] + 1, np.int64), np.empty(bxy.shape[0] + 1, np.int64)
    faces = 0
    i = j = 0
    while i < a_order.shape[0] or j < b_order.shape[0]:
        if j == b_order.shape[0] or (i < a_order.shape[0] and _before(axy, a_order[i], bxy, b_order[j])):
            x, y = axy[a_order[i], 0], axy[a_order[i], 1]
        else:
            x, y = bxy[b_order[j], 0], bxy[b_order[j], 1]
        a_next, a_count, a_passing = _advance(axy, a_order, i, a_before, a_upper, a_levels, x, y, a_out, a_below)
        b_next, b_count, b_passing = _advance(bxy, b_order, j, b_before, b_upper, b_levels, x, y, b_out, b_below)
        if a_next == i and b_next == j:  # a file was forged: coordinates that are no numbers are equal to none
            return faces
        if (a_next > i or a_passing >= 0) and (b_next > j or b_passing >= 0):
            faces |= TOUCH
            if a_passing >= 0:
                a_out[a_count] = a_passing
                a_count += 1
            if b_passing >= 0:
                b_out[b_count] = b_passing
                b_count += 1
        i, j = a_next, b_next
        for edge in a_out[:a_count]:
            faces |= _beside(axy, edge, bxy, b_upper, x, y, beside, BOTH | ONLY_B, ONLY_A)
        for edge in b_out[:b_count]:
            faces |= _beside(bxy, edge, axy, a_upper, x, y, beside, BOTH | ONLY_A, ONLY_B)
        if faces & ALL_FACES == ALL_FACES:
            return faces
        near_a = around_point(axy, a_upper, a_below[0], x, y, a_around)
        near_b = around_point(bxy, b_upper, b_below[0], x, y, b_around)
        if _cross(axy, a_around, near_a, bxy, b_around, near_b):
            return faces | ALL_FACES | TOUCH
    return faces
