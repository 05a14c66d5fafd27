"""Contacts of two rings in O((n + m) log (n + m)), whatever their shapes: one sweep over both, each with its own list.

Edges of one ring never touch but at their common vertices, so the edges that the sweep line cuts are in a strict
order for each ring, kept in a skip list each (`sweep`); between the rings nothing is assumed. At every position that
has a vertex, of A, of B or of both, it takes the edges of each ring through it, the next below and the next above, at
most four, and compares those of A with those of B.

That finds every contact at a vertex. It also finds a proper crossing if there is one: let P be the first. No other
edge passes through P, so just before it the two edges are next to each other among all edges, and they became so at a
position with a vertex: either one of them starts there, and the other passes next to it, or what lay between them
ends there, and each of them passes through it or next to it. In each case the two are compared there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.geometry.sweep import (
    LEVELS,
    PLACE,
    START,
    find,
    height,
    insert,
    insert_both,
    kind_of,
    smaller,
    sorted_rows,
)
from contrada.spatial.relations.contacts import A_IN_B, A_OUT_OF_B, contact_witnesses, proves_overlap
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.geometry.rings import Floats

    Ints = NDArray[np.int64]


@kernel
def _begin(xy: Floats, v: int, upper: Ints, levels_of: Ints, below: Ints) -> None:
    """Insert the edges that start at vertex v. Those that end there stay."""
    kind = kind_of(xy, v)
    if kind == START:
        insert_both(xy, upper, levels_of, below, v)
    elif kind == PLACE:
        before = v - 1 if v > 0 else xy.shape[0] - 2
        insert(upper, levels_of, below, v if smaller(xy, before, v) else before)


@kernel
def _finish(xy: Floats, v: int, upper: Ints, levels_of: Ints, below: Ints) -> None:
    """Remove the edges that end at vertex v. Up to two edges that start there may lie before them in the list."""
    before = v - 1 if v > 0 else xy.shape[0] - 2
    for edge, far in ((before, before), (v, v + 1)):
        if smaller(xy, far, v):
            for level in range(levels_of[edge]):
                at = below[level]
                while upper[level, at] != edge:
                    at = upper[level, at]
                upper[level, at] = upper[level, edge]


@kernel
def around_point(xy: Floats, upper: Ints, lower: int, x: float, y: float, around: Ints) -> int:
    """Collect the edge next below the point, those through it and the next above; return how many they are."""
    head = xy.shape[0] - 1
    count = 0
    if lower != head:
        around[0] = lower
        count = 1
    edge = upper[0, lower]
    while edge != head:
        around[count] = edge
        count += 1
        if height(xy, edge, x, y) != 0:
            break
        edge = upper[0, edge]
    return count


@kernel
def _boxes_meet(axy: Floats, i: int, bxy: Floats, j: int) -> bool:
    for axis in range(2):
        if max(axy[i, axis], axy[i + 1, axis]) < min(bxy[j, axis], bxy[j + 1, axis]):
            return False
        if max(bxy[j, axis], bxy[j + 1, axis]) < min(axy[i, axis], axy[i + 1, axis]):
            return False
    return True


@kernel
def sweep_witnesses(axy: Floats, bxy: Floats) -> int:
    """Return the witnesses at all contacts of two rings; once they prove overlaps, those found so far."""
    a_edges, b_edges = axy.shape[0] - 1, bxy.shape[0] - 1
    at = np.empty((a_edges + b_edges, 2))
    at[:a_edges] = axy[:a_edges]
    at[a_edges:] = bxy[:b_edges]
    order = sorted_rows(at)
    a_upper = np.full((LEVELS, a_edges + 1), a_edges, np.int64)
    b_upper = np.full((LEVELS, b_edges + 1), b_edges, np.int64)
    a_levels, b_levels = np.zeros(a_edges, np.int64), np.zeros(b_edges, np.int64)
    a_below, b_below = np.empty(LEVELS, np.int64), np.empty(LEVELS, np.int64)
    a_around, b_around = np.empty(8, np.int64), np.empty(8, np.int64)
    found = 0
    k = 0
    while k < order.shape[0]:
        x, y = at[order[k], 0], at[order[k], 1]
        a, b = -1, -1
        # A ring has each position once, so at most two vertices share one.
        while k < order.shape[0] and at[order[k], 0] == x and at[order[k], 1] == y:
            if order[k] < a_edges:
                a = order[k]
            else:
                b = order[k] - a_edges
            k += 1
        find(axy, a_upper, x, y, a_below)
        find(bxy, b_upper, x, y, b_below)
        a_lower, b_lower = a_below[0], b_below[0]
        if a >= 0:
            _begin(axy, a, a_upper, a_levels, a_below)
        if b >= 0:
            _begin(bxy, b, b_upper, b_levels, b_below)
        a_count = around_point(axy, a_upper, a_lower, x, y, a_around)
        b_count = around_point(bxy, b_upper, b_lower, x, y, b_around)
        for i in a_around[:a_count]:
            for j in b_around[:b_count]:
                if _boxes_meet(axy, i, bxy, j):
                    witnesses = contact_witnesses(axy, i, bxy, j)
                    if witnesses < 0:
                        return A_IN_B | A_OUT_OF_B
                    found |= witnesses
        if proves_overlap(found):
            return found
        if a >= 0:
            _finish(axy, a, a_upper, a_levels, a_below)
        if b >= 0:
            _finish(bxy, b, b_upper, b_levels, b_below)
    return found
