"""The nearest edge of a point: a kd-tree over straight edges (`kd_order.py`), where the paper has a PMR quadtree.

A quadtree cuts edges into the cells they cross, has no bound on its depth where many edges meet, and needs pointers. A
balanced tree over whole edges has one box per block and is found by arithmetic alone.

A point is put on the nearest edge, at the nearest place; of several equally near edges, on that of the lowest number.
Nearness is the squared distance as `nearest` computes it, in doubles. Blocks are left out only when they are farther
than rounding could explain, so the answer is that of trying every edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAF = 4  # edges in a block of the last level, about


@kernel
def _gap(boxes: NDArray[np.float64], row: int, x: float, y: float) -> float:
    """Return the distance of a point to a box."""
    dx = max(boxes[row, 0] - x, x - boxes[row, 2], 0.0)
    dy = max(boxes[row, 1] - y, y - boxes[row, 3], 0.0)
    return float(np.sqrt(dx * dx + dy * dy))


@kernel
def nearest(
    segments: NDArray[np.float64], order: NDArray[np.int32], boxes: NDArray[np.float64], x: float, y: float
) -> tuple[int, float]:
    """Return the edge of a point, and the fraction of it that lies before the nearest place.

    `segments` are x1, y1, x2, y2 by position, `order` the edges by position.
    """
    count = order.size
    levels = 0
    while 2 << levels < boxes.shape[0]:
        levels += 1
    size = max(abs(x), abs(y), -boxes[1, 0], -boxes[1, 1], boxes[1, 2], boxes[1, 3])
    slack = 1e-14 * size
    best = np.inf
    edge = -1
    fraction = 0.0
    rows = np.empty(levels + 2, np.int64)
    rows[0] = 1
    waiting = 1
    while waiting:
        waiting -= 1
        row = rows[waiting]
        if _gap(boxes, row, x, y) * (1.0 - 1e-12) - slack > np.sqrt(best):
            continue
        if row < 1 << levels:
            near, far = 2 * row, 2 * row + 1
            if _gap(boxes, far, x, y) < _gap(boxes, near, x, y):
                near, far = far, near
            rows[waiting] = far
            rows[waiting + 1] = near
            waiting += 2
            continue
        block = row - (1 << levels)
        for i in range(block * count >> levels, (block + 1) * count >> levels):
            dx = segments[i, 2] - segments[i, 0]
            dy = segments[i, 3] - segments[i, 1]
            square = dx * dx + dy * dy
            t = 0.0
            if square > 0.0:
                t = ((x - segments[i, 0]) * dx + (y - segments[i, 1]) * dy) / square
                t = min(max(t, 0.0), 1.0)
            ax = x - (segments[i, 0] + t * dx)
            ay = y - (segments[i, 1] + t * dy)
            distance = ax * ax + ay * ay
            if distance < best or (distance == best and order[i] < edge):
                best = distance
                edge = order[i]
                fraction = t
    return edge, fraction
