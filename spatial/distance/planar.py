"""Whether paths come within a distance of one another, in the plane. Exact.

A *path* is the form in which kernels have any shape (`rings`): vertices, and boxes over runs of 16 of its edges.

    a point    two equal vertices, one edge of no length
    a line     its vertices
    a ring     its vertices, closed; *filled* if what it encloses belongs to the shape
    rings      the rows of a compound region (`compound.rows`), filled as well

Shapes are within d of each other iff a vertex of one lies in the other, where that is filled, or some edge of one comes
within d of an edge of the other: then one of the four ends does (`comparing`), or the edges cross. Edges are found by
windows grown by d, rounded outwards, so that none is missed: for paths of n and m edges O(n/16 + m/16) plus the edges
whose boxes are near one another, most of which one look at the line through the other tells apart. The first pair that
is near ends the search. Where all boxes are near one another that would be n·m; so the walk has a budget in proportion
to n + m, and beyond it the edges are looked for by strips (`strips`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.spatial.distance.comparing import points_within, segment_within
from contrada.spatial.distance.strips import first_leaves, next_leaves, strips_of
from contrada.spatial.geometry.compound.rows import (
    MARK,
    edge_count,
    locate_in,
    next_ring,
    ring_boxes_at,
    ring_count,
    ring_xy_at,
)
from contrada.spatial.geometry.rings import OUT, RUN, edges_touch, locate, next_run
from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.rings import Floats

_SIDE_ERROR: Final = 2.0**-49  # above the roundings of a difference of two products of differences, relative to them
_WORK_PER_EDGE: Final = 32
_NEAR: Final = -1
_SPENT: Final = -2
_OUTWARDS: Final = 2.0**-50  # above the roundings of a coordinate plus a length, relative to both


@kernel
def less(x: float, d: float) -> float:
    """Return at most x - d, and hardly less."""
    return (x - d) - _OUTWARDS * (abs(x) + d)


@kernel
def more(x: float, d: float) -> float:
    """Return at least x + d, and hardly more."""
    return (x + d) + _OUTWARDS * (abs(x) + d)


@kernel
def point_near_path(px: float, py: float, xy: Floats, boxes: Floats, filled: bool, d: float) -> bool:
    """Whether a point is at most d away from a path."""
    edges = xy.shape[0] - 1
    if edges == 1 and xy[0, 0] == xy[1, 0] and xy[0, 1] == xy[1, 1]:
        return points_within(xy[0, 0], xy[0, 1], px, py, d)
    x1, y1, x2, y2 = less(px, d), less(py, d), more(px, d), more(py, d)
    mbr = boxes.shape[0] - 1
    if boxes[mbr, 0] > x2 or boxes[mbr, 2] < x1 or boxes[mbr, 1] > y2 or boxes[mbr, 3] < y1:
        return False
    if xy[0, 0] == MARK:
        return _point_near_rings(px, py, xy, boxes, filled, d)
    if filled and locate(px, py, xy, boxes) != OUT:
        return True
    return _point_near_edges(px, py, xy, boxes, d)


@kernel
def _point_near_rings(px: float, py: float, xy: Floats, boxes: Floats, filled: bool, d: float) -> bool:
    if filled and locate_in(px, py, xy, boxes) != OUT:
        return True
    x1, y1, x2, y2 = less(px, d), less(py, d), more(px, d), more(py, d)
    rings = ring_count(xy)
    k = next_ring(xy, 0, x1, y1, x2, y2)
    while k < rings:
        if _point_near_edges(px, py, ring_xy_at(xy, k), ring_boxes_at(xy, boxes, k), d):
            return True
        k = next_ring(xy, k + 1, x1, y1, x2, y2)
    return False


@kernel
def _point_near_edges(px: float, py: float, xy: Floats, boxes: Floats, d: float) -> bool:
    x1, y1, x2, y2 = less(px, d), less(py, d), more(px, d), more(py, d)
    edges = xy.shape[0] - 1
    runs = (edges + RUN - 1) // RUN
    run = next_run(boxes, runs, 0, x1, y1, x2, y2)
    while run < runs:
        for i in range(run * RUN, min((run + 1) * RUN, edges)):
            ax, ay, bx, by = xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1]
            if (ax < x1 and bx < x1) or (ax > x2 and bx > x2) or (ay < y1 and by < y1) or (ay > y2 and by > y2):
                continue
            if segment_within(ax, ay, bx, by, px, py, d):
                return True
        run = next_run(boxes, runs, run + 1, x1, y1, x2, y2)
    return False


@inline_kernel
def _on_one_side(
    ax: float, ay: float, bx: float, by: float, px: float, py: float, qx: float, qy: float, d: float
) -> bool:
    """Whether p and q are certainly both more than d away from the line through a and b, on one side of it."""
    x, y = bx - ax, by - ay
    u, v = x * (py - ay), y * (px - ax)
    r, s = x * (qy - ay), y * (qx - ax)
    from_p, from_q = u - v, r - s
    least = d * (abs(x) + abs(y)) + _SIDE_ERROR * (abs(u) + abs(v) + abs(r) + abs(s))
    return (from_p > least and from_q > least) or (from_p < -least and from_q < -least)


@inline_kernel
def _edges_within(
    ax: float, ay: float, bx: float, by: float, px: float, py: float, qx: float, qy: float, d: float
) -> bool:
    """Whether the edges ab and pq are at most d apart."""
    if _on_one_side(ax, ay, bx, by, px, py, qx, qy, d) or _on_one_side(px, py, qx, qy, ax, ay, bx, by, d):
        return False
    return (
        segment_within(ax, ay, bx, by, px, py, d)
        or segment_within(ax, ay, bx, by, qx, qy, d)
        or segment_within(px, py, qx, qy, ax, ay, d)
        or segment_within(px, py, qx, qy, bx, by, d)
        or edges_touch(ax, ay, bx, by, px, py, qx, qy)
    )


@kernel
def _edge_near_path(ax: float, ay: float, bx: float, by: float, xy: Floats, boxes: Floats, d: float) -> int:
    """How many edges of a path are looked at to find none within d of the edge ab; _NEAR when one is."""
    x1, x2 = less(min(ax, bx), d), more(max(ax, bx), d)
    y1, y2 = less(min(ay, by), d), more(max(ay, by), d)
    edges = xy.shape[0] - 1
    runs = (edges + RUN - 1) // RUN
    looked = 0
    run = next_run(boxes, runs, 0, x1, y1, x2, y2)
    while run < runs:
        looked += RUN
        for i in range(run * RUN, min((run + 1) * RUN, edges)):
            px, py, qx, qy = xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1]
            if (px < x1 and qx < x1) or (px > x2 and qx > x2) or (py < y1 and qy < y1) or (py > y2 and qy > y2):
                continue
            if _edges_within(ax, ay, bx, by, px, py, qx, qy, d):
                return _NEAR
        run = next_run(boxes, runs, run + 1, x1, y1, x2, y2)
    return looked


@kernel
def _strips_near(axy: Floats, bxy: Floats, d: float) -> bool:
    """Whether some edge of A comes within d of one of B, in little more than O(n + m) steps."""
    a, a_bounds = strips_of(axy)
    b, b_bounds = strips_of(bxy)
    stack = first_leaves(a.shape[0], b.shape[0])
    row = next_leaves(stack, a_bounds, b_bounds, 0.0, d, False)
    while row > 0:
        for i in range(stack[row, 1], stack[row, 2]):
            for j in range(stack[row, 4], stack[row, 5]):
                if _edges_within(a[i, 0], a[i, 1], a[i, 2], a[i, 3], b[j, 0], b[j, 1], b[j, 2], b[j, 3], d):
                    return True
        row = next_leaves(stack, a_bounds, b_bounds, 0.0, d, False)
    return False


@kernel
def paths_near(
    axy: Floats, aboxes: Floats, a_filled: bool, bxy: Floats, bboxes: Floats, b_filled: bool, d: float
) -> bool:
    """Whether two paths are at most d apart."""
    edges = axy.shape[0] - 1
    if edges == 1 and axy[0, 0] == axy[1, 0] and axy[0, 1] == axy[1, 1]:
        return point_near_path(axy[0, 0], axy[0, 1], bxy, bboxes, b_filled, d)
    mbr = bboxes.shape[0] - 1
    x1, y1 = less(bboxes[mbr, 0], d), less(bboxes[mbr, 1], d)
    x2, y2 = more(bboxes[mbr, 2], d), more(bboxes[mbr, 3], d)
    mbr = aboxes.shape[0] - 1
    if aboxes[mbr, 0] > x2 or aboxes[mbr, 2] < x1 or aboxes[mbr, 1] > y2 or aboxes[mbr, 3] < y1:
        return False
    if axy[0, 0] == MARK or bxy[0, 0] == MARK:
        return _has_ring_in(axy, bxy, bboxes, b_filled) or _rings_near(axy, aboxes, a_filled, bxy, bboxes, d)
    if points_within(axy[0, 0], axy[0, 1], bxy[0, 0], bxy[0, 1], d):
        return True
    if a_filled and locate(bxy[0, 0], bxy[0, 1], axy, aboxes) != OUT:
        return True
    if b_filled and locate(axy[0, 0], axy[0, 1], bxy, bboxes) != OUT:
        return True
    budget = _WORK_PER_EDGE * (axy.shape[0] + bxy.shape[0])
    budget = _edges_near(axy, aboxes, bxy, bboxes, x1, y1, x2, y2, d, budget)
    return budget == _NEAR or (budget == _SPENT and _strips_near(axy, bxy, d))


@kernel
def _has_ring_in(axy: Floats, bxy: Floats, bboxes: Floats, filled: bool) -> bool:
    """Whether the first vertex of some ring of A is in B."""
    if filled:
        for k in range(ring_count(axy)):
            ring = ring_xy_at(axy, k)
            if locate_in(ring[0, 0], ring[0, 1], bxy, bboxes) != OUT:
                return True
    return False


@kernel
def _rings_near(axy: Floats, aboxes: Floats, a_filled: bool, bxy: Floats, bboxes: Floats, d: float) -> bool:
    if _has_ring_in(bxy, axy, aboxes, a_filled):
        return True
    budget = _WORK_PER_EDGE * (edge_count(axy) + edge_count(bxy))
    for j in range(ring_count(bxy)):
        ring, boxes = ring_xy_at(bxy, j), ring_boxes_at(bxy, bboxes, j)
        mbr = boxes[boxes.shape[0] - 1]
        x1, y1, x2, y2 = less(mbr[0], d), less(mbr[1], d), more(mbr[2], d), more(mbr[3], d)
        rings = ring_count(axy)
        i = next_ring(axy, 0, x1, y1, x2, y2)
        while i < rings:
            mine, own = ring_xy_at(axy, i), ring_boxes_at(axy, aboxes, i)
            budget = _edges_near(mine, own, ring, boxes, x1, y1, x2, y2, d, budget)
            if budget < 0:
                return budget == _NEAR or _strips_near(axy, bxy, d)
            i = next_ring(axy, i + 1, x1, y1, x2, y2)
    return False


@kernel
def _edges_near(
    axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats, x1: float, y1: float, x2: float, y2: float, d: float,
    budget: int,
) -> int:  # fmt: skip
    """What is left of a budget of edges to look at when none of A comes within d of B, _NEAR or _SPENT.

    The window is the MBR of B, grown by d.
    """
    edges = axy.shape[0] - 1
    runs = (edges + RUN - 1) // RUN
    run = next_run(aboxes, runs, 0, x1, y1, x2, y2)
    while run < runs:
        for i in range(run * RUN, min((run + 1) * RUN, edges)):
            ax, ay, bx, by = axy[i, 0], axy[i, 1], axy[i + 1, 0], axy[i + 1, 1]
            if (ax < x1 and bx < x1) or (ax > x2 and bx > x2) or (ay < y1 and by < y1) or (ay > y2 and by > y2):
                continue
            looked = _edge_near_path(ax, ay, bx, by, bxy, bboxes, d)
            if looked < 0:
                return _NEAR
            budget -= looked
            if budget < 0:
                return _SPENT
        run = next_run(aboxes, runs, run + 1, x1, y1, x2, y2)
    return budget
