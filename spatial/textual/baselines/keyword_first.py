"""`keyword-first`: each subscription on the inverted list of its rarest keyword, verified when the message has it.

The ranked-key variant of Yan and Garcia-Molina that [RT-TREE] and [AP-TREE] compare with. No spatial pruning at all: a
message costs the sum of the lists of its tokens. Insertion O(1); removal scans one list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.base import StoredIndex
from contrada.spatial.textual.guard import guard_slot_lists
from contrada.spatial.textual.postings import (
    Postings,
    bulk_postings,
    check_postings,
    contents,
    find_list,
    list_bounds,
    post,
    unpost,
)
from contrada.spatial.textual.store import Rows, as_slots, has_all, meets, token_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Arrays


@kernel
def rarest(rows: Rows, slot: int) -> int:
    """Return the slot's last keyword in the global order."""
    return int(rows.keywords[rows.start[slot] + rows.length[slot] - 1])


@kernel
def _search(
    index: NDArray[np.int64],
    pool: NDArray[np.int32],
    columns: Arrays,
    tokens: NDArray[np.int32],
    box: NDArray[np.float64],
) -> tuple[NDArray[np.int32], int, int]:
    boxes, start, length, keywords = columns
    table = token_table(tokens)
    found = [np.int32(0) for _ in range(0)]
    nodes, verified = 0, 0
    for token in tokens:
        row = find_list(index, 0, token)
        if row < 0:
            continue
        nodes += 1
        first, last = list_bounds(index, row)
        verified += last - first
        for i in range(first, last):
            slot = pool[i]
            if meets(boxes, slot, box) and has_all(table, keywords, start[slot], length[slot]):
                found.append(slot)
    return as_slots(found), nodes, verified


class KeywordFirst(StoredIndex):
    """One inverted list per rarest keyword."""

    name = "keyword-first"

    def _build(self) -> None:
        rows, slots = self.store.rows, self.store.slots
        self.lists = bulk_postings(rows.keywords[rows.start[slots] + rows.length[slots] - 1].astype(np.int64), slots)

    def _insert(self, slot: int) -> None:
        self.lists = post(self.lists, 0, rarest(self.store.rows, slot), slot)

    def _remove(self, slot: int) -> None:
        unpost(self.lists, 0, rarest(self.store.rows, slot), slot)

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return _search(self.lists.table, self.lists.pool, self.store.columns, tokens, box)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self.lists._asdict()

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.lists = Postings(*(arrays[name] for name in Postings._fields))
        guard_slot_lists(self.lists, self.name, 1, self.store.used)

    def _check_structure(self) -> None:
        check_postings(self.lists)
        expected: dict[tuple[int, int], list[int]] = {}
        for slot in self.store.slots.tolist():
            expected.setdefault((0, int(self.store.keywords(slot)[-1])), []).append(slot)
        assert {key: sorted(listed) for key, listed in contents(self.lists).items()} == expected
