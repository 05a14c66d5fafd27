"""`rk-tree`, ours and the default: a partition tree that reads rare keywords first, from a directory by rarest keyword.

[AP-TREE] puts frequent keywords first, since a keyword node has only f cuts and rare words would share one. With a
pointer for every word there is no such limit: a message of n tokens reads n pointers instead of descending from a root
in which its frequent tokens hit nearly every cut, and what it reaches are the subscriptions whose *rarest* keyword it
has, the ranked keys of Yan and Garcia-Molina. Most of these lists are one small leaf. Long ones are AP-trees that begin
at the second rarest keyword, so they are divided by space or by further keywords as the cost model says; frequent words
have those of single-keyword subscriptions, which only space divides.

All below the root is the AP-tree's (`engine.py`), with keywords in the opposite order (`nodes.word_at`). The root is
four bytes per word of the vocabulary (`nodes.DIRECTORY`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.partition_tree.build import build_subtree, write_leaf
from contrada.spatial.textual.partition_tree.nodes import (
    DIRECTORY,
    HEADER,
    ROOT,
    SHAPE,
    WEIGHT,
    Arena,
    Meta,
    allocate,
    free,
)
from contrada.spatial.textual.partition_tree.paths import Path
from contrada.spatial.textual.partition_tree.tree import PartitionTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.partition_tree.settings import Settings
    from contrada.spatial.textual.store import Rows


@kernel
def _new_directory(arena: Arena, meta: Meta, words: int) -> tuple[Arena, int]:
    """Make a directory for words below `words`, without children."""
    arena, p, room, tag = allocate(arena, meta, HEADER + words, False)
    arena[p : p + room] = 0
    arena[p], arena[p + SHAPE] = DIRECTORY | tag, room - HEADER
    return arena, p


@kernel
def _build_directory(
    arena: Arena,
    meta: Meta,
    rows: Rows,
    slots: NDArray[np.int32],
    words: int,
    path: Path,
    settings: Settings,
) -> Arena:
    """Build a directory over `slots` as the root: a subtree for each word that is some slot's rarest."""
    arena, p = _new_directory(arena, meta, words)
    arena[ROOT] = p
    arena[p + WEIGHT] = slots.size
    places = np.zeros(words + 1, np.int64)
    for slot in slots:
        places[rows.keywords[rows.start[slot] + rows.length[slot] - 1] + 1] += 1
    for word in range(words):
        places[word + 1] += places[word]
    cursor = places.copy()
    sorted_slots = np.empty(slots.size, np.int32)
    for slot in slots:
        word = rows.keywords[rows.start[slot] + rows.length[slot] - 1]
        sorted_slots[cursor[word]] = slot
        cursor[word] += 1
    for word in range(words):
        mine = sorted_slots[places[word] : places[word + 1]]
        if mine.size > settings.leaf:
            below = Path(1, False, path.region)
            arena = build_subtree(arena, meta, rows, mine, p + HEADER + word, below, settings)
        elif mine.size:
            arena, leaf = write_leaf(arena, meta, rows, mine, 1, settings)
            arena[p + HEADER + word] = leaf
    return arena


@kernel
def _grow_directory(arena: Arena, meta: Meta, words: int) -> Arena:
    """Replace the directory by one that has room for words below `words`."""
    old = arena[ROOT]
    arena, p = _new_directory(arena, meta, words)
    arena[p + WEIGHT] = arena[old + WEIGHT]
    for word in range(arena[old + SHAPE]):
        arena[p + HEADER + word] = arena[old + HEADER + word]
    free(arena, meta, old)
    arena[ROOT] = p
    return arena


class RankedKeyTree(PartitionTree):
    """Ranked-key tree. Options: see `PartitionTree`."""

    name = "rk-tree"
    rare_first: ClassVar[bool] = True

    def _build_root(self, slots: NDArray[np.int32], path: Path) -> None:
        words = self.vocabulary.size
        self._arena = _build_directory(self._arena, self._meta, self.store.rows, slots, words, path, self._settings)

    def _insert(self, slot: int) -> None:
        words = self.vocabulary.size
        if words > self._arena[self._arena[ROOT] + SHAPE]:
            self._arena = _grow_directory(self._arena, self._meta, words + words // 2)
        super()._insert(slot)
