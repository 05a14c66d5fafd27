"""Searching for distance constraints on the Earth: as `searching`, of rows whose lengths are metres.

The boxes in the tree are grown as `earth` has it, within longitudes from -180 to 180; so are those of values. What a
value's box meets is decided by geodesics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.cr_tree import layout as c
from contrada.spatial.distance.earth import paths_near_on_earth
from contrada.spatial.distance.planar import paths_near, point_near_path
from contrada.spatial.distance.searching import (
    BEYOND,
    BLOCK,
    EDGES,
    FILLED,
    FLAGS,
    LENGTH,
    METRES,
    cost_of,
    path_at,
    split_by_box,
    stack_size,
)
from contrada.spatial.geometry.ring_arena import ring_boxes, ring_xy
from contrada.spatial.relations.relation import DISJOINT
from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.cr_tree.layout import Floats, Ints, Tree
    from contrada.spatial.relations.relate import Rings

_APART: Final = 1 << DISJOINT
_GEODESIC: Final = 3_000  # nanoseconds, about; and how much dearer than in the plane the rest is
_DEARER: Final = 16


@kernel
def _is_near(rows: Ints, heap: Floats, id: int, axy: Floats, aboxes: Floats, filled: bool) -> bool:
    block, edges = rows[id, BLOCK], rows[id, EDGES]
    length = np.int64(rows[id, LENGTH]).view(np.float64)
    bxy, bboxes = ring_xy(heap, block, edges), ring_boxes(heap, block, edges)
    if rows[id, FLAGS] & METRES == 0:  # of no length: whether it is touched, by a position at 180 from either side
        if paths_near(axy, aboxes, filled, bxy, bboxes, rows[id, FLAGS] & FILLED != 0, length):
            return True
        is_position = axy.shape[0] == 2 and axy[0, 0] == axy[1, 0] and axy[0, 1] == axy[1, 1]
        return is_position and axy[0, 0] == 180.0 and point_near_path(-180.0, axy[0, 1], bxy, bboxes, False, length)
    return paths_near_on_earth(axy, aboxes, filled, bxy, bboxes, rows[id, FLAGS] & FILLED != 0, length)


@inline_kernel
def _cost_of(edges: int, others: int) -> int:
    return _GEODESIC + _DEARER * cost_of(edges, others)


@kernel
def search_near_on_earth(
    t: Tree, rows: Ints, heap: Floats, axy: Floats, aboxes: Floats, filled: bool, out: Ints, left: Ints
) -> int:
    """Write the ids of the constraints that a path satisfies to `out`; how many."""
    slots = np.empty(t.state[c.CONSTRAINTS], np.int64)
    stack = np.empty(stack_size(t), np.int64)
    count, met = split_by_box(t, aboxes[aboxes.shape[0] - 1], stack, out, 0, slots)
    for k in range(met):
        slot = slots[k]
        id = t.constraint[slot, c.ID]
        left[0] -= _cost_of(axy.shape[0] - 1, rows[id, EDGES])
        if left[0] < 0:
            return count
        if _is_near(rows, heap, id, axy, aboxes, filled) != (t.constraint[slot, c.MASK] & _APART != 0):
            out[count] = id
            count += 1
    return count


@kernel
def decide_pairs_on_earth(
    rows: Ints,
    heap: Floats,
    places: Floats,
    rings: Rings,
    numbers: Ints,
    ids: Ints,
    held: NDArray[np.bool_],
    left: Ints,
) -> None:
    """As `searching.decide_pairs`."""
    xy, box = np.empty((2, 2)), np.empty((1, 4))
    for i in range(numbers.shape[0]):
        axy, aboxes, filled = path_at(places[numbers[i]], rings, xy, box)
        left[0] -= _cost_of(axy.shape[0] - 1, rows[ids[i], EDGES])
        if left[0] < 0:
            return
        held[i] = _is_near(rows, heap, ids[i], axy, aboxes, filled) != (rows[ids[i], FLAGS] & BEYOND != 0)
