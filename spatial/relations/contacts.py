"""Witnesses at the contacts of two boundaries: on which side of each the other leaves.

Where edges of two rings touch without crossing, they touch at a vertex of one of them. On which side of ∂B the edges of
∂A at that vertex leave it, and the reverse, is told by the angular order of the edges there. All directions lead to
existing vertices, so `orient` decides exactly and no point is ever constructed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.spatial.geometry.predicates import orient
from contrada.spatial.geometry.rings import IN, ON, OUT
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.rings import Floats

# What is known of the four open intersections; a bit is set when a witness was found.
A_IN_B: Final = 1
A_OUT_OF_B: Final = 2
B_IN_A: Final = 4
B_OUT_OF_A: Final = 8
CONTACT: Final = 16
# Of stretches that both boundaries share; single rings need no such witness.
ALONG: Final = 32
AGAINST: Final = 64


@kernel
def same_direction(px: float, py: float, ux: float, uy: float, qx: float, qy: float) -> bool:
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
    if from_w == 0 and same_direction(px, py, wx, wy, qx, qy):
        return ON
    from_u = orient(px, py, ux, uy, qx, qy)
    if from_u == 0 and same_direction(px, py, ux, uy, qx, qy):
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
def _shared_stretch(ax: float, ay: float, bx: float, by: float, cx: float, cy: float, dx: float, dy: float) -> int:
    """ALONG when ab and cd, on one line, share more than a point and have one direction; AGAINST when the opposite."""
    if ax == bx:
        ax, bx, cx, dx = ay, by, cy, dy
    if max(min(ax, bx), min(cx, dx)) >= min(max(ax, bx), max(cx, dx)):
        return 0
    return ALONG if (bx > ax) == (dx > cx) else AGAINST


@kernel
def contact_witnesses(axy: Floats, i: int, bxy: Floats, j: int) -> int:
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
    # Edges of tessellations mostly share ends. Where they have no other point in common, other pairs look at that one.
    if ax == dx and ay == dy:
        if bx == cx and by == cy:
            return CONTACT | AGAINST
        if b_side != 0:
            return CONTACT
    elif a_side != 0 and ((bx == cx and by == cy) or (bx == dx and by == dy)):
        return CONTACT
    c_side = orient(ax, ay, bx, by, cx, cy)
    d_side = orient(ax, ay, bx, by, dx, dy)
    if c_side * d_side > 0:
        return 0
    if a_side * b_side < 0 and c_side * d_side < 0:
        return -1
    found = CONTACT
    if a_side == 0 and b_side == 0:
        found |= _shared_stretch(ax, ay, bx, by, cx, cy, dx, dy)
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
            against = bx == fx and by == fy and ex == dx and ey == dy
            if against or (bx == dx and by == dy and ex == fx and ey == fy):
                return found  # boundaries that run together here leave each other on neither side
            found |= _witness(_side_of_corner(fx, fy, cx, cy, dx, dy, bx, by), A_IN_B, A_OUT_OF_B)
            found |= _witness(_side_of_corner(fx, fy, cx, cy, dx, dy, ex, ey), A_IN_B, A_OUT_OF_B)
        else:
            fx, fy = cx, cy
            found |= _witness(_side_of_edge(b_side), A_IN_B, A_OUT_OF_B)
            found |= _witness(_side_of_edge(orient(cx, cy, dx, dy, ex, ey)), A_IN_B, A_OUT_OF_B)
        found |= _witness(_side_of_corner(ex, ey, ax, ay, bx, by, dx, dy), B_IN_A, B_OUT_OF_A)
        found |= _witness(_side_of_corner(ex, ey, ax, ay, bx, by, fx, fy), B_IN_A, B_OUT_OF_A)
    if (
        c_side == 0
        and not (cx == ax and cy == ay)
        and not (cx == bx and cy == by)
        and min(ax, bx) <= cx <= max(ax, bx)
        and min(ay, by) <= cy <= max(ay, by)
    ):
        k = j - 1 if j > 0 else bxy.shape[0] - 2
        fx, fy = bxy[k, 0], bxy[k, 1]
        found |= _witness(_side_of_corner(fx, fy, cx, cy, dx, dy, bx, by), A_IN_B, A_OUT_OF_B)
        found |= _witness(_side_of_corner(fx, fy, cx, cy, dx, dy, ax, ay), A_IN_B, A_OUT_OF_B)
        found |= _witness(_side_of_edge(d_side), B_IN_A, B_OUT_OF_A)
        found |= _witness(_side_of_edge(orient(ax, ay, bx, by, fx, fy)), B_IN_A, B_OUT_OF_A)
    return found


@kernel
def proves_overlap(found: int) -> bool:
    """Whether the witnesses so far leave overlaps as the only relation (Table 1)."""
    both_a = A_IN_B | A_OUT_OF_B
    both_b = B_IN_A | B_OUT_OF_A
    each_in = A_IN_B | B_IN_A
    return found & both_a == both_a or found & both_b == both_b or found & each_in == each_in
