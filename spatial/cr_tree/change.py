"""Inserting constraints into a CR-tree and removing them.

Both first see whether every array has room for the worst they may do, and return `GROW - which` when one has not; the
class grows it and calls again. Nothing is changed in that case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.spatial.cr_tree.layout import (
    BLOCK,
    ENTRY,
    FIRST,
    LEAF,
    MASK,
    NEXT,
    PLACE_IN_LEAF,
    PREVIOUS,
    UNION,
)
from contrada.spatial.cr_tree.lists import delist, enlist
from contrada.spatial.cr_tree.nodes import attach, condense, take_child
from contrada.spatial.cr_tree.rows import (
    CHUNK_ROWS,
    LEVEL_COLUMNS,
    NODE_ROWS,
    find_entry,
    find_slot,
    free_entry,
    free_slot,
    lacking,
    new_entry,
    new_slot,
)
from contrada.spatial.geometry.ring_arena import ring_boxes, ring_hash
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.cr_tree.layout import Floats, Tree

UNKNOWN: Final = -1
GROW: Final = -2


@kernel
def insert(t: Tree, id: int, mask: int, xy: Floats) -> int:
    """Add a constraint; 0 when done, UNKNOWN when the id is taken, GROW - which when an array is too small."""
    edges = xy.shape[0] - 1
    short = lacking(t, edges)
    if short >= 0:
        return GROW - short
    if find_slot(t, id) >= 0:
        return UNKNOWN
    slot = new_slot(t, id, mask)
    hashed = ring_hash(xy.reshape(-1), 0, edges)
    entry = find_entry(t, hashed, xy)
    if entry < 0:
        entry = new_entry(t, hashed, xy, slot)
        boxes = ring_boxes(t.heap, t.entry[entry, BLOCK], edges)
        attach(t, entry, boxes[boxes.shape[0] - 1].copy(), 0)
        return 0
    first = t.entry[entry, FIRST]
    t.constraint[slot, ENTRY] = entry
    t.constraint[slot, NEXT] = first
    t.constraint[first, PREVIOUS] = slot
    t.entry[entry, FIRST] = slot
    t.entry[entry, UNION] |= mask
    enlist(t, t.entry[entry, LEAF], slot)
    return 0


@kernel
def remove(t: Tree, id: int) -> int:
    """Take a constraint out; 0 when done, UNKNOWN when there is none, GROW - which when an array is too small."""
    slot = find_slot(t, id)
    if slot < 0:
        return UNKNOWN
    short = lacking(t, 3)
    if short in (NODE_ROWS, CHUNK_ROWS, LEVEL_COLUMNS):
        return GROW - short
    entry = t.constraint[slot, ENTRY]
    leaf = t.entry[entry, LEAF]
    delist(t, leaf, slot)
    after = t.constraint[slot, NEXT]
    before = t.constraint[slot, PREVIOUS]
    if after >= 0:
        t.constraint[after, PREVIOUS] = before
    if before >= 0:
        t.constraint[before, NEXT] = after
    else:
        t.entry[entry, FIRST] = after
    free_slot(t, slot)
    rest = t.entry[entry, FIRST]
    if rest >= 0:
        union = 0
        while rest >= 0 and union != t.entry[entry, UNION]:
            union |= t.constraint[rest, MASK]
            rest = t.constraint[rest, NEXT]
        t.entry[entry, UNION] = union
        return 0
    place = t.entry[entry, PLACE_IN_LEAF]
    free_entry(t, entry)
    take_child(t, leaf, place)
    condense(t, leaf)
    return 0
