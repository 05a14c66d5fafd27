"""`scan`: every subscription against every message, in compiled code. The floor that an index must beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.base import StoredIndex
from contrada.spatial.textual.slot_index import Unindexed
from contrada.spatial.textual.store import Rows, as_slots, has_all, meets, token_table

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def _scan(rows: Rows, used: int, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> NDArray[np.int32]:
    ids, boxes, start, length, keywords = rows
    table = token_table(tokens)
    found = [np.int32(0) for _ in range(0)]
    for slot in range(used):
        if ids[slot] >= 0 and meets(boxes, slot, box) and has_all(table, keywords, start[slot], length[slot]):
            found.append(np.int32(slot))  # noqa: PERF401  # a list of numpy integers, as numba wants it
    return as_slots(found)


class Scan(Unindexed, StoredIndex):
    """No structure at all: O(n) per message."""

    name = "scan"

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return _scan(self.store.rows, self.store.used, tokens, box), 0, len(self.store)
