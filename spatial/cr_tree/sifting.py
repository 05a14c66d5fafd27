"""What MBRs alone leave possible of a CR-tree: more than a search finds, without a relation being evaluated.

For whoever knows better which relations matter: of a filter of several regions, none does unless all are possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.lists import list_copy
from contrada.spatial.geometry.ring_arena import in_one_part
from contrada.spatial.relations.mbr import POSSIBLE, POSSIBLE_OF_PARTS, boxes_cross, relate_boxes
from contrada.spatial.relations.relation import DISJOINT, EQUALS, OVERLAPS
from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from contrada.spatial.cr_tree.layout import Floats, Ints, Tree


@inline_kernel
def possible_relations(
    ax1: float, ay1: float, ax2: float, ay2: float, bx1: float, by1: float, bx2: float, by2: float
) -> int:
    """The mask of the relations that the MBRs of two regions leave possible; below 0 if it takes `possible_of_parts`.

    It does where they prove more of regions in one part: whether these are is in memory that is seldom at hand.
    """
    code = relate_boxes(ax1, ay1, ax2, ay2, bx1, by1, bx2, by2)
    if code == EQUALS or (code == OVERLAPS and boxes_cross(ax1, ay1, ax2, ay2, bx1, by1, bx2, by2)):
        return -1
    return int(POSSIBLE[code])


@inline_kernel
def possible_of_parts(ax1: float, ax2: float, bx1: float, bx2: float, parts: bool) -> int:
    """As `possible_relations`, of MBRs that cross or are equal, and of regions that may be in several parts."""
    if ax1 == bx1 and ax2 == bx2:
        return int(POSSIBLE_OF_PARTS[EQUALS] if parts else POSSIBLE[EQUALS])
    return int(POSSIBLE[OVERLAPS]) if parts else 1 << OVERLAPS


@kernel
def sift_ring(t: Tree, aboxes: Floats, several: bool, out: Ints) -> int:
    """Write the ids of the constraints that a region may satisfy to `out`; how many. Its last box is its MBR."""
    boxes, node_of, entry_of, constraint_of = t.boxes, t.node, t.entry, t.constraint
    mbr = aboxes.shape[0] - 1
    x1, y1, x2, y2 = aboxes[mbr, 0], aboxes[mbr, 1], aboxes[mbr, 2], aboxes[mbr, 3]
    root = t.state[c.ROOT]
    some_disjoint = node_of[root, c.SIZE + c.LIST * c.WHEN_DISJOINT] > 0  # else what is missed needs no looking at
    stack = np.empty((node_of[root, c.LEVEL] + 1) * c.CAPACITY, np.int64)
    stack[0] = root
    size = 1
    count = 0
    while size > 0:
        size -= 1
        node = stack[size]
        leaf = node_of[node, c.LEVEL] == 0
        for i in range(node_of[node, c.COUNT]):
            bx1, by1, bx2, by2 = boxes[node, i, 0], boxes[node, i, 1], boxes[node, i, 2], boxes[node, i, 3]
            missed = bx1 > x2 or bx2 < x1 or by1 > y2 or by2 < y1
            if missed and not some_disjoint:
                continue
            child = node_of[node, c.CHILDREN + i]
            if leaf:
                possible = 1 << DISJOINT
                if not missed:
                    possible = possible_relations(x1, y1, x2, y2, bx1, by1, bx2, by2)
                    if possible < 0:
                        parts = several or not in_one_part(t.heap, entry_of[child, c.BLOCK])
                        possible = possible_of_parts(x1, x2, bx1, bx2, parts)
                slot = entry_of[child, c.FIRST] if entry_of[child, c.UNION] & possible else -1
                while slot >= 0:
                    if constraint_of[slot, c.MASK] & possible:
                        out[count] = constraint_of[slot, c.ID]
                        count += 1
                    slot = constraint_of[slot, c.NEXT]
            elif missed:
                count = list_copy(node_of, t.chunk, child, c.WHEN_DISJOINT, out, count)
            else:
                stack[size] = child
                size += 1
    return count
