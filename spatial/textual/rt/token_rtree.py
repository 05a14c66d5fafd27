"""An R-tree whose every node has inverted lists: which of its entries have a token below them.

    (leaf, t)      slots in the leaf that t represents
    (internal, t)  child nodes with a list for t

The keys of a node's lists are its token set, the union of those of its children. `ir-tree` walks along the lists;
`rt` and `rt+` only ask whether a node has one. A slot is represented by all its keywords, or, when `representative`
is not empty, by `representative[slot]` alone.

After a split the lists of the two halves are made anew from the level below, and the parent's are corrected; a node
of level h splits once in about 25**h insertions and has about 40**h subscriptions, so this is a small constant
amortised. When the root splits everything is hung up anew, with fresh statistics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.storage.row_numbers import check_shapes, check_that
from contrada.spatial.textual.baselines.spatial_first import RTreeIndex
from contrada.spatial.textual.guard import guard_tree_lists
from contrada.spatial.textual.postings import (
    Postings,
    bulk_postings,
    check_postings,
    contents,
    drop_list,
    find_list,
    hang,
    posted,
    unhang,
)
from contrada.spatial.textual.rt.rtree import RTree, check_rtree, slots_below

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Rows


@kernel
def representing(rows: Rows, representative: NDArray[np.int32], slot: int) -> NDArray[np.int32]:
    """Return the tokens that stand for a slot."""
    if representative.size:
        return representative[slot : slot + 1]
    return rows.keywords[rows.start[slot] : rows.start[slot] + rows.length[slot]]


@kernel
def _leaf_postings(
    tree: RTree, rows: Rows, representative: NDArray[np.int32], slots: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the (leaf, token) keys and slots of all the leaves' lists."""
    total = 0
    for slot in slots:
        total += representing(rows, representative, slot).size
    keys = np.empty(total, np.int64)
    values = np.empty(total, np.int32)
    written = 0
    for slot in slots:
        for token in representing(rows, representative, slot):
            keys[written] = (np.int64(tree.home[slot]) << 32) | np.int64(token)
            values[written] = slot
            written += 1
    return keys, values


@kernel
def _hang_up(lists: Postings, tree: RTree, rows: Rows, representative: NDArray[np.int32], slot: int) -> Postings:
    for token in representing(rows, representative, slot):
        value, node = slot, int(tree.home[slot])
        while node >= 0:
            known = find_list(lists.table, node, token) >= 0
            lists = hang(lists, node, token, value)
            if known:
                break
            value, node = node, int(tree.parent[node])
    return lists


@kernel
def _take_down(lists: Postings, tree: RTree, rows: Rows, representative: NDArray[np.int32], slot: int) -> None:
    for token in representing(rows, representative, slot):
        value, node = slot, tree.home[slot]
        while node >= 0:
            unhang(lists, node, token, value)
            if find_list(lists.table, node, token) >= 0:
                break
            value, node = node, tree.parent[node]


@kernel
def _deal_again(
    lists: Postings, tree: RTree, rows: Rows, representative: NDArray[np.int32], splits: NDArray[np.int32], new: int
) -> Postings:
    """Follow the splits that inserting the slot `new` caused, lowest first; `new` itself is hung up afterwards."""
    for i in range(splits.shape[0]):
        halves = splits[i]
        for half in halves:
            for slot in slots_below(tree, half):
                if slot != new:
                    for token in representing(rows, representative, slot):
                        drop_list(lists, halves[0], token)
        for half in halves:
            for j in range(tree.filled[half]):
                entry = tree.child[half, j]
                below = slots_below(tree, entry) if tree.level[half] > 0 else tree.child[half, j : j + 1]
                for slot in below:
                    if slot == new:
                        continue
                    for token in representing(rows, representative, slot):
                        if not posted(lists, half, token, entry):
                            lists = hang(lists, half, token, entry)
        if i + 1 < splits.shape[0]:
            continue  # the parent is dealt again in the next round
        above = tree.parent[halves[0]]
        for slot in slots_below(tree, halves[1]):
            if slot == new:
                continue
            for token in representing(rows, representative, slot):
                if find_list(lists.table, halves[0], token) < 0:
                    unhang(lists, above, token, halves[0])
                if not posted(lists, above, token, halves[1]):
                    lists = hang(lists, above, token, halves[1])
    return lists


class TokenRTreeIndex(RTreeIndex):
    """An R-tree with the inverted lists of its nodes."""

    def _representatives(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        """Choose one token for each slot; an empty array when every keyword counts."""
        return np.empty(0, np.int32)

    def _representative(self, slot: int) -> None:
        """Choose the token of a slot just filled."""

    def _attach_all(self) -> None:
        indexed = np.flatnonzero(self.tree.home >= 0).astype(np.int32)
        self.representative = self._representatives(indexed)
        keys, values = _leaf_postings(self.tree, self.store.rows, self.representative, indexed)
        level_keys, level_values = [keys], [values]
        while keys.size:
            keys = np.sort(keys)  # np.unique hashes, which is several times slower on so many
            keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
            nodes = keys >> 32
            above = self.tree.parent[nodes].astype(np.int64)
            keys = (above[above >= 0] << 32) | (keys[above >= 0] & 0xFFFFFFFF)
            level_keys.append(keys)
            level_values.append(nodes[above >= 0].astype(np.int32))
        self.lists = bulk_postings(np.concatenate(level_keys), np.concatenate(level_values), directories=True)

    def _attach(self, slot: int, splits: NDArray[np.int32], *, grew: bool) -> None:
        if grew:
            self._attach_all()
            return
        self._representative(slot)
        if len(splits):
            self.lists = _deal_again(self.lists, self.tree, self.store.rows, self.representative, splits, slot)
        self.lists = _hang_up(self.lists, self.tree, self.store.rows, self.representative, slot)

    def _detach(self, slot: int) -> None:
        _take_down(self.lists, self.tree, self.store.rows, self.representative, slot)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        lists = {f"lists.{name}": array for name, array in self.lists._asdict().items()}
        return {**super()._arrays(), **lists, "representative": self.representative}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.lists = Postings(*(arrays[f"lists.{name}"] for name in Postings._fields))
        self.representative = arrays["representative"]
        guard_tree_lists(self.lists, self.tree, self.name, doubled=False)
        check_shapes(self.name, arrays, {"representative": (np.int32, ())})
        size = self.representative.size
        check_that(f"{self.name}: representatives", size == 0 or size >= self.store.used)

    def _check_structure(self) -> None:
        nodes = check_rtree(self.tree, self.store.rows.boxes, self.store.slots)
        check_postings(self.lists)
        expected: dict[tuple[int, int], set[int]] = {}
        for slot in self.store.slots.tolist():
            for token in representing(self.store.rows, self.representative, slot).tolist():
                value, node = slot, int(self.tree.home[slot])
                while node >= 0:
                    expected.setdefault((node, token), set()).add(value)
                    value, node = node, int(self.tree.parent[node])
        found = contents(self.lists)
        assert all(len(listed) == len(set(listed)) for listed in found.values()), "an entry is on a list twice"
        assert {key: set(listed) for key, listed in found.items()} == expected
        assert {node for node, _ in found} <= set(nodes)
