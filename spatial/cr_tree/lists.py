"""The lists of constraints that the nodes of a CR-tree keep.

Every node keeps two lists of the constraints below it: those that hold when the query is *disjoint* from all that is
below ([SIENA-2D], section 4.1), and those that hold when the query *contains* all of it (ours). A constraint has one
ancestor on each level, so one position per level and list is enough to take it out by moving the last element into
its place: adding and removing are O(1) per level, and copying a list into an answer is a copy of runs of 32.

Lists are chains of chunks of 32, all full but the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.cr_tree.layout import (
    AFTER,
    BEFORE,
    CHUNK,
    CHUNKS,
    FIRST,
    FREE_CHUNK,
    HEAD,
    ID,
    IDS,
    LEVEL,
    LIST,
    LIST_BITS,
    MASK,
    NEXT,
    PARENT,
    SIZE,
    SLOTS_AT,
    TAIL,
)
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.cr_tree.layout import Ints, Tree


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
def move_lists(t: Tree, child: int, level: int, source: int, target: int) -> None:
    """Move a child's constraints from the lists of one node of `level` to those of another, -1 for none."""
    for which in range(2):
        if level == 0:
            slot = t.entry[child, FIRST]
            while slot >= 0:
                if t.constraint[slot, MASK] & LIST_BITS[which]:
                    if source >= 0:
                        list_remove(t, source, which, slot)
                    if target >= 0:
                        list_append(t, target, which, slot)
                slot = t.constraint[slot, NEXT]
        else:
            left = t.node[child, SIZE + LIST * which]
            chunk = t.node[child, HEAD + LIST * which]
            i = 0
            while left > 0:
                slot = t.chunk[chunk, SLOTS_AT + i]
                if source >= 0:
                    list_remove(t, source, which, slot)
                if target >= 0:
                    list_append(t, target, which, slot)
                left -= 1
                i += 1
                if i == CHUNK:
                    i = 0
                    chunk = t.chunk[chunk, AFTER]
