"""Searching for distance constraints: a CR-tree of grown boxes leads to them, and what it leads to is decided exactly.

Each constraint, `within` or `beyond` a length of a shape, has a row by its id, and is in a CR-tree (`cr_tree`) under
the box around its shape, grown by the length: `beyond` with the relation DISJOINT, so that a node's list for what is
disjoint holds all that are certainly beyond; `within` with MEETS for a point, a circle, and OVERLAPS for the others.
Hence a node that the value's box misses is done with by copying that list, and only constraints whose boxes the value's
meets are decided one by one. A box of circles tells of most points whether they are within: its centre and half its
width are those of the circle but for rounding, so only points on the verge need the constraint's row.

    rows   int64 (n, 4)   BLOCK and EDGES of the shape's path in `heap` (ring_arena), FLAGS, the LENGTH's bits
    heap   float64        paths

Kernels write ids to `out`, which has room for as many as there are constraints and a chunk more: each once. What they
cost is taken from `left` (`allowance`): below 0 the search is given up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.lists import list_copy
from contrada.spatial.cr_tree.search import look_at_boxes
from contrada.spatial.distance.planar import paths_near, point_near_path
from contrada.spatial.geometry.ring_arena import ring_boxes, ring_size, ring_xy
from contrada.spatial.relations.relation import DISJOINT, MEETS, OVERLAPS
from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.cr_tree.layout import Floats, Ints, Tree
    from contrada.spatial.relations.relate import Rings

# rows
BLOCK: Final = 0
EDGES: Final = 1
FLAGS: Final = 2
LENGTH: Final = 3
COLUMNS: Final = 4

# flags
FILLED: Final = 1
BEYOND: Final = 2
POINT: Final = 4
METRES: Final = 8

_PER_PAIR: Final = 100  # nanoseconds, about, that it takes to decide a constraint,
_PER_EDGE: Final = 128  # and for each edge of the shapes, if neither is a point

_APART: Final = 1 << DISJOINT
_CIRCLE: Final = 1 << MEETS
_OTHER: Final = 1 << OVERLAPS
_LARGEST: Final = 1e99  # a circle that may reach to where boxes end says nothing by its box
_ROUNDING: Final = 2.0**-46  # above what a centre, a radius and a distance from it are off, relative to all of them
_SMALLEST: Final = 1e-98  # above what boxes without an area are grown by


def mask_of(flags: int) -> int:
    """The relation, as a set of one, under which a constraint is in a tree."""
    return _APART if flags & BEYOND else _CIRCLE if flags & POINT else _OTHER


@kernel
def _in_circle(px: float, py: float, x1: float, y1: float, x2: float, y2: float) -> int:
    """Whether a point is certainly within the circle of a box, 1, certainly not, -1, or it cannot be told, 0."""
    radius = 0.5 * (x2 - x1)
    x, y = 0.5 * (x1 + x2), 0.5 * (y1 + y2)
    verge = _ROUNDING * (abs(x) + abs(y) + abs(px) + abs(py) + radius) + _SMALLEST
    if not verge < radius < _LARGEST or abs((y2 - y1) - (x2 - x1)) > verge:
        return 0
    squares = (px - x) * (px - x) + (py - y) * (py - y)
    if squares < (radius - verge) * (radius - verge):
        return 1
    return -1 if squares > (radius + verge) * (radius + verge) else 0


@kernel
def _is_near(rows: Ints, heap: Floats, id: int, axy: Floats, aboxes: Floats, filled: bool) -> bool:
    """Whether a path is within the length of a constraint's shape."""
    block, edges = rows[id, BLOCK], rows[id, EDGES]
    length = np.int64(rows[id, LENGTH]).view(np.float64)
    bxy, bboxes = ring_xy(heap, block, edges), ring_boxes(heap, block, edges)
    return paths_near(axy, aboxes, filled, bxy, bboxes, rows[id, FLAGS] & FILLED != 0, length)


@inline_kernel
def cost_of(edges: int, others: int) -> int:
    """What deciding a constraint takes of an allowance: O(n + m), or a look through the runs where one is a point."""
    if edges == 1 or others == 1:
        return _PER_PAIR + ((edges + others) >> 2)
    return _PER_PAIR + _PER_EDGE * (edges + others)


@kernel
def stack_size(t: Tree) -> int:
    """How many nodes a search may have to come back to."""
    size: int = (t.node[t.state[c.ROOT], c.LEVEL] + 1) * c.CAPACITY
    return size


@kernel
def split_by_box(t: Tree, box: Floats, stack: Ints, out: Ints, count: int, slots: Ints) -> tuple[int, int]:
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
def search_near(
    t: Tree,
    rows: Ints,
    heap: Floats,
    axy: Floats,
    aboxes: Floats,
    filled: bool,
    stack: Ints,
    out: Ints,
    count: int,
    left: Ints,
) -> int:
    """Write the ids of the constraints that a path satisfies from out[count] on; the new count.

    `stack` has room for `stack_size` numbers.
    """
    boxes, node_of, chunk_of = t.boxes, t.node, t.chunk
    entry_of, constraint_of = t.entry, t.constraint
    mbr = aboxes.shape[0] - 1
    ax1, ay1, ax2, ay2 = aboxes[mbr, 0], aboxes[mbr, 1], aboxes[mbr, 2], aboxes[mbr, 3]
    root = t.state[c.ROOT]
    some_beyond = node_of[root, c.SIZE + c.LIST * c.WHEN_DISJOINT] > 0  # else what is missed needs no looking at
    stack[0] = root
    size = 1
    while size > 0 and left[0] >= 0:
        size -= 1
        node = stack[size]
        leaf = node_of[node, c.LEVEL] == 0
        for i in range(node_of[node, c.COUNT]):
            x1, y1, x2, y2 = boxes[node, i, 0], boxes[node, i, 1], boxes[node, i, 2], boxes[node, i, 3]
            missed = (x1 > ax2) | (x2 < ax1) | (y1 > ay2) | (y2 < ay1)  # one branch, where four would be guessed wrong
            if missed and not some_beyond:
                continue
            child = node_of[node, c.CHILDREN + i]
            if not leaf:
                if missed:
                    count = list_copy(node_of, chunk_of, child, c.WHEN_DISJOINT, out, count)
                else:
                    stack[size] = child
                    size += 1
                continue
            if missed and entry_of[child, c.UNION] & _APART == 0:
                continue
            slot = entry_of[child, c.FIRST]
            while slot >= 0:
                id = constraint_of[slot, c.ID]
                near = False
                if not missed:
                    left[0] -= cost_of(axy.shape[0] - 1, rows[id, EDGES])
                    near = left[0] >= 0 and _is_near(rows, heap, id, axy, aboxes, filled)
                if near != (constraint_of[slot, c.MASK] & _APART != 0):
                    out[count] = id
                    count += 1
                slot = constraint_of[slot, c.NEXT]
    return count


@kernel
def is_near_place(rows: Ints, heap: Floats, id: int, x: float, y: float) -> bool:
    """Whether a point is within the length of a constraint's shape."""
    block, edges = rows[id, BLOCK], rows[id, EDGES]
    length = np.int64(rows[id, LENGTH]).view(np.float64)
    xy, boxes = ring_xy(heap, block, edges), ring_boxes(heap, block, edges)
    return point_near_path(x, y, xy, boxes, rows[id, FLAGS] & FILLED != 0, length)


@kernel
def near_opened(
    t: Tree, rows: Ints, heap: Floats, x: float, y: float, out: Ints, count: int, opened: int, left: Ints
) -> int:
    """Decide the entries that `look_at_boxes` (cr_tree/search.py) left open of a point: how many ids there are then."""
    entry_of, constraint_of, corners = t.entry, t.constraint, t.heap
    spare = left[0]
    for at in range(out.shape[0] - opened, out.shape[0]):
        entry = out[at]
        known = 0
        if entry_of[entry, c.UNION] == _CIRCLE:
            box = entry_of[entry, c.BLOCK] + ring_size(entry_of[entry, c.EDGES]) - 4
            known = _in_circle(x, y, corners[box], corners[box + 1], corners[box + 2], corners[box + 3])
            if known < 0:
                continue
        slot = entry_of[entry, c.FIRST]
        while slot >= 0:
            id = constraint_of[slot, c.ID]
            near = known > 0
            if not near:
                spare -= cost_of(1, rows[id, EDGES])
                near = spare >= 0 and is_near_place(rows, heap, id, x, y)
            if near != (constraint_of[slot, c.MASK] & _APART != 0):
                out[count] = id
                count += 1
            slot = constraint_of[slot, c.NEXT]
        if spare < 0:
            break
    left[0] = spare
    return count


@kernel
def search_near_points(
    t: Tree, rows: Ints, heap: Floats, places: Floats, first: int, out: Ints, ends: Ints, tally: Ints, left: Ints
) -> int:
    """As `search_near` of each place from `first` on, one answer behind another; `ends` says where each ends.

    Returns the place to go on with, less than there are when `out` is too full for whatever the next may find.
    """
    count = ends[first - 1] if first > 0 else 0
    most = t.state[c.CONSTRAINTS] + c.CHUNK
    for n in range(first, places.shape[0]):
        if out.shape[0] - count < most:
            return n
        x, y, room = places[n, 0], places[n, 1], out[count:]
        found, opened = look_at_boxes(t, x, y, room, tally)
        count += near_opened(t, rows, heap, x, y, room, found, opened, left)
        ends[n] = count
    return len(places)


@inline_kernel
def path_at(place: Floats, rings: Rings, xy: Floats, box: Floats) -> tuple[Floats, Floats, bool]:
    """The path of a value and whether it is filled, given (-1, x, y) of a point or (k, 0, 0) of the k-th ring.

    A point's is written to `xy` and `box`.
    """
    k = int(place[0])
    if k < 0:
        xy[0, 0] = xy[1, 0] = box[0, 0] = box[0, 2] = place[1]
        xy[0, 1] = xy[1, 1] = box[0, 1] = box[0, 3] = place[2]
        return xy, box, False
    axy = rings.xy[rings.starts[k] : rings.starts[k + 1]]
    return axy, rings.boxes[rings.box_starts[k] : rings.box_starts[k + 1]], True


@kernel
def decide_pairs(
    rows: Ints,
    heap: Floats,
    places: Floats,
    rings: Rings,
    numbers: Ints,
    ids: Ints,
    held: NDArray[np.bool_],
    left: Ints,
) -> None:
    """Whether the value of each number satisfies the constraint of each id; `path_at` says what `places` has."""
    xy, box = np.empty((2, 2)), np.empty((1, 4))
    for i in range(numbers.shape[0]):
        axy, aboxes, filled = path_at(places[numbers[i]], rings, xy, box)
        left[0] -= cost_of(axy.shape[0] - 1, rows[ids[i], EDGES])
        if left[0] < 0:
            return
        held[i] = _is_near(rows, heap, ids[i], axy, aboxes, filled) != (rows[ids[i], FLAGS] & BEYOND != 0)
