"""Refuses a loaded CR-tree whose arrays would lead kernels astray: what `check.py` asserts, as far as safety needs it.

Vectorised, a few passes over each array. Of the lists, what is held against the tree is how long they are: searches
copy them into room for as many constraints as there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.errors import CorruptFile
from contrada.spatial.cr_tree import layout as c
from contrada.spatial.geometry import ring_arena
from contrada.spatial.relations.relation import ALL
from contrada.spatial.storage.hashing import GOLDEN, HALF, SECOND
from contrada.spatial.storage.row_numbers import check_ends, check_met_once, check_rows, check_shapes, check_that

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.cr_tree.layout import Ints, Tree

SHAPES: Final = {
    "state": (np.int64, ()),
    "boxes": (np.float64, (c.CAPACITY, 4)),
    "node": (np.int64, (c.NODE_SIZE,)),
    "chunk": (np.int64, (c.CHUNK_SIZE,)),
    "entry": (np.int64, (c.ENTRY_SIZE,)),
    "constraint": (np.int64, (c.CONSTRAINT_SIZE,)),
    "heap": (np.float64, ()),
}
_DEEPEST: Final = 64
_WHAT: Final = "CR-tree"


def guard(t: Tree) -> None:
    """Raise `CorruptFile` unless the arrays are those of a tree."""
    _guard_shapes(t)
    nodes, chunks, entries, slots = (int(t.state[place]) for place in (c.NODES, c.CHUNKS, c.ENTRIES, c.SLOTS))
    node, entry, constraint = t.node[:nodes], t.entry[:entries], t.constraint[:slots]
    _guard_nodes(t, node, entries, chunks)
    _guard_entries(t, node, entry)
    _guard_constraints(t, entry, constraint)
    _guard_lists(t, node, entry, constraint)
    _guard_hashes(t, entry, constraint)
    used = entry[:, c.LEAF] >= 0
    ring_arena.guard_rings(t.heap, t.state[c.HEAP_STATE :], entry[used, c.BLOCK], entry[used, c.EDGES])


def _guard_shapes(t: Tree) -> None:
    arrays = t._asdict()
    check_shapes(_WHAT, arrays, SHAPES)
    if len(t.state) != c.HEAP_STATE + ring_arena.STATE_SIZE:
        raise CorruptFile(f"{_WHAT}: a state of {len(t.state)} numbers")
    rows = ((c.NODES, t.node), (c.NODES, t.boxes), (c.CHUNKS, t.chunk), (c.ENTRIES, t.entry), (c.SLOTS, t.constraint))
    for place, array in rows:
        check_rows(_WHAT, t.state[place : place + 1], len(array) + 1)
    check_rows(_WHAT, t.state[c.ROOT : c.ROOT + 1], int(t.state[c.NODES]))
    check_that(f"{_WHAT}: positions of another shape", t.position.ndim == 3 and t.position.dtype == np.int64)
    check_that(f"{_WHAT}: positions of another shape", t.position.shape[2] == 2 and len(t.position) >= t.state[c.SLOTS])
    size = t.table.shape[1] if t.table.ndim == 2 else 0
    check_that(f"{_WHAT}: hash tables of another shape", t.table.dtype == np.int64 and t.table.shape[0] == 2)
    check_that(f"{_WHAT}: hash tables that are no power of two", size >= 1 and size & (size - 1) == 0)


def _guard_nodes(t: Tree, node: Ints, entries: int, chunks: int) -> None:
    """Children are one level below, know where they hang, and so no node is below itself."""
    level, count, parent = node[:, c.LEVEL], node[:, c.COUNT], node[:, c.PARENT]
    root = int(t.state[c.ROOT])
    live = level >= 0
    check_rows(_WHAT, level, _DEEPEST, -1)
    check_that(f"{_WHAT}: no root", bool(live[root]) and parent[root] == -1)
    check_that(f"{_WHAT}: more levels than positions", t.position.shape[1] > level[root])
    check_rows(_WHAT, count[live], c.CAPACITY + 1)
    check_rows(_WHAT, parent, len(node), -1)
    below = np.flatnonzero(live)
    below = below[below != root]
    check_rows(_WHAT, node[below, c.PLACE], c.CAPACITY)
    check_that(f"{_WHAT}: a node that hangs nowhere", parent[below] >= 0)
    check_that(f"{_WHAT}: a node that hangs nowhere", live[parent[below]])
    check_that(f"{_WHAT}: a node that hangs nowhere", node[below, c.PLACE] < count[parent[below]])
    found = node[parent[below], c.CHILDREN + node[below, c.PLACE]]
    check_that(f"{_WHAT}: a node that hangs nowhere", found == below)
    inner = np.flatnonzero(level > 0)
    owner, place = np.nonzero(np.arange(c.CAPACITY) < count[inner, None])
    children = node[inner[owner], c.CHILDREN + place]
    check_rows(f"{_WHAT}: children", children, len(node))
    fits = (level[children] == level[inner[owner]] - 1) & (parent[children] == inner[owner])
    check_that(f"{_WHAT}: a child that is not one level below", fits & (node[children, c.PLACE] == place))
    for column in (c.HEAD, c.TAIL, c.HEAD + c.LIST, c.TAIL + c.LIST):
        check_rows(f"{_WHAT}: chunks", node[live, column], chunks, -1)
    leaves = np.flatnonzero(level == 0)
    owner, place = np.nonzero(np.arange(c.CAPACITY) < count[leaves, None])
    found = node[leaves[owner], c.CHILDREN + place]
    check_rows(f"{_WHAT}: entries", found, entries)
    entry = t.entry[:entries]
    fits = (entry[found, c.LEAF] == leaves[owner]) & (entry[found, c.PLACE_IN_LEAF] == place)
    check_that(f"{_WHAT}: an entry that is not where it says", fits)
    _guard_free(int(t.state[c.FREE_NODE]), parent, ~live)


def _guard_free(first: int, links: Ints, free: NDArray[np.bool_]) -> None:
    """A list of free rows leads to free rows only, and ends."""
    check_rows(f"{_WHAT}: free rows", np.array([first]), len(links), -1)
    rows = np.flatnonzero(free)
    check_rows(f"{_WHAT}: free rows", links[rows], len(links), -1)
    behind = links[rows]
    check_that(f"{_WHAT}: a free row that is in use", free[behind[behind >= 0]])
    check_that(f"{_WHAT}: a free row that is in use", first < 0 or free[first])
    numbers = np.full(len(links) + 1, -1, np.int64)
    numbers[rows] = np.arange(len(rows))
    check_ends(f"{_WHAT}: free rows", numbers[behind])


def _guard_entries(t: Tree, node: Ints, entry: Ints) -> None:
    leaf, place = entry[:, c.LEAF], entry[:, c.PLACE_IN_LEAF]
    used = np.flatnonzero(leaf >= 0)
    check_rows(f"{_WHAT}: leaves", leaf, len(node), -1)
    check_rows(f"{_WHAT}: places", place[used], c.CAPACITY)
    check_that(f"{_WHAT}: an entry in no leaf", node[leaf[used], c.LEVEL] == 0)
    check_that(f"{_WHAT}: an entry in no leaf", place[used] < node[leaf[used], c.COUNT])
    check_that(f"{_WHAT}: an entry in no leaf", node[leaf[used], c.CHILDREN + place[used]] == used)
    check_rows(f"{_WHAT}: constraints", entry[used, c.FIRST], int(t.state[c.SLOTS]))
    first = t.constraint[entry[used, c.FIRST]]
    check_that(f"{_WHAT}: constraints of another region", (first[:, c.ENTRY] == used) & (first[:, c.PREVIOUS] == -1))
    check_that(f"{_WHAT}: regions that do not add up", len(used) == t.state[c.REGIONS])


def _guard_constraints(t: Tree, entry: Ints, constraint: Ints) -> None:
    """Those of one region are one list, whose members know one another."""
    owner = constraint[:, c.ENTRY]
    check_rows(f"{_WHAT}: regions", owner, len(entry), -1)
    used = np.flatnonzero(owner >= 0)
    mine = constraint[used]
    check_that(f"{_WHAT}: constraints that do not add up", len(used) == t.state[c.CONSTRAINTS])
    check_that(f"{_WHAT}: a constraint on no region", entry[owner[used], c.LEAF] >= 0)
    check_rows(f"{_WHAT}: relations", mine[:, c.MASK], ALL + 1, 1)
    for there, back in ((c.NEXT, c.PREVIOUS), (c.PREVIOUS, c.NEXT)):
        check_rows(f"{_WHAT}: constraints of a region", mine[:, there], len(constraint), -1)
        linked = mine[:, there] >= 0
        other = constraint[mine[linked, there]]
        fits = (other[:, back] == used[linked]) & (other[:, c.ENTRY] == owner[used[linked]])
        check_that(f"{_WHAT}: constraints of a region that are not one list", fits)
    heads = used[mine[:, c.PREVIOUS] < 0]
    check_that(f"{_WHAT}: constraints of a region that are two lists", entry[owner[heads], c.FIRST] == heads)
    numbers = np.full(len(constraint) + 1, -1, np.int64)
    numbers[used] = mine[:, c.NEXT]
    check_ends(f"{_WHAT}: constraints of a region", numbers[:-1])


def _guard_lists(t: Tree, node: Ints, entry: Ints, constraint: Ints) -> None:
    """Lists are as long as what is below has members, and their chunks are theirs alone."""
    chunk = t.chunk[: int(t.state[c.CHUNKS])]
    slots = len(constraint)
    used = np.flatnonzero(constraint[:, c.ENTRY] >= 0)
    leaf = entry[constraint[used, c.ENTRY], c.LEAF]
    live = node[:, c.LEVEL] >= 0
    heads = [t.state[c.FREE_CHUNK : c.FREE_CHUNK + 1]]
    for which in range(2):
        head, tail, size = (node[:, column + c.LIST * which] for column in (c.HEAD, c.TAIL, c.SIZE))
        leaves = leaf[constraint[used, c.MASK] & c.LIST_BITS[which] != 0]
        wanted = np.bincount(leaves, minlength=len(node))
        for level in range(int(node[:, c.LEVEL].max(initial=0))):
            rows = np.flatnonzero((node[:, c.LEVEL] == level) & (node[:, c.PARENT] >= 0))
            above = np.bincount(node[rows, c.PARENT], weights=wanted[rows], minlength=len(node))
            wanted = wanted + above.astype(np.int64)
        check_that(f"{_WHAT}: a list of another length than what is below", size[live] == wanted[live])
        check_that(f"{_WHAT}: a list without chunks", ((head[live] >= 0) == (size[live] > 0)))
        check_that(f"{_WHAT}: a list without chunks", ((tail[live] >= 0) == (size[live] > 0)))
        heads.append(head[live])
    for column in (c.AFTER, c.BEFORE):
        check_rows(f"{_WHAT}: chunks", chunk[:, column], len(chunk), -1)
    check_rows(f"{_WHAT}: chunks", heads[0], len(chunk), -1)
    check_met_once(f"{_WHAT}: chunks", np.concatenate([chunk[:, c.AFTER], *heads]), len(chunk))
    check_ends(f"{_WHAT}: chunks", chunk[:, c.AFTER])
    check_rows(f"{_WHAT}: constraints in a list", chunk[:, c.SLOTS_AT :], max(slots, 1))
    check_rows(f"{_WHAT}: positions", t.position[:slots], max(c.CHUNK * len(chunk), 1))


def _guard_hashes(t: Tree, entry: Ints, constraint: Ints) -> None:
    """Each entry and each constraint is in the chain of its hash, or free."""
    mask = t.table.shape[1] - 1
    mixed = constraint[:, c.ID].astype(np.uint64) * GOLDEN
    ids = ((mixed ^ (mixed >> HALF)) * SECOND >> HALF).astype(np.int64)  # as `spread` of each
    chains = (
        (c.BY_RING, entry[:, c.HASH], entry[:, c.ENTRY_CHAIN], entry[:, c.LEAF] >= 0, c.FREE_ENTRY),
        (
            c.BY_ID,
            ids,
            constraint[:, c.CHAIN],
            constraint[:, c.ENTRY] >= 0,
            c.FREE_SLOT,
        ),
    )
    for which, hashes, links, used, free in chains:
        heads = t.table[which]
        check_rows(f"{_WHAT}: hash table", heads, len(links), -1)
        check_rows(f"{_WHAT}: hash chains", links, len(links), -1)
        buckets = hashes & mask
        rows = np.flatnonzero(used & (links >= 0))
        behind = links[rows]
        check_that(f"{_WHAT}: a hash chain of two hashes", used[behind] & (buckets[behind] == buckets[rows]))
        filled = np.flatnonzero(heads >= 0)
        fits = used[heads[filled]] & (buckets[heads[filled]] == filled)
        check_that(f"{_WHAT}: a hash chain of two hashes", fits)
        check_ends(f"{_WHAT}: hash chains", links)
        met = np.bincount(np.concatenate((behind, heads[filled])), minlength=len(links))
        check_that(f"{_WHAT}: a row that its hash does not lead to", met[: len(links)][used] == 1)
        _guard_free(int(t.state[free]), links, ~used)
