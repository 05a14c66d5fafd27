"""Boxes in an order in which neighbours stand together: a balanced kd-tree without pointers.

At level l there are 2**l blocks, block i being positions `i * n >> l` up to `(i + 1) * n >> l`; so the two halves of a
block are blocks 2i and 2i + 1 of the next level. Each block was split at the median of its centres along its longer
side. The box around block i of level l is row `2**l + i`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def levels_for(count: int, leaf: int, most: int = 40) -> int:
    """How many times to split so that blocks have at most about `leaf` members, and at least one."""
    levels = 0
    while levels < most and count >> levels > leaf and count >> (levels + 1) >= 1:
        levels += 1
    return levels


def kd_order(boxes: NDArray[np.float64], levels: int) -> NDArray[np.int32]:
    """Return the members by position; O(n log n) per level."""
    centres = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    order = np.arange(len(boxes))
    for level in range(levels):
        starts = block_starts(len(boxes), level)[:-1]
        block = np.repeat(np.arange(len(starts)), np.diff(block_starts(len(boxes), level)))
        placed = centres[order]
        extent = np.maximum.reduceat(placed, starts) - np.minimum.reduceat(placed, starts)
        along = np.where((extent[:, 0] >= extent[:, 1])[block], placed[:, 0], placed[:, 1])
        order = order[np.lexsort((order, along, block))]
    return order.astype(np.int32)


def block_starts(count: int, level: int) -> NDArray[np.int64]:
    """Where the blocks of a level begin, and where the last ends."""
    starts: NDArray[np.int64] = np.arange((1 << level) + 1, dtype=np.int64) * count >> level
    return starts


def block_boxes(boxes: NDArray[np.float64], levels: int) -> NDArray[np.float64]:
    """Return the boxes around all blocks of `boxes`, which are in order; row 0 is not used."""
    around = np.zeros((2 << levels, 4))
    for level in range(levels + 1):
        starts = block_starts(len(boxes), level)[:-1]
        rows = slice(1 << level, 2 << level)
        around[rows, :2] = np.minimum.reduceat(boxes[:, :2], starts)
        around[rows, 2:] = np.maximum.reduceat(boxes[:, 2:], starts)
    return around
