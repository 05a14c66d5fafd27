"""`rt++`: the i-th token of a subscription at the i-th level, and no verification ([RT-TREE], section 5).

The nodes below the root are level 1, the leaves level H (the root itself is level 1 when it is a leaf).
Subscription s, its keywords ordered by `token_order`, is on the list of (its ancestor at level i, token i); a leaf
also takes the tokens from H on. A subscription shorter than its path is on no list further down. So s is on exactly
|s| lists (Property 1):

    keywords of s, ordered      32GB      at&t      iphone
    s is on the lists of        (n2,32GB) (n5,at&t) (n5,iphone)     root n1, level 1 n2, leaf n5

A search counts how often each subscription is met. At level i, one met |s| times has all its keywords and answers if
its box meets the message's; one met i < |s| times may still, so the children are worth visiting; if there is none
such, they are not (Lemmas 3 and 4). Keywords are never compared, and `counters.verified` is always 0. Unlike the
paper's hash map, the tally takes new subscriptions only at level 1, since one first met further down has missed a
token; and a posting is 2 * slot, plus 1 under a subscription's last token, so |s| need not be looked up.

When the root splits every level moves down by one, and all lists are made anew. That happens once per factor of 25 in
size, so it is O(1) amortised. Other splits move the postings of half a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.baselines.spatial_first import RTreeIndex
from contrada.spatial.textual.guard import guard_order, guard_tree_lists
from contrada.spatial.textual.postings import (
    Postings,
    bulk_postings,
    check_postings,
    contents,
    find_list,
    hang,
    list_bounds,
    shorter_side,
    unhang,
)
from contrada.spatial.textual.rt.rtree import RTree, check_rtree, depth_of, slots_below
from contrada.spatial.textual.rt.token_order import TokenOrder, measured_order, ordered_tokens
from contrada.spatial.textual.store import Rows, as_slots, has_token, meets, token_table
from contrada.spatial.textual.tally import new_tally, tally_known, tally_one

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@kernel
def _placed_tokens(tree: RTree, tokens: NDArray[np.int32], node: int) -> NDArray[np.int32]:
    """Return the run of a subscription's ordered tokens that belongs to its ancestor `node`."""
    first = depth_of(tree, node) - 1
    if tree.level[node] == 0:
        return tokens[max(first, 0) :]
    return tokens[first : first + 1] if first >= 0 else tokens[:0]


@kernel
def _posting(slot: int, tokens: NDArray[np.int32], token: int) -> int:
    return 2 * slot + int(token == tokens[-1])


@kernel
def _all_postings(
    tree: RTree, rows: Rows, order: TokenOrder, slots: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the (node, token) keys and postings of all lists."""
    total = 0
    for slot in slots:
        total += rows.length[slot]
    keys = np.empty(total, np.int64)
    values = np.empty(total, np.int32)
    written = 0
    for slot in slots:
        tokens = ordered_tokens(order, rows, slot)
        node = int(tree.home[slot])
        while node >= 0:
            for token in _placed_tokens(tree, tokens, node):
                keys[written] = (np.int64(node) << 32) | np.int64(token)
                values[written] = _posting(slot, tokens, token)
                written += 1
            node = int(tree.parent[node])
    return keys, values


@kernel
def _hang_up(lists: Postings, tree: RTree, rows: Rows, order: TokenOrder, slot: int) -> Postings:
    tokens = ordered_tokens(order, rows, slot)
    node = int(tree.home[slot])
    while node >= 0:
        for token in _placed_tokens(tree, tokens, node):
            lists = hang(lists, node, token, _posting(slot, tokens, token))
        node = int(tree.parent[node])
    return lists


@kernel
def _take_down(lists: Postings, tree: RTree, rows: Rows, order: TokenOrder, slot: int) -> None:
    tokens = ordered_tokens(order, rows, slot)
    node = tree.home[slot]
    while node >= 0:
        for token in _placed_tokens(tree, tokens, node):
            unhang(lists, node, token, _posting(slot, tokens, token))
        node = tree.parent[node]


@kernel
def _follow_splits(
    lists: Postings, tree: RTree, rows: Rows, order: TokenOrder, splits: NDArray[np.int32], new: int
) -> Postings:
    for i in range(splits.shape[0]):
        node, sibling = splits[i]
        for slot in slots_below(tree, sibling):
            if slot != new:
                tokens = ordered_tokens(order, rows, slot)
                for token in _placed_tokens(tree, tokens, node):
                    posting = _posting(slot, tokens, token)
                    unhang(lists, node, token, posting)
                    lists = hang(lists, sibling, token, posting)
    return lists


@kernel
def _most_met(
    index: NDArray[np.int64],
    pool: NDArray[np.int32],
    node: int,
    tokens: NDArray[np.int32],
    table: NDArray[np.int32],
) -> int:
    """Return the length of all the node's lists of the message's tokens."""
    total = 0
    for token in shorter_side(index, pool, node, tokens):
        row = find_list(index, node, token) if has_token(table, token) else -1
        if row >= 0:
            first, last = list_bounds(index, row)
            total += last - first
    return total


@kernel
def _search(
    tree: RTree, lists: Postings, rows: Rows, tokens: NDArray[np.int32], box: NDArray[np.float64]
) -> tuple[NDArray[np.int32], int, int]:
    boxes, length = rows.boxes, rows.length
    node_box, child, filled, height = tree.box, tree.child, tree.filled, tree.level
    index, pool, _ = lists
    table = token_table(tokens)
    found = [np.int32(0) for _ in range(0)]
    nodes = 0
    root = int(tree.head[0])
    deepest = height[root]
    # Level 1 decides how large the tally must be.
    stack = [root for _ in range(0)]
    most = 0
    if deepest == 0:
        stack.append(root)
        most = int(filled[root])
    for i in range(filled[root] if deepest > 0 else 0):
        below = int(child[root, i])
        if meets(node_box, below, box):
            stack.append(below)
            most += _most_met(index, pool, below, tokens, table)
    met = new_tally(most)
    while len(stack) > 0:
        node = stack.pop()
        nodes += 1
        inner = height[node] > 0
        level = max(deepest - height[node], 1)
        promising = False
        for token in shorter_side(index, pool, node, tokens):
            row = find_list(index, node, token) if has_token(table, token) else -1
            if row < 0:
                continue
            first, last = list_bounds(index, row)
            for i in range(first, last):
                slot = int(pool[i] >> 1)
                times = tally_one(met, slot) if level == 1 else tally_known(met, slot)
                if times < level:
                    continue
                if inner:
                    complete = pool[i] & 1 == 1
                    promising = promising or not complete
                else:
                    complete = times == length[slot]
                if complete and meets(boxes, slot, box):
                    found.append(np.int32(slot))
        if promising and inner:
            for i in range(filled[node]):
                below = int(child[node, i])
                if meets(node_box, below, box):
                    stack.append(below)
    return as_slots(found), nodes, 0


class RtPlusPlusTree(RTreeIndex):
    """Occurrence counts instead of verification. Options: `order`, `grid` (cells per side for `locality`)."""

    name = "rt++"
    defaults = {"order": "locality", "grid": 100}  # noqa: RUF012  # read, never changed

    def _attach_all(self) -> None:
        indexed = np.flatnonzero(self.tree.home >= 0).astype(np.int32)
        self.order = measured_order(self.options, self.vocabulary.df, self.store.rows, indexed)
        keys, values = _all_postings(self.tree, self.store.rows, self.order, indexed)
        self.lists = bulk_postings(keys, values, directories=True)

    def _attach(self, slot: int, splits: NDArray[np.int32], *, grew: bool) -> None:
        if grew:
            self._attach_all()
            return
        if len(splits):
            self.lists = _follow_splits(self.lists, self.tree, self.store.rows, self.order, splits, slot)
        self.lists = _hang_up(self.lists, self.tree, self.store.rows, self.order, slot)

    def _detach(self, slot: int) -> None:
        _take_down(self.lists, self.tree, self.store.rows, self.order, slot)

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return _search(self.tree, self.lists, self.store.rows, tokens, box)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        lists = {f"lists.{name}": array for name, array in self.lists._asdict().items()}
        order = {f"order.{name}": array for name, array in self.order._asdict().items()}
        return {**super()._arrays(), **lists, **order}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.lists = Postings(*(arrays[f"lists.{name}"] for name in Postings._fields))
        self.order = TokenOrder(*(arrays[f"order.{name}"] for name in TokenOrder._fields))
        guard_order(self.order)
        guard_tree_lists(self.lists, self.tree, self.name, doubled=True)

    def _check_structure(self) -> None:
        check_rtree(self.tree, self.store.rows.boxes, self.store.slots)
        check_postings(self.lists)
        places: dict[int, list[tuple[int, int]]] = {}
        for key, listed in contents(self.lists).items():
            for posting in listed:
                places.setdefault(posting >> 1, []).append(key)
                last = ordered_tokens(self.order, self.store.rows, posting >> 1)[-1]
                assert (posting & 1) == (key[1] == last), "the mark of the last token is wrong"
        deepest = max(int(self.tree.level[self.tree.head[0]]), 1)
        for slot in self.store.slots.tolist():
            expected = []
            for i, token in enumerate(ordered_tokens(self.order, self.store.rows, slot).tolist(), start=1):
                node = int(self.tree.home[slot])
                for _ in range(deepest - i):
                    node = int(self.tree.parent[node])
                expected.append((node, token))
            assert sorted(places.pop(slot)) == sorted(expected), "a subscription is not on |s| lists, one per level"
        assert not places
