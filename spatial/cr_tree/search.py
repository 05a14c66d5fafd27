"""Searching a CR-tree: finding the constraints that a region, or a point, satisfies.

`search_ring` walks down from the root with the list of the query's edges that touch the node's MBR, each child getting
the part that touches its own (closed boxes; an edge may be taken to touch a box it just misses, never the other way
round). Where no edge touches a box, the box lies wholly in the query's interior or wholly in its exterior, and
locating one corner tells which. So a child is

- *missed*, its MBR apart from the query's: every relation below is disjoint, the node's disjoint list is copied;
- *outside*, no edge touching it and its corner outside: the same;
- *inside*, no edge touching it and its corner inside: every relation below is contains, that list is copied;
- otherwise descended into. In a leaf, the MBRs rule relations out (`mbr`, the corrected Table 2) and an entry
  whose constraints each want none, or all, of those left is decided there. Boxes are their MBRs: for those, and for
  points in them, that is the end. What remains is evaluated, by the edges
  at hand, or when these are very many by `relate_regions`, which looks at runs of them and stops at a crossing.

So the cost follows the query's boundary and the size of the answer, not its area. Beyond [SIENA-2D], section 4.1: the
second list and the edges (the paper matches disjoint lists only, by MBR).

**Discretizations.** Sampled relations keep to the table of the MBRs by definition (`uniform`), so it serves there too.
Without halo, wholesale decisions by edges stay valid: if no edge of A comes nearer to MBR(B) than the rounding of
sampled points, every sample of ∂A is OUT of B, and the samples of ∂B are all IN A or all OUT of it; Algorithm 1 then
answers contains or disjoint whichever boundary it samples first. With halo a sample near B meets it though no edge
touches the box, so edges decide nothing.

Of a point first all boxes are looked at, then the regions that these leave open: so whoever knows that nobody wants
some of them may take them out in between.

Kernel-level use: `search_ring(tree, xy, boxes, mode, density, out, tally, left)` and `search_point(tree, x, y, out,
tally, left)` write ids to `out`, which must hold as many as the tree has constraints and CHUNK more, and return how
many. They may be called from other kernels, and from several threads at once. Ids come in no particular order, each
once. What the next relation may cost is taken from `left` (`allowance`) before it is looked at: below 0 the search is
given up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.edges import PER_EDGE, keep_touching, relate_by_edges
from contrada.spatial.cr_tree.lists import list_copy
from contrada.spatial.geometry.compound.rows import MARK, edge_count, edge_rows, locate_in, part_count
from contrada.spatial.geometry.ring_arena import in_one_part, is_box, ring_boxes, ring_size, ring_xy
from contrada.spatial.geometry.rings import IN, ON, locate
from contrada.spatial.relations.compound.relating import relate_regions
from contrada.spatial.relations.mbr import POSSIBLE, POSSIBLE_OF_PARTS, boxes_cross, relate_boxes
from contrada.spatial.relations.relation import CONTAINS, DISJOINT, INSIDE, MEETS, OVERLAPS
from contrada.spatial.relations.uniform import relate_uniform, sampling_cost
from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from contrada.spatial.cr_tree.layout import Floats, Ints, Tree

# How relations are decided.
EXACTLY: Final = 0
UNIFORM: Final = 1
UNIFORM_HALO: Final = 2

# tally
VISITED: Final = 0
EVALUATED: Final = 1
ACCEPTED: Final = 2
TALLY_SIZE: Final = 3

_D: Final = 1 << DISJOINT
_M: Final = 1 << MEETS
_O: Final = 1 << OVERLAPS
_I: Final = 1 << INSIDE
_CT: Final = 1 << CONTAINS

# What is taken from an allowance, about nanoseconds: for a relation, and for each edge of both where they are swept.
PER_PAIR: Final = 400
_MANY: Final = 1024  # edges at hand in a leaf, beyond which the runs of the whole ring are quicker to look through

_ROUNDING: Final = 4e-15  # above the error, relative to the coordinates, of a point sampled on an edge


@kernel
def _emit(entry: Ints, constraint: Ints, which: int, mask: int, out: Ints, count: int) -> int:
    """Write the ids of an entry's constraints that have a relation in `mask`."""
    slot = entry[which, c.FIRST]
    while slot >= 0:
        if constraint[slot, c.MASK] & mask:
            out[count] = constraint[slot, c.ID]
            count += 1
        slot = constraint[slot, c.NEXT]
    return count


@kernel
def _decided(entry: Ints, constraint: Ints, which: int, mask: int) -> bool:
    """Whether each constraint of an entry wants none or all of the relations in `mask`."""
    slot = entry[which, c.FIRST]
    while slot >= 0:
        wanted = constraint[slot, c.MASK] & mask
        if wanted != 0 and wanted != mask:
            return False
        slot = constraint[slot, c.NEXT]
    return True


@inline_kernel
def _possible(ax1: float, ay1: float, ax2: float, ay2: float, x1: float, y1: float, x2: float, y2: float) -> int:
    """Return the mask of the relations that the MBRs of A and of an entry leave possible, both in one part."""
    if boxes_cross(ax1, ay1, ax2, ay2, x1, y1, x2, y2):
        return _O
    return int(POSSIBLE[relate_boxes(ax1, ay1, ax2, ay2, x1, y1, x2, y2)])


@kernel
def _possible_of_parts(
    ax1: float, ay1: float, ax2: float, ay2: float, x1: float, y1: float, x2: float, y2: float
) -> int:
    """Return the mask of the relations that the MBRs of A and of an entry leave possible, either in several parts."""
    return int(POSSIBLE_OF_PARTS[relate_boxes(ax1, ay1, ax2, ay2, x1, y1, x2, y2)])


@kernel
def search_ring(
    t: Tree, axy: Floats, aboxes: Floats, mode: int, density: float, out: Ints, tally: Ints, left: Ints
) -> int:
    """Write the ids of the constraints that region A satisfies to `out`, return how many; add to the tally."""
    boxes, node_of, chunk_of, heap = t.boxes, t.node, t.chunk, t.heap
    entry_of, constraint_of = t.entry, t.constraint
    mbr = aboxes.shape[0] - 1
    ax1, ay1, ax2, ay2 = aboxes[mbr, 0], aboxes[mbr, 1], aboxes[mbr, 2], aboxes[mbr, 3]
    slack = 0.0 if mode == EXACTLY else _ROUNDING * max(max(abs(ax1), abs(ax2)), max(abs(ay1), abs(ay2)))
    total = edge_count(axy)
    several = part_count(axy) > 1
    boxed = mode == EXACTLY and is_box(axy.reshape(-1), 0, axy.shape[0] - 1)
    root = t.state[c.ROOT]
    depth = node_of[root, c.LEVEL] + 1
    some_disjoint = node_of[root, c.SIZE + c.LIST * c.WHEN_DISJOINT] > 0  # else what is missed needs no looking at
    # One frame per level: a node, its next child, and its part of `edges`. The parts lie one behind the other.
    node_at = np.empty(depth, np.int64)
    next_at = np.empty(depth, np.int64)
    bounds = np.empty(depth + 1, np.int64)
    edges = np.empty((depth + 1) * total, np.int64)
    edge_rows(axy, edges)
    bounds[0], bounds[1] = 0, total
    node_at[0], next_at[0] = root, 0
    visited = 1
    evaluated = by_evaluation = count = top = 0
    while top >= 0 and left[0] >= 0:
        node = node_at[top]
        i = next_at[top]
        if i == node_of[node, c.COUNT]:
            top -= 1
            continue
        next_at[top] = i + 1
        x1, y1, x2, y2 = boxes[node, i, 0], boxes[node, i, 1], boxes[node, i, 2], boxes[node, i, 3]
        missed = x1 > ax2 or x2 < ax1 or y1 > ay2 or y2 < ay1
        if missed and not some_disjoint:
            continue
        leaf = node_of[node, c.LEVEL] == 0
        child = node_of[node, c.CHILDREN + i]
        if missed:
            if not leaf:
                count = list_copy(node_of, chunk_of, child, c.WHEN_DISJOINT, out, count)
            elif entry_of[child, c.UNION] & _D:
                count = _emit(entry_of, constraint_of, child, _D, out, count)
            continue
        if leaf:
            allowed = _possible(ax1, ay1, ax2, ay2, x1, y1, x2, y2)
            # What one part proves, several do not.
            if allowed & _D == 0 and (several or not in_one_part(heap, entry_of[child, c.BLOCK])):
                allowed = _possible_of_parts(ax1, ay1, ax2, ay2, x1, y1, x2, y2)
            if entry_of[child, c.UNION] & allowed == 0:
                continue
            if _decided(entry_of, constraint_of, child, allowed):
                count = _emit(entry_of, constraint_of, child, allowed, out, count)
                continue
            if boxed and is_box(heap, entry_of[child, c.BLOCK], entry_of[child, c.EDGES]):
                relation = relate_boxes(ax1, ay1, ax2, ay2, x1, y1, x2, y2)
                count = _emit(entry_of, constraint_of, child, 1 << relation, out, count)
                continue
            if mode == EXACTLY and bounds[top + 1] - bounds[top] > _MANY:
                block, ring = entry_of[child, c.BLOCK], entry_of[child, c.EDGES]
                left[0] -= PER_PAIR + PER_EDGE * (total + ring)
                if left[0] < 0:
                    break
                relation = relate_regions(axy, aboxes, ring_xy(heap, block, ring), ring_boxes(heap, block, ring))
                before = count
                count = _emit(entry_of, constraint_of, child, 1 << relation, out, count)
                evaluated += 1
                by_evaluation += count - before
                continue
        low, high = bounds[top], bounds[top + 1]
        left[0] -= high - low
        end = high
        if mode != UNIFORM_HALO:
            if slack > 0.0:
                pad = slack + _ROUNDING * max(max(abs(x1), abs(x2)), max(abs(y1), abs(y2)))
                x1, y1, x2, y2 = x1 - pad, y1 - pad, x2 + pad, y2 + pad
            end = keep_touching(axy, edges, low, high, x1, y1, x2, y2)
            if end == high:
                inside = locate_in(x1, y1, axy, aboxes) == IN
                if leaf:
                    count = _emit(entry_of, constraint_of, child, _CT if inside else _D, out, count)
                else:
                    which = c.WHEN_CONTAINED if inside else c.WHEN_DISJOINT
                    count = list_copy(node_of, chunk_of, child, which, out, count)
                continue
        if leaf:
            block, ring = entry_of[child, c.BLOCK], entry_of[child, c.EDGES]
            left[0] -= PER_PAIR
            if mode == EXACTLY:
                relation = relate_by_edges(heap, block, ring, axy, aboxes, edges, high, end, left)
            else:
                bxy, bboxes = ring_xy(heap, block, ring), ring_boxes(heap, block, ring)
                left[0] -= sampling_cost(axy, aboxes, bxy, bboxes, density)
                if left[0] < 0:
                    break
                relation = relate_uniform(axy, aboxes, bxy, bboxes, density, mode == UNIFORM_HALO)
            before = count
            count = _emit(entry_of, constraint_of, child, 1 << relation, out, count)
            evaluated += 1
            by_evaluation += count - before
        else:
            top += 1
            node_at[top] = child
            next_at[top] = 0
            bounds[top + 1] = end
            visited += 1
    tally[VISITED] += visited
    tally[EVALUATED] += evaluated
    tally[ACCEPTED] += count - by_evaluation
    return count


@kernel
def look_at_boxes(t: Tree, x: float, y: float, out: Ints, tally: Ints) -> tuple[int, int]:
    """What the MBRs tell of a point: how many ids they decide for, and how many entries they leave open.

    The ids are written from the front of `out`, the entries from its end, one before another. There is room for both:
    an entry has one constraint at least.
    """
    boxes, node_of, chunk_of = t.boxes, t.node, t.chunk
    entry_of, constraint_of = t.entry, t.constraint
    root = t.state[c.ROOT]
    some_disjoint = node_of[root, c.SIZE + c.LIST * c.WHEN_DISJOINT] > 0  # else what is missed needs no looking at
    stack = np.empty((node_of[root, c.LEVEL] + 1) * c.CAPACITY, np.int64)
    stack[0] = root
    size = 1
    last = out.shape[0] - 1
    visited = count = opened = 0
    while size > 0:
        size -= 1
        node = stack[size]
        visited += 1
        leaf = node_of[node, c.LEVEL] == 0
        for i in range(node_of[node, c.COUNT]):
            missed = x < boxes[node, i, 0] or x > boxes[node, i, 2] or y < boxes[node, i, 1] or y > boxes[node, i, 3]
            if missed and not some_disjoint:
                continue
            child = node_of[node, c.CHILDREN + i]
            if leaf:
                if not missed:
                    out[last - opened] = child
                    opened += 1
                elif entry_of[child, c.UNION] & _D:
                    count = _emit(entry_of, constraint_of, child, _D, out, count)
            elif missed:
                count = list_copy(node_of, chunk_of, child, c.WHEN_DISJOINT, out, count)
            else:
                stack[size] = child
                size += 1
    tally[VISITED] += visited
    tally[ACCEPTED] += count
    return count, opened


@kernel
def relate_opened(t: Tree, x: float, y: float, out: Ints, count: int, opened: int, tally: Ints, left: Ints) -> int:
    """Decide the entries that `look_at_boxes` left open, or some of them: how many ids there are then."""
    heap, entry_of, constraint_of = t.heap, t.entry, t.constraint
    evaluated = 0
    spare = left[0]
    for at in range(out.shape[0] - opened, out.shape[0]):
        entry = out[at]
        if entry_of[entry, c.UNION] & (_D | _M | _I) == 0:
            continue
        if spare < 0:
            break
        block, edges = entry_of[entry, c.BLOCK], entry_of[entry, c.EDGES]
        before = count
        if is_box(heap, block, edges):
            around = block + ring_size(edges) - 4  # the last of its boxes is the MBR
            inside = heap[around] < x < heap[around + 2] and heap[around + 1] < y < heap[around + 3]
            count = _emit(entry_of, constraint_of, entry, _I if inside else _M, out, count)
            tally[ACCEPTED] += count - before
            continue
        bxy, bboxes = ring_xy(heap, block, edges), ring_boxes(heap, block, edges)
        spare -= PER_PAIR + (edges >> 2)
        place = locate(x, y, bxy, bboxes) if heap[block] != MARK else locate_in(x, y, bxy, bboxes)
        relation = _I if place == IN else _M if place == ON else _D
        count = _emit(entry_of, constraint_of, entry, relation, out, count)
        evaluated += 1
    left[0] = spare
    tally[EVALUATED] += evaluated
    return count


@kernel
def search_point(t: Tree, x: float, y: float, out: Ints, tally: Ints, left: Ints) -> int:
    """As `search_ring`, for a point: inside a region, meeting its boundary, or disjoint from it."""
    count, opened = look_at_boxes(t, x, y, out, tally)
    return relate_opened(t, x, y, out, count, opened, tally, left)


@kernel
def search_points(t: Tree, places: Floats, first: int, out: Ints, ends: Ints, tally: Ints, left: Ints) -> int:
    """As `search_point` of each place from `first` on, one answer behind another; `ends` says where each ends.

    Returns the place to go on with: the number of places when all are done, less when `out` is too full for whatever
    the next may find.
    """
    count = ends[first - 1] if first > 0 else 0
    most = t.state[c.CONSTRAINTS] + c.CHUNK
    for n in range(first, places.shape[0]):
        if out.shape[0] - count < most:
            return n
        count += search_point(t, places[n, 0], places[n, 1], out[count:], tally, left)
        ends[n] = count
    return len(places)
