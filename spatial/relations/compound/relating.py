"""The exact relation of regions with holes or several parts.

The four intersections of boundaries and interiors, by which [SIENA-2D] decides, are not enough for such regions: A with
one part inside B and one apart from it has neither a boundary nor an interior wholly in B, and A in a hole of B touches
nothing of it. What is asked is which of these are not empty:

    BOTH   A° ∩ B°        ONLY_A   A° - B        ONLY_B   B° - A

and whether the boundaries touch. The two boundaries cut the plane into faces, each of which is in one of these three or
in neither region, and has a stretch of a boundary beside it. Contacts cut the boundaries into stretches; along a
stretch nothing changes, and what it is tells what is on both sides of it, for the interior is left of every edge:

    of ∂A in B°            BOTH, ONLY_B          of ∂B in A°            BOTH, ONLY_A
    of ∂A outside B        ONLY_A                of ∂B outside A        ONLY_B
    of both, in one direction   BOTH             of both, in opposite ones   ONLY_A, ONLY_B

So the relation is decided when every stretch has been seen. A stretch that ends at a contact is seen there, by
orientation signs alone (`contacts`), and a proper crossing is overlaps, as for single rings. A ring without contact is
one stretch, and one vertex of it located in the other region decides.

At a contact the rays of one ring are held against the corner of another ring. That is the whole truth unless another
ring of the same region touches that corner. Regions know the points where their own rings touch; where the other
boundary passes through one of those, all rays of both regions are looked at together (`rays`). Where there are too many
of them, or too many edges near one another, a plane sweep decides (`faces`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.compound.rows import (
    MARK,
    edge_count,
    locate_in,
    next_ring,
    ring_boxes_at,
    ring_count,
    ring_xy_at,
    touch_points,
)
from contrada.spatial.geometry.rings import IN, ON
from contrada.spatial.relations import relation as codes
from contrada.spatial.relations.compound.faces import ALL_FACES, BOTH, ONLY_A, ONLY_B, TOUCH, sweep_faces
from contrada.spatial.relations.compound.rays import faces_around
from contrada.spatial.relations.contacts import (
    A_IN_B,
    A_OUT_OF_B,
    AGAINST,
    ALONG,
    B_IN_A,
    B_OUT_OF_A,
    CONTACT,
    proves_overlap,
)
from contrada.spatial.relations.exact import WORK_PER_EDGE, contacts_between, relate_rings, same_rows
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.geometry.rings import Floats

_FACES_OF: Final = (
    (A_IN_B, BOTH | ONLY_B),
    (A_OUT_OF_B, ONLY_A),
    (B_IN_A, BOTH | ONLY_A),
    (B_OUT_OF_A, ONLY_B),
    (ALONG, BOTH),
    (AGAINST, ONLY_A | ONLY_B),
    (CONTACT, TOUCH),
)


_MOST_SPECIAL: Final = 32  # points at which a region touches itself and the other


@kernel
def relate_regions(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats) -> int:
    """Return the code of the exact relation of region A to region B, single or compound.

    Loops over many regions that are mostly single look for themselves, and call `relate_rings`: entering a function
    takes as long as telling that two MBRs are apart.
    """
    if axy[0, 0] != MARK and bxy[0, 0] != MARK:
        return relate_rings(axy, aboxes, bxy, bboxes)
    return _relate_compound(axy, aboxes, bxy, bboxes)


@kernel
def relation_of_faces(faces: int) -> int:
    """Return the relation of two regions, given which faces there are and whether the boundaries touch."""
    touch = faces & TOUCH != 0
    if faces & BOTH == 0:
        return codes.MEETS if touch else codes.DISJOINT
    if faces & ONLY_A == 0:
        if faces & ONLY_B == 0:
            return codes.EQUALS
        return codes.COVERED_BY if touch else codes.INSIDE
    if faces & ONLY_B == 0:
        return codes.COVERS if touch else codes.CONTAINS
    return codes.OVERLAPS


@kernel
def _touches_on(axy: Floats, bxy: Floats, bboxes: Floats, special: Floats, count: int) -> int:
    """Add the points at which rings of A touch one another, and which are on the boundary of B; -1: too many."""
    if axy[0, 0] == MARK and count >= 0:
        touches = touch_points(axy)
        for k in range(touches.shape[0]):
            if locate_in(touches[k, 0], touches[k, 1], bxy, bboxes) == ON:
                if count == special.shape[0]:
                    return -1
                special[count] = touches[k]
                count += 1
    return count


@kernel
def _relate_compound(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats) -> int:
    if axy.shape[0] == bxy.shape[0] and same_rows(axy, bxy):
        return codes.EQUALS
    a, b = aboxes[aboxes.shape[0] - 1], bboxes[bboxes.shape[0] - 1]
    wx1, wy1, wx2, wy2 = max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])
    if wx1 > wx2 or wy1 > wy2:
        return codes.DISJOINT
    # What is outside of the other's MBR needs no looking at.
    faces = 0
    if a[0] < b[0] or a[1] < b[1] or a[2] > b[2] or a[3] > b[3]:
        faces |= ONLY_A
    if b[0] < a[0] or b[1] < a[1] or b[2] > a[2] or b[3] > a[3]:
        faces |= ONLY_B
    a_rings, b_rings = ring_count(axy), ring_count(bxy)
    budget = WORK_PER_EDGE * (edge_count(axy) + edge_count(bxy))
    special, left = np.empty((_MOST_SPECIAL, 2)), np.empty((4 * _MOST_SPECIAL, 2))
    left[0, 0] = 0.0
    count = _touches_on(bxy, axy, aboxes, special, _touches_on(axy, bxy, bboxes, special, 0))
    if count < 0 or 4 * a_rings * b_rings > budget:
        return relation_of_faces(sweep_faces(axy, bxy))
    special = special[:count]
    a_touched, b_touched = np.zeros(a_rings, np.bool_), np.zeros(b_rings, np.bool_)
    found = 0
    i = next_ring(axy, 0, wx1, wy1, wx2, wy2)
    while i < a_rings:
        ring, boxes = ring_xy_at(axy, i), ring_boxes_at(axy, aboxes, i)
        mbr = boxes[boxes.shape[0] - 1]
        x1, y1, x2, y2 = max(mbr[0], wx1), max(mbr[1], wy1), min(mbr[2], wx2), min(mbr[3], wy2)
        j = next_ring(bxy, 0, x1, y1, x2, y2)
        while j < b_rings:
            witnesses, budget = contacts_between(
                ring,
                boxes,
                ring_xy_at(bxy, j),
                ring_boxes_at(bxy, bboxes, j),
                x1,
                y1,
                x2,
                y2,
                budget,
                count > 0,
                special,
                left,
            )
            if witnesses < 0 or proves_overlap(found | witnesses):
                return codes.OVERLAPS
            if budget < 0:
                return relation_of_faces(sweep_faces(axy, bxy))
            if witnesses & CONTACT:
                a_touched[i] = b_touched[j] = True
            found |= witnesses
            j = next_ring(bxy, j + 1, x1, y1, x2, y2)
        i = next_ring(axy, i + 1, wx1, wy1, wx2, wy2)
    for witness, meaning in _FACES_OF:
        if found & witness:
            faces |= meaning
    for k in range(1, int(left[0, 0]) + 1):
        around = faces_around(axy, aboxes, bxy, bboxes, left[k, 0], left[k, 1])
        if around < 0:
            return relation_of_faces(sweep_faces(axy, bxy))
        faces |= around
    faces |= _lone_rings(axy, a_touched, bxy, bboxes, wx1, wy1, wx2, wy2, faces, BOTH | ONLY_B, ONLY_A)
    faces |= _lone_rings(bxy, b_touched, axy, aboxes, wx1, wy1, wx2, wy2, faces, BOTH | ONLY_A, ONLY_B)
    return relation_of_faces(faces)


@kernel
def _lone_rings(
    axy: Floats,
    touched: NDArray[np.bool_],
    bxy: Floats,
    bboxes: Floats,
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    faces: int,
    within: int,
    without: int,
) -> int:
    """Add to the faces what the rings of A that do not touch B are beside: `within` it and `without`."""
    k = next_ring(axy, 0, x1, y1, x2, y2)
    while k < touched.shape[0] and faces & ALL_FACES != ALL_FACES:
        if not touched[k]:
            ring = ring_xy_at(axy, k)
            faces |= within if locate_in(ring[0, 0], ring[0, 1], bxy, bboxes) == IN else without
        k = next_ring(axy, k + 1, x1, y1, x2, y2)
    return faces
