"""Guttman's tree of the CR-tree: choosing a leaf, quadratic split, condensing after a deletion.

[SIENA-2D] (section 4.1) keeps Guttman's R-tree and adds the lists; so do we. Nodes hold 6 to 16 children (the root
fewer), all leaves are on level 0. What moves between nodes takes its constraints along in the lists (`lists.py`): a
split moves the lists of the children that leave, so a list element moves O(1) times per level, amortised over
insertions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.lists import move_lists
from contrada.spatial.cr_tree.rows import free_node, new_node
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.cr_tree.layout import Floats, Ints, Tree


@kernel
def set_child(t: Tree, node: int, place: int, child: int, box: Floats) -> None:
    """Put a child, an entry in a leaf or else a node, at a place of a node."""
    t.node[node, c.CHILDREN + place] = child
    t.boxes[node, place, 0] = box[0]
    t.boxes[node, place, 1] = box[1]
    t.boxes[node, place, 2] = box[2]
    t.boxes[node, place, 3] = box[3]
    if t.node[node, c.LEVEL] == 0:
        t.entry[child, c.LEAF] = node
        t.entry[child, c.PLACE_IN_LEAF] = place
    else:
        t.node[child, c.PARENT] = node
        t.node[child, c.PLACE] = place


@kernel
def take_child(t: Tree, node: int, place: int) -> None:
    """Take a child out, the last one taking its place."""
    last = t.node[node, c.COUNT] - 1
    t.node[node, c.COUNT] = last
    if place != last:
        set_child(t, node, place, t.node[node, c.CHILDREN + last], t.boxes[node, last])


@kernel
def node_mbr(t: Tree, node: int, box: Floats) -> None:
    """Compute the MBR of a node's children."""
    box[0] = box[1] = np.inf
    box[2] = box[3] = -np.inf
    for i in range(t.node[node, c.COUNT]):
        box[0] = min(box[0], t.boxes[node, i, 0])
        box[1] = min(box[1], t.boxes[node, i, 1])
        box[2] = max(box[2], t.boxes[node, i, 2])
        box[3] = max(box[3], t.boxes[node, i, 3])


@kernel
def _tighten(t: Tree, node: int) -> None:
    """Set the MBR that a node's parent holds of it, and so on up, as far as it changes."""
    box = np.empty(4)
    parent = t.node[node, c.PARENT]
    while parent >= 0:
        node_mbr(t, node, box)
        place = t.node[node, c.PLACE]
        if (t.boxes[parent, place] == box).all():
            return
        t.boxes[parent, place] = box
        node = parent
        parent = t.node[node, c.PARENT]


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
    node: int = t.state[c.ROOT]
    while t.node[node, c.LEVEL] > level:
        best = 0
        best_growth = np.inf
        best_area = np.inf
        for i in range(t.node[node, c.COUNT]):
            area = _area(t.boxes[node, i])
            growth = _union_area(t.boxes[node, i], box) - area
            if growth < best_growth or (growth == best_growth and area < best_area):
                best = i
                best_growth = growth
                best_area = area
        node = t.node[node, c.CHILDREN + best]
    return node


@kernel
def _partition(boxes: Floats) -> Ints:
    """Return a group, 0 or 1, for each of 17 boxes (Guttman's quadratic split)."""
    total = c.CAPACITY + 1
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
            if counts[g] + left == c.MINIMUM:
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
def _split(t: Tree, node: int, child: int, box: Floats) -> None:
    """Add a child to a full node whose lists already hold its constraints, splitting as far up as it takes."""
    boxes = np.empty((c.CAPACITY + 1, 4))
    children = np.empty(c.CAPACITY + 1, np.int64)
    own = np.empty(4)
    while True:
        level = t.node[node, c.LEVEL]
        for i in range(c.CAPACITY):
            boxes[i] = t.boxes[node, i]
            children[i] = t.node[node, c.CHILDREN + i]
        boxes[c.CAPACITY] = box
        children[c.CAPACITY] = child
        group = _partition(boxes)
        other = new_node(t, level)
        t.node[node, c.COUNT] = 0
        for i in range(c.CAPACITY + 1):
            target = node
            if group[i] == 1:
                target = other
                move_lists(t, children[i], level, node, other)
            place = t.node[target, c.COUNT]
            t.node[target, c.COUNT] = place + 1
            set_child(t, target, place, children[i], boxes[i])
        parent = t.node[node, c.PARENT]
        if parent < 0:
            parent = new_node(t, level + 1)
            t.state[c.ROOT] = parent
            node_mbr(t, node, own)
            set_child(t, parent, 0, node, own)
            node_mbr(t, other, own)
            set_child(t, parent, 1, other, own)
            t.node[parent, c.COUNT] = 2
            move_lists(t, node, level + 1, -1, parent)
            move_lists(t, other, level + 1, -1, parent)
            return
        _tighten(t, node)
        node_mbr(t, other, own)
        count = t.node[parent, c.COUNT]
        if count < c.CAPACITY:
            t.node[parent, c.COUNT] = count + 1
            set_child(t, parent, count, other, own)
            _tighten(t, parent)
            return
        node = parent
        child = other
        box = own.copy()


@kernel
def attach(t: Tree, child: int, box: Floats, level: int) -> None:
    """Hang an entry (level 0) or a node of `level` - 1, with its constraints, under the best node of `level`."""
    node = _choose(t, box, level)
    above = node
    while above >= 0:
        move_lists(t, child, level, -1, above)
        above = t.node[above, c.PARENT]
    count = t.node[node, c.COUNT]
    if count < c.CAPACITY:
        t.node[node, c.COUNT] = count + 1
        set_child(t, node, count, child, box)
        _tighten(t, node)
    else:
        _split(t, node, child, box)


@kernel
def condense(t: Tree, leaf: int) -> None:
    """Put right what taking an entry out of a leaf left: underfull nodes, MBRs, a root with one child."""
    height = t.node[t.state[c.ROOT], c.LEVEL] + 1
    orphans = np.empty(height, np.int64)
    count = 0
    node = leaf
    while t.node[node, c.PARENT] >= 0:
        parent = t.node[node, c.PARENT]
        if t.node[node, c.COUNT] < c.MINIMUM:
            take_child(t, parent, t.node[node, c.PLACE])
            above = parent
            while above >= 0:
                move_lists(t, node, t.node[node, c.LEVEL] + 1, above, -1)
                above = t.node[above, c.PARENT]
            orphans[count] = node
            count += 1
        else:
            _tighten(t, node)
        node = parent
    for i in range(count - 1, -1, -1):
        node = orphans[i]
        for k in range(t.node[node, c.COUNT]):
            attach(t, t.node[node, c.CHILDREN + k], t.boxes[node, k].copy(), t.node[node, c.LEVEL])
        free_node(t, node)
    root = t.state[c.ROOT]
    while t.node[root, c.LEVEL] > 0 and t.node[root, c.COUNT] == 1:
        only = t.node[root, c.CHILDREN + 0]
        free_node(t, root)
        t.node[only, c.PARENT] = -1
        t.node[only, c.PLACE] = -1
        t.state[c.ROOT] = only
        root = only
