"""EIA, the enhanced indexing architecture of [ROADS] (sections V and VI): the index behind `similar`.

A subscription is on the lists of the words of its *prefix*: its words rarest first, as far as a message must share one
of them to be similar at any distance (Lemma 3). Under the i-th, its class is D_UB(s|tᵢ) (Eq. 13): the distance within
which a message must be whose rarest shared word is tᵢ, since it shares tᵢ and later words at most. When nothing need
be shared (TSIM_limit ≤ 0), all its words are in the prefix, and so is the wildcard, with the distance for sharing
nothing. Eq. 9, read literally, leaves out one word too many: what remains after the prefix must weigh *less* than
needed, and `reach` of what remains decides that.

A message reads, for each of its words and the wildcard, the lists of those cells that are not farther than their class
(Lemma 8; Lemma 2 follows, since D_UB is never more than D_limit; Lemma 4 is the directory). Each subscription met is
taken up by the list of its rarest shared word alone, so none is met twice; its TSIM is then known, hence how far it may
be, and it is dropped if its own place is farther than that along the straight line, or on another component. The rest
are verified by one expansion within the largest of these distances (`verification.py`).

Insertion and removal are O(prefix) and change nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.road.graph.cells import Cells, lower_bounds
from contrada.spatial.road.graph.places import X, Y
from contrada.spatial.road.index import verification as v
from contrada.spatial.road.index.lists import CLASSES, ListedIndex, list_key, new_keys
from contrada.spatial.road.index.similarity import reach
from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.postings import DIRECTORY, Postings, find_list, list_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.allowance import Left


@kernel
def _keys_of_prefixes(
    slots: NDArray[np.int32], placed: v.Placed, weights: NDArray[np.float64], cells: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the keys of the prefixes of slots."""
    start, length, keywords, roads, facts = placed
    keys, holders = new_keys(slots, length)
    count = 0
    for slot in slots:
        alpha, tau, total = facts[slot, v.ALPHA], facts[slot, v.TAU], facts[slot, v.TOTAL]
        cell = cells[roads[slot]]
        left = total
        # From the rarest word down; then the wildcard, for what shares nothing.
        for i in range(start[slot] + length[slot] - 1, start[slot] - 2, -1):
            word = keywords[i] if i >= start[slot] else 0
            if word == 0 and i >= start[slot]:
                continue  # a subscription without keywords holds the wildcard as its only one
            far = reach(alpha, tau, left / total if total > 0.0 else 0.0, 1.0)
            if far < 0.0:
                break
            keys[count] = list_key(word, cell, far)
            holders[count] = slot
            count += 1
            left -= weights[word]
    return keys[:count], holders[:count]


@kernel
def _search(
    lists: Postings,
    placed: v.Placed,
    cells: Cells,
    components: NDArray[np.int32],
    message: v.Message,
    d_max: float,
    left: NDArray[np.int64],
) -> v.Candidates:
    start, length, keywords, roads, facts = placed
    index, pool, tokens, weights = lists.table, lists.pool, message.tokens, message.weights
    x, y, stretch, slack = message.x, message.y, cells.stretch, cells.slack
    lower = lower_bounds(cells, message.road, x, y)
    here = components[message.road]
    table = v.token_places(tokens)
    slots = [np.int32(0) for _ in range(0)]
    words = [0.0 for _ in range(0)]
    radius = 0.0
    visited = 0
    for t in range(-1, tokens.size):
        token = tokens[t] if t >= 0 else 0
        row = find_list(index, token, DIRECTORY)
        if row < 0 or left[0] < 0:
            continue
        first, last = list_bounds(index, row)
        left[0] -= v.PER_ENTRY * (last - first)
        for entry in range(first, last):
            key = pool[entry]
            if lower[key // CLASSES] > (key % CLASSES + 1) * d_max / CLASSES:
                continue
            visited += 1
            low, high = list_bounds(index, find_list(index, token, key))
            left[0] -= v.PER_LIST + v.PER_SLOT * (high - low)
            if left[0] < 0:
                break
            for i in range(low, high):
                slot = pool[i]
                weight = v.shared(table, weights, keywords, start[slot], length[slot], token)
                if weight < 0.0:
                    continue
                total = facts[slot, v.TOTAL]
                likeness = weight / total if total > 0.0 else 0.0
                far = reach(facts[slot, v.ALPHA], facts[slot, v.TAU], likeness, d_max)
                dx = x - facts[slot, X]
                dy = y - facts[slot, Y]
                if far < 0.0 or stretch * (np.sqrt(dx * dx + dy * dy) - slack) > far:
                    continue
                if components[roads[slot]] != here:
                    continue
                slots.append(slot)
                words.append(likeness)
                radius = max(radius, far)
    return v.Candidates(np.array(slots, np.int32), np.array(words, np.float64), radius, visited)


class EnhancedIndex(ListedIndex):
    """Prefixes under cells and distances."""

    name = "eia"

    def _keys(self, slots: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        return _keys_of_prefixes(slots, self.placed, self._weights, self.network.cells.of_road)

    def _candidates(self, message: v.Message, left: Left) -> v.Candidates:
        network = self.network
        return _search(self.lists, self.placed, network.cells, network.components, message, network.d_max, left)
