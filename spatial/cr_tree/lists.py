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

from contrada.spatial.cr_tree import layout as c
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.cr_tree.layout import Ints, Tree


@kernel
def list_append(t: Tree, node: int, which: int, slot: int) -> None:
    """Add a constraint to a list of a node. There must be a free chunk."""
    column = c.LIST * which
    size = t.node[node, c.SIZE + column]
    fill = size % c.CHUNK
    if fill == 0:
        chunk = t.state[c.FREE_CHUNK]
        if chunk >= 0:
            t.state[c.FREE_CHUNK] = t.chunk[chunk, c.AFTER]
        else:
            chunk = t.state[c.CHUNKS]
            t.state[c.CHUNKS] += 1
        tail = t.node[node, c.TAIL + column]
        t.chunk[chunk, c.AFTER] = -1
        t.chunk[chunk, c.BEFORE] = tail
        if tail >= 0:
            t.chunk[tail, c.AFTER] = chunk
        else:
            t.node[node, c.HEAD + column] = chunk
        t.node[node, c.TAIL + column] = chunk
    last = t.node[node, c.TAIL + column]
    t.chunk[last, c.IDS + fill] = t.constraint[slot, c.ID]
    t.chunk[last, c.SLOTS_AT + fill] = slot
    t.position[slot, t.node[node, c.LEVEL], which] = last * c.CHUNK + fill
    t.node[node, c.SIZE + column] = size + 1


@kernel
def list_remove(t: Tree, node: int, which: int, slot: int) -> None:
    """Take a constraint out of a list of a node that holds it."""
    column = c.LIST * which
    level = t.node[node, c.LEVEL]
    size = t.node[node, c.SIZE + column] - 1
    tail = t.node[node, c.TAIL + column]
    place = t.position[slot, level, which]
    moved = t.chunk[tail, c.SLOTS_AT + size % c.CHUNK]
    t.chunk[place // c.CHUNK, c.SLOTS_AT + place % c.CHUNK] = moved
    t.chunk[place // c.CHUNK, c.IDS + place % c.CHUNK] = t.chunk[tail, c.IDS + size % c.CHUNK]
    t.position[moved, level, which] = place
    t.node[node, c.SIZE + column] = size
    if size % c.CHUNK == 0:
        before = t.chunk[tail, c.BEFORE]
        t.node[node, c.TAIL + column] = before
        if before >= 0:
            t.chunk[before, c.AFTER] = -1
        else:
            t.node[node, c.HEAD + column] = -1
        t.chunk[tail, c.AFTER] = t.state[c.FREE_CHUNK]
        t.state[c.FREE_CHUNK] = tail


@kernel
def list_copy(node_of: Ints, chunk_of: Ints, node: int, which: int, out: Ints, count: int) -> int:
    """Copy the ids of a node's list to out[count:] and return the new count. Writes up to CHUNK numbers beyond it."""
    left = node_of[node, c.SIZE + c.LIST * which]
    chunk = node_of[node, c.HEAD + c.LIST * which]
    while left > 0:
        # Whole chunks, by unsigned indexes: a loop of fixed length without tests for negative ones becomes a few moves.
        start = np.uint64(count)
        for i in range(c.CHUNK):
            out[start + np.uint64(i)] = chunk_of[chunk, c.IDS + i]
        count += min(left, c.CHUNK)
        left -= c.CHUNK
        chunk = chunk_of[chunk, c.AFTER]
    return count


@kernel
def change_lists(t: Tree, node: int, slot: int, add: bool) -> None:
    """Add a constraint to the lists of a node and of all above it, or take it out of them."""
    mask = t.constraint[slot, c.MASK]
    while node >= 0:
        for which in range(2):
            if mask & c.LIST_BITS[which]:
                if add:
                    list_append(t, node, which, slot)
                else:
                    list_remove(t, node, which, slot)
        node = t.node[node, c.PARENT]


@kernel
def move_lists(t: Tree, child: int, level: int, source: int, target: int) -> None:
    """Move a child's constraints from the lists of one node of `level` to those of another, -1 for none."""
    for which in range(2):
        if level == 0:
            slot = t.entry[child, c.FIRST]
            while slot >= 0:
                if t.constraint[slot, c.MASK] & c.LIST_BITS[which]:
                    if source >= 0:
                        list_remove(t, source, which, slot)
                    if target >= 0:
                        list_append(t, target, which, slot)
                slot = t.constraint[slot, c.NEXT]
        else:
            left = t.node[child, c.SIZE + c.LIST * which]
            chunk = t.node[child, c.HEAD + c.LIST * which]
            i = 0
            while left > 0:
                slot = t.chunk[chunk, c.SLOTS_AT + i]
                if source >= 0:
                    list_remove(t, source, which, slot)
                if target >= 0:
                    list_append(t, target, which, slot)
                left -= 1
                i += 1
                if i == c.CHUNK:
                    i = 0
                    chunk = t.chunk[chunk, c.AFTER]
