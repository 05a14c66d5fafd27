"""The R-tree under `rt`, `rt+`, `rt++`, `ir-tree` and `spatial-first`: bulk loaded, and dynamic afterwards.

    box     float64 (m, 4)   MBR of what is below the node
    child   int32   (m, B)   child nodes, or slots in a leaf; the first `filled` are in use
    filled  int32   (m,)     0 in a free node, and in the root of an empty tree
    parent  int32   (m,)     -1 at the root
    level   int32   (m,)     0 in a leaf; all leaves are equally deep
    home    int32   (c,)     the leaf of each slot, -1 for slots that are not indexed
    head    int64   (4,)     root, nodes ever used, first node of the free list (linked through `parent`), entries

Bulk loading is sort-tile-recursive at each level, leaves four fifths full and inner nodes all equally, so that the
root is never left with two or three children: what hangs on them prunes by place from the first level on. Insertion
descends by least growth of the half-perimeter (the area of points and segments is zero and that of huge boxes
overflows) and cuts a full node in half along the axis on which its entries' centres are spread most. Removal tightens
the boxes above and frees empty nodes; a thinned tree is not condensed entry by entry as Guttman's is but loaded anew
by its owner once three quarters of it are gone, which keeps heights and memory in proportion and leaves the tree's
shape alone in between.

B is 50 ([RT-TREE], section 6). A walk keeps its stack in scratch of its own, so searches may run side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.store import grow

if TYPE_CHECKING:
    from numpy.typing import NDArray

FANOUT = 50
_LOAD = 40
_ROOT, _USED, _FREE, _ENTRIES = 0, 1, 2, 3


class RTree(NamedTuple):
    """The tree's arrays, as kernels take them."""

    box: NDArray[np.float64]
    child: NDArray[np.int32]
    filled: NDArray[np.int32]
    parent: NDArray[np.int32]
    level: NDArray[np.int32]
    home: NDArray[np.int32]
    head: NDArray[np.int64]


def _inner_load(leaves: int) -> int:
    """Return the number of children per inner node that makes all levels above so many leaves alike."""
    height = 1
    while leaves ** (1 / height) > _LOAD:
        height += 1
    return max(2, int(np.ceil(leaves ** (1 / height))))


def _tiles(boxes: NDArray[np.float64], load: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the order of entries by sort-tile-recursive and where each node's run of them begins and ends."""
    n = len(boxes)
    nodes = -(-n // load)
    cx = boxes[:, 0] / 2 + boxes[:, 2] / 2
    cy = boxes[:, 1] / 2 + boxes[:, 3] / 2
    slices = int(np.ceil(np.sqrt(nodes)))
    strip = np.empty(n, np.int32)
    strip[np.argsort(cx, kind="stable")] = np.arange(n) * slices // n
    order = np.lexsort((cy, strip))
    return order, np.arange(nodes + 1) * n // nodes


def load_rtree(boxes: NDArray[np.float64], slots: NDArray[np.int32]) -> RTree:
    """Bulk load the given slots of `boxes`; `home` has room for all of `boxes`."""
    levels: list[tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]] = []
    entries, entry_boxes = slots, boxes[slots]
    first, load = 0, _LOAD
    while True:
        if len(entries):
            order, cuts = _tiles(entry_boxes, load)
            sorted_boxes = entry_boxes[order]
            lower = np.minimum.reduceat(sorted_boxes[:, :2], cuts[:-1])
            upper = np.maximum.reduceat(sorted_boxes[:, 2:], cuts[:-1])
            levels.append((entries[order], cuts, np.hstack([lower, upper])))
        else:
            levels.append((entries, np.array([0, 0]), np.zeros((1, 4))))
        nodes = len(levels[-1][1]) - 1
        if nodes == 1:
            break
        load = _inner_load(nodes) if first == 0 else load
        entries = np.arange(first, first + nodes, dtype=np.int32)
        entry_boxes = levels[-1][2]
        first += nodes
    m = sum(len(cuts) - 1 for _, cuts, _ in levels)
    tree = _blank(m, len(boxes))
    tree.head[:] = m - 1, m, -1, len(slots)
    first = 0
    for level, (entries, cuts, node_boxes) in enumerate(levels):
        nodes = len(cuts) - 1
        here = slice(first, first + nodes)
        tree.box[here], tree.level[here], tree.filled[here] = node_boxes, level, np.diff(cuts)
        node = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(cuts))
        tree.child[first + node, np.arange(len(entries)) - cuts[node]] = entries
        (tree.parent if level else tree.home)[entries] = first + node
        first += nodes
    return tree


def _blank(nodes: int, slots: int) -> RTree:
    return RTree(
        np.zeros((nodes, 4)),
        np.full((nodes, FANOUT), -1, np.int32),
        np.zeros(nodes, np.int32),
        np.full(nodes, -1, np.int32),
        np.zeros(nodes, np.int32),
        np.full(slots, -1, np.int32),
        np.array([0, 0, -1, 0]),
    )


def with_room(tree: RTree, slot: int) -> RTree:
    """Return the tree with room for `slot` and for the nodes that inserting it may add: one per level and a root."""
    needed = int(tree.head[_USED] + tree.level[tree.head[_ROOT]]) + 2
    box, child, filled, parent, level, home, head = tree
    if needed > filled.size:
        box, child, filled = grow(box, needed), grow(child, needed, -1), grow(filled, needed)
        parent, level = grow(parent, needed, -1), grow(level, needed)
    return RTree(box, child, filled, parent, level, grow(home, slot + 1, -1), head)


@kernel
def depth_of(tree: RTree, node: int) -> int:
    """Return how far below the root a node is: 0 for the root itself."""
    return int(tree.level[tree.head[0]] - tree.level[node])


@kernel
def _growth(tree: RTree, node: int, x1: float, y1: float, x2: float, y2: float) -> float:
    b = tree.box[node]
    wider = max(b[2], x2) - min(b[0], x1) - (b[2] - b[0])
    return float(wider + (max(b[3], y2) - min(b[1], y1) - (b[3] - b[1])))


@kernel
def _tighten(tree: RTree, boxes: NDArray[np.float64], node: int) -> None:
    """Set the node's box to the MBR of its entries, of which there is at least one."""
    source = boxes if tree.level[node] == 0 else tree.box
    b = tree.box[node]
    b[:] = source[tree.child[node, 0]]
    for i in range(1, tree.filled[node]):
        c = source[tree.child[node, i]]
        b[0] = min(b[0], c[0])
        b[1] = min(b[1], c[1])
        b[2] = max(b[2], c[2])
        b[3] = max(b[3], c[3])


@kernel
def _new_node(tree: RTree, level: int) -> int:
    node = tree.head[2]
    if node >= 0:
        tree.head[2] = tree.parent[node]
    else:
        node = tree.head[1]
        tree.head[1] += 1
    tree.level[node] = level
    tree.filled[node] = 0
    tree.parent[node] = -1
    return int(node)


@kernel
def _adopt(tree: RTree, node: int, entry: int) -> None:
    """Give a node that is not full one more entry."""
    tree.child[node, tree.filled[node]] = entry
    tree.filled[node] += 1
    if tree.level[node] == 0:
        tree.home[entry] = node
    else:
        tree.parent[entry] = node


@kernel
def _split(tree: RTree, boxes: NDArray[np.float64], node: int, entry: int) -> int:
    """Deal the entries of a full node and one more to it and a new sibling, which is returned."""
    leaf = tree.level[node] == 0
    source = boxes if leaf else tree.box
    entries = np.append(tree.child[node], np.int32(entry))
    centres = np.empty((2, entries.size))
    for i in range(entries.size):
        centres[0, i] = source[entries[i], 0] / 2 + source[entries[i], 2] / 2
        centres[1, i] = source[entries[i], 1] / 2 + source[entries[i], 3] / 2
    axis = 0 if centres[0].max() - centres[0].min() >= centres[1].max() - centres[1].min() else 1
    order = np.argsort(centres[axis])
    sibling = _new_node(tree, tree.level[node])
    tree.filled[node] = 0
    for i in range(entries.size):
        _adopt(tree, node if 2 * i < entries.size else sibling, entries[order[i]])
    _tighten(tree, boxes, node)
    _tighten(tree, boxes, sibling)
    return sibling


@kernel
def insert_entry(tree: RTree, boxes: NDArray[np.float64], slot: int) -> NDArray[np.int32]:
    """Index a slot; `with_room` was called. Returns rows (node, new sibling), leaf first, one per split."""
    x1, y1, x2, y2 = boxes[slot]
    splits = np.empty((tree.level[tree.head[0]] + 1, 2), np.int32)
    tree.head[3] += 1
    node = tree.head[0]
    if tree.filled[node] == 0:
        tree.box[node] = boxes[slot]
    while True:
        b = tree.box[node]
        b[0], b[1], b[2], b[3] = min(b[0], x1), min(b[1], y1), max(b[2], x2), max(b[3], y2)
        if tree.level[node] == 0:
            break
        best = tree.child[node, 0]
        least = _growth(tree, best, x1, y1, x2, y2)
        for i in range(1, tree.filled[node]):
            growth = _growth(tree, tree.child[node, i], x1, y1, x2, y2)
            if growth < least:
                best, least = tree.child[node, i], growth
        node = best
    made = 0
    entry = slot
    while entry >= 0:
        if tree.filled[node] < tree.child.shape[1]:
            _adopt(tree, node, entry)
            break
        sibling = _split(tree, boxes, node, entry)
        splits[made] = node, sibling
        made += 1
        if node == tree.head[0]:
            root = _new_node(tree, tree.level[node] + 1)
            _adopt(tree, root, node)
            _adopt(tree, root, sibling)
            _tighten(tree, boxes, root)
            tree.head[0] = root
            break
        entry, node = sibling, tree.parent[node]
    return splits[:made]


@kernel
def remove_entry(tree: RTree, boxes: NDArray[np.float64], slot: int) -> None:
    """Unindex a slot: free the nodes that this empties, tighten the others above it."""
    node = tree.home[slot]
    tree.home[slot] = -1
    tree.head[3] -= 1
    entry = slot
    while node >= 0:
        above = tree.parent[node]
        if entry >= 0:
            i = 0
            while tree.child[node, i] != entry:
                i += 1
            tree.filled[node] -= 1
            tree.child[node, i] = tree.child[node, tree.filled[node]]
        entry = -1
        if tree.filled[node] > 0:
            _tighten(tree, boxes, node)
        elif above >= 0:
            entry = node
            tree.parent[node] = tree.head[2]
            tree.head[2] = node
        else:
            tree.level[node] = 0
        node = above


@kernel
def slots_below(tree: RTree, node: int) -> NDArray[np.int32]:
    """Return all slots in the leaves below a node."""
    found = np.empty(64, np.int32)
    made = 0
    stack = [int(node)]
    while len(stack) > 0:
        n = stack.pop()
        for i in range(tree.filled[n]):
            if tree.level[n] > 0:
                stack.append(int(tree.child[n, i]))
            else:
                if made == found.size:
                    found = np.append(found, np.empty(made, np.int32))
                found[made] = tree.child[n, i]
                made += 1
    return found[:made]


def check_rtree(tree: RTree, boxes: NDArray[np.float64], slots: NDArray[np.int32]) -> list[int]:
    """Assert every invariant; returns the nodes, root first."""
    root, used, free, entries = tree.head.tolist()
    seen: list[int] = []
    indexed: list[int] = []
    stack = [root]
    while stack:
        node = stack.pop()
        seen.append(node)
        count, level = int(tree.filled[node]), int(tree.level[node])
        children = tree.child[node, :count]
        assert 0 < count <= FANOUT or (node == root and level == 0)
        source = tree.box if level else boxes
        if count:
            assert np.array_equal(tree.box[node, :2], source[children, :2].min(axis=0)), "box is not the MBR"
            assert np.array_equal(tree.box[node, 2:], source[children, 2:].max(axis=0)), "box is not the MBR"
        if level:
            assert (tree.parent[children] == node).all()
            assert (tree.level[children] == level - 1).all(), "leaves are not equally deep"
            stack.extend(children.tolist())
        else:
            assert (tree.home[children] == node).all()
            indexed.extend(children.tolist())
    freed = []
    while free >= 0:
        freed.append(free)
        free = int(tree.parent[free])
    assert sorted(seen + freed) == list(range(used))
    assert sorted(indexed) == slots.tolist()
    assert entries == len(indexed)
    assert tree.parent[root] == -1
    assert (np.delete(tree.home, indexed) == -1).all()
    return seen
