"""BIA, the basic indexing architecture of [ROADS] (section IV): the baseline that EIA is measured against.

A subscription is on the lists of all its words, and on the wildcard's if it may be similar to a message that shares
none. Under a word, its class is the word's part of its weight, in sixteenths rounded up. A message sums up, by cell,
the largest parts of its words (the paper's maxwt), which bounds TSIM there; with the least distance of the cell, the
range of α and the least τ in it that bounds SIM, and only cells that may reach τ are read. Every subscription met there
that may itself reach τ by these bounds of its cell is a candidate, with no regard to which words it shares; the paper
tests this by edge, which is coarser. The expansion goes on until every candidate has its distance, at most to D_max.

Cells' ranges of α and τ only widen while subscriptions come and go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.spatial.road.graph.cells import Cells, lower_bounds
from contrada.spatial.road.index import verification as v
from contrada.spatial.road.index.lists import CLASSES, ListedIndex, list_key, new_keys
from contrada.spatial.road.index.similarity import reach
from contrada.spatial.storage.jit import kernel
from contrada.spatial.storage.row_numbers import check_lengths, check_shapes
from contrada.spatial.textual.postings import DIRECTORY, Postings, find_list, list_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.allowance import Left


@kernel
def _keys_of_words(
    slots: NDArray[np.int32], placed: v.Placed, weights: NDArray[np.float64], cells: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the keys of all words of slots."""
    start, length, keywords, roads, facts = placed
    keys, holders = new_keys(slots, length)
    count = 0
    for slot in slots:
        cell = cells[roads[slot]]
        for i in range(start[slot], start[slot] + length[slot]):
            word = keywords[i]
            if word == 0:
                continue
            part = weights[word] / facts[slot, v.TOTAL] if facts[slot, v.TOTAL] > 0.0 else 0.0
            keys[count] = list_key(word, cell, part)
            holders[count] = slot
            count += 1
        if reach(facts[slot, v.ALPHA], facts[slot, v.TAU], 0.0, 1.0) >= 0.0:
            keys[count] = list_key(0, cell, 0.0)
            holders[count] = slot
            count += 1
    return keys[:count], holders[:count]


@kernel
def _search(
    lists: Postings,
    placed: v.Placed,
    cells: Cells,
    ranges: NDArray[np.float64],
    message: v.Message,
    d_max: float,
    left: NDArray[np.int64],
) -> v.Candidates:
    start, length, keywords, _, facts = placed
    index, pool, tokens, weights = lists.table, lists.pool, message.tokens, message.weights
    lower = lower_bounds(cells, message.road, message.x, message.y)
    likely = np.zeros(lower.size)
    largest = np.zeros(lower.size)
    for token in tokens:
        row = find_list(index, token, DIRECTORY)
        if row < 0:
            continue
        first, last = list_bounds(index, row)
        left[0] -= v.PER_ENTRY * (last - first)
        largest[:] = 0.0
        for entry in range(first, last):
            cell = pool[entry] // CLASSES
            largest[cell] = max(largest[cell], (pool[entry] % CLASSES + 1) / CLASSES)
        likely += largest
    for cell in range(lower.size):
        likely[cell] = min(likely[cell], 1.0)
        # SIM is linear in α: the largest is at an end of the range.
        least, most, tau = ranges[cell]
        if max(reach(least, tau, likely[cell], d_max), reach(most, tau, likely[cell], d_max)) < lower[cell]:
            lower[cell] = np.inf
    table = v.token_places(tokens)
    slots = [np.int32(0) for _ in range(0)]
    words = [0.0 for _ in range(0)]
    visited = 0
    for t in range(-1, tokens.size):
        token = tokens[t] if t >= 0 else 0
        row = find_list(index, token, DIRECTORY)
        if row < 0 or left[0] < 0:
            continue
        first, last = list_bounds(index, row)
        for entry in range(first, last):
            cell = pool[entry] // CLASSES
            if lower[cell] > d_max:
                continue
            visited += 1
            low, high = list_bounds(index, find_list(index, token, pool[entry]))
            left[0] -= v.PER_LIST + v.PER_SLOT * (high - low)
            if left[0] < 0:
                break
            for i in range(low, high):
                slot = pool[i]
                weight = v.shared(table, weights, keywords, start[slot], length[slot], token)
                if weight < 0.0 or reach(facts[slot, v.ALPHA], facts[slot, v.TAU], likely[cell], d_max) < lower[cell]:
                    continue
                total = facts[slot, v.TOTAL]
                slots.append(slot)
                words.append(weight / total if total > 0.0 else 0.0)
    return v.Candidates(np.array(slots, np.int32), np.array(words, np.float64), d_max, visited)


class BasicIndex(ListedIndex):
    """All words under cells and weights."""

    name = "bia"

    def _build(self) -> None:
        super()._build()
        self.ranges: NDArray[np.float64] = np.tile([1.0, 0.0, 1.0], (len(self.network.cells.boxes), 1))
        self._widen(self.store.slots)

    def _insert(self, slot: int) -> None:
        super()._insert(slot)
        self._widen(np.array([slot], np.int32))

    def _widen(self, slots: NDArray[np.int32]) -> None:
        cell = self.network.cells.of_road[self.roads[slots]]
        np.minimum.at(self.ranges[:, 0], cell, self.facts[slots, v.ALPHA])
        np.maximum.at(self.ranges[:, 1], cell, self.facts[slots, v.ALPHA])
        np.minimum.at(self.ranges[:, 2], cell, self.facts[slots, v.TAU])

    def _keys(self, slots: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        return _keys_of_words(slots, self.placed, self._weights, self.network.cells.of_road)

    def _candidates(self, message: v.Message, left: Left) -> v.Candidates:
        network = self.network
        return _search(self.lists, self.placed, network.cells, self.ranges, message, network.d_max, left)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {**super()._arrays(), "ranges": self.ranges}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.ranges = arrays["ranges"]
        check_shapes(self.name, arrays, {"ranges": (np.float64, (3,))})
        check_lengths(self.name, len(self.network.cells.boxes), self.ranges)

    def _check_structure(self) -> None:
        super()._check_structure()
        slots = self.store.slots
        least, most, tau = self.ranges[self.network.cells.of_road[self.roads[slots]]].T
        assert (least <= self.facts[slots, v.ALPHA]).all()
        assert (most >= self.facts[slots, v.ALPHA]).all()
        assert (tau <= self.facts[slots, v.TAU]).all()
