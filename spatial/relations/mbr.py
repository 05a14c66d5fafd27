"""What the bounding rectangles of two regions say about the regions: Table 2 of [SIENA-2D], corrected.

Read here the other way round from the paper: for each relation of MBR(A) to MBR(B), the relations of A to B that
remain possible. The paper's rows for covers and covered-by are unsound for irregular shapes: A can cover B with
MBR(A) strictly containing MBR(B), when they touch in a notch of A. So contains leaves covers possible, and inside
leaves covered-by.

Two rectangles that cross, each sticking out of the other on two opposite sides, prove more: A has a path in its
interior from left to right and B one from top to bottom, so the regions overlap. That takes regions in one part each,
with holes or not, and so it does that regions of equal rectangles are not disjoint: of those in several parts
`POSSIBLE_OF_PARTS` is true, and crossing rectangles tell no more of them than overlapping ones.

Every discretization keeps to this table, exact ones by nature and `uniform` by definition, so an index may accept and
reject by rectangles whichever is in use.
"""

from __future__ import annotations

from typing import Final

from contrada.spatial.relations import relation as codes
from contrada.spatial.storage.jit import kernel

_APART: Final = 1 << codes.DISJOINT | 1 << codes.MEETS
_SIDEWAYS: Final = _APART | 1 << codes.OVERLAPS

# By the code of the relation of MBR(A) to MBR(B): the mask of possible relations of A to B.
POSSIBLE: Final = (
    1 << codes.DISJOINT,
    _APART,
    _SIDEWAYS,
    codes.ALL & ~(1 << codes.DISJOINT | 1 << codes.INSIDE | 1 << codes.CONTAINS),
    _SIDEWAYS | 1 << codes.INSIDE | 1 << codes.COVERED_BY,
    _SIDEWAYS | 1 << codes.CONTAINS | 1 << codes.COVERS,
    _SIDEWAYS | 1 << codes.COVERED_BY,
    _SIDEWAYS | 1 << codes.COVERS,
)
POSSIBLE_OF_PARTS: Final = (*POSSIBLE[:3], POSSIBLE[3] | 1 << codes.DISJOINT, *POSSIBLE[4:])


@kernel
def relate_boxes(ax1: float, ay1: float, ax2: float, ay2: float, bx1: float, by1: float, bx2: float, by2: float) -> int:
    """Return the code of the relation of rectangle A to rectangle B."""
    if ax1 > bx2 or bx1 > ax2 or ay1 > by2 or by1 > ay2:
        return codes.DISJOINT
    if ax1 == bx2 or bx1 == ax2 or ay1 == by2 or by1 == ay2:
        return codes.MEETS
    a_in_b = ax1 >= bx1 and ax2 <= bx2 and ay1 >= by1 and ay2 <= by2
    b_in_a = bx1 >= ax1 and bx2 <= ax2 and by1 >= ay1 and by2 <= ay2
    if a_in_b and b_in_a:
        return codes.EQUALS
    if a_in_b:
        return codes.INSIDE if ax1 > bx1 and ax2 < bx2 and ay1 > by1 and ay2 < by2 else codes.COVERED_BY
    if b_in_a:
        return codes.CONTAINS if bx1 > ax1 and bx2 < ax2 and by1 > ay1 and by2 < ay2 else codes.COVERS
    return codes.OVERLAPS


@kernel
def boxes_cross(ax1: float, ay1: float, ax2: float, ay2: float, bx1: float, by1: float, bx2: float, by2: float) -> bool:
    """Whether each rectangle sticks out of the other on two opposite sides."""
    if ax1 < bx1 and ax2 > bx2:
        return ay1 > by1 and ay2 < by2
    return ax1 > bx1 and ax2 < bx2 and ay1 < by1 and ay2 > by2
