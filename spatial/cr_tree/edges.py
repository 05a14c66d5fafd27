"""The edges of a query that are at hand in a node of a CR-tree, and what they decide.

**Why the edges decide.** Let L be the query's edges that touch MBR(B). A point of ∂A on B's boundary is in MBR(B), so
on an edge in L: comparing L with B's edges finds every contact. A proper crossing is overlaps. Without any contact
∂B is wholly inside or outside A, and ∂A wholly inside or outside B, so one vertex of each located in the other decides.
A contact that is not a crossing is left to `relate_regions`, and so are regions of several rings. Of those, too, a box
that no edge touches, of a shell or of a hole, is wholly in the interior or wholly in the exterior.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.spatial.geometry.compound.rows import MARK
from contrada.spatial.geometry.predicates import orient
from contrada.spatial.geometry.ring_arena import ring_boxes, ring_xy
from contrada.spatial.geometry.rings import IN, RUN, locate, next_run
from contrada.spatial.relations.compound.relating import relate_regions
from contrada.spatial.relations.exact import relate_rings
from contrada.spatial.relations.relation import CONTAINS, DISJOINT, INSIDE, OVERLAPS
from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from contrada.spatial.cr_tree.layout import Floats, Ints

PER_EDGE: Final = 64
_ERROR: Final = 4e-16  # above Shewchuk's bound for an orientation in doubles, (3 + 16u)u with u = 2**-53
_APART: Final = 0
_TOUCHING: Final = 1
_CROSSING: Final = 2


@kernel
def edge_touches_box(ax: float, ay: float, bx: float, by: float, x1: float, y1: float, x2: float, y2: float) -> bool:
    """False only if the closed segment ab and the closed box share no point; true may be wrong by rounding."""
    if (ax < x1 and bx < x1) or (ax > x2 and bx > x2) or (ay < y1 and by < y1) or (ay > y2 and by > y2):
        return False
    dx = bx - ax
    dy = by - ay
    # The box misses the line when its corner furthest to the left is on the right, or the reverse.
    if dx > 0.0:
        upper, lower = y2, y1
    else:
        upper, lower = y1, y2
    if dy > 0.0:
        left, right = x1, x2
    else:
        left, right = x2, x1
    u = dx * (upper - ay)
    v = dy * (left - ax)
    if u - v < -_ERROR * (abs(u) + abs(v)):
        return False
    u = dx * (lower - ay)
    v = dy * (right - ax)
    return u - v <= _ERROR * (abs(u) + abs(v))


@kernel
def _edge_against_run(
    px: float, py: float, qx: float, qy: float, heap: Floats, block: int, first: int, last: int
) -> int:
    """How the segment pq stands to edges first..last-1 of a stored ring: _CROSSING, _TOUCHING or _APART."""
    result = _APART
    k = block + 2 * first
    cx = heap[k]
    cy = heap[k + 1]
    before = orient(px, py, qx, qy, cx, cy)
    for _ in range(first, last):
        k += 2
        dx = heap[k]
        dy = heap[k + 1]
        side = orient(px, py, qx, qy, dx, dy)
        if before * side <= 0:
            product = orient(cx, cy, dx, dy, px, py) * orient(cx, cy, dx, dy, qx, qy)
            if product <= 0:
                if product < 0 and before * side < 0:
                    return _CROSSING
                if (
                    max(cx, dx) >= min(px, qx)
                    and min(cx, dx) <= max(px, qx)
                    and max(cy, dy) >= min(py, qy)
                    and min(cy, dy) <= max(py, qy)
                ):
                    result = _TOUCHING
        cx = dx
        cy = dy
        before = side
    return result


@kernel
def _edge_against_ring(
    px: float, py: float, qx: float, qy: float, heap: Floats, block: int, edges: int, left: Ints
) -> int:
    """How the segment pq stands to the boundary of a stored ring."""
    if edges <= RUN:
        left[0] -= 8 * edges
        return _edge_against_run(px, py, qx, qy, heap, block, 0, edges)
    boxes = ring_boxes(heap, block, edges)
    x1, x2 = min(px, qx), max(px, qx)
    y1, y2 = min(py, qy), max(py, qy)
    runs = (edges + RUN - 1) // RUN
    result = _APART
    spent = runs
    run = next_run(boxes, runs, 0, x1, y1, x2, y2)
    while run < runs:
        spent += 8 * RUN
        if edge_touches_box(px, py, qx, qy, boxes[run, 0], boxes[run, 1], boxes[run, 2], boxes[run, 3]):
            found = _edge_against_run(px, py, qx, qy, heap, block, run * RUN, min((run + 1) * RUN, edges))
            if found == _CROSSING:
                result = _CROSSING
                break
            result = max(result, found)
        run = next_run(boxes, runs, run + 1, x1, y1, x2, y2)
    left[0] -= spent
    return result


@inline_kernel
def keep_touching(axy: Floats, edges: Ints, low: int, high: int, x1: float, y1: float, x2: float, y2: float) -> int:
    """Copy those of A's edges[low:high] that touch a box behind them; returns where they end."""
    end = high
    for k in range(low, high):
        e = edges[k]
        x, y = axy[e, 0], axy[e, 1]
        if (x1 <= x <= x2 and y1 <= y <= y2) or edge_touches_box(x, y, axy[e + 1, 0], axy[e + 1, 1], x1, y1, x2, y2):
            edges[end] = e
            end += 1
    return end


@kernel
def relate_by_edges(
    heap: Floats, block: int, edges: int, axy: Floats, aboxes: Floats, touching: Ints, low: int, high: int, left: Ints
) -> int:
    """Return the exact relation of A to a stored region, from A's edges touching[low:high] that touch its MBR.

    What nothing is `left` for may be any.
    """
    if axy[0, 0] == MARK or heap[block] == MARK:
        left[0] -= PER_EDGE * (axy.shape[0] + edges)
        if left[0] < 0:
            return DISJOINT
        return relate_regions(axy, aboxes, ring_xy(heap, block, edges), ring_boxes(heap, block, edges))
    contact = False
    for k in range(low, high):
        i = touching[k]
        found = _edge_against_ring(axy[i, 0], axy[i, 1], axy[i + 1, 0], axy[i + 1, 1], heap, block, edges, left)
        if left[0] < 0:
            return DISJOINT
        if found == _CROSSING:
            return OVERLAPS
        if found == _TOUCHING:
            contact = True
    bxy = ring_xy(heap, block, edges)
    bboxes = ring_boxes(heap, block, edges)
    if contact:
        left[0] -= PER_EDGE * (axy.shape[0] + edges)
        if left[0] < 0:
            return DISJOINT
        return relate_rings(axy, aboxes, bxy, bboxes)
    if locate(bxy[0, 0], bxy[0, 1], axy, aboxes) == IN:
        return CONTAINS
    return INSIDE if locate(axy[0, 0], axy[0, 1], bxy, bboxes) == IN else DISJOINT
