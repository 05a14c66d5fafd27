"""Refuses a loaded AP-tree whose arena would lead kernels astray: every node is looked at once, level by level.

Nodes are of many sizes and lie anywhere, so which words are nodes is known only by walking. The tree is shallow; each
level is a few vectorised steps for each kind of node. What is met twice is no tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.errors import CorruptFile
from contrada.spatial.storage.row_numbers import check_rows, check_that, spread
from contrada.spatial.textual.partition_tree.nodes import (
    BINS,
    DIRECTORY,
    FIRST_BLOCK,
    HEADER,
    KEYWORD,
    META_SIZE,
    QUERY,
    RECORD,
    ROOT,
    SHAPE,
    SPATIAL,
    USED,
    WEIGHT,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.partition_tree.nodes import Arena, Meta

    Places = NDArray[np.int64]

_WHAT: Final = "ap-tree"
_LARGEST: Final = 1 << 31


def guard_arena(arena: Arena, meta: Meta, universe: NDArray[np.float64], slots: int) -> None:
    """Raise `CorruptFile` unless the arena is a tree over slots."""
    dtypes = arena.dtype == np.int32 and meta.dtype == np.int64 and universe.dtype == np.float64
    check_that(f"{_WHAT}: arrays of other types", dtypes and arena.ndim == 1 and universe.shape == (4,))
    if meta.shape != (META_SIZE,) or meta[USED] != arena.size or arena.size < FIRST_BLOCK:
        raise CorruptFile(f"{_WHAT}: the arena and its directory do not fit together")
    taken = np.zeros(arena.size + 1, np.int8)  # where blocks begin, and where they end: none overlap
    level: Places = arena[ROOT : ROOT + 1].astype(np.int64)
    root = True
    while (level := level[level != 0]).size:
        check_rows(f"{_WHAT}: nodes", level, arena.size - HEADER + 1, FIRST_BLOCK)
        kinds = arena[level] & 3
        check_that(f"{_WHAT}: a directory below the root", root | (kinds != DIRECTORY))
        below = [np.zeros(0, np.int64)]
        for kind in (QUERY, KEYWORD, SPATIAL, DIRECTORY):
            mine = level[kinds == kind]
            if mine.size:
                first, count, words = _parts(arena, mine, kind)
                check_that(f"{_WHAT}: a node beyond the end", (words >= HEADER) & (mine + words <= arena.size))
                _mark(taken, mine)
                places, _ = spread(first, count)
                if kind == QUERY:
                    check_rows(f"{_WHAT}: slots", arena[places], slots)
                else:
                    below.append(arena[places].astype(np.int64))
        level = np.concatenate(below)
        root = False
    _guard_bins(arena, meta, taken)


def _parts(arena: Arena, nodes: Places, kind: int) -> tuple[Places, Places, Places]:
    """Where the children, or slots, of nodes of one kind begin; how many they are; how many words the node takes."""
    shape = arena[nodes + SHAPE].astype(np.int64)
    check_that(f"{_WHAT}: a node of no shape", (shape >= 0) & (shape < _LARGEST))
    if kind == QUERY:
        count = arena[nodes + WEIGHT].astype(np.int64)
        check_that(f"{_WHAT}: more entries than room", (count >= 0) & (count <= shape))
        words = HEADER + (1 + RECORD) * shape
        check_that(f"{_WHAT}: a node beyond the end", nodes + words <= arena.size)
        # Slots are the first of each record, so they are told one by one.
        records, owner = spread(np.zeros_like(nodes), count)
        return (nodes + HEADER + shape)[owner] + RECORD * records, np.ones_like(records), words
    if kind == DIRECTORY:
        return nodes + HEADER, shape, HEADER + shape
    if kind == KEYWORD:
        return nodes + HEADER + 2 * shape, shape + 2, HEADER + 2 * shape + 2 * (shape + 2)
    columns, rows = shape & 0xFFFF, shape >> 16
    check_that(f"{_WHAT}: a grid without cells", (columns >= 1) & (rows >= 1))
    first = nodes + HEADER + columns + rows - 2
    return first, columns * rows + 1, HEADER + columns + rows - 2 + 2 * (columns * rows + 1)


def _mark(taken: NDArray[np.int8], nodes: Places) -> None:
    """Note down where nodes begin; none began there before."""
    check_that(f"{_WHAT}: a node in two places", taken[nodes] == 0)
    taken[nodes] = 1
    check_that(f"{_WHAT}: a node in two places", np.unique(nodes).size == nodes.size)


def _guard_bins(arena: Arena, meta: Meta, taken: NDArray[np.int8]) -> None:
    """Free blocks lie in the arena, each in one bin."""
    for number, head in enumerate(meta[BINS:].tolist()):
        words = (4 + number % 4) << (number // 4)
        while head:
            if not (FIRST_BLOCK <= head <= arena.size - words) or taken[head]:
                raise CorruptFile(f"{_WHAT}: free blocks that lead astray")
            taken[head] = 1
            head = int(arena[head])
