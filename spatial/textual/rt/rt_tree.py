"""`rt` and `rt+`: an R-tree whose nodes know which words are below them ([RT-TREE], sections 3 and 4).

A message descends to the children whose box meets its own and whose token set has one of its tokens; every
subscription of a leaf so reached is a candidate and is verified. In `rt` a node's token set is the union of all
keywords below it. In `rt+` each subscription gives one representative token only, chosen by the option `order`
(`token_order`): sets are smaller, and by Lemma 2 no message meets more candidates than in `rt`, since the
representative is one of the keywords and the trees are the same.

The paper's MBR filter ("n.R has a vertex contained in m.R") misses containment and crossing; boxes are compared by
intervals. The token filter probes with the fewer of the node's and the message's tokens until one hits. `df` chooses
greedily, as the paper does, when loading in bulk: the most frequent word represents all that have it, then the most
frequent among the rest; a subscription inserted later is represented by its most frequent word.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.guard import guard_order
from contrada.spatial.textual.postings import Postings, find_list, shorter_side
from contrada.spatial.textual.rt.token_order import TokenOrder, measured_order, ordered_tokens
from contrada.spatial.textual.rt.token_rtree import TokenRTreeIndex
from contrada.spatial.textual.store import Rows, as_slots, grow, has_all, has_token, meets, token_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.textual.rt.rtree import RTree


@kernel
def _has_one(
    index: NDArray[np.int64],
    pool: NDArray[np.int32],
    node: int,
    tokens: NDArray[np.int32],
    table: NDArray[np.int32],
) -> bool:
    for token in shorter_side(index, pool, node, tokens):
        if has_token(table, token) and find_list(index, node, token) >= 0:
            return True
    return False


@kernel
def _search(
    tree: RTree, lists: Postings, rows: Rows, tokens: NDArray[np.int32], box: NDArray[np.float64]
) -> tuple[NDArray[np.int32], int, int]:
    _, boxes, start, length, keywords = rows
    node_box, child, filled, level = tree.box, tree.child, tree.filled, tree.level
    index, pool, _ = lists
    table = token_table(tokens)
    found = [np.int32(0) for _ in range(0)]
    nodes, verified = 0, 0
    stack = [int(tree.head[0])]
    if not _has_one(index, pool, stack[0], tokens, table):
        stack.pop()
    while len(stack) > 0:
        node = stack.pop()
        nodes += 1
        if level[node] > 0:
            for i in range(filled[node]):
                below = int(child[node, i])
                if meets(node_box, below, box) and _has_one(index, pool, below, tokens, table):
                    stack.append(below)
            continue
        verified += filled[node]
        for i in range(filled[node]):
            slot = child[node, i]
            if meets(boxes, slot, box) and has_all(table, keywords, start[slot], length[slot]):
                found.append(slot)
    return as_slots(found), nodes, verified


@kernel
def _first_tokens(order: TokenOrder, rows: Rows, slots: NDArray[np.int32], chosen: NDArray[np.int32]) -> None:
    for slot in slots:
        chosen[slot] = ordered_tokens(order, rows, slot)[0]


class RtTree(TokenRTreeIndex):
    """Token sets are unions of all keywords."""

    name = "rt"

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return _search(self.tree, self.lists, self.store.rows, tokens, box)


class RtPlusTree(RtTree):
    """One representative token per subscription. Options: `order`, `grid` (cells per side for `locality`)."""

    name = "rt+"
    defaults = {"order": "locality", "grid": 100}  # noqa: RUF012  # read, never changed

    def _representatives(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        self.order = measured_order(self.options, self.vocabulary.df, self.store.rows, slots)
        chosen = np.full(self.tree.home.size + 1, -1, np.int32)  # never empty, which would mean all keywords
        if self.options["order"] == "df":
            self._choose_greedily(slots, chosen)
        else:
            _first_tokens(self.order, self.store.rows, slots, chosen)
        return chosen

    def _choose_greedily(self, slots: NDArray[np.int32], chosen: NDArray[np.int32]) -> None:
        rows = self.store.rows
        owner = np.repeat(slots, rows.length[slots])
        words = np.concatenate([np.empty(0, np.int32), *(self.store.keywords(s) for s in slots.tolist())])
        order = np.argsort(words, kind="stable")
        owner, counts = owner[order], np.bincount(words, minlength=1)
        ends = np.cumsum(counts)
        waiting = [(-int(count), word) for word, count in enumerate(counts) if count]
        heapq.heapify(waiting)
        while waiting:
            count, word = heapq.heappop(waiting)
            having = owner[ends[word] - counts[word] : ends[word]]
            left = having[chosen[having] < 0]
            if len(left) == -count:
                chosen[left] = word
            elif len(left):
                heapq.heappush(waiting, (-len(left), word))

    def _representative(self, slot: int) -> None:
        self.representative = grow(self.representative, slot + 1, -1)
        _first_tokens(self.order, self.store.rows, np.array([slot], np.int32), self.representative)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {**super()._arrays(), **{f"order.{name}": array for name, array in self.order._asdict().items()}}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.order = TokenOrder(*(arrays[f"order.{name}"] for name in TokenOrder._fields))
        guard_order(self.order)
