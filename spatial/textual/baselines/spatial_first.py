"""`spatial-first`: an R-tree on the boxes, then the keywords of whatever it returns ([RT-TREE], section 2.2).

Also the base of the indexes that hang words on the nodes of the same tree. Insertion and removal are O(log n).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.storage.row_numbers import check_lengths, check_shapes
from contrada.spatial.textual.base import StoredIndex
from contrada.spatial.textual.guard import guard_rtree
from contrada.spatial.textual.rt.rtree import RTree, check_rtree, insert_entry, load_rtree, remove_entry, with_room
from contrada.spatial.textual.store import Rows, as_slots, has_all, meets, token_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class RTreeIndex(StoredIndex):
    """An index whose structure is an R-tree and something that follows its splits."""

    tree: RTree

    def _build(self) -> None:
        self.tree = load_rtree(self.store.rows.boxes, self.store.slots)
        self._peak = len(self.store)
        self._attach_all()

    def _insert(self, slot: int) -> None:
        self.tree = with_room(self.tree, slot)
        root = self.tree.head[0]
        splits = insert_entry(self.tree, self.store.rows.boxes, slot)
        self._peak = max(self._peak, len(self.store))
        self._attach(slot, splits, grew=root != self.tree.head[0])

    def _remove(self, slot: int) -> None:
        self._detach(slot)
        remove_entry(self.tree, self.store.rows.boxes, slot)
        if 4 * self.tree.head[3] < self._peak and self._peak > 256:
            self.tree = load_rtree(self.store.rows.boxes, self.store.slots[self.store.slots != slot])
            self._peak = int(self.tree.head[3])
            self._attach_all()

    def _attach_all(self) -> None:
        """Hang the words of all indexed slots on a fresh tree."""

    def _attach(self, slot: int, splits: NDArray[np.int32], *, grew: bool) -> None:
        """Hang up the words of a slot just inserted, and follow the splits; `grew` when there is a new root."""

    def _detach(self, slot: int) -> None:
        """Take down the words of a slot about to be removed from the tree."""

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {**self.tree._asdict(), "peak": np.array([self._peak])}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.tree = RTree(*(arrays[name] for name in RTree._fields))
        guard_rtree(self.tree, self.store.rows.ids >= 0)
        check_shapes(self.name, arrays, {"peak": (np.int64, ())})
        check_lengths(self.name, 1, arrays["peak"])
        self._peak = int(arrays["peak"][0])

    def _check_structure(self) -> None:
        check_rtree(self.tree, self.store.rows.boxes, self.store.slots)


@kernel
def _search(
    tree: RTree, rows: Rows, tokens: NDArray[np.int32], box: NDArray[np.float64]
) -> tuple[NDArray[np.int32], int, int]:
    _, boxes, start, length, keywords = rows
    node_box, child, filled, level = tree.box, tree.child, tree.filled, tree.level
    table = token_table(tokens)
    found = [np.int32(0) for _ in range(0)]
    nodes, verified = 0, 0
    stack = [int(tree.head[0])]
    while len(stack) > 0:
        node = stack.pop()
        nodes += 1
        if level[node] > 0:
            for i in range(filled[node]):
                if meets(node_box, child[node, i], box):
                    stack.append(int(child[node, i]))  # noqa: PERF401  # the stack is being walked
            continue
        for i in range(filled[node]):
            slot = child[node, i]
            if meets(boxes, slot, box):
                verified += 1
                if has_all(table, keywords, start[slot], length[slot]):
                    found.append(slot)
    return as_slots(found), nodes, verified


class SpatialFirst(RTreeIndex):
    """R-tree, then text. Verified are the subscriptions whose box meets the message's."""

    name = "spatial-first"

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return _search(self.tree, self.store.rows, tokens, box)
