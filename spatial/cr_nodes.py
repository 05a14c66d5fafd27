"""Guttman's tree of the CR-tree: choosing a leaf, quadratic split, deletion with condensing.

Paper 1, section 4.1 keeps Guttman's R-tree and adds the lists; so do we. Nodes hold 6 to 16 children (the root fewer),
all leaves are on level 0. What moves between nodes takes its constraints along in the lists (`cr_lists`): a split moves
the lists of the children that leave, so a list element moves O(1) times per level, amortised over insertions.

`insert` and `remove` first see whether every array has room for the worst they may do, and return `GROW - which` when
one has not; the class grows it and calls again. Nothing is changed in that case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial import ring_arena
from contrada.spatial._jit import kernel
from contrada.spatial.cr_lists import (
    AFTER,
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
    FREE_ENTRY,
    FREE_SLOT,
    HASH,
    HEAD,
    HEAP_STATE,
    ID,
    LEAF,
    LEVEL,
    LIST,
    LIST_BITS,
    MASK,
    MINIMUM,
    NEXT,
    NODES,
    PARENT,
    PLACE,
    PLACE_IN_LEAF,
    PREVIOUS,
    REGIONS,
    ROOT,
    SIZE,
    SLOTS,
    SLOTS_AT,
    UNION,
    delist,
    enlist,
    free_node,
    list_append,
    list_remove,
    new_node,
)
from contrada.spatial.ring_arena import has_room, release, ring_hash, same_ring, store

if TYPE_CHECKING:
    from contrada.spatial.cr_lists import Floats, Ints, Tree

# What may have to grow, in the order of CRTree._grow.
NODE_ROWS: Final = 0
CHUNK_ROWS: Final = 1
LEVEL_COLUMNS: Final = 2
ENTRY_ROWS: Final = 3
SLOT_ROWS: Final = 4
HEAP: Final = 5
TABLES: Final = 6

UNKNOWN: Final = -1
GROW: Final = -2


@kernel
def hash_id(id: int) -> np.int64:
    """Spread ids, which are often consecutive, over the table."""
    h = np.uint64(id) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(h >> np.uint64(32))


@kernel
def find_slot(t: Tree, id: int) -> int:
    """Return the row of the constraint with that id, or -1."""
    slot: int = t.table[BY_ID, hash_id(id) & (t.table.shape[1] - 1)]
    while slot >= 0 and t.constraint[slot, ID] != id:
        slot = t.constraint[slot, CHAIN]
    return slot


@kernel
def find_entry(t: Tree, hashed: np.int64, xy: Floats) -> int:
    """Return the entry of that ring, or -1."""
    entry: int = t.table[BY_RING, hashed & (t.table.shape[1] - 1)]
    edges = xy.shape[0] - 1
    while entry >= 0:
        if (
            t.entry[entry, HASH] == hashed
            and t.entry[entry, EDGES] == edges
            and same_ring(t.heap, t.entry[entry, BLOCK], xy)
        ):
            return entry
        entry = t.entry[entry, ENTRY_CHAIN]
    return entry


@kernel
def rehash(t: Tree) -> int:
    """Fill both tables, which are all -1, from the rows in use; return a constraint whose id another has, or -1."""
    entry_of, constraint_of, table = t.entry, t.constraint, t.table
    last = table.shape[1] - 1
    for entry in range(t.state[ENTRIES]):
        if entry_of[entry, LEAF] >= 0:
            bucket = entry_of[entry, HASH] & last
            entry_of[entry, ENTRY_CHAIN] = table[BY_RING, bucket]
            table[BY_RING, bucket] = entry
    twin = -1
    for slot in range(t.state[SLOTS]):
        if constraint_of[slot, ENTRY] >= 0:
            bucket = hash_id(constraint_of[slot, ID]) & last
            other = table[BY_ID, bucket]
            constraint_of[slot, CHAIN] = other
            table[BY_ID, bucket] = slot
            while other >= 0:
                if constraint_of[other, ID] == constraint_of[slot, ID]:
                    twin = slot
                other = constraint_of[other, CHAIN]
    return twin


@kernel
def _set_child(t: Tree, node: int, place: int, child: int, box: Floats) -> None:
    t.node[node, CHILDREN + place] = child
    t.boxes[node, place, 0] = box[0]
    t.boxes[node, place, 1] = box[1]
    t.boxes[node, place, 2] = box[2]
    t.boxes[node, place, 3] = box[3]
    if t.node[node, LEVEL] == 0:
        t.entry[child, LEAF] = node
        t.entry[child, PLACE_IN_LEAF] = place
    else:
        t.node[child, PARENT] = node
        t.node[child, PLACE] = place


@kernel
def _take_child(t: Tree, node: int, place: int) -> None:
    """Take a child out, the last one taking its place."""
    last = t.node[node, COUNT] - 1
    t.node[node, COUNT] = last
    if place != last:
        _set_child(t, node, place, t.node[node, CHILDREN + last], t.boxes[node, last])


@kernel
def mbr(t: Tree, node: int, box: Floats) -> None:
    """Compute the MBR of a node's children."""
    box[0] = box[1] = np.inf
    box[2] = box[3] = -np.inf
    for i in range(t.node[node, COUNT]):
        box[0] = min(box[0], t.boxes[node, i, 0])
        box[1] = min(box[1], t.boxes[node, i, 1])
        box[2] = max(box[2], t.boxes[node, i, 2])
        box[3] = max(box[3], t.boxes[node, i, 3])


@kernel
def _tighten(t: Tree, node: int) -> None:
    """Set the MBR that a node's parent holds of it, and so on up, as far as it changes."""
    box = np.empty(4)
    parent = t.node[node, PARENT]
    while parent >= 0:
        mbr(t, node, box)
        place = t.node[node, PLACE]
        if (t.boxes[parent, place] == box).all():
            return
        t.boxes[parent, place] = box
        node = parent
        parent = t.node[node, PARENT]


@kernel
def _union_area(a: Floats, b: Floats) -> float:
    area: float = (max(a[2], b[2]) - min(a[0], b[0])) * (max(a[3], b[3]) - min(a[1], b[1]))
    return area


@kernel
def _area(a: Floats) -> float:
    area: float = (a[2] - a[0]) * (a[3] - a[1])
    return area


@kernel
def _choose(t: Tree, box: Floats, level: int) -> int:
    """Return the node of a level whose path needs the least enlargement (Guttman's ChooseLeaf)."""
    node: int = t.state[ROOT]
    while t.node[node, LEVEL] > level:
        best = 0
        best_growth = np.inf
        best_area = np.inf
        for i in range(t.node[node, COUNT]):
            area = _area(t.boxes[node, i])
            growth = _union_area(t.boxes[node, i], box) - area
            if growth < best_growth or (growth == best_growth and area < best_area):
                best = i
                best_growth = growth
                best_area = area
        node = t.node[node, CHILDREN + best]
    return node


@kernel
def _partition(boxes: Floats) -> Ints:
    """Return a group, 0 or 1, for each of 17 boxes (Guttman's quadratic split)."""
    total = CAPACITY + 1
    group = np.full(total, -1, np.int64)
    worst = -np.inf
    first = 0
    second = 1
    for i in range(total):
        for j in range(i + 1, total):
            dead = _union_area(boxes[i], boxes[j]) - _area(boxes[i]) - _area(boxes[j])
            if dead > worst:
                worst = dead
                first = i
                second = j
    group[first] = 0
    group[second] = 1
    cover = np.empty((2, 4))
    cover[0] = boxes[first]
    cover[1] = boxes[second]
    counts = np.ones(2, np.int64)
    for left in range(total - 2, 0, -1):
        forced = -1
        for g in range(2):
            if counts[g] + left == MINIMUM:
                forced = g
        chosen = -1
        target = forced
        most = -1.0
        for i in range(total):
            if group[i] < 0:
                if forced >= 0:
                    chosen = i
                    break
                growth_0 = _union_area(cover[0], boxes[i]) - _area(cover[0])
                growth_1 = _union_area(cover[1], boxes[i]) - _area(cover[1])
                difference = abs(growth_0 - growth_1)
                if difference > most:
                    most = difference
                    chosen = i
                    if growth_0 != growth_1:
                        target = 0 if growth_0 < growth_1 else 1
                    elif _area(cover[0]) != _area(cover[1]):
                        target = 0 if _area(cover[0]) < _area(cover[1]) else 1
                    else:
                        target = 0 if counts[0] <= counts[1] else 1
        group[chosen] = target
        counts[target] += 1
        for k in range(2):
            cover[target, k] = min(cover[target, k], boxes[chosen, k])
            cover[target, k + 2] = max(cover[target, k + 2], boxes[chosen, k + 2])
    return group


@kernel
def _move_lists(t: Tree, child: int, level: int, source: int, target: int) -> None:
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


@kernel
def _split(t: Tree, node: int, child: int, box: Floats) -> None:
    """Add a child to a full node whose lists already hold its constraints, splitting as far up as it takes."""
    boxes = np.empty((CAPACITY + 1, 4))
    children = np.empty(CAPACITY + 1, np.int64)
    own = np.empty(4)
    while True:
        level = t.node[node, LEVEL]
        for i in range(CAPACITY):
            boxes[i] = t.boxes[node, i]
            children[i] = t.node[node, CHILDREN + i]
        boxes[CAPACITY] = box
        children[CAPACITY] = child
        group = _partition(boxes)
        other = new_node(t, level)
        t.node[node, COUNT] = 0
        for i in range(CAPACITY + 1):
            target = node
            if group[i] == 1:
                target = other
                _move_lists(t, children[i], level, node, other)
            place = t.node[target, COUNT]
            t.node[target, COUNT] = place + 1
            _set_child(t, target, place, children[i], boxes[i])
        parent = t.node[node, PARENT]
        if parent < 0:
            parent = new_node(t, level + 1)
            t.state[ROOT] = parent
            mbr(t, node, own)
            _set_child(t, parent, 0, node, own)
            mbr(t, other, own)
            _set_child(t, parent, 1, other, own)
            t.node[parent, COUNT] = 2
            _move_lists(t, node, level + 1, -1, parent)
            _move_lists(t, other, level + 1, -1, parent)
            return
        _tighten(t, node)
        mbr(t, other, own)
        count = t.node[parent, COUNT]
        if count < CAPACITY:
            t.node[parent, COUNT] = count + 1
            _set_child(t, parent, count, other, own)
            _tighten(t, parent)
            return
        node = parent
        child = other
        box = own.copy()


@kernel
def _attach(t: Tree, child: int, box: Floats, level: int) -> None:
    """Hang an entry (level 0) or a node of `level` - 1, with its constraints, under the best node of `level`."""
    node = _choose(t, box, level)
    above = node
    while above >= 0:
        _join_lists(t, child, level, above)
        above = t.node[above, PARENT]
    count = t.node[node, COUNT]
    if count < CAPACITY:
        t.node[node, COUNT] = count + 1
        _set_child(t, node, count, child, box)
        _tighten(t, node)
    else:
        _split(t, node, child, box)


@kernel
def _join_lists(t: Tree, child: int, level: int, target: int) -> None:
    """Add the constraints of a child of a node of `level` to the lists of that node or of one above it."""
    _move_lists(t, child, level, -1, target)


@kernel
def _lacking(t: Tree, edges: int) -> int:
    """Return what has no room for the worst that one change may do, or -1."""
    height = t.node[t.state[ROOT], LEVEL] + 1
    # An insertion splits at most once per level. A deletion takes out at most one node per level and puts its
    # children, fewer than MINIMUM, back one by one.
    spare = (height + 1) * (height + 1) * MINIMUM
    if t.state[NODES] + spare > t.node.shape[0]:
        return NODE_ROWS
    if t.state[CHUNKS] + 4 * spare > t.chunk.shape[0]:
        return CHUNK_ROWS
    if height + 2 > t.position.shape[1]:
        return LEVEL_COLUMNS
    if t.state[FREE_ENTRY] < 0 and t.state[ENTRIES] >= t.entry.shape[0]:
        return ENTRY_ROWS
    if t.state[FREE_SLOT] < 0 and t.state[SLOTS] >= t.constraint.shape[0]:
        return SLOT_ROWS
    if not has_room(t.heap, t.state[HEAP_STATE:], edges):
        return HEAP
    if t.state[CONSTRAINTS] >= t.table.shape[1]:
        return TABLES
    return -1


@kernel
def insert(t: Tree, id: int, mask: int, xy: Floats) -> int:
    """Add a constraint; 0 when done, UNKNOWN when the id is taken, GROW - which when an array is too small."""
    lacking = _lacking(t, xy.shape[0] - 1)
    if lacking >= 0:
        return GROW - lacking
    if find_slot(t, id) >= 0:
        return UNKNOWN
    slot = t.state[FREE_SLOT]
    if slot >= 0:
        t.state[FREE_SLOT] = t.constraint[slot, CHAIN]
    else:
        slot = t.state[SLOTS]
        t.state[SLOTS] += 1
    t.constraint[slot, ID] = id
    t.constraint[slot, MASK] = mask
    bucket = hash_id(id) & (t.table.shape[1] - 1)
    t.constraint[slot, CHAIN] = t.table[BY_ID, bucket]
    t.table[BY_ID, bucket] = slot
    t.constraint[slot, PREVIOUS] = -1
    t.state[CONSTRAINTS] += 1

    hashed = ring_hash(xy.reshape(-1), 0, xy.shape[0] - 1)
    entry = find_entry(t, hashed, xy)
    if entry >= 0:
        first = t.entry[entry, FIRST]
        t.constraint[slot, ENTRY] = entry
        t.constraint[slot, NEXT] = first
        t.constraint[first, PREVIOUS] = slot
        t.entry[entry, FIRST] = slot
        t.entry[entry, UNION] |= mask
        enlist(t, t.entry[entry, LEAF], slot)
        return 0
    entry = t.state[FREE_ENTRY]
    if entry >= 0:
        t.state[FREE_ENTRY] = t.entry[entry, ENTRY_CHAIN]
    else:
        entry = t.state[ENTRIES]
        t.state[ENTRIES] += 1
    t.state[REGIONS] += 1
    block = store(t.heap, t.state[HEAP_STATE:], xy)
    edges = xy.shape[0] - 1
    t.entry[entry, FIRST] = slot
    t.entry[entry, UNION] = mask
    t.entry[entry, BLOCK] = block
    t.entry[entry, EDGES] = edges
    t.entry[entry, HASH] = hashed
    bucket = hashed & (t.table.shape[1] - 1)
    t.entry[entry, ENTRY_CHAIN] = t.table[BY_RING, bucket]
    t.table[BY_RING, bucket] = entry
    t.constraint[slot, ENTRY] = entry
    t.constraint[slot, NEXT] = -1
    boxes = ring_arena.ring_boxes(t.heap, block, edges)
    _attach(t, entry, boxes[boxes.shape[0] - 1].copy(), 0)
    return 0


@kernel
def _unchain_slot(t: Tree, slot: int) -> None:
    bucket = hash_id(t.constraint[slot, ID]) & (t.table.shape[1] - 1)
    at = t.table[BY_ID, bucket]
    if at == slot:
        t.table[BY_ID, bucket] = t.constraint[slot, CHAIN]
        return
    while t.constraint[at, CHAIN] != slot:
        at = t.constraint[at, CHAIN]
    t.constraint[at, CHAIN] = t.constraint[slot, CHAIN]


@kernel
def _unchain_entry(t: Tree, entry: int) -> None:
    bucket = t.entry[entry, HASH] & (t.table.shape[1] - 1)
    at = t.table[BY_RING, bucket]
    if at == entry:
        t.table[BY_RING, bucket] = t.entry[entry, ENTRY_CHAIN]
        return
    while t.entry[at, ENTRY_CHAIN] != entry:
        at = t.entry[at, ENTRY_CHAIN]
    t.entry[at, ENTRY_CHAIN] = t.entry[entry, ENTRY_CHAIN]


@kernel
def _condense(t: Tree, leaf: int) -> None:
    """Put right what taking an entry out of a leaf left: underfull nodes, MBRs, a root with one child."""
    height = t.node[t.state[ROOT], LEVEL] + 1
    orphans = np.empty(height, np.int64)
    count = 0
    node = leaf
    while t.node[node, PARENT] >= 0:
        parent = t.node[node, PARENT]
        if t.node[node, COUNT] < MINIMUM:
            _take_child(t, parent, t.node[node, PLACE])
            above = parent
            while above >= 0:
                _move_lists(t, node, t.node[node, LEVEL] + 1, above, -1)
                above = t.node[above, PARENT]
            orphans[count] = node
            count += 1
        else:
            _tighten(t, node)
        node = parent
    for i in range(count - 1, -1, -1):
        node = orphans[i]
        for k in range(t.node[node, COUNT]):
            _attach(t, t.node[node, CHILDREN + k], t.boxes[node, k].copy(), t.node[node, LEVEL])
        free_node(t, node)
    root = t.state[ROOT]
    while t.node[root, LEVEL] > 0 and t.node[root, COUNT] == 1:
        only = t.node[root, CHILDREN + 0]
        free_node(t, root)
        t.node[only, PARENT] = -1
        t.node[only, PLACE] = -1
        t.state[ROOT] = only
        root = only


@kernel
def remove(t: Tree, id: int) -> int:
    """Take a constraint out; 0 when done, UNKNOWN when there is none, GROW - which when an array is too small."""
    slot = find_slot(t, id)
    if slot < 0:
        return UNKNOWN
    lacking = _lacking(t, 3)
    if lacking in (NODE_ROWS, CHUNK_ROWS, LEVEL_COLUMNS):
        return GROW - lacking
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
    _unchain_slot(t, slot)
    t.constraint[slot, ENTRY] = -1
    t.constraint[slot, CHAIN] = t.state[FREE_SLOT]
    t.state[FREE_SLOT] = slot
    t.state[CONSTRAINTS] -= 1
    rest = t.entry[entry, FIRST]
    if rest >= 0:
        union = 0
        while rest >= 0 and union != t.entry[entry, UNION]:
            union |= t.constraint[rest, MASK]
            rest = t.constraint[rest, NEXT]
        t.entry[entry, UNION] = union
        return 0
    _unchain_entry(t, entry)
    release(t.heap, t.state[HEAP_STATE:], t.entry[entry, BLOCK], t.entry[entry, EDGES])
    place = t.entry[entry, PLACE_IN_LEAF]
    t.entry[entry, LEAF] = -1
    t.entry[entry, ENTRY_CHAIN] = t.state[FREE_ENTRY]
    t.state[FREE_ENTRY] = entry
    t.state[REGIONS] -= 1
    _take_child(t, leaf, place)
    _condense(t, leaf)
    return 0
