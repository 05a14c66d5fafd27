"""Refuses loaded textual indexes whose arrays would lead kernels astray: one function for each structure they share.

What each array holds is told beside its NamedTuple; here is which of them are rows of what, and what searches rely on
besides: that trees descend, that hash tables have an empty cell, that answers fit into the room made for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.errors import CorruptFile
from contrada.spatial.storage.row_numbers import (
    check_ends,
    check_lengths,
    check_met_once,
    check_offsets,
    check_probing,
    check_rows,
    check_runs,
    check_shapes,
    check_that,
    spread,
)
from contrada.spatial.textual.postings import DIRECTORY as OF_NODE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.baselines.iq_tree import Cells
    from contrada.spatial.textual.lfilter.mbr_trie import Trie
    from contrada.spatial.textual.lfilter.pt_quadtree_build import Quadtree
    from contrada.spatial.textual.postings import Postings
    from contrada.spatial.textual.rt.rtree import RTree
    from contrada.spatial.textual.rt.token_order import TokenOrder
    from contrada.spatial.textual.store import Rows

_I, _L, _D, _F, _B = np.int32, np.int64, np.float64, np.float32, np.int8
STORE: Final = {"ids": (_I, ()), "boxes": (_D, (4,)), "start": (_L, ()), "length": (_I, ()), "keywords": (_I, ())}
LISTS: Final = {"table": (_L, (3,)), "pool": (_I, ()), "head": (_L, ())}
TREE: Final = {
    "box": (_D, (4,)),
    "child": (_I, (50,)),
    "filled": (_I, ()),
    "parent": (_I, ()),
    "level": (_I, ()),
    "home": (_I, ()),
    "head": (_L, ()),
}
ORDER: Final = {"shape": (_L, ()), "df": (_I, ()), "universe": (_D, ()), "keys": (_L, ()), "counts": (_I, ())}
TRIE: Final = {
    "labels": (_I, ()),
    "child": (_I, ()),
    "first": (_I, ()),
    "last": (_I, ()),
    "own": (_I, ()),
    "mbrs": (_F, (4,)),
    "levels": (_L, ()),
}
QUADTREE: Final = {
    "child": (_I, ()),
    "middles": (_D, (2,)),
    "groups": (_I, ()),
    "pivots": (_I, ()),
    "starts": (_I, ()),
    "entries": (_I, ()),
    "cover_at": (_I, ()),
    "cover": (_I, ()),
    "other_at": (_I, ()),
    "other": (_I, ()),
}
CELLS: Final = {"universe": (_D, ()), "weight": (_D, ()), "depth": (_B, ()), "occupied": (_I, ())}
_DEEPEST: Final = 32  # levels of a quadtree: what its walk has room for
_LENGTH: Final = 0xFFFFFFFF


def guard_store(rows: Rows, table: NDArray[np.int32], words: int) -> None:
    """Subscriptions and the map of their ids, over `words` words."""
    what = "subscriptions"
    check_shapes(what, {**rows._asdict(), "map": table}, {**STORE, "map": (_I, ())})
    used = rows.ids.size
    check_lengths(what, used, rows.boxes, rows.start, rows.length)
    check_rows(what, rows.ids, 1 << 31, -1)
    live = rows.ids >= 0
    check_runs(f"{what}: keywords", rows.start, rows.length, rows.keywords.size)
    check_that(f"{what}: one without keywords", rows.length[live] >= 1)
    check_rows(f"{what}: words", rows.keywords, words)
    boxes = rows.boxes[live]
    check_that(f"{what}: what is no box", np.isfinite(boxes) & (boxes <= boxes[:, [2, 3, 2, 3]]))
    check_probing(f"{what}: ids", table)
    check_rows(f"{what}: ids", table, used, -1)
    met = np.bincount(table[table >= 0], minlength=used)
    check_that(f"{what}: the map of ids is not of these", met == live)


def guard_postings(lists: Postings, what: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Inverted lists; the key of every list, and the place in the pool and the list of each value."""
    check_shapes(what, lists._asdict(), LISTS)
    table, pool, head = lists
    check_lengths(what, 3, head)
    check_probing(what, np.ascontiguousarray(table[:, 0]))
    rows = table[table[:, 0] >= 0]
    check_that(f"{what}: keys below -1", table[:, 0] >= -1)
    check_rows(f"{what}: room", head[1:2], pool.size + 1)
    check_that(f"{what}: lists that do not add up", head[0] == len(rows))
    length, room = rows[:, 2] & _LENGTH, rows[:, 2] >> 32
    check_that(f"{what}: a list larger than its room", length <= room)
    check_runs(f"{what}: lists", rows[:, 1], room, int(head[1]))
    check_that(f"{what}: an empty list", length > 0)
    return rows, np.stack(spread(rows[:, 1], length))


def guard_slot_lists(lists: Postings, what: str, nodes: int, slots: int) -> None:
    """Lists of slots, under nodes below `nodes`; those of (node, DIRECTORY) hold tokens."""
    rows, (places, owner) = guard_postings(lists, what)
    check_rows(f"{what}: nodes", rows[:, 0] >> 32, nodes)
    values = lists.pool[places]
    mine = (rows[:, 0] & _LENGTH)[owner] != OF_NODE
    check_rows(f"{what}: slots", values[mine], slots)
    check_that(f"{what}: tokens", values[~mine] >= 0)


def guard_tree_lists(lists: Postings, tree: RTree, what: str, *, doubled: bool) -> None:
    """Lists of an R-tree's nodes: of children that have a token, or with `doubled` of slots, twice and a mark."""
    rows, (places, owner) = guard_postings(lists, what)
    node = rows[:, 0] >> 32
    check_rows(f"{what}: nodes", node, len(tree.level))
    mine = (rows[:, 0] & _LENGTH)[owner] != OF_NODE
    values = lists.pool[places]
    check_that(f"{what}: tokens", values[~mine] >= 0)
    values, node = values[mine], node[owner[mine]]
    leaf = tree.level[node] == 0
    slots = values >> 1 if doubled else values
    inner = slots[~leaf]
    check_rows(f"{what}: slots", slots[leaf], tree.home.size)
    check_that(f"{what}: a slot of another leaf", tree.home[slots[leaf]] == node[leaf])
    check_rows(f"{what}: children", inner, tree.home.size if doubled else len(tree.parent))
    if not doubled:
        check_that(f"{what}: a child of another node", tree.parent[inner] == node[~leaf])


def guard_rtree(tree: RTree, live: NDArray[np.bool_]) -> None:
    """An R-tree over the slots that are live."""
    slots = live.size
    what = "R-tree"
    check_shapes(what, tree._asdict(), TREE)
    nodes = len(tree.box)
    check_lengths(what, nodes, tree.child, tree.filled, tree.parent, tree.level)
    check_lengths(what, 4, tree.head)
    root, used, free, entries = tree.head.tolist()
    check_that(f"{what}: no root", 0 <= root < used <= nodes and -1 <= free < used and tree.parent[root] == -1)
    check_that(f"{what}: slots without a leaf", tree.home.size >= slots)
    check_rows(f"{what}: children", tree.filled, tree.child.shape[1] + 1)
    check_rows(f"{what}: levels", tree.level, 64)
    check_rows(f"{what}: parents", tree.parent, nodes, -1)
    check_ends(f"{what}: parents", tree.parent.astype(np.int64))
    check_rows(f"{what}: leaves", tree.home, nodes, -1)
    check_that(f"{what}: leaves", tree.level[tree.home[tree.home >= 0]] == 0)
    owner, place = np.nonzero(np.arange(tree.child.shape[1]) < tree.filled[:, None])
    child, inner = tree.child[owner, place], tree.level[owner] > 0
    check_rows(f"{what}: children", child[inner], nodes)
    fits = (tree.level[child[inner]] == tree.level[owner[inner]] - 1) & (tree.parent[child[inner]] == owner[inner])
    check_that(f"{what}: a child that is not one level below", fits)
    check_rows(f"{what}: slots", child[~inner], slots)
    check_that(f"{what}: a slot of another leaf", tree.home[child[~inner]] == owner[~inner])
    indexed = np.bincount(child[~inner], minlength=slots)
    check_that(f"{what}: slots that are not in one leaf each", (indexed == live) & ((tree.home[:slots] >= 0) == live))
    check_that(f"{what}: entries that do not add up", entries == np.count_nonzero(live))
    # Every node hangs in one place, or is free, and free ones lead to free ones.
    taken = np.arange(nodes) < used
    idle = taken & (tree.filled == 0)
    idle[root] = False
    taken[root] = False
    check_that(
        f"{what}: a node that does not hang in one place", np.bincount(child[inner], minlength=nodes) == (taken & ~idle)
    )
    behind = np.append(tree.parent[idle], free)
    check_that(f"{what}: a free node that is in use", idle[behind[behind >= 0]])


def guard_order(order: TokenOrder) -> None:
    """A token order's statistics."""
    what = "token order"
    check_shapes(what, order._asdict(), ORDER)
    check_lengths(what, 2, order.shape)
    check_lengths(what, 4, order.universe)
    check_lengths(what, order.keys.size, order.counts)
    check_that(what, 0 <= order.shape[0] < 4 and 1 <= order.shape[1] <= 10_000)


def guard_cells(cells: Cells, deepest: int) -> None:
    """The cells of an IQ-tree."""
    what = "cells"
    check_shapes(what, cells._asdict(), CELLS)
    check_lengths(what, 4, cells.universe)
    check_lengths(what, 1, cells.weight)
    check_that(f"{what}: no universe", np.isfinite(cells.universe).all() and (cells.universe[2:] > 0).all())
    check_that(f"{what}: no depth", cells.depth.size >= 1)
    check_rows(f"{what}: depth", cells.depth, deepest + 1)
    check_lengths(what, ((1 << (2 * deepest + 2)) - 1) // 3, cells.occupied)


def guard_trie(trie: Trie, size: int) -> None:
    """A trie over `size` subscriptions: children come behind their node, their runs behind what it owns itself."""
    what = "mbr-trie"
    check_shapes(what, trie._asdict(), TRIE)
    nodes = trie.labels.size
    check_lengths(what, nodes, trie.first, trie.last, trie.own, trie.mbrs)
    check_lengths(what, nodes + 1, trie.child)
    check_that(f"{what}: no root", nodes >= 1 and trie.child[0] == 1 and trie.child[-1] == nodes)
    check_that(f"{what}: a child before its node", trie.child[:-1] > np.arange(nodes))
    check_that(f"{what}: children that do not ascend", trie.child[1:] >= trie.child[:-1])
    counts = np.diff(trie.child)
    parent = np.repeat(np.arange(nodes), counts)  # of the nodes from 1 on
    check_that(f"{what}: the root's run", trie.first[0] == 0 and trie.last[0] == size)
    check_that(f"{what}: runs", (trie.first <= trie.own) & (trie.own <= trie.last))
    eldest = np.zeros(nodes, np.bool_)
    eldest[trie.child[:-1][counts > 0]] = True
    begins = np.where(eldest[1:], trie.own[parent], trie.last[:-1])
    check_that(f"{what}: a run that is not behind the one before", trie.first[1:] == begins)
    ends = np.where(counts > 0, trie.last[np.maximum(trie.child[1:] - 1, 0)], trie.own)
    check_that(f"{what}: runs that do not add up", ends == trie.last)
    check_that(f"{what}: labels that do not ascend", (trie.labels[1:] > trie.labels[:-1]) | eldest[1:])


def guard_quadtree(tree: Quadtree, size: int, words: int) -> None:
    """A quadtree over `size` subscriptions and `words` words."""
    what = "pt-quadtree"
    check_shapes(what, tree._asdict(), QUADTREE)
    nodes = tree.child.size
    check_lengths(what, nodes, tree.middles)
    for offsets, values in ((tree.groups, tree.pivots), (tree.cover_at, tree.cover), (tree.other_at, tree.other)):
        check_lengths(what, nodes + 1, offsets)
        check_offsets(what, offsets, values.size)
    check_lengths(what, tree.pivots.size + 1, tree.starts)
    check_offsets(what, tree.starts, tree.entries.size)
    check_rows(f"{what}: words", tree.pivots, words)
    check_rows(f"{what}: entries", tree.entries, size)
    check_met_once(f"{what}: entries", tree.entries, size)
    _guard_ascending(f"{what}: pivots that do not ascend", tree.pivots, tree.groups)
    _guard_ascending(f"{what}: entries that do not ascend", tree.entries, tree.starts)
    if not nodes:
        raise CorruptFile(f"{what}: no root")
    level = np.zeros(1, np.int64)
    for _ in range(_DEEPEST):
        first = tree.child[level[tree.child[level] != 0]].astype(np.int64)
        if not first.size:
            return
        check_rows(f"{what}: children", first, nodes - 3, 1)
        check_met_once(f"{what}: children", first, nodes)
        level = (first[:, None] + np.arange(4)).reshape(-1)
    raise CorruptFile(f"{what}: deeper than {_DEEPEST} levels")


def _guard_ascending(what: str, values: NDArray[np.int32], offsets: NDArray[np.int32]) -> None:
    """Values ascend within their runs."""
    if values.size:
        begins = np.zeros(values.size + 1, np.bool_)
        begins[offsets] = True
        check_that(what, (values[1:] > values[:-1]) | begins[1:-1])
