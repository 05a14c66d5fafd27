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

from contrada.spatial.geometry.predicates import orient
from contrada.spatial.geometry.rings import edges_touch
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.geometry.rings import Floats

    Ints = NDArray[np.int64]

# Kinds of vertex: how many of its neighbours come before it.
START: Final = 0
PLACE: Final = 1

LEVELS: Final = 18


@kernel
def smaller(xy: Floats, i: int, j: int) -> bool:
    """Whether vertex i comes before vertex j in the sweep."""
    return bool(xy[i, 0] < xy[j, 0] or (xy[i, 0] == xy[j, 0] and xy[i, 1] < xy[j, 1]))


@kernel
def height(xy: Floats, e: int, x: float, y: float) -> int:
    """+1 when the point is above edge e, -1 when below, 0 when on its line."""
    if smaller(xy, e, e + 1):
        return orient(xy[e, 0], xy[e, 1], xy[e + 1, 0], xy[e + 1, 1], x, y)
    return orient(xy[e + 1, 0], xy[e + 1, 1], xy[e, 0], xy[e, 1], x, y)


@kernel
def kind_of(xy: Floats, v: int) -> int:
    """How many of a vertex's neighbours come before it: START, PLACE or END."""
    before = v - 1 if v > 0 else xy.shape[0] - 2
    return smaller(xy, before, v) + smaller(xy, v + 1, v)


@kernel
def find(xy: Floats, upper: Ints, x: float, y: float, below: Ints) -> None:
    """Fill in, for each level, the last edge strictly below the point."""
    head = xy.shape[0] - 1
    at = head
    for level in range(LEVELS - 1, -1, -1):
        while upper[level, at] != head and height(xy, upper[level, at], x, y) > 0:
            at = upper[level, at]
        below[level] = at


@kernel
def insert(upper: Ints, levels_of: Ints, below: Ints, e: int) -> None:
    """Put edge e above the edges in `below`, and into `below` on its levels."""
    levels = 1
    while levels < LEVELS and np.random.random() < 0.5:
        levels += 1
    levels_of[e] = levels
    for level in range(levels):
        upper[level, e] = upper[level, below[level]]
        upper[level, below[level]] = e
        below[level] = e


@kernel
def insert_both(xy: Floats, upper: Ints, levels_of: Ints, below: Ints, v: int) -> tuple[int, int]:
    """Put the two edges that start at v above the edges in `below`; return the lower and the upper of them."""
    first, second = (v - 1 if v > 0 else xy.shape[0] - 2), v
    # The far end of the second edge tells which is above.
    if height(xy, first, xy[v + 1, 0], xy[v + 1, 1]) < 0:
        first, second = second, first
    insert(upper, levels_of, below, first)
    insert(upper, levels_of, below, second)
    return first, second


@kernel
def _illegal(xy: Floats, e: int, f: int) -> bool:
    """Whether two edges, either of which may be the end of the list, touch without being neighbours in the ring."""
    edges = xy.shape[0] - 1
    if e == edges or f == edges or abs(e - f) == 1 or abs(e - f) == edges - 1:
        return False
    return edges_touch(xy[e, 0], xy[e, 1], xy[e + 1, 0], xy[e + 1, 1], xy[f, 0], xy[f, 1], xy[f + 1, 0], xy[f + 1, 1])


@kernel
def _after(keys: Floats, i: int, j: int) -> bool:
    for key in range(keys.shape[1]):
        if keys[i, key] != keys[j, key]:
            return bool(keys[i, key] > keys[j, key])
    return False


@kernel
def sorted_rows(keys: Floats) -> Ints:
    """Return the numbers of the rows in ascending order. A heapsort: `argsort` takes seconds to compile."""
    order = np.arange(keys.shape[0])
    for turn in range(-(order.shape[0] // 2), order.shape[0]):
        # First make a heap, from its last parent to its root; then move the largest behind it, again and again.
        root = -turn - 1 if turn < 0 else 0
        size = order.shape[0]
        if turn >= 0:
            size -= turn + 1
            order[0], order[size] = order[size], order[0]
        row = order[root]
        child = 2 * root + 1
        while child < size:
            if child + 1 < size and _after(keys, order[child + 1], order[child]):
                child += 1
            if not _after(keys, order[child], row):
                break
            order[root] = order[child]
            root = child
            child = 2 * root + 1
        order[root] = row
    return order


@kernel
def sweep_contact(xy: Floats) -> tuple[int, int]:
    """Return two edges of a closed ring without spikes that touch illegally; (-1, -1) when there are none."""
    edges = xy.shape[0] - 1
    keys = np.empty((edges, 3))
    for v in range(edges):
        keys[v, 0], keys[v, 1], keys[v, 2] = xy[v, 0], xy[v, 1], kind_of(xy, v)
    upper = np.full((LEVELS, edges + 1), edges, np.int64)
    levels_of = np.zeros(edges, np.int64)
    below = np.empty(LEVELS, np.int64)
    for v in sorted_rows(keys):
        x, y = xy[v, 0], xy[v, 1]
        find(xy, upper, x, y, below)
        lower = below[0]
        if keys[v, 2] == START:
            here = upper[0, lower]
            if here != edges and height(xy, here, x, y) == 0:
                return v, here
            first, second = insert_both(xy, upper, levels_of, below, v)
            if _illegal(xy, lower, first):
                return lower, first
            if _illegal(xy, second, upper[0, second]):
                return second, upper[0, second]
        elif keys[v, 2] == PLACE:
            before = v - 1 if v > 0 else edges - 1  # also the number of the edge from there to v
            ending, starting = (before, v) if smaller(xy, before, v) else (v, before)
            levels_of[starting] = levels_of[ending]
            for level in range(levels_of[ending]):
                upper[level, below[level]] = starting
                upper[level, starting] = upper[level, ending]
            if _illegal(xy, lower, starting):
                return lower, starting
            if _illegal(xy, starting, upper[0, starting]):
                return starting, upper[0, starting]
        else:
            for _ in range(2):
                ending = upper[0, lower]
                for level in range(levels_of[ending]):
                    upper[level, below[level]] = upper[level, ending]
            if _illegal(xy, lower, upper[0, lower]):
                return lower, upper[0, lower]
    return -1, -1
