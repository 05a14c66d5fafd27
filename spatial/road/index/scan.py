"""`scan`: every subscription against every message, after one expansion to D_max. The floor that an index must beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.road.index.base import RoadIndex
from contrada.spatial.road.index.verification import (
    PER_SLOT,
    TOTAL,
    Candidates,
    Message,
    Placed,
    place_of,
    token_places,
)
from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.slot_index import Unindexed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.allowance import Left


@kernel
def _all(placed: Placed, slots: NDArray[np.int32], message: Message, d_max: float) -> Candidates:
    start, length, keywords, _, facts = placed
    table = token_places(message.tokens)
    words = np.zeros(slots.size)
    for i in range(slots.size):
        slot = slots[i]
        weight = 0.0
        for k in range(start[slot], start[slot] + length[slot]):
            place = place_of(table, keywords[k])
            if place >= 0:
                weight += message.weights[place]
        if facts[slot, TOTAL] > 0.0:
            words[i] = weight / facts[slot, TOTAL]
    return Candidates(slots, words, d_max, 0)


class RoadScan(Unindexed, RoadIndex):
    """No structure at all: O(n) per message."""

    name = "scan"

    def _candidates(self, message: Message, left: Left) -> Candidates:
        left[0] -= PER_SLOT * self.store.slots.size
        return _all(self.placed, self.store.slots, message, self.network.d_max)
