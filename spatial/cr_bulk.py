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
    CAPACITY,
    CHILDREN,
    CHUNK,
    CHUNKS,
    CONSTRAINTS,
    COUNT,
    EDGES,
    ENTRIES,
    ENTRY,
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
from contrada.spatial.cr_nodes import mbr as node_mbr
from contrada.spatial.predicates import orient
from contrada.spatial.ring_arena import allocate, ring_boxes, ring_hash, ring_xy
from contrada.spatial.rings import RUN, fill_boxes

if TYPE_CHECKING:
    from contrada.spatial.cr_lists import Floats, Ints, Tree

_FILTER: Final = 4e-16  # above the error bound of an orientation in doubles


# From here on `coords` is flat, for speed: vertex k is (coords[2·k], coords[2·k + 1]), a ring is vertices low to high-1


@kernel
def _doubtful(coords: Floats, a: int, b: int, c: int) -> bool:
    """Whether the floating filter of `orient` leaves open if vertices a, b, c are in line."""
    left = (coords[2 * a] - coords[2 * c]) * (coords[2 * b + 1] - coords[2 * c + 1])
    right = (coords[2 * a + 1] - coords[2 * c + 1]) * (coords[2 * b] - coords[2 * c])
    doubtful: bool = abs(left - right) <= _FILTER * (abs(left) + abs(right))
    return doubtful


@kernel
def _surely_turns(coords: Floats, low: int, high: int) -> bool:
    """Whether each vertex is a corner by the floating filter alone."""
    last = high - 1
    doubtful = int(_doubtful(coords, last - 1, last, low)) + int(_doubtful(coords, last, low, low + 1))
    for k in range(low + 1, last):
        doubtful += _doubtful(coords, k - 1, k, k + 1)
    return doubtful == 0


@kernel
def _corners(coords: Floats, low: int, high: int, corners: Floats) -> int:
    """Copy the vertices that are neither repeated nor collinear with their neighbours; return how many there are."""
    size = 0
    ax, ay = coords[2 * high - 2], coords[2 * high - 1]
    bx, by = coords[2 * low], coords[2 * low + 1]
    for k in range(low, high):
        after = k + 1 if k + 1 < high else low
        cx, cy = coords[2 * after], coords[2 * after + 1]
        if bx == cx and by == cy:
            continue
        if orient(ax, ay, bx, by, cx, cy) != 0:
            corners[2 * size] = bx
            corners[2 * size + 1] = by
            size += 1
        ax, ay = bx, by
        bx, by = cx, cy
    return size


@kernel
def _lowest(coords: Floats, low: int, high: int) -> int:
    """Return the lexicographically smallest vertex."""
    lowest = low
    for k in range(low + 1, high):
        x, least = coords[2 * k], coords[2 * lowest]
        if x <= least and (x < least or coords[2 * k + 1] < coords[2 * lowest + 1]):
            lowest = k
    return lowest


@kernel
def _rotate(coords: Floats, low: int, high: int, lowest: int, target: Floats, at: int) -> None:
    """Write a ring of corners to target[at:], closed, counter-clockwise from its smallest, which is `lowest`."""
    a, b = 2 * (lowest - 1 if lowest > low else high - 1), 2 * lowest
    c = 2 * (lowest + 1 if lowest + 1 < high else low)
    if orient(coords[a], coords[a + 1], coords[b], coords[b + 1], coords[c], coords[c + 1]) > 0:
        for k in range(2 * lowest, 2 * high):
            target[at] = coords[k] + 0.0  # -0.0 becomes 0.0: equal rings are equal bits
            at += 1
        for k in range(2 * low, 2 * lowest + 2):
            target[at] = coords[k] + 0.0
            at += 1
    else:
        size = high - low
        for i in range(size + 1):
            k = lowest - i
            if k < low:
                k += size
            target[at] = coords[2 * k] + 0.0
            target[at + 1] = coords[2 * k + 1] + 0.0
            at += 2


@kernel
def _open_end(coords: Floats, low: int, high: int) -> int:
    """Return where a ring ends when vertices that repeat its first are left out."""
    while high - low > 1 and coords[2 * high - 2] == coords[2 * low] and coords[2 * high - 1] == coords[2 * low + 1]:
        high -= 1
    return high


@kernel
def _same_ring(coords: Floats, a: int, a_end: int, b: int, b_end: int, scratch: Floats, rings: Floats) -> bool:
    """Whether two rings are the same in canonical form."""
    size = _corners(coords, a, _open_end(coords, a, a_end), scratch)
    if size < 3 or _corners(coords, b, _open_end(coords, b, b_end), rings[1]) != size:
        return False
    _rotate(rings[1], 0, size, _lowest(rings[1], 0, size), rings[0], 0)
    _rotate(scratch, 0, size, _lowest(scratch, 0, size), rings[1], 0)
    return np.array_equal(rings[0, : 2 * size], rings[1, : 2 * size])


@kernel
def _hash_box(box: Floats) -> np.int64:
    h = np.uint64(0)
    for k in range(4):
        h = (h ^ np.float64(box[k] + 0.0).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(31)
    return np.int64(h >> np.uint64(1))


@kernel
def distinct_rings(
    coords: Floats, offsets: Ints, table: Ints, first: Ints, boxes: Floats, which: Ints, lowest: Ints
) -> int:
    """Number the distinct rings, ring i being vertices offsets[i] to offsets[i+1]; return how many there are.

    `which` gets each ring's number, and `lowest` its smallest vertex, or -1 when some vertices may be no corners;
    `first` and `boxes` get the first such ring and the MBR, by number. `table`, all -1, is scratch. Rings are
    compared only when their MBRs are equal, so rings all different cost one pass.
    """
    rings = offsets.shape[0] - 1
    longest = 0
    for i in range(rings):
        longest = max(longest, offsets[i + 1] - offsets[i])
    scratch = np.empty(2 * longest)
    rings_of_two = np.empty((2, 2 * longest + 2))
    chain = np.empty(rings, np.int64)
    count = 0
    for i in range(rings):
        x1 = y1 = np.inf
        x2 = y2 = -np.inf
        for j in range(offsets[i], offsets[i + 1]):
            x1 = min(x1, coords[2 * j])
            x2 = max(x2, coords[2 * j])
            y1 = min(y1, coords[2 * j + 1])
            y2 = max(y2, coords[2 * j + 1])
        start, end = offsets[i], _open_end(coords, offsets[i], offsets[i + 1])
        plain = end - start >= 3 and _surely_turns(coords, start, end)
        lowest[i] = _lowest(coords, start, end) if plain else -1
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
    t: Tree,
    coords: Floats,
    offsets: Ints,
    ids: Ints,
    masks: Ints,
    boxes: Floats,
    lowest: Ints,
    order: Ints,
    rows: Ints,
    starts: Ints,
) -> int:
    """Fill in the entries, their rings and constraints. Return -1, or which constraint's ring is no polygon.

    Entry e is distinct ring r = order[e], with MBR boxes[r] and constraints rows[starts[r]:starts[r + 1]].
    `lowest` is as `distinct_rings` leaves it.
    """
    longest = 0
    for i in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    scratch = np.empty(2 * longest)
    entry_of, constraint_of, heap = t.entry, t.constraint, t.heap
    heap_state = t.state[HEAP_STATE:]
    slot = 0
    for entry in range(order.shape[0]):
        ring = order[entry]
        row = rows[starts[ring]]
        low, high = offsets[row], _open_end(coords, offsets[row], offsets[row + 1])
        edges = high - low
        if lowest[row] < 0:
            edges = _corners(coords, low, high, scratch)
            if edges < 3:
                at: int = row
                return at
        block = allocate(heap, heap_state, edges)
        if lowest[row] >= 0:
            _rotate(coords, low, high, lowest[row], heap, block)
        else:
            _rotate(scratch, 0, edges, _lowest(scratch, 0, edges), heap, block)
        if edges <= RUN:  # one run, whose box is the MBR: most rings, spared a view
            for side in range(4):
                heap[block + 2 * (edges + 1) + side] = boxes[ring, side]
        else:
            fill_boxes(ring_xy(heap, block, edges), ring_boxes(heap, block, edges))
        entry_of[entry, FIRST] = slot
        entry_of[entry, BLOCK] = block
        entry_of[entry, EDGES] = edges
        entry_of[entry, HASH] = ring_hash(heap, block, edges)
        union = 0
        before = -1
        for k in range(starts[ring], starts[ring + 1]):
            row = rows[k]
            constraint_of[slot, ID] = ids[row]
            constraint_of[slot, MASK] = masks[row]
            constraint_of[slot, ENTRY] = entry
            constraint_of[slot, PREVIOUS] = before
            constraint_of[slot, NEXT] = -1
            if before >= 0:
                constraint_of[before, NEXT] = slot
            union |= masks[row]
            before = slot
            slot += 1
        entry_of[entry, UNION] = union
    t.state[ENTRIES] = t.state[REGIONS] = order.shape[0]
    t.state[SLOTS] = t.state[CONSTRAINTS] = slot
    return -1


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
