"""`ir-tree`: an R-tree with an inverted file in every node (Cong et al. 2009), turned round for subscriptions.

Paper 2, section 2.2 compares with it. At a node the lists of the message's tokens name the children worth visiting;
at a leaf they are counted, and a subscription met as often as it has keywords has them all, so only its box is
verified. Every keyword of every subscription is on a list at every level, which is what makes it large and slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial._jit import kernel
from contrada.spatial.textual.postings import Postings, find_list, list_bounds, shorter_side
from contrada.spatial.textual.store import Rows, appended, has_token, meets, token_table
from contrada.spatial.textual.tally import new_tally, tally_one
from contrada.spatial.textual.token_rtree import TokenRTreeIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.rtree import RTree


@kernel
def _search(
    tree: RTree, lists: Postings, rows: Rows, tokens: NDArray[np.int32], box: NDArray[np.float64]
) -> tuple[NDArray[np.int32], int, int]:
    table = token_table(tokens)
    found = np.empty(16, np.int32)
    matched, nodes, verified = 0, 0, 0
    reached, counts = new_tally(), new_tally()
    stack = [int(tree.head[0])]
    while len(stack) > 0:
        node = stack.pop()
        nodes += 1
        for token in shorter_side(lists, node, tokens):
            row = find_list(lists.table, node, token) if has_token(table, token) else -1
            if row < 0:
                continue
            first, last = list_bounds(lists.table, row)
            for i in range(first, last):
                entry = lists.pool[i]
                if tree.level[node] > 0:
                    if meets(tree.box, entry, box):
                        reached, times = tally_one(reached, entry)
                        if times == 1:
                            stack.append(int(entry))
                    continue
                counts, times = tally_one(counts, entry)
                if times == rows.length[entry]:
                    verified += 1
                    if meets(rows.boxes, entry, box):
                        found = appended(found, matched, entry)
                        matched += 1
    return found[:matched], nodes, verified


class IRTree(TokenRTreeIndex):
    """Inverted files all the way down."""

    name = "ir-tree"

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return _search(self.tree, self.lists, self.store.rows, tokens, box)
