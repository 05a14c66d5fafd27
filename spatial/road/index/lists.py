"""Inverted lists of subscriptions on roads, under (word, cell, class): what both architectures of [ROADS] are made of.

    postings of (word, cell * 16 + class)      slots; in bulk those of one road stand together
    postings of (word, DIRECTORY)              every cell * 16 + class under which the word has a list

The paper keeps inverted files per cell, with a bound beside each list: the largest weight in BIA, the largest distance
in EIA (D_UB(c|t), Eq. 15). Here the bound, in sixteenths rounded up, is part of the key instead. Nothing has to be
kept up when subscriptions leave, lists fall apart into such as are read whole or not at all (the paper sorts them by
D_UB, for the same), and a word finds its cells without trying all 256.

The paper also keeps statistics per edge, to skip the subscriptions of an edge together. There are few on an edge that
share a word; each has its own α, τ and TSIM, and is judged by these before its distance is asked for, which is sharper.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.spatial.road.index.base import RoadIndex
from contrada.spatial.storage.jit import inline_kernel, kernel
from contrada.spatial.storage.row_numbers import check_rows, check_that
from contrada.spatial.textual import postings
from contrada.spatial.textual.guard import guard_postings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

CLASSES = 16


@kernel
def new_keys(slots: NDArray[np.int32], length: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Make room for a key of every word of slots and of the wildcard, and for the slot of each."""
    room = slots.size
    for slot in slots:
        room += length[slot]
    return np.empty(room, np.int64), np.empty(room, np.int32)


@inline_kernel
def list_key(word: int, cell: int, bound: float) -> int:
    """Return the key of the list of a word in a cell whose class holds a bound between 0 and 1."""
    return int((np.int64(word) << 32) | (np.int64(cell) * CLASSES + min(int(bound * CLASSES), CLASSES - 1)))


class ListedIndex(RoadIndex):
    """Subscriptions on inverted lists."""

    lists: postings.Postings

    @abstractmethod
    def _keys(self, slots: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the keys `word << 32 | cell * 16 + class` that slots belong under, and the slot of each."""

    def _build(self) -> None:
        slots = self.store.slots
        if not slots.size:
            self.lists = postings.empty_postings()
            return
        order = np.argsort(self.roads[slots], kind="stable")
        self.lists = postings.bulk_postings(*self._keys(slots[order]), directories=True)

    def _insert(self, slot: int) -> None:
        for key in self._keys(np.array([slot], np.int32))[0].tolist():
            self.lists = postings.hang(self.lists, key >> 32, key & 0xFFFFFFFF, slot)

    def _remove(self, slot: int) -> None:
        for key in self._keys(np.array([slot], np.int32))[0].tolist():
            postings.unhang(self.lists, key >> 32, key & 0xFFFFFFFF, slot)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self.lists._asdict()

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.lists = postings.Postings(*(arrays[name] for name in postings.Postings._fields))
        self._guard_lists()

    def _guard_lists(self) -> None:
        """Refuse loaded lists that lead nowhere: searches look up the list of every key that a directory names."""
        rows, (places, owner) = guard_postings(self.lists, self.name)
        keys = rows[:, 0]
        named = (keys & 0xFFFFFFFF)[owner] == postings.DIRECTORY
        values = self.lists.pool[places]
        check_rows(f"{self.name}: slots", values[~named], self.store.used)
        check_rows(f"{self.name}: cells", values[named], CLASSES * len(self.network.cells.boxes))
        asked = (keys[owner[named]] >> 32 << 32) | values[named]
        check_that(f"{self.name}: a list that is not there", np.isin(asked, keys))

    def _check_structure(self) -> None:
        postings.check_postings(self.lists)
        keys, slots = self._keys(self.store.slots)
        expected: dict[tuple[int, int], list[int]] = {}
        for key, slot in zip(keys.tolist(), slots.tolist(), strict=True):
            expected.setdefault((key >> 32, key & 0xFFFFFFFF), []).append(slot)
        assert {key: sorted(listed) for key, listed in postings.contents(self.lists).items()} == expected
