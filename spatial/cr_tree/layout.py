"""The arrays of a CR-tree: what each column holds.

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

Chunks, nodes, entries and constraints that are given back form free lists through AFTER, PARENT, ENTRY_CHAIN and CHAIN.
A free node has LEVEL -1, a free entry LEAF -1, a free constraint ENTRY -1.

The arrays are few because entering a compiled function costs time for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.spatial.relations.relation import CONTAINS, DISJOINT

if TYPE_CHECKING:
    import numpy as np
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
