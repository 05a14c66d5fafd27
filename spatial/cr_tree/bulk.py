"""Packing a CR-tree from many constraints at once: the same structure, full nodes.

Rings are read and proved simple in several threads (`ring_loading`).

Leaves are packed by sort-tile-recursive (Leutenegger et al., 1997): centres sorted by x, cut into about √k vertical
slices for k leaves, each slice sorted by y and cut into leaves; then the same for the MBRs of the leaves, and so on up.
Cuts are spread evenly, so every node has at least 8 children, and the tree obeys the rules of one built by insertion.

Rows are numbered from the root down, so that the children of a node, the entries below it and their constraints each
are one run: a search reads memory nearly in order. Only the rings stay where they were put, in the order given.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.errors import InvalidRegion, InvalidValue
from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.nodes import node_mbr
from contrada.spatial.cr_tree.rows import empty_tree, new_node, rehash, table_size
from contrada.spatial.geometry.region import Region
from contrada.spatial.geometry.ring_loading import THREADS, load_rings, prove
from contrada.spatial.geometry.ring_reader import BLOCK_AT, EDGES_AT, HASH_AT
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.cr_tree.layout import Floats, Ints, Tree
    from contrada.spatial.geometry.ring_loading import StoredRings


def build(coords: Floats, offsets: Ints, ids: Ints, masks: Ints, *, trusted: bool) -> Tree:
    """Return the tree of constraints, one per ring: ring i is vertices offsets[i] to offsets[i+1], and may be closed.

    `trusted` rings are those of regions; others are validated as `Region` does it.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        rings, wrong = load_rings(coords, offsets, pool, trusted=trusted)
        proofs = [] if trusted else prove(rings, pool)
        packed = _tree_of(rings, ids, masks) if wrong < 0 else None
    for touching in (proof.result() for proof in proofs):
        if touching >= 0:
            wrong = int(np.argmax(rings.which == touching))
            break
    if packed is None or wrong >= 0:
        raise _refusal(coords[offsets[wrong] : offsets[wrong + 1]], wrong, int(ids[wrong]))
    tree, twin = packed
    if twin >= 0:
        raise InvalidValue(f"id {tree.constraint[twin, c.ID]} is given twice")
    return tree


def _refusal(ring: Floats, place: int, id: int) -> InvalidRegion:
    try:
        Region(ring)
    except InvalidRegion as error:
        return InvalidRegion(f"ring {place} (id {id}): {error}")
    raise AssertionError(f"ring {place} is a region, but was refused")


def _tree_of(rings: StoredRings, ids: Ints, masks: Ints) -> tuple[Tree, int]:
    """Pack the tree; return it, and -1 or a constraint whose id another one has."""
    count, distinct = len(ids), rings.distinct
    order, sizes = _pack(rings.boxes[:distinct])
    if distinct == count:
        rows, starts = rings.which, np.arange(count + 1)
    else:
        rows = np.argsort(rings.which, kind="stable")
        starts = np.searchsorted(rings.which[rows], np.arange(distinct + 1))
    levels = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum([len(level) for level in sizes], out=levels[1:])
    nodes = int(levels[-1])
    listed = sum(int(np.count_nonzero(masks & bit)) for bit in c.LIST_BITS)
    tree = empty_tree(
        nodes=nodes + nodes // 4,
        chunks=2 * nodes + len(sizes) * listed // c.CHUNK,
        levels=len(sizes) + 1,
        entries=distinct,
        slots=count,
        heap=0,
        table=table_size(count),
    )._replace(heap=rings.heap)
    tree.state[c.HEAP_STATE :] = rings.heap_state
    _number_rows(tree, rings.where, ids, masks, order, rows, starts)
    _hang_nodes(tree, rings.boxes, order, np.concatenate(sizes), levels)
    twin = rehash(tree)
    if twin < 0:
        _fill_lists(tree)
    return tree, twin


def _tile(boxes: Floats) -> tuple[Ints, Ints]:
    """Return an order of the boxes, and the bounds of its runs that make a node each."""
    count = len(boxes)
    nodes = -(-count // c.CAPACITY)
    bounds = np.arange(nodes + 1) * count // nodes
    slices = max(1, round(nodes**0.5))
    cuts = bounds[np.arange(slices + 1) * nodes // slices].tolist()
    rows = np.arange(count, dtype=np.uint64)
    keys = _keys(boxes[:, 0] + boxes[:, 2]) | rows
    keys.sort()
    order = (keys & _ROW).astype(np.int64)
    keys = (_keys(boxes[:, 1] + boxes[:, 3]) | rows)[order]
    for low, high in pairwise(cuts):
        keys[low:high].sort()
    return (keys & _ROW).astype(np.int64), bounds


def _keys(values: Floats) -> NDArray[np.uint64]:
    """Return the values scaled to 31 bits, in the upper halves of words whose lower halves are free for a row.

    Words sort many times faster than rows by their values. What falls together is as good in either order.
    """
    least = values.min()
    extent = values.max() - least
    scaled = (values - least) * (_ROW / 2 / extent if extent > 0 else 0.0)
    keys: NDArray[np.uint64] = scaled.astype(np.uint64) << np.uint64(32)
    return keys


_ROW: Final = np.uint64(0xFFFFFFFF)


def _pack(boxes: Floats) -> tuple[Ints, list[Ints]]:
    """Return the order of the entries, and for each level, leaves first, how many children each node has."""
    orders: list[Ints] = []
    runs: list[Ints] = []
    while True:
        order, bounds = _tile(boxes)
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
def _number_rows(t: Tree, rings: Ints, ids: Ints, masks: Ints, order: Ints, rows: Ints, starts: Ints) -> None:
    """Fill in the entries and constraints.

    Entry e is distinct ring r = order[e], with constraints rows[starts[r]:starts[r+1]].
    """
    entry_of, constraint_of = t.entry, t.constraint
    slot = 0
    for entry in range(order.shape[0]):
        ring = order[entry]
        entry_of[entry, c.FIRST] = slot
        entry_of[entry, c.BLOCK] = rings[ring, BLOCK_AT]
        entry_of[entry, c.EDGES] = rings[ring, EDGES_AT]
        entry_of[entry, c.HASH] = rings[ring, HASH_AT]
        union = 0
        before = -1
        for k in range(starts[ring], starts[ring + 1]):
            row = rows[k]
            constraint_of[slot, c.ID] = ids[row]
            constraint_of[slot, c.MASK] = masks[row]
            constraint_of[slot, c.ENTRY] = entry
            constraint_of[slot, c.PREVIOUS] = before
            constraint_of[slot, c.NEXT] = -1
            if before >= 0:
                constraint_of[before, c.NEXT] = slot
            union |= masks[row]
            before = slot
            slot += 1
        entry_of[entry, c.UNION] = union
    t.state[c.ENTRIES] = t.state[c.REGIONS] = order.shape[0]
    t.state[c.SLOTS] = t.state[c.CONSTRAINTS] = slot


@kernel
def _hang_nodes(t: Tree, boxes: Floats, order: Ints, sizes: Ints, levels: Ints) -> None:
    """Build the nodes over the entries, whose MBRs are boxes[order].

    `sizes` are the numbers of children of all nodes, leaves first; level l's are sizes[levels[l]:levels[l+1]].
    """
    below = -1  # first node of the level below
    for level in range(levels.shape[0] - 1):
        child = 0
        here = -1
        for k in range(levels[level], levels[level + 1]):
            node = t.state[c.ROOT] if level == 0 and k == 0 else new_node(t, level)
            if here < 0:
                here = node
            t.node[node, c.COUNT] = sizes[k]
            for i in range(sizes[k]):
                if level == 0:
                    t.node[node, c.CHILDREN + i] = child
                    t.entry[child, c.LEAF] = node
                    t.entry[child, c.PLACE_IN_LEAF] = i
                    for side in range(4):
                        t.boxes[node, i, side] = boxes[order[child], side]
                else:
                    t.node[node, c.CHILDREN + i] = below + child
                    t.node[below + child, c.PARENT] = node
                    t.node[below + child, c.PLACE] = i
                    node_mbr(t, below + child, t.boxes[node, i])
                child += 1
        below = here
    t.state[c.ROOT] = below


@kernel
def _fill_lists(t: Tree) -> None:
    """Fill the lists of the nodes over the constraints, which are all in use.

    It goes a level at a time, so that the chunks of a list, and of one list and the next, lie one behind the other.
    """
    node_of, constraint, chunk, position = t.node, t.constraint, t.chunk, t.position
    listed = c.LIST_BITS[0] | c.LIST_BITS[1]
    slots = np.empty(t.state[c.SLOTS], np.int64)
    above = np.empty(t.state[c.SLOTS], np.int64)
    count = 0
    for slot in range(t.state[c.SLOTS]):
        if constraint[slot, c.MASK] & listed:
            slots[count] = slot
            above[count] = t.entry[constraint[slot, c.ENTRY], c.LEAF]
            count += 1
    free = t.state[c.CHUNKS]
    for level in range(node_of[t.state[c.ROOT], c.LEVEL] + 1):
        for k in range(count):
            slot = slots[k]
            node = above[k]
            above[k] = node_of[node, c.PARENT]
            for which in range(2):
                if constraint[slot, c.MASK] & c.LIST_BITS[which]:
                    size = node_of[node, c.SIZE + c.LIST * which]
                    fill = size % c.CHUNK
                    if fill == 0:
                        tail = node_of[node, c.TAIL + c.LIST * which]
                        chunk[free, c.AFTER] = -1
                        chunk[free, c.BEFORE] = tail
                        if tail >= 0:
                            chunk[tail, c.AFTER] = free
                        else:
                            node_of[node, c.HEAD + c.LIST * which] = free
                        node_of[node, c.TAIL + c.LIST * which] = free
                        free += 1
                    last = node_of[node, c.TAIL + c.LIST * which]
                    chunk[last, c.IDS + fill] = constraint[slot, c.ID]
                    chunk[last, c.SLOTS_AT + fill] = slot
                    position[slot, level, which] = last * c.CHUNK + fill
                    node_of[node, c.SIZE + c.LIST * which] = size + 1
    t.state[c.CHUNKS] = free
