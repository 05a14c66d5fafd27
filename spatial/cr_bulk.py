"""Packing a CR-tree from many constraints at once: the same structure, full nodes.

Leaves are packed by sort-tile-recursive (Leutenegger et al., 1997): centres sorted by x, cut into about √k vertical
slices for k leaves, each slice sorted by y and cut into leaves; then the same for the MBRs of the leaves, and so on up.
Cuts are spread evenly, so every node has at least 8 children, and the tree obeys the rules of one built by insertion.

Rings given as coordinates are brought to the canonical form of `Region` on the way: repeated and exactly collinear
vertices dropped, counter-clockwise from the lexicographically smallest vertex. That they are simple is trusted.

Rows are then numbered from the root down, so that the children of a node, the entries below it, their rings
and their constraints each are one run: a search reads memory nearly in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial._jit import kernel
from contrada.spatial.cr_lists import (
    AFTER,
    BEFORE,
    BLOCK,
    BY_ID,
    BY_RING,
    CAPACITY,
    CHAIN,
    CHILDREN,
    CHUNK,
    CHUNKS,
    CONSTRAINTS,
    COUNT,
    EDGES,
    ENTRIES,
    ENTRY,
    ENTRY_CHAIN,
    FIRST,
    HASH,
    HEAD,
    HEAP_STATE,
    ID,
    IDS,
    LEAF,
    LEVEL,
    LIST,
    LIST_BITS,
    MASK,
    NEXT,
    PARENT,
    PLACE,
    PLACE_IN_LEAF,
    PREVIOUS,
    REGIONS,
    ROOT,
    SIZE,
    SLOTS,
    SLOTS_AT,
    TAIL,
    UNION,
    new_node,
)
from contrada.spatial.cr_nodes import hash_id
from contrada.spatial.cr_nodes import mbr as node_mbr
from contrada.spatial.predicates import orient
from contrada.spatial.ring_arena import allocate, ring_boxes, ring_hash, ring_xy
from contrada.spatial.rings import fill_boxes

if TYPE_CHECKING:
    from contrada.spatial.cr_lists import Floats, Ints, Tree

_FILTER: Final = 4e-16  # above the error bound of an orientation in doubles

# Faults that `store_rings` finds.
SOUND: Final = 0
NO_POLYGON: Final = 1
SAME_ID: Final = 2


@kernel
def _surely_turns(coords: Floats, low: int, high: int) -> bool:
    """Whether each vertex is a corner by the floating filter of `orient` alone."""
    doubtful = 0
    last = high - 1
    for k in range(low + 1, last):
        left = (coords[k - 1, 0] - coords[k + 1, 0]) * (coords[k, 1] - coords[k + 1, 1])
        right = (coords[k - 1, 1] - coords[k + 1, 1]) * (coords[k, 0] - coords[k + 1, 0])
        doubtful += abs(left - right) <= _FILTER * (abs(left) + abs(right))
    for a, b, c in ((last - 1, last, low), (last, low, low + 1)):
        left = (coords[a, 0] - coords[c, 0]) * (coords[b, 1] - coords[c, 1])
        right = (coords[a, 1] - coords[c, 1]) * (coords[b, 0] - coords[c, 0])
        doubtful += abs(left - right) <= _FILTER * (abs(left) + abs(right))
    return doubtful == 0


@kernel
def _rotate(coords: Floats, low: int, high: int, xy: Floats) -> None:
    """Write a ring of corners to `xy`, closed, counter-clockwise from the lexicographically smallest one."""
    lowest = low
    lx = coords[low, 0]
    for k in range(low + 1, high):
        x = coords[k, 0]
        if x <= lx and (x < lx or coords[k, 1] < coords[lowest, 1]):
            lx = x
            lowest = k
    a = lowest - 1 if lowest > low else high - 1
    c = lowest + 1 if lowest + 1 < high else low
    i = 0
    if orient(coords[a, 0], coords[a, 1], coords[lowest, 0], coords[lowest, 1], coords[c, 0], coords[c, 1]) > 0:
        for k in range(lowest, high):
            xy[i, 0] = coords[k, 0] + 0.0
            xy[i, 1] = coords[k, 1] + 0.0
            i += 1
        for k in range(low, lowest):
            xy[i, 0] = coords[k, 0] + 0.0
            xy[i, 1] = coords[k, 1] + 0.0
            i += 1
    else:
        for k in range(lowest, low - 1, -1):
            xy[i, 0] = coords[k, 0] + 0.0
            xy[i, 1] = coords[k, 1] + 0.0
            i += 1
        for k in range(high - 1, lowest, -1):
            xy[i, 0] = coords[k, 0] + 0.0
            xy[i, 1] = coords[k, 1] + 0.0
            i += 1
    xy[i, 0] = xy[0, 0]
    xy[i, 1] = xy[0, 1]


@kernel
def _corners(coords: Floats, low: int, high: int, corners: Floats) -> int:
    """Copy the vertices that are neither repeated nor collinear with their neighbours; return how many there are."""
    size = 0
    ax, ay = coords[high - 1, 0], coords[high - 1, 1]
    bx, by = coords[low, 0], coords[low, 1]
    for k in range(low, high):
        after = k + 1 if k + 1 < high else low
        cx, cy = coords[after, 0], coords[after, 1]
        if bx == cx and by == cy:
            continue
        if orient(ax, ay, bx, by, cx, cy) != 0:
            corners[size, 0] = bx
            corners[size, 1] = by
            size += 1
        ax, ay = bx, by
        bx, by = cx, cy
    return size


@kernel
def _open_end(coords: Floats, low: int, high: int) -> int:
    """Return where ring coords[low:high] ends when vertices that repeat its first are left out."""
    while high - low > 1 and coords[high - 1, 0] == coords[low, 0] and coords[high - 1, 1] == coords[low, 1]:
        high -= 1
    return high


@kernel
def _same_ring(coords: Floats, a: int, a_end: int, b: int, b_end: int, scratch: Floats, rings: Floats) -> bool:
    """Whether two rings are the same in canonical form."""
    size = _corners(coords, a, _open_end(coords, a, a_end), scratch)
    if size < 3:
        return False
    _rotate(scratch, 0, size, rings[0])
    if _corners(coords, b, _open_end(coords, b, b_end), scratch) != size:
        return False
    _rotate(scratch, 0, size, rings[1])
    return np.array_equal(rings[0, :size], rings[1, :size])


@kernel
def _hash_box(box: Floats) -> np.int64:
    h = np.uint64(0)
    for k in range(4):
        h = (h ^ np.float64(box[k] + 0.0).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(31)
    return np.int64(h >> np.uint64(1))


@kernel
def distinct_rings(coords: Floats, offsets: Ints, table: Ints, first: Ints, boxes: Floats, which: Ints) -> int:
    """Number the distinct rings among coords[offsets[i]:offsets[i+1]]; return how many there are.

    `which` gets each ring's number; `first` and `boxes` the first such ring and the MBR, by number. `table`, all -1, is
    scratch. Rings are compared only when their MBRs are equal, so rings all different cost one pass.
    """
    rings = offsets.shape[0] - 1
    longest = 0
    for i in range(rings):
        longest = max(longest, offsets[i + 1] - offsets[i])
    scratch = np.empty((longest, 2))
    rings_of_two = np.empty((2, longest + 1, 2))
    chain = np.empty(rings, np.int64)
    count = 0
    for i in range(rings):
        x1 = y1 = np.inf
        x2 = y2 = -np.inf
        for j in range(offsets[i], offsets[i + 1]):
            x1 = min(x1, coords[j, 0])
            x2 = max(x2, coords[j, 0])
            y1 = min(y1, coords[j, 1])
            y2 = max(y2, coords[j, 1])
        boxes[count, 0] = x1 + 0.0
        boxes[count, 1] = y1 + 0.0
        boxes[count, 2] = x2 + 0.0
        boxes[count, 3] = y2 + 0.0
        bucket = _hash_box(boxes[count]) & (table.shape[0] - 1)
        k = table[bucket]
        while k >= 0:
            if x1 == boxes[k, 0] and y1 == boxes[k, 1] and x2 == boxes[k, 2] and y2 == boxes[k, 3]:
                f = first[k]
                low, high = offsets[f], offsets[f + 1]
                if _same_ring(coords, offsets[i], offsets[i + 1], low, high, scratch, rings_of_two):
                    break
            k = chain[k]
        if k < 0:
            k = count
            count += 1
            first[k] = i
            chain[k] = table[bucket]
            table[bucket] = k
        which[i] = k
    return count


def tile(boxes: Floats) -> tuple[Ints, Ints]:
    """Return an order of the boxes, and the bounds of its runs that make a node each."""
    count = len(boxes)
    nodes = -(-count // CAPACITY)
    bounds = np.arange(nodes + 1) * count // nodes
    slices = max(1, round(nodes**0.5))
    cuts = bounds[np.arange(slices + 1) * nodes // slices]
    x = boxes[:, 0] + boxes[:, 2]
    y = boxes[:, 1] + boxes[:, 3]
    order = np.argsort(x)
    by_y = y[order]
    for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        order[low:high] = order[low:high][np.argsort(by_y[low:high])]
    return order, bounds


def pack(boxes: Floats) -> tuple[Ints, list[Ints]]:
    """Return the order of the entries, and for each level, leaves first, how many children each node has."""
    orders: list[Ints] = []
    runs: list[Ints] = []
    while True:
        order, bounds = tile(boxes)
        orders.append(order)
        runs.append(bounds)
        if len(bounds) == 2:
            break
        ordered = boxes[order]
        low = np.minimum.reduceat(ordered[:, :2], bounds[:-1])
        boxes = np.hstack([low, np.maximum.reduceat(ordered[:, 2:], bounds[:-1])])
    sizes: list[Ints] = []
    sequence = np.zeros(1, np.int64)
    for order, bounds in zip(reversed(orders), reversed(runs), strict=True):
        length = np.diff(bounds)[sequence]
        # The concatenation of order[bounds[k]:bounds[k+1]] for k in the sequence.
        shift = np.repeat(bounds[sequence] - np.cumsum(length) + length, length)
        sequence = order[np.arange(len(shift)) + shift]
        sizes.append(length)
    return sequence, sizes[::-1]


@kernel
def store_rings(
    t: Tree, coords: Floats, offsets: Ints, ids: Ints, masks: Ints, order: Ints, rows: Ints, starts: Ints
) -> tuple[int, int]:
    """Fill in the entries, their rings and constraints. Return (SOUND, 0), or a fault and which constraint has it.

    Entry e is distinct ring order[e], with constraints rows[starts[order[e]]:starts[order[e] + 1]].
    """
    longest = 0
    for i in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    scratch = np.empty((longest, 2))
    heap_state = t.state[HEAP_STATE:]
    last_bucket = t.table.shape[1] - 1
    slot = 0
    for entry in range(order.shape[0]):
        ring = order[entry]
        row = rows[starts[ring]]
        low, high = offsets[row], _open_end(coords, offsets[row], offsets[row + 1])
        edges = high - low
        plain = edges >= 3 and _surely_turns(coords, low, high)
        if not plain:
            edges = _corners(coords, low, high, scratch)
            if edges < 3:
                return NO_POLYGON, row
        block = allocate(t.heap, heap_state, edges)
        xy = ring_xy(t.heap, block, edges)
        if plain:
            _rotate(coords, low, high, xy)
        else:
            _rotate(scratch, 0, edges, xy)
        fill_boxes(xy, ring_boxes(t.heap, block, edges))
        hashed = ring_hash(xy)
        t.entry[entry, FIRST] = slot
        t.entry[entry, BLOCK] = block
        t.entry[entry, EDGES] = edges
        t.entry[entry, HASH] = hashed
        bucket = hashed & last_bucket
        t.entry[entry, ENTRY_CHAIN] = t.table[BY_RING, bucket]
        t.table[BY_RING, bucket] = entry
        union = 0
        before = -1
        for k in range(starts[ring], starts[ring + 1]):
            row = rows[k]
            bucket = hash_id(ids[row]) & last_bucket
            other = t.table[BY_ID, bucket]
            t.constraint[slot, CHAIN] = other
            while other >= 0:
                if t.constraint[other, ID] == ids[row]:
                    return SAME_ID, row
                other = t.constraint[other, CHAIN]
            t.table[BY_ID, bucket] = slot
            t.constraint[slot, ID] = ids[row]
            t.constraint[slot, MASK] = masks[row]
            t.constraint[slot, ENTRY] = entry
            t.constraint[slot, PREVIOUS] = before
            t.constraint[slot, NEXT] = -1
            if before >= 0:
                t.constraint[before, NEXT] = slot
            union |= masks[row]
            before = slot
            slot += 1
        t.entry[entry, UNION] = union
    t.state[ENTRIES] = t.state[REGIONS] = order.shape[0]
    t.state[SLOTS] = t.state[CONSTRAINTS] = slot
    return SOUND, 0


@kernel
def hang_nodes(t: Tree, boxes: Floats, order: Ints, sizes: Ints, levels: Ints) -> None:
    """Build the nodes over the entries, whose MBRs are boxes[order].

    `sizes` are the numbers of children of all nodes, leaves first; level l's are sizes[levels[l]:levels[l+1]].
    """
    below = -1  # first node of the level below
    for level in range(levels.shape[0] - 1):
        child = 0
        here = -1
        for k in range(levels[level], levels[level + 1]):
            node = t.state[ROOT] if level == 0 and k == 0 else new_node(t, level)
            if here < 0:
                here = node
            t.node[node, COUNT] = sizes[k]
            for i in range(sizes[k]):
                if level == 0:
                    t.node[node, CHILDREN + i] = child
                    t.entry[child, LEAF] = node
                    t.entry[child, PLACE_IN_LEAF] = i
                    for side in range(4):
                        t.boxes[node, i, side] = boxes[order[child], side]
                else:
                    t.node[node, CHILDREN + i] = below + child
                    t.node[below + child, PARENT] = node
                    t.node[below + child, PLACE] = i
                    node_mbr(t, below + child, t.boxes[node, i])
                child += 1
        below = here
    t.state[ROOT] = below


@kernel
def fill_lists(t: Tree) -> None:
    """Fill the lists of the nodes over the constraints, which are all in use.

    It goes a level at a time, so that the chunks of a list, and of one list and the next, lie one behind the other.
    """
    node_of, constraint, chunk, position = t.node, t.constraint, t.chunk, t.position
    listed = LIST_BITS[0] | LIST_BITS[1]
    slots = np.empty(t.state[SLOTS], np.int64)
    above = np.empty(t.state[SLOTS], np.int64)
    count = 0
    for slot in range(t.state[SLOTS]):
        if constraint[slot, MASK] & listed:
            slots[count] = slot
            above[count] = t.entry[constraint[slot, ENTRY], LEAF]
            count += 1
    free = t.state[CHUNKS]
    for level in range(node_of[t.state[ROOT], LEVEL] + 1):
        for k in range(count):
            slot = slots[k]
            node = above[k]
            above[k] = node_of[node, PARENT]
            for which in range(2):
                if constraint[slot, MASK] & LIST_BITS[which]:
                    size = node_of[node, SIZE + LIST * which]
                    fill = size % CHUNK
                    if fill == 0:
                        tail = node_of[node, TAIL + LIST * which]
                        chunk[free, AFTER] = -1
                        chunk[free, BEFORE] = tail
                        if tail >= 0:
                            chunk[tail, AFTER] = free
                        else:
                            node_of[node, HEAD + LIST * which] = free
                        node_of[node, TAIL + LIST * which] = free
                        free += 1
                    last = node_of[node, TAIL + LIST * which]
                    chunk[last, IDS + fill] = constraint[slot, ID]
                    chunk[last, SLOTS_AT + fill] = slot
                    position[slot, level, which] = last * CHUNK + fill
                    node_of[node, SIZE + LIST * which] = size + 1
    t.state[CHUNKS] = free
