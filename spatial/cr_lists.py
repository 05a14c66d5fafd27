"""The arrays of a CR-tree, and the lists of constraints that its nodes keep.

    state       int64   ROOT, counts, heads of the free lists; then the state of the heap, see `ring_arena`
    boxes       float64 (nodes, 16, 4)  MBR of each child of a node
    node        int64   (nodes, 26)     LEVEL, PARENT, PLACE among its children, COUNT; HEAD, TAIL, SIZE of two
                                        lists; 16 CHILDREN: nodes, or in a leaf (level 0) entries
    chunk       int64   (chunks, 66)    part of a list: AFTER and BEFORE, 32 IDS, the same constraints' rows in SLOTS_AT
    position    int64   (slots, levels, 2)  where a constraint stands in the lists of its ancestor on each level:
                                        32·chunk + place in it
    entry       int64   (entries, 8)    a distinct region: LEAF, PLACE_IN_LEAF, FIRST constraint, UNION of their
                                        masks, BLOCK and EDGES of the ring, its HASH, ENTRY_CHAIN
    constraint  int64   (slots, 6)      ID, MASK, ENTRY, NEXT and PREVIOUS on the same region, CHAIN
    heap        float64                 the rings
    table       int64   (2, 2**k)       heads of the hash chains of entries BY_RING and of constraints BY_ID

Every node keeps two lists of the constraints below it: those that hold when the query is *disjoint* from all that is
below (paper 1, section 4.1), and those that hold when the query *contains* all of it (ours). A constraint has one
ancestor on each level, so one position per level and list is enough to take it out by moving the last element into
its place: adding and removing are O(1) per level, and copying a list into an answer is a copy of runs of 32.

Lists are chains of chunks of 32, all full but the last. Chunks, nodes, entries and constraints that are given back
form free lists through AFTER, PARENT, ENTRY_CHAIN and CHAIN.

The arrays are few because entering a compiled function costs time for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.spatial._jit import kernel
from contrada.spatial.relation import CONTAINS, DISJOINT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


CAPACITY: Final = 16
MINIMUM: Final = 6
CHUNK: Final = 32

# state
ROOT: Final = 0
NODES: Final = 1  # rows ever used, free ones included; so for the next three
CHUNKS: Final = 2
ENTRIES: Final = 3
SLOTS: Final = 4
FREE_NODE: Final = 5
FREE_CHUNK: Final = 6
FREE_ENTRY: Final = 7
FREE_SLOT: Final = 8
REGIONS: Final = 9  # rows in use
CONSTRAINTS: Final = 10
HEAP_STATE: Final = 11  # where the state of the heap starts

# node
LEVEL: Final = 0
PARENT: Final = 1
PLACE: Final = 2
COUNT: Final = 3
HEAD: Final = 4
TAIL: Final = 5
SIZE: Final = 6
LIST: Final = 3  # columns from the first list to the second
CHILDREN: Final = 10
NODE_SIZE: Final = CHILDREN + CAPACITY

# chunk
AFTER: Final = 0
BEFORE: Final = 1
IDS: Final = 2
SLOTS_AT: Final = IDS + CHUNK
CHUNK_SIZE: Final = SLOTS_AT + CHUNK

# entry
LEAF: Final = 0
PLACE_IN_LEAF: Final = 1
FIRST: Final = 2
UNION: Final = 3
BLOCK: Final = 4
EDGES: Final = 5
HASH: Final = 6
ENTRY_CHAIN: Final = 7
ENTRY_SIZE: Final = 8

# constraint
ID: Final = 0
MASK: Final = 1
ENTRY: Final = 2
NEXT: Final = 3
PREVIOUS: Final = 4
CHAIN: Final = 5
CONSTRAINT_SIZE: Final = 6

# table
BY_RING: Final = 0
BY_ID: Final = 1

# lists
WHEN_DISJOINT: Final = 0
WHEN_CONTAINED: Final = 1
LIST_BITS: Final = (1 << DISJOINT, 1 << CONTAINS)


class Tree(NamedTuple):
    """The arrays of a CR-tree; see the module's docstring."""

    state: Ints
    boxes: Floats
    node: Ints
    chunk: Ints
    position: Ints
    entry: Ints
    constraint: Ints
    heap: Floats
    table: Ints


@kernel
def list_append(t: Tree, node: int, which: int, slot: int) -> None:
    """Add a constraint to a list of a node. There must be a free chunk."""
    column = LIST * which
    size = t.node[node, SIZE + column]
    fill = size % CHUNK
    if fill == 0:
        chunk = t.state[FREE_CHUNK]
        if chunk >= 0:
            t.state[FREE_CHUNK] = t.chunk[chunk, AFTER]
        else:
            chunk = t.state[CHUNKS]
            t.state[CHUNKS] += 1
        tail = t.node[node, TAIL + column]
        t.chunk[chunk, AFTER] = -1
        t.chunk[chunk, BEFORE] = tail
        if tail >= 0:
            t.chunk[tail, AFTER] = chunk
        else:
            t.node[node, HEAD + column] = chunk
        t.node[node, TAIL + column] = chunk
    last = t.node[node, TAIL + column]
    t.chunk[last, IDS + fill] = t.constraint[slot, ID]
    t.chunk[last, SLOTS_AT + fill] = slot
    t.position[slot, t.node[node, LEVEL], which] = last * CHUNK + fill
    t.node[node, SIZE + column] = size + 1


@kernel
def list_remove(t: Tree, node: int, which: int, slot: int) -> None:
    """Take a constraint out of a list of a node that holds it."""
    column = LIST * which
    level = t.node[node, LEVEL]
    size = t.node[node, SIZE + column] - 1
    tail = t.node[node, TAIL + column]
    place = t.position[slot, level, which]
    moved = t.chunk[tail, SLOTS_AT + size % CHUNK]
    t.chunk[place // CHUNK, SLOTS_AT + place % CHUNK] = moved
    t.chunk[place // CHUNK, IDS + place % CHUNK] = t.chunk[tail, IDS + size % CHUNK]
    t.position[moved, level, which] = place
    t.node[node, SIZE + column] = size
    if size % CHUNK == 0:
        before = t.chunk[tail, BEFORE]
        t.node[node, TAIL + column] = before
        if before >= 0:
            t.chunk[before, AFTER] = -1
        else:
            t.node[node, HEAD + column] = -1
        t.chunk[tail, AFTER] = t.state[FREE_CHUNK]
        t.state[FREE_CHUNK] = tail


@kernel
def list_copy(node_of: Ints, chunk_of: Ints, node: int, which: int, out: Ints, count: int) -> int:
    """Copy the ids of a node's list to out[count:] and return the new count. Writes up to CHUNK numbers beyond it."""
    left = node_of[node, SIZE + LIST * which]
    chunk = node_of[node, HEAD + LIST * which]
    while left > 0:
        # Whole chunks, by unsigned indexes: a loop of fixed length without tests for negative ones becomes a few moves.
        start = np.uint64(count)
        for i in range(CHUNK):
            out[start + np.uint64(i)] = chunk_of[chunk, IDS + i]
        count += min(left, CHUNK)
        left -= CHUNK
        chunk = chunk_of[chunk, AFTER]
    return count


@kernel
def enlist(t: Tree, node: int, slot: int) -> None:
    """Add a constraint to the lists of a node and of all above it."""
    mask = t.constraint[slot, MASK]
    while node >= 0:
        for which in range(2):
            if mask & LIST_BITS[which]:
                list_append(t, node, which, slot)
        node = t.node[node, PARENT]


@kernel
def delist(t: Tree, node: int, slot: int) -> None:
    """Take a constraint out of the lists of a node and of all above it."""
    mask = t.constraint[slot, MASK]
    while node >= 0:
        for which in range(2):
            if mask & LIST_BITS[which]:
                list_remove(t, node, which, slot)
        node = t.node[node, PARENT]


@kernel
def new_node(t: Tree, level: int) -> int:
    """Take an empty node of a level. There must be a free one."""
    node: int = t.state[FREE_NODE]
    if node >= 0:
        t.state[FREE_NODE] = t.node[node, PARENT]
    else:
        node = t.state[NODES]
        t.state[NODES] += 1
    for column in range(CHILDREN):
        t.node[node, column] = -1
    t.node[node, LEVEL] = level
    t.node[node, COUNT] = 0
    t.node[node, SIZE] = 0
    t.node[node, SIZE + LIST] = 0
    return node


@kernel
def free_node(t: Tree, node: int) -> None:
    """Give back a node and its lists' chunks."""
    for which in range(2):
        head = t.node[node, HEAD + LIST * which]
        if head >= 0:
            t.chunk[t.node[node, TAIL + LIST * which], AFTER] = t.state[FREE_CHUNK]
            t.state[FREE_CHUNK] = head
    t.node[node, PARENT] = t.state[FREE_NODE]
    t.node[node, LEVEL] = -1
    t.state[FREE_NODE] = node
