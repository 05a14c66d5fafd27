"""Rows of a CR-tree: taking and giving back nodes, constraints and entries, and the hash tables that find them.

Changes first see whether every array has room for the worst they may do (`lacking`), so that taking a row never
fails; the class lengthens what is short (`grow`) and calls again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.cr_tree import layout as c
from contrada.spatial.geometry import ring_arena
from contrada.spatial.geometry.ring_arena import has_room, release, same_ring, store
from contrada.spatial.storage.growing import longer
from contrada.spatial.storage.hashing import spread
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.cr_tree.layout import Floats, Ints

# What may have to grow, as `lacking` names it to `grow`.
NODE_ROWS: Final = 0
CHUNK_ROWS: Final = 1
LEVEL_COLUMNS: Final = 2
ENTRY_ROWS: Final = 3
SLOT_ROWS: Final = 4
HEAP: Final = 5
TABLES: Final = 6


@kernel
def _take_row(state: Ints, free: int, top: int, links: Ints) -> int:
    """A row that was given back, or else the next one. There must be one."""
    row: int = state[free]
    if row >= 0:
        state[free] = links[row]
    else:
        row = state[top]
        state[top] += 1
    return row


@kernel
def new_node(t: c.Tree, level: int) -> int:
    """Take an empty node of a level. There must be a free one."""
    node = _take_row(t.state, c.FREE_NODE, c.NODES, t.node[:, c.PARENT])
    for column in range(c.CHILDREN):
        t.node[node, column] = -1
    t.node[node, c.LEVEL] = level
    t.node[node, c.COUNT] = 0
    t.node[node, c.SIZE] = 0
    t.node[node, c.SIZE + c.LIST] = 0
    return node


@kernel
def free_node(t: c.Tree, node: int) -> None:
    """Give back a node and its lists' chunks."""
    for which in range(2):
        head = t.node[node, c.HEAD + c.LIST * which]
        if head >= 0:
            t.chunk[t.node[node, c.TAIL + c.LIST * which], c.AFTER] = t.state[c.FREE_CHUNK]
            t.state[c.FREE_CHUNK] = head
    t.node[node, c.PARENT] = t.state[c.FREE_NODE]
    t.node[node, c.LEVEL] = -1
    t.state[c.FREE_NODE] = node


@kernel
def find_slot(t: c.Tree, id: int) -> int:
    """Return the row of the constraint with that id, or -1."""
    slot: int = t.table[c.BY_ID, spread(id) & (t.table.shape[1] - 1)]
    while slot >= 0 and t.constraint[slot, c.ID] != id:
        slot = t.constraint[slot, c.CHAIN]
    return slot


@kernel
def find_entry(t: c.Tree, hashed: np.int64, xy: Floats) -> int:
    """Return the entry of that ring, or -1."""
    entry: int = t.table[c.BY_RING, hashed & (t.table.shape[1] - 1)]
    edges = xy.shape[0] - 1
    while entry >= 0:
        if (
            t.entry[entry, c.HASH] == hashed
            and t.entry[entry, c.EDGES] == edges
            and same_ring(t.heap, t.entry[entry, c.BLOCK], xy)
        ):
            return entry
        entry = t.entry[entry, c.ENTRY_CHAIN]
    return entry


@kernel
def rehash(t: c.Tree) -> int:
    """Fill both tables, which are all -1, from the rows in use; return a constraint whose id another has, or -1."""
    entry_of, constraint_of, table = t.entry, t.constraint, t.table
    last = table.shape[1] - 1
    for entry in range(t.state[c.ENTRIES]):
        if entry_of[entry, c.LEAF] >= 0:
            bucket = entry_of[entry, c.HASH] & last
            entry_of[entry, c.ENTRY_CHAIN] = table[c.BY_RING, bucket]
            table[c.BY_RING, bucket] = entry
    twin = -1
    for slot in range(t.state[c.SLOTS]):
        if constraint_of[slot, c.ENTRY] >= 0:
            bucket = spread(constraint_of[slot, c.ID]) & last
            other = table[c.BY_ID, bucket]
            constraint_of[slot, c.CHAIN] = other
            table[c.BY_ID, bucket] = slot
            while other >= 0:
                if constraint_of[other, c.ID] == constraint_of[slot, c.ID]:
                    twin = slot
                other = constraint_of[other, c.CHAIN]
    return twin


@kernel
def new_slot(t: c.Tree, id: int, mask: int) -> int:
    """Take a row for a constraint, the only one yet of its region, and find it by its id from now on."""
    slot = _take_row(t.state, c.FREE_SLOT, c.SLOTS, t.constraint[:, c.CHAIN])
    t.state[c.CONSTRAINTS] += 1
    t.constraint[slot, c.ID] = id
    t.constraint[slot, c.MASK] = mask
    t.constraint[slot, c.NEXT] = -1
    t.constraint[slot, c.PREVIOUS] = -1
    _link(t.table[c.BY_ID], t.constraint[:, c.CHAIN], spread(id), slot)
    return slot


@kernel
def free_slot(t: c.Tree, slot: int) -> None:
    """Give a constraint's row back."""
    _unlink(t.table[c.BY_ID], t.constraint[:, c.CHAIN], spread(t.constraint[slot, c.ID]), slot)
    t.constraint[slot, c.ENTRY] = -1
    t.constraint[slot, c.CHAIN] = t.state[c.FREE_SLOT]
    t.state[c.FREE_SLOT] = slot
    t.state[c.CONSTRAINTS] -= 1


@kernel
def new_entry(t: c.Tree, hashed: np.int64, xy: Floats, slot: int) -> int:
    """Take a row for a region that is new, with its ring and first constraint, and find it by its ring from now on."""
    entry = _take_row(t.state, c.FREE_ENTRY, c.ENTRIES, t.entry[:, c.ENTRY_CHAIN])
    t.state[c.REGIONS] += 1
    t.entry[entry, c.FIRST] = slot
    t.entry[entry, c.UNION] = t.constraint[slot, c.MASK]
    t.entry[entry, c.BLOCK] = store(t.heap, t.state[c.HEAP_STATE :], xy)
    t.entry[entry, c.EDGES] = xy.shape[0] - 1
    t.entry[entry, c.HASH] = hashed
    _link(t.table[c.BY_RING], t.entry[:, c.ENTRY_CHAIN], hashed, entry)
    t.constraint[slot, c.ENTRY] = entry
    return entry


@kernel
def free_entry(t: c.Tree, entry: int) -> None:
    """Give a region's row and its ring's room back."""
    _unlink(t.table[c.BY_RING], t.entry[:, c.ENTRY_CHAIN], t.entry[entry, c.HASH], entry)
    release(t.heap, t.state[c.HEAP_STATE :], t.entry[entry, c.BLOCK], t.entry[entry, c.EDGES])
    t.entry[entry, c.LEAF] = -1
    t.entry[entry, c.ENTRY_CHAIN] = t.state[c.FREE_ENTRY]
    t.state[c.FREE_ENTRY] = entry
    t.state[c.REGIONS] -= 1


@kernel
def _link(heads: Ints, chain: Ints, hashed: np.int64, row: int) -> None:
    """Put a row at the head of its hash's chain."""
    bucket = hashed & (heads.shape[0] - 1)
    chain[row] = heads[bucket]
    heads[bucket] = row


@kernel
def _unlink(heads: Ints, chain: Ints, hashed: np.int64, row: int) -> None:
    """Take a row out of its hash's chain."""
    bucket = hashed & (heads.shape[0] - 1)
    at = heads[bucket]
    if at == row:
        heads[bucket] = chain[row]
        return
    while chain[at] != row:
        at = chain[at]
    chain[at] = chain[row]


@kernel
def lacking(t: c.Tree, edges: int) -> int:
    """Return what has no room for the worst that one change may do, or -1."""
    height = t.node[t.state[c.ROOT], c.LEVEL] + 1
    # An insertion splits at most once per level. A deletion takes out at most one node per level and puts its
    # children, fewer than MINIMUM, back one by one.
    spare = (height + 1) * (height + 1) * c.MINIMUM
    if t.state[c.NODES] + spare > t.node.shape[0]:
        return NODE_ROWS
    if t.state[c.CHUNKS] + 4 * spare > t.chunk.shape[0]:
        return CHUNK_ROWS
    if height + 2 > t.position.shape[1]:
        return LEVEL_COLUMNS
    if t.state[c.FREE_ENTRY] < 0 and t.state[c.ENTRIES] >= t.entry.shape[0]:
        return ENTRY_ROWS
    if t.state[c.FREE_SLOT] < 0 and t.state[c.SLOTS] >= t.constraint.shape[0]:
        return SLOT_ROWS
    if not has_room(t.heap, t.state[c.HEAP_STATE :], edges):
        return HEAP
    if t.state[c.CONSTRAINTS] >= t.table.shape[1]:
        return TABLES
    return -1


def grow(tree: c.Tree, which: int, vertices: int) -> c.Tree:
    """Return the tree with what `lacking` named longer; `vertices` is how many the ring to be added has."""
    height = int(tree.node[tree.state[c.ROOT], c.LEVEL]) + 1
    spare = c.MINIMUM * (height + 1) ** 2
    if which == NODE_ROWS:
        rows = 2 * len(tree.node) + spare
        return tree._replace(boxes=longer(tree.boxes, rows), node=longer(tree.node, rows))
    if which == CHUNK_ROWS:
        return tree._replace(chunk=longer(tree.chunk, 2 * len(tree.chunk) + 4 * spare))
    if which == LEVEL_COLUMNS:
        slots, levels, lists = tree.position.shape
        position = np.zeros((slots, levels + 2, lists), np.int64)
        position[:, :levels] = tree.position
        return tree._replace(position=position)
    if which == ENTRY_ROWS:
        return tree._replace(entry=longer(tree.entry, 2 * len(tree.entry) + 16))
    if which == SLOT_ROWS:
        rows = 2 * len(tree.constraint) + 16
        return tree._replace(constraint=longer(tree.constraint, rows), position=longer(tree.position, rows))
    if which == HEAP:
        return tree._replace(heap=longer(tree.heap, 2 * len(tree.heap) + 4 * vertices + 64))
    tree = tree._replace(table=np.full((2, table_size(2 * tree.table.shape[1])), -1, np.int64))
    rehash(tree)
    return tree


def table_size(count: int) -> int:
    """Return a power of two that holds as many without crowding."""
    return 1 << max(4, (count - 1).bit_length())


def empty_tree(
    *,
    nodes: int = 0,
    chunks: int = 0,
    levels: int = 2,
    entries: int = 16,
    slots: int = 16,
    heap: int = 512,
    table: int = 16,
) -> c.Tree:
    """Return a tree of one empty leaf, with room as given and to spare for the first changes.

    Memory that is not in use is zero, here and in `longer`, so that equal trees are equal files.
    """
    spare = c.MINIMUM * 4
    state = np.full(c.HEAP_STATE + ring_arena.STATE_SIZE, -1, np.int64)
    counts = (c.NODES, c.CHUNKS, c.ENTRIES, c.SLOTS, c.REGIONS, c.CONSTRAINTS)
    state[[*counts, c.HEAP_STATE + ring_arena.USED]] = 0
    tree = c.Tree(
        state=state,
        boxes=np.zeros((nodes + spare, c.CAPACITY, 4)),
        node=np.zeros((nodes + spare, c.NODE_SIZE), np.int64),
        chunk=np.zeros((chunks + 4 * spare, c.CHUNK_SIZE), np.int64),
        position=np.zeros((slots, levels, 2), np.int64),
        entry=np.zeros((entries, c.ENTRY_SIZE), np.int64),
        constraint=np.zeros((slots, c.CONSTRAINT_SIZE), np.int64),
        heap=np.zeros(heap),
        table=np.full((2, table), -1, np.int64),
    )
    state[c.ROOT] = new_node(tree, 0)
    return tree
