"""`ir-tree`: an R-tree with an inverted file in every node (Cong et al. 2009), turned round for subscriptions.

[RT-TREE] (section 2.2) compares with it. At a node the lists of the message's tokens name the children worth visiting;
at a leaf they are counted, and a subscription met as often as it has keywords has them all, so only its box is
verified. Every keyword of every subscription is on a list at every level, which is what makes it large and slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.postings import Postings, find_list, list_bounds, shorter_side
from contrada.spatial.textual.rt.token_rtree import TokenRTreeIndex
from contrada.spatial.textual.store import Rows, as_slots, has_token, meets, token_table
from contrada.spatial.textual.tally import new_tally, tally_one

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.rt.rtree import RTree


@kernel
def _search(
    tree: RTree, lists: Postings, rows: Rows, tokens: NDArray[np.int32], box: NDArray[np.float64]
) -> tuple[NDArray[np.int32], int, int]:
    boxes, length = rows.boxes, rows.length
    node_box, level = tree.box, tree.level
    index, pool, _ = lists
    table = token_table(tokens)
    found = [np.int32(0) for _ in range(0)]
    nodes, verified = 0, 0
    met = new_tally(tree.child.shape[1])
    stack = [int(tree.head[0])]
    while len(stack) > 0:
        node = stack.pop()
        nodes += 1
        met[:, 0] = -1
        for token in shorter_side(index, pool, node, tokens):
            row = find_list(index, node, token) if has_token(table, token) else -1
            if row < 0:
                continue
            first, last = list_bounds(index, row)
            for i in range(first, last):
                entry = pool[i]
                times = tally_one(met, entry)
                if level[node] > 0:
                    if times == 1 and meets(node_box, entry, box):
                        stack.append(int(entry))
                elif times == length[entry]:
                    verified += 1
                    if meets(boxes, entry, box):
                        found.append(entry)
    return as_slots(found), nodes, verified


class IRTree(TokenRTreeIndex):
    """Inverted files all the way down."""

    name = "ir-tree"

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return _search(self.tree, self.lists, self.store.rows, tokens, box)
