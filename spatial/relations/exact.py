"""The exact relation of two rings: the 4-intersection model with witnesses chosen where they matter.

[SIENA-2D] (section 3.1) decides a relation by four intersections, each by a witness point on a boundary:
∂A ∩ ∂B, ∂A ∩ B°, A° ∩ ∂B and ∂A ∩ B⁻. It samples both boundaries; we look only where the answer can change. The class
of ∂A against B changes only at points of ∂A ∩ ∂B, so:

- a *proper* crossing of two edges proves overlaps, and ends the search;
- without one, every contact is at a vertex of A or of B, or is a collinear run that ends at such vertices. Each
  piece of ∂A between contacts leaves one, and on which side of ∂B it leaves is told by the angular order of the
  edges at that vertex. All the directions there lead to existing vertices, so `orient` decides exactly and no point is
  ever constructed;
- without any contact, one vertex located in the other ring decides.

Equal regions have the same canonical ring: that is looked at first, and costs nothing where it fails.

The paper's second loop can fall through when every sample of ∂B lies on ∂A (a triangle inscribed in a hexagon);
here both boundaries are classified at each contact, so that case is decided like any other.

Let W be the common window of the two MBRs. The ring with the larger MBR offers its edges that meet W, found through
its run boxes, and each is compared with the other ring's edges near it, found likewise. For rings of n and m edges
this costs O(n/16 + m/16) plus the edges near one another. Where all of them are near, as for combs of long slanted
teeth, that would be n·m; so the walk has a budget of edges in proportion to n + m (tests of boxes are not counted),
and beyond it a plane sweep finds the contacts in O((n + m) log (n + m)) (`red_blue`). The result is the same from
either side and for any start vertex, since it is a function of the two point sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.spatial.geometry.rings import IN, RUN, locate, next_run
from contrada.spatial.relations import relation as codes
from contrada.spatial.relations.contacts import (
    A_IN_B,
    A_OUT_OF_B,
    AGAINST,
    ALONG,
    B_IN_A,
    B_OUT_OF_A,
    CONTACT,
    contact_witnesses,
    proves_overlap,
)
from contrada.spatial.relations.red_blue import sweep_witnesses
from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.rings import Floats

_SIDES: Final = A_IN_B | A_OUT_OF_B | B_IN_A | B_OUT_OF_A
# A run looked into counts as its edges, a pair of edges compared as as many: twice what dense real boundaries need.
WORK_PER_EDGE: Final = 512


@kernel
def _without_crossing(found: int, axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats) -> int:
    """Return the relation, given the witnesses at all contacts, which do not prove overlaps."""
    if found & CONTACT == 0:
        if locate(bxy[0, 0], bxy[0, 1], axy, aboxes) == IN:
            return codes.CONTAINS
        # Rare though A has the larger extent: the extents may be equal by rounding alone.
        return codes.INSIDE if locate(axy[0, 0], axy[0, 1], bxy, bboxes) == IN else codes.DISJOINT
    if found & A_IN_B:
        return codes.COVERED_BY
    if found & B_IN_A:
        return codes.COVERS
    return codes.MEETS if found & A_OUT_OF_B else codes.EQUALS


@kernel
def _among(points: Floats, point: Floats) -> bool:
    found = False
    for k in range(points.shape[0]):
        found |= bool(points[k, 0] == point[0] and points[k, 1] == point[1])
    return found


@kernel
def _leave(left: Floats, point: Floats) -> bool:
    """Add a point to a list whose first row begins with how many there are; false when it is full."""
    count = int(left[0, 0])
    if _among(left[1 : count + 1], point):
        return True
    if count + 1 == left.shape[0]:
        return False
    left[count + 1] = point
    left[0, 0] += 1.0
    return True


@inline_kernel
def contacts_between(
    axy: Floats,
    aboxes: Floats,
    bxy: Floats,
    bboxes: Floats,
    wx1: float,
    wy1: float,
    wx2: float,
    wy2: float,
    budget: int,
    careful: bool,
    special: Floats,
    left: Floats,
) -> tuple[int, int]:
    """Return the witnesses at all contacts of two rings, and what is left of a budget of work.

    All contacts must be in the window. The witnesses are -1 when something proves overlaps, and incomplete when the
    budget left is negative. If it is asked to be `careful`, pairs of edges that start at a special point are no
    witnesses of sides; where they start is left to the caller, as rows of `left` behind the first, which counts them.
    """
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
                budget -= RUN
                for j in range(b_run * RUN, min((b_run + 1) * RUN, b_edges)):
                    if (bxy[j, 0] > x2 and bxy[j + 1, 0] > x2) or (bxy[j, 0] < x1 and bxy[j + 1, 0] < x1):
                        continue
                    if (bxy[j, 1] > y2 and bxy[j + 1, 1] > y2) or (bxy[j, 1] < y1 and bxy[j + 1, 1] < y1):
                        continue
                    budget -= RUN
                    witnesses = contact_witnesses(axy, i, bxy, j)
                    if witnesses < 0:
                        return -1, budget
                    if careful and witnesses & _SIDES != 0 and (_among(special, axy[i]) or _among(special, bxy[j])):
                        witnesses &= CONTACT | ALONG | AGAINST
                        if not (_leave(left, axy[i]) and _leave(left, bxy[j])):
                            return found, -1
                    found |= witnesses
                    if proves_overlap(found):
                        return -1, budget
                b_run = next_run(bboxes, b_runs, b_run + 1, x1, y1, x2, y2)
            if budget < 0:
                return found, budget
        a_run = next_run(aboxes, a_runs, a_run + 1, wx1, wy1, wx2, wy2)
    return found, budget


@kernel
def _relate_from_larger(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats) -> int:
    a_mbr = aboxes.shape[0] - 1
    b_mbr = bboxes.shape[0] - 1
    wx1 = max(aboxes[a_mbr, 0], bboxes[b_mbr, 0])
    wy1 = max(aboxes[a_mbr, 1], bboxes[b_mbr, 1])
    wx2 = min(aboxes[a_mbr, 2], bboxes[b_mbr, 2])
    wy2 = min(aboxes[a_mbr, 3], bboxes[b_mbr, 3])
    if wx1 > wx2 or wy1 > wy2:
        return codes.DISJOINT
    budget = WORK_PER_EDGE * (axy.shape[0] + bxy.shape[0] - 2)
    found, budget = contacts_between(axy, aboxes, bxy, bboxes, wx1, wy1, wx2, wy2, budget, False, axy, axy)
    if found < 0:
        return codes.OVERLAPS
    if budget < 0:
        found = sweep_witnesses(axy, bxy)
        if proves_overlap(found):
            return codes.OVERLAPS
    return _without_crossing(found, axy, aboxes, bxy, bboxes)


@kernel
def same_rows(axy: Floats, bxy: Floats) -> bool:
    """Whether two regions of as many rows are the same."""
    i = 0
    while i < axy.shape[0] and axy[i, 0] == bxy[i, 0] and axy[i, 1] == bxy[i, 1]:
        i += 1
    same: bool = i == axy.shape[0]
    return same


@kernel
def relate_rings(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats) -> int:
    """Return the code of the exact relation of ring A to ring B."""
    if axy.shape[0] == bxy.shape[0] and same_rows(axy, bxy):
        return codes.EQUALS
    a = aboxes.shape[0] - 1
    b = bboxes.shape[0] - 1
    # The larger ring has fewer edges in the common window. Either choice gives the same answer.
    a_extent = (aboxes[a, 2] - aboxes[a, 0]) + (aboxes[a, 3] - aboxes[a, 1])
    b_extent = (bboxes[b, 2] - bboxes[b, 0]) + (bboxes[b, 3] - bboxes[b, 1])
    if a_extent >= b_extent:
        return _relate_from_larger(axy, aboxes, bxy, bboxes)
    relation = _relate_from_larger(bxy, bboxes, axy, aboxes)
    return codes.CONVERSE_CODE[relation]
