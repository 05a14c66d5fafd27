"""Inserting constraints into a CR-tree and removing them.

Both first see whether every array has room for the worst they may do, and return `GROW - which` when one has not; the
class grows it and calls again. Nothing is changed in that case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.lists import change_lists
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
from contrada.spatial.geometry.ring_arena import ring_boxes, ring_hash, ring_xy
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.cr_tree.layout import Floats, Ints, Tree

UNKNOWN: Final = -1
GROW: Final = -2
STATUS_BITS: Final = 8


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
        boxes = ring_boxes(t.heap, t.entry[entry, c.BLOCK], edges)
        attach(t, entry, boxes[boxes.shape[0] - 1].copy(), 0)
        return 0
    first = t.entry[entry, c.FIRST]
    t.constraint[slot, c.ENTRY] = entry
    t.constraint[slot, c.NEXT] = first
    t.constraint[first, c.PREVIOUS] = slot
    t.entry[entry, c.FIRST] = slot
    t.entry[entry, c.UNION] |= mask
    change_lists(t, t.entry[entry, c.LEAF], slot, True)
    return 0


@kernel
def insert_rows(t: Tree, rows: Ints, heap: Floats, first: int) -> int:
    """Add the constraints of rows (id, mask, block and edges of the ring in `heap`) from `first` on.

    Returns where it has stopped << STATUS_BITS | minus what `insert` said there: the number of rows and 0 when all are
    done.
    """
    for i in range(first, rows.shape[0]):
        status = insert(t, rows[i, 0], rows[i, 1], ring_xy(heap, rows[i, 2], rows[i, 3]))
        if status != 0:
            return i << STATUS_BITS | -status
    return len(rows) << STATUS_BITS


@kernel
def remove(t: Tree, id: int) -> int:
    """Take a constraint out; 0 when done, UNKNOWN when there is none, GROW - which when an array is too small."""
    slot = find_slot(t, id)
    if slot < 0:
        return UNKNOWN
    short = lacking(t, 3)
    if short in (NODE_ROWS, CHUNK_ROWS, LEVEL_COLUMNS):
        return GROW - short
    entry = t.constraint[slot, c.ENTRY]
    leaf = t.entry[entry, c.LEAF]
    change_lists(t, leaf, slot, False)
    after = t.constraint[slot, c.NEXT]
    before = t.constraint[slot, c.PREVIOUS]
    if after >= 0:
        t.constraint[after, c.PREVIOUS] = before
    if before >= 0:
        t.constraint[before, c.NEXT] = after
    else:
        t.entry[entry, c.FIRST] = after
    free_slot(t, slot)
    rest = t.entry[entry, c.FIRST]
    if rest >= 0:
        union = 0
        while rest >= 0 and union != t.entry[entry, c.UNION]:
            union |= t.constraint[rest, c.MASK]
            rest = t.constraint[rest, c.NEXT]
        t.entry[entry, c.UNION] = union
        return 0
    place = t.entry[entry, c.PLACE_IN_LEAF]
    free_entry(t, entry)
    take_child(t, leaf, place)
    condense(t, leaf)
    return 0
