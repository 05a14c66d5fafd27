"""The exact relation of two rings: the 4-intersection model with witnesses chosen where they matter.

Paper 1 (section 3.1) decides a relation by four intersections, each by a witness point on a boundary:
∂A ∩ ∂B, ∂A ∩ B°, A° ∩ ∂B and ∂A ∩ B⁻. It samples both boundaries; we look only where the answer can change. The class
of ∂A against B changes only at points of ∂A ∩ ∂B, so:

- a *proper* crossing of two edges proves overlaps, and ends the search;
- without one, every contact is at a vertex of A or of B, or is a collinear run that ends at such vertices. Each
  piece of ∂A between contacts leaves one, and on which side of ∂B it leaves is told by the angular order of the
  edges at that vertex. All the directions there lead to existing vertices, so `orient` decides exactly and no point is
  ever constructed;
- without any contact, one vertex located in the other ring decides.

The paper's second loop can fall through when every sample of ∂B lies on ∂A (a triangle inscribed in a hexagon);
here both boundaries are classified at each contact, so that case is decided like any other.

Let W be the common window of the two MBRs. The ring with the larger MBR offers its edges that meet W, found through
its run boxes, and each is compared with the other ring's edges near it, found likewise. For rings of n and m edges
this costs O(n/16 + m/16) plus the edges near one another, and n·m only when all of them are. The result is the same
from either side and for any start vertex, since it is a function of the two point sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.spatial._jit import kernel
from contrada.spatial.predicates import orient
from contrada.spatial.relation import (
    CONTAINS,
    CONVERSE_CODE,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    MEETS,
    OVERLAPS,
)
from contrada.spatial.rings import IN, ON, OUT, RUN, locate, next_run

if TYPE_CHECKING:
    from contrada.spatial.rings import Floats

# What is known of the four open intersections; a bit is set when a witness was found.
_A_IN_B: Final = 1
_A_OUT_OF_B: Final = 2
_B_IN_A: Final = 4
_B_OUT_OF_A: Final = 8
_CONTACT: Final = 16


@kernel
def _same_direction(px: float, py: float, ux: float, uy: float, qx: float, qy: float) -> bool:
    """Whether u and q, in line with p, are on the same side of it."""
    if ux != px:
        return (ux > px) == (qx > px)
    return (uy > py) == (qy > py)


@kernel
def _side_of_corner(ux: float, uy: float, px: float, py: float, wx: float, wy: float, qx: float, qy: float) -> int:
    """Where a step from p towards q leads, p being the vertex between u and w of a counter-clockwise ring.

    The interior at p is the angle from pw, counter-clockwise, to pu.
    """
    from_w = orient(px, py, wx, wy, qx, qy)
    if from_w == 0 and _same_direction(px, py, wx, wy, qx, qy):
        return ON
    from_u = orient(px, py, ux, uy, qx, qy)
    if from_u == 0 and _same_direction(px, py, ux, uy, qx, qy):
        return ON
    if orient(ux, uy, px, py, wx, wy) >= 0:
        return IN if from_w > 0 and from_u < 0 else OUT
    return OUT if from_w < 0 and from_u > 0 else IN


@kernel
def _side_of_edge(side: int) -> int:
    """Where a step from inside an edge leads, given the orientation of its target to the edge."""
    if side == 0:
        return ON
    return IN if side > 0 else OUT


@kernel
def _witness(side: int, when_in: int, when_out: int) -> int:
    if side == IN:
        return when_in
    return when_out if side == OUT else 0


@kernel
def _contact_witnesses(axy: Floats, i: int, bxy: Floats, j: int) -> int:
    """Witnesses at the contacts of edge i of A with edge j of B; -1 when the edges cross properly.

    A contact at a vertex of A belongs to the pair of the edge that starts there and the edge of B that holds
    it, its end excluded; a contact at a vertex of B alone, to the edge of B that starts there. So each is examined
    once, whichever of the four pairs of edges around it comes first.
    """
    ax, ay, bx, by = axy[i, 0], axy[i, 1], axy[i + 1, 0], axy[i + 1, 1]
    cx, cy, dx, dy = bxy[j, 0], bxy[j, 1], bxy[j + 1, 0], bxy[j + 1, 1]
    a_side = orient(cx, cy, dx, dy, ax, ay)
    b_side = orient(cx, cy, dx, dy, bx, by)
    if a_side * b_side > 0:
        return 0
    c_side = orient(ax, ay, bx, by, cx, cy)
    d_side = orient(ax, ay, bx, by, dx, dy)
    if c_side * d_side > 0:
        return 0
    if a_side * b_side < 0 and c_side * d_side < 0:
        return -1
    found = _CONTACT
    if (
        a_side == 0
        and not (ax == dx and ay == dy)
        and min(cx, dx) <= ax <= max(cx, dx)
        and min(cy, dy) <= ay <= max(cy, dy)
    ):
        last = axy.shape[0] - 2
        k = i - 1 if i > 0 else last
        ex, ey = axy[k, 0], axy[k, 1]
        if ax == cx and ay == cy:
            k = j - 1 if j > 0 else bxy.shape[0] - 2
            fx, fy = bxy[k, 0], bxy[k, 1]
            found |= _witness(_side_of_corner(fx, fy, cx, cy, dx, dy, bx, by), _A_IN_B, _A_OUT_OF_B)
            found |= _witness(_side_of_corner(fx, fy, cx, cy, dx, dy, ex, ey), _A_IN_B, _A_OUT_OF_B)
        else:
            fx, fy = cx, cy
            found |= _witness(_side_of_edge(b_side), _A_IN_B, _A_OUT_OF_B)
            found |= _witness(_side_of_edge(orient(cx, cy, dx, dy, ex, ey)), _A_IN_B, _A_OUT_OF_B)
        found |= _witness(_side_of_corner(ex, ey, ax, ay, bx, by, dx, dy), _B_IN_A, _B_OUT_OF_A)
        found |= _witness(_side_of_corner(ex, ey, ax, ay, bx, by, fx, fy), _B_IN_A, _B_OUT_OF_A)
    if (
        c_side == 0
        and not (cx == ax and cy == ay)
        and not (cx == bx and cy == by)
        and min(ax, bx) <= cx <= max(ax, bx)
        and min(ay, by) <= cy <= max(ay, by)
    ):
        k = j - 1 if j > 0 else bxy.shape[0] - 2
        fx, fy = bxy[k, 0], bxy[k, 1]
        found |= _witness(_side_of_corner(fx, fy, cx, cy, dx, dy, bx, by), _A_IN_B, _A_OUT_OF_B)
        found |= _witness(_side_of_corner(fx, fy, cx, cy, dx, dy, ax, ay), _A_IN_B, _A_OUT_OF_B)
        found |= _witness(_side_of_edge(d_side), _B_IN_A, _B_OUT_OF_A)
        found |= _witness(_side_of_edge(orient(ax, ay, bx, by, fx, fy)), _B_IN_A, _B_OUT_OF_A)
    return found


@kernel
def _proves_overlap(found: int) -> bool:
    """Whether the witnesses so far leave overlaps as the only relation (Table 1)."""
    both_a = _A_IN_B | _A_OUT_OF_B
    both_b = _B_IN_A | _B_OUT_OF_A
    each_in = _A_IN_B | _B_IN_A
    return found & both_a == both_a or found & both_b == both_b or found & each_in == each_in


@kernel
def _relate_from_larger(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats) -> int:
    a_mbr = aboxes.shape[0] - 1
    b_mbr = bboxes.shape[0] - 1
    wx1 = max(aboxes[a_mbr, 0], bboxes[b_mbr, 0])
    wy1 = max(aboxes[a_mbr, 1], bboxes[b_mbr, 1])
    wx2 = min(aboxes[a_mbr, 2], bboxes[b_mbr, 2])
    wy2 = min(aboxes[a_mbr, 3], bboxes[b_mbr, 3])
    if wx1 > wx2 or wy1 > wy2:
        return DISJOINT
    a_edges = axy.shape[0] - 1
    b_edges = bxy.shape[0] - 1
    a_runs = (a_edges + RUN - 1) // RUN
    b_runs = (b_edges + RUN - 1) // RUN
    found = 0
    a_run = next_run(aboxes, a_runs, 0, wx1, wy1, wx2, wy2)
    while a_run < a_runs:
        for i in range(a_run * RUN, min((a_run + 1) * RUN, a_edges)):
            x1 = min(axy[i, 0], axy[i + 1, 0])
            x2 = max(axy[i, 0], axy[i + 1, 0])
            y1 = min(axy[i, 1], axy[i + 1, 1])
            y2 = max(axy[i, 1], axy[i + 1, 1])
            if x1 > wx2 or x2 < wx1 or y1 > wy2 or y2 < wy1:
                continue
            b_run = next_run(bboxes, b_runs, 0, x1, y1, x2, y2)
            while b_run < b_runs:
                for j in range(b_run * RUN, min((b_run + 1) * RUN, b_edges)):
                    if (bxy[j, 0] > x2 and bxy[j + 1, 0] > x2) or (bxy[j, 0] < x1 and bxy[j + 1, 0] < x1):
                        continue
                    if (bxy[j, 1] > y2 and bxy[j + 1, 1] > y2) or (bxy[j, 1] < y1 and bxy[j + 1, 1] < y1):
                        continue
                    witnesses = _contact_witnesses(axy, i, bxy, j)
                    if witnesses < 0:
                        return OVERLAPS
                    found |= witnesses
                    if _proves_overlap(found):
                        return OVERLAPS
                b_run = next_run(bboxes, b_runs, b_run + 1, x1, y1, x2, y2)
        a_run = next_run(aboxes, a_runs, a_run + 1, wx1, wy1, wx2, wy2)
    if found & _CONTACT == 0:
        if locate(bxy[0, 0], bxy[0, 1], axy, aboxes) == IN:
            return CONTAINS
        # Rare though A has the larger extent: the extents may be equal by rounding alone.
        return INSIDE if locate(axy[0, 0], axy[0, 1], bxy, bboxes) == IN else DISJOINT
    if found & _A_IN_B:
        return COVERED_BY
    if found & _B_IN_A:
        return COVERS
    return MEETS if found & _A_OUT_OF_B else EQUALS


@kernel
def relate_rings(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats) -> int:
    """Return the code of the exact relation of ring A to ring B."""
    a = aboxes.shape[0] - 1
    b = bboxes.shape[0] - 1
    # The larger ring has fewer edges in the common window. Either choice gives the same answer.
    a_extent = (aboxes[a, 2] - aboxes[a, 0]) + (aboxes[a, 3] - aboxes[a, 1])
    b_extent = (bboxes[b, 2] - bboxes[b, 0]) + (bboxes[b, 3] - bboxes[b, 1])
    if a_extent >= b_extent:
        return _relate_from_larger(axy, aboxes, bxy, bboxes)
    relation = _relate_from_larger(bxy, bboxes, axy, aboxes)
    return CONVERSE_CODE[relation]
