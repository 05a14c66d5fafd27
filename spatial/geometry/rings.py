"""A ring in kernels: closed vertices, and boxes over runs of consecutive edges.

    xy     (n+1, 2)  vertices, closed: the last row repeats the first; edge i goes from xy[i] to xy[i+1]
    boxes  (rows, 4) (x1, y1, x2, y2) of runs of 16 edges; then of runs of 16 runs; ...; the last row is the MBR

A boundary is one connected curve, so consecutive edges lie close together, and the runs of a ring make a packed
R-tree over its edges that needs no sorting and no pointers: for 40 edges,

    boxes   0: edges 0-15    1: edges 16-31    2: edges 32-39    3: all (the MBR)

`next_run` is the one walk over it. Everything that looks for edges near something (`locate`, `self_contact`, the exact
relation) steps from run to run with it, so the cost follows the edges that are near, plus a sixteenth of the ring at
worst, rather than the whole ring per edge.

Rings handed to `locate` and to relations are simple, counter-clockwise, without repeated or exactly collinear
vertices. `Region` sees to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.predicates import orient
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

OUT: Final = 0
ON: Final = 1
IN: Final = 2

RUN: Final = 16
_SHIFT: Final = 4
_WITHIN: Final = RUN - 1


@kernel
def box_rows(edges: int) -> int:
    """How many boxes a ring of that many edges has."""
    count = (edges + _WITHIN) >> _SHIFT
    rows = count
    while count > 1:
        count = (count + _WITHIN) >> _SHIFT
        rows += count
    return rows


@kernel
def fill_boxes(xy: Floats, boxes: Floats) -> None:
    """Compute the run boxes of a closed ring into `boxes`, which has `box_rows` rows."""
    edges = xy.shape[0] - 1
    runs = (edges + _WITHIN) >> _SHIFT
    for run in range(runs):
        start = np.uint64(run << _SHIFT)  # unsigned: no tests for negative indexes
        x1 = x2 = xy[start, 0]
        y1 = y2 = xy[start, 1]
        for i in range(1, min(RUN, edges - (run << _SHIFT)) + 1):
            x, y = xy[start + np.uint64(i), 0], xy[start + np.uint64(i), 1]
            x1 = x if x < x1 else x1
            x2 = x if x > x2 else x2
            y1 = y if y < y1 else y1
            y2 = y if y > y2 else y2
        boxes[run, 0] = x1
        boxes[run, 1] = y1
        boxes[run, 2] = x2
        boxes[run, 3] = y2
    fill_upper_boxes(boxes, runs)


@kernel
def fill_upper_boxes(boxes: Floats, runs: int) -> None:
    """Compute the boxes over 16 boxes, over 16 of those and so on, given the first `runs` of them."""
    below = 0
    count = runs
    row = runs
    while count > 1:
        for first in range(0, count, RUN):
            for side in range(4):
                boxes[row, side] = boxes[below + first, side]
            for i in range(first + 1, min(first + RUN, count)):
                boxes[row, 0] = min(boxes[row, 0], boxes[below + i, 0])
                boxes[row, 1] = min(boxes[row, 1], boxes[below + i, 1])
                boxes[row, 2] = max(boxes[row, 2], boxes[below + i, 2])
                boxes[row, 3] = max(boxes[row, 3], boxes[below + i, 3])
            row += 1
        below += count
        count = (count + _WITHIN) >> _SHIFT


@kernel
def next_run(boxes: Floats, runs: int, run: int, x1: float, y1: float, x2: float, y2: float) -> int:
    """Return the first run from `run` on whose box meets the closed window; `runs` when there is none."""
    while run < runs:
        if run & _WITHIN == 0 and runs > RUN:
            level = runs
            count = (runs + _WITHIN) >> _SHIFT
            index = run >> _SHIFT
            span = RUN
            skip = 0
            while True:
                box = level + index
                if boxes[box, 0] <= x2 and boxes[box, 2] >= x1 and boxes[box, 1] <= y2 and boxes[box, 3] >= y1:
                    break
                skip = span
                if index & _WITHIN != 0 or count == 1:
                    break
                level += count
                count = (count + _WITHIN) >> _SHIFT
                index >>= _SHIFT
                span <<= _SHIFT
            if skip:
                run += skip
                continue
        if boxes[run, 0] <= x2 and boxes[run, 2] >= x1 and boxes[run, 1] <= y2 and boxes[run, 3] >= y1:
            return run
        run += 1
    return runs


@kernel
def next_edge(xy: Floats, boxes: Floats, edge: int, x1: float, y1: float, x2: float, y2: float) -> int:
    """Return the first edge from `edge` on whose box meets the closed window; the number of edges if there is none."""
    edges: int = xy.shape[0] - 1
    runs = (edges + RUN - 1) // RUN
    while edge < edges:
        if edge & _WITHIN == 0:
            edge = next_run(boxes, runs, edge >> _SHIFT, x1, y1, x2, y2) << _SHIFT
        for i in range(edge, min((edge | _WITHIN) + 1, edges)):
            ax, ay, bx, by = xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1]
            if not ((ax < x1 and bx < x1) or (ax > x2 and bx > x2) or (ay < y1 and by < y1) or (ay > y2 and by > y2)):
                return i
        edge = (edge | _WITHIN) + 1
    return edges


@kernel
def locate(px: float, py: float, xy: Floats, boxes: Floats) -> int:
    """Where a point is: IN the ring's interior, ON its boundary or OUT. Exact.

    Counts the edges that a ray to the right crosses, an edge owning its lower end. A run of edges wholly to the
    right of the point is a connected curve: it crosses the ray an odd number of times iff its ends are on
    different sides, so it is counted without looking at its edges.
    """
    edges = xy.shape[0] - 1
    runs = (edges + _WITHIN) >> _SHIFT
    inside = False
    run = next_run(boxes, runs, 0, px, py, np.inf, py)
    while run < runs:
        first = run << _SHIFT
        last = min(first + RUN, edges)
        if boxes[run, 0] > px:
            inside ^= (xy[first, 1] > py) != (xy[last, 1] > py)
        else:
            for i in range(first, last):
                ax = xy[i, 0]
                ay = xy[i, 1]
                bx = xy[i + 1, 0]
                by = xy[i + 1, 1]
                if (ay > py) != (by > py):
                    if ax < px and bx < px:
                        continue
                    if ax > px and bx > px:
                        inside = not inside
                        continue
                    side = orient(ax, ay, bx, by, px, py)
                    if side == 0:
                        return ON
                    if (side > 0) == (by > ay):
                        inside = not inside
                elif ay == py and (ax == px or (by == py and (ax < px) != (bx < px))):
                    return ON
        run = next_run(boxes, runs, run + 1, px, py, np.inf, py)
    return IN if inside else OUT


@kernel
def edges_touch(ax: float, ay: float, bx: float, by: float, cx: float, cy: float, dx: float, dy: float) -> bool:
    """Whether the closed segments ab and cd share a point. Exact."""
    if max(ax, bx) < min(cx, dx) or max(cx, dx) < min(ax, bx):
        return False
    if max(ay, by) < min(cy, dy) or max(cy, dy) < min(ay, by):
        return False
    if orient(ax, ay, bx, by, cx, cy) * orient(ax, ay, bx, by, dx, dy) > 0:
        return False
    return orient(cx, cy, dx, dy, ax, ay) * orient(cx, cy, dx, dy, bx, by) <= 0


@kernel
def self_contact(xy: Floats, boxes: Floats) -> tuple[int, int]:
    """Return the first pair of edges that touch where a simple ring's would not; (-1, -1) when there is none.

    Edges that are not neighbours may not touch at all; neighbours may share their vertex and nothing else.
    """
    edges = xy.shape[0] - 1
    runs = (edges + _WITHIN) >> _SHIFT
    for i in range(edges):
        ax = xy[i, 0]
        ay = xy[i, 1]
        bx = xy[i + 1, 0]
        by = xy[i + 1, 1]
        x1 = min(ax, bx)
        x2 = max(ax, bx)
        y1 = min(ay, by)
        y2 = max(ay, by)
        run = next_run(boxes, runs, (i + 1) >> _SHIFT, x1, y1, x2, y2)
        while run < runs:
            for j in range(max(run << _SHIFT, i + 1), min((run + 1) << _SHIFT, edges)):
                cx = xy[j, 0]
                cy = xy[j, 1]
                dx = xy[j + 1, 0]
                dy = xy[j + 1, 1]
                if j == i + 1 or (i == 0 and j == edges - 1):
                    # One vertex is shared. A second common point needs the far ends on one side of it, in line.
                    if j == i + 1:
                        sx, sy, px, py, qx, qy = bx, by, ax, ay, dx, dy
                    else:
                        sx, sy, px, py, qx, qy = ax, ay, bx, by, cx, cy
                    if orient(px, py, sx, sy, qx, qy) == 0:
                        if px != sx:
                            folded = (px > sx) == (qx > sx)
                        else:
                            folded = (py > sy) == (qy > sy)
                        if folded:
                            return i, j
                elif edges_touch(ax, ay, bx, by, cx, cy, dx, dy):
                    return i, j
            run = next_run(boxes, runs, run + 1, x1, y1, x2, y2)
    return -1, -1
