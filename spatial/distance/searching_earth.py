"""Searching for distance constraints on the Earth: as `searching`, of rows whose lengths are metres.

The boxes in the tree are grown as `earth` has it, within longitudes from -180 to 180; so are those of values. What a
value's box meets is decided by geodesics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.lists import list_copy
from contrada.spatial.distance.earth import paths_near_on_earth
from contrada.spatial.distance.searching import BEYOND, BLOCK, EDGES, FILLED, FLAGS, LENGTH, stack_size
from contrada.spatial.geometry.ring_arena import ring_boxes, ring_xy
from contrada.spatial.relations.relation import DISJOINT
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.cr_tree.layout import Floats, Ints, Tree
    from contrada.spatial.relations.relate import Rings

_APART: Final = 1 << DISJOINT


@kernel
def _is_near(rows: Ints, heap: Floats, id: int, axy: Floats, aboxes: Floats, filled: bool) -> bool:
    block, edges = rows[id, BLOCK], rows[id, EDGES]
    length = np.int64(rows[id, LENGTH]).view(np.float64)
    bxy, bboxes = ring_xy(heap, block, edges), ring_boxes(heap, block, edges)
    return paths_near_on_earth(axy, aboxes, filled, bxy, bboxes, rows[id, FLAGS] & FILLED != 0, length)


@kernel
def _split(t: Tree, box: Floats, stack: Ints, out: Ints, count: int, slots: Ints) -> tuple[int, int]:
    """Write ids of what is beyond for certain to out[count:], and the slots of what a box meets; both counts."""
    boxes, node_of, entry_of, constraint_of = t.boxes, t.node, t.entry, t.constraint
    x1, y1, x2, y2 = box[0], box[1], box[2], box[3]
    stack[0] = t.state[c.ROOT]
    size = 1
    met = 0
    while size > 0:
        size -= 1
        node = stack[size]
        leaf = node_of[node, c.LEVEL] == 0
        for i in range(node_of[node, c.COUNT]):
            child = node_of[node, c.CHILDREN + i]
            missed = (
                boxes[node, i, 0] > x2 or boxes[node, i, 2] < x1 or boxes[node, i, 1] > y2 or boxes[node, i, 3] < y1
            )
            if not leaf:
                if missed:
                    count = list_copy(node_of, t.chunk, child, c.WHEN_DISJOINT, out, count)
                else:
                    stack[size] = child
                    size += 1
                continue
            slot = entry_of[child, c.FIRST]
            while slot >= 0:
                if not missed:
                    slots[met] = slot
                    met += 1
                elif constraint_of[slot, c.MASK] & _APART != 0:
                    out[count] = constraint_of[slot, c.ID]
                    count += 1
                slot = constraint_of[slot, c.NEXT]
    return count, met


@kernel
def search_near_on_earth(
    t: Tree, rows: Ints, heap: Floats, axy: Floats, aboxes: Floats, filled: bool, out: Ints
) -> int:
    """Write the ids of the constraints that a path satisfies to `out`; how many."""
    slots = np.empty(t.state[c.CONSTRAINTS], np.int64)
    stack = np.empty(stack_size(t), np.int64)
    count, met = _split(t, aboxes[aboxes.shape[0] - 1], stack, out, 0, slots)
    for k in range(met):
        slot = slots[k]
        id = t.constraint[slot, c.ID]
        if _is_near(rows, heap, id, axy, aboxes, filled) != (t.constraint[slot, c.MASK] & _APART != 0):
            out[count] = id
            count += 1
    return count


@kernel
def decide_pairs_on_earth(
    rows: Ints, heap: Floats, places: Floats, rings: Rings, numbers: Ints, ids: Ints, held: NDArray[np.bool_]
) -> None:
    """As `searching.decide_pairs`."""
    xy, box = np.empty((2, 2)), np.empty((1, 4))
    for i in range(numbers.shape[0]):
        place = places[numbers[i]]
        k = int(place[0])
        if k < 0:
            xy[0, 0] = xy[1, 0] = box[0, 0] = box[0, 2] = place[1]
            xy[0, 1] = xy[1, 1] = box[0, 1] = box[0, 3] = place[2]
            near = _is_near(rows, heap, ids[i], xy, box, False)
        else:
            axy = rings.xy[rings.starts[k] : rings.starts[k + 1]]
            aboxes = rings.boxes[rings.box_starts[k] : rings.box_starts[k + 1]]
            near = _is_near(rows, heap, ids[i], axy, aboxes, True)
        held[i] = near != (rows[ids[i], FLAGS] & BEYOND != 0)
