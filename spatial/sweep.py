"""Contacts of a large ring with itself in O(n log n), whatever its shape: a plane sweep with exact orientation.

`rings.self_contact` compares edges whose boxes meet. That is quickest for the boundaries people have, and quadratic
for a comb of long slanted teeth, where all boxes meet; regions come from the network, so a large ring is swept
instead (Shamos and Hoey, 1976). A sweep line passes over the vertices from left to right, below to above among
equals. Edges that it cuts are kept from below to above in a skip list; two edges are compared when they become
neighbours in it. Left of the first contact the order is right, and at the contact two neighbours touch, so some pair
is found.

    upper[level, e]   the next edge above e on that level, or `edges` at the end; column `edges` is the head

Each vertex of a ring is one of three. Where two edges *start* they are inserted, once no edge was found to pass
through the vertex; where one ends and the other starts, the other takes its *place*; where two *end* they are
removed, and their neighbours become neighbours. Vertices at one position are taken in that order, so that a start is
not missed because what it touches has just ended. Neighbouring edges of the ring share a vertex and nothing else:
`canonical` has refused spikes.

Levels are drawn at random: they do not change the answer, and nobody can prepare a ring against them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial._jit import kernel
from contrada.spatial.predicates import orient
from contrada.spatial.rings import edges_touch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.rings import Floats

    Ints = NDArray[np.int64]

# Kinds of vertex: how many of its neighbours come before it.
_START: Final = 0
_PLACE: Final = 1

_LEVELS: Final = 18


@kernel
def _smaller(xy: Floats, i: int, j: int) -> bool:
    """Whether vertex i comes before vertex j in the sweep."""
    return bool(xy[i, 0] < xy[j, 0] or (xy[i, 0] == xy[j, 0] and xy[i, 1] < xy[j, 1]))


@kernel
def _height(xy: Floats, e: int, v: int) -> int:
    """+1 when vertex v is above edge e, -1 when below, 0 when on its line."""
    if _smaller(xy, e, e + 1):
        return orient(xy[e, 0], xy[e, 1], xy[e + 1, 0], xy[e + 1, 1], xy[v, 0], xy[v, 1])
    return orient(xy[e + 1, 0], xy[e + 1, 1], xy[e, 0], xy[e, 1], xy[v, 0], xy[v, 1])


@kernel
def _illegal(xy: Floats, e: int, f: int) -> bool:
    """Whether two edges, either of which may be the end of the list, touch without being neighbours in the ring."""
    edges = xy.shape[0] - 1
    if e == edges or f == edges or abs(e - f) == 1 or abs(e - f) == edges - 1:
        return False
    return edges_touch(xy[e, 0], xy[e, 1], xy[e + 1, 0], xy[e + 1, 1], xy[f, 0], xy[f, 1], xy[f + 1, 0], xy[f + 1, 1])


@kernel
def _order(xy: Floats, kinds: Ints) -> Ints:
    """Sort vertices by x, then y, then kind, by stable sorts from the last key to the first."""
    edges = xy.shape[0] - 1
    order = np.argsort(kinds, kind="mergesort")
    order = order[np.argsort(xy[:edges, 1][order], kind="mergesort")]
    return order[np.argsort(xy[:edges, 0][order], kind="mergesort")]


@kernel
def _insert(upper: Ints, heights: Ints, below: Ints, e: int) -> None:
    """Put edge e above the edges in `below`, and into `below` on its levels."""
    levels = 1
    while levels < _LEVELS and np.random.random() < 0.5:
        levels += 1
    heights[e] = levels
    for level in range(levels):
        upper[level, e] = upper[level, below[level]]
        upper[level, below[level]] = e
        below[level] = e


@kernel
def sweep_contact(xy: Floats) -> tuple[int, int]:
    """Return two edges of a closed ring without spikes that touch illegally; (-1, -1) when there are none."""
    edges = xy.shape[0] - 1
    kinds = np.empty(edges, np.int64)
    for v in range(edges):
        before = v - 1 if v > 0 else edges - 1
        kinds[v] = _smaller(xy, before, v) + _smaller(xy, v + 1, v)
    upper = np.full((_LEVELS, edges + 1), edges, np.int64)
    heights = np.zeros(edges, np.int64)
    below = np.empty(_LEVELS, np.int64)
    for v in _order(xy, kinds):
        first, second = (v - 1 if v > 0 else edges - 1), v  # the edges at v; the first is numbered as its other end
        at = edges
        for level in range(_LEVELS - 1, -1, -1):
            while upper[level, at] != edges and _height(xy, upper[level, at], v) > 0:
                at = upper[level, at]
            below[level] = at
        lower = below[0]
        here = upper[0, lower]
        if kinds[v] == _START:
            if here != edges and _height(xy, here, v) == 0:
                return first, here
            # The other end of the second edge tells which of the two is above.
            if _height(xy, first, v + 1) < 0:
                first, second = second, first
            _insert(upper, heights, below, first)
            _insert(upper, heights, below, second)
            if _illegal(xy, lower, first):
                return lower, first
            if _illegal(xy, second, upper[0, second]):
                return second, upper[0, second]
            continue
        if kinds[v] == _PLACE:
            ending, starting = (first, second) if _smaller(xy, first, v) else (second, first)
            heights[starting] = heights[ending]
            for level in range(heights[ending]):
                upper[level, below[level]] = starting
                upper[level, starting] = upper[level, ending]
            if _illegal(xy, lower, starting):
                return lower, starting
            if _illegal(xy, starting, upper[0, starting]):
                return starting, upper[0, starting]
            continue
        for _ in range(2):
            ending = upper[0, lower]
            for level in range(heights[ending]):
                upper[level, below[level]] = upper[level, ending]
        if _illegal(xy, lower, upper[0, lower]):
            return lower, upper[0, lower]
    return -1, -1
