"""The faces around a point where several rings of two regions meet.

From a point of a boundary its edges leave as rays. Of an edge that starts there the interior is to the left, so going
counter-clockwise around the point one enters the region at such a ray, and leaves it at one along which an edge comes
in. Whether a ray of A runs inside or outside of B is told by the ray of B that comes next, counter-clockwise; unless
one of B has the same direction, which is a stretch that both share. All rays lead to vertices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.compound.rows import next_ring, ring_boxes_at, ring_count, ring_xy_at
from contrada.spatial.geometry.predicates import orient
from contrada.spatial.geometry.rings import next_edge
from contrada.spatial.relations.compound.faces import BOTH, ONLY_A, ONLY_B, TOUCH
from contrada.spatial.relations.contacts import same_direction
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.rings import Floats

_MOST: Final = 64
_OUTWARDS: Final = 1.0
_INWARDS: Final = -1.0


@kernel
def _rays_of(xy: Floats, boxes: Floats, x: float, y: float, rays: Floats) -> int:
    """Collect the rays of a region at a point, (x, y, way) of where each leads; how many, or -1: too many."""
    count = 0
    rings = ring_count(xy)
    k = next_ring(xy, 0, x, y, x, y)
    while k < rings:
        ring, own = ring_xy_at(xy, k), ring_boxes_at(xy, boxes, k)
        edges = ring.shape[0] - 1
        i = next_edge(ring, own, 0, x, y, x, y)
        while i < edges:
            ax, ay, bx, by = ring[i, 0], ring[i, 1], ring[i + 1, 0], ring[i + 1, 1]
            if orient(ax, ay, bx, by, x, y) == 0:
                if count + 2 > rays.shape[0]:
                    return -1
                if bx != x or by != y:
                    rays[count, 0], rays[count, 1], rays[count, 2] = bx, by, _OUTWARDS
                    count += 1
                if ax != x or ay != y:
                    rays[count, 0], rays[count, 1], rays[count, 2] = ax, ay, _INWARDS
                    count += 1
            i = next_edge(ring, own, i + 1, x, y, x, y)
        k = next_ring(xy, k + 1, x, y, x, y)
    return count


@kernel
def _sector(x: float, y: float, qx: float, qy: float, rx: float, ry: float) -> int:
    """Whether the direction of r is less than half a turn from that of q, 0, half a turn, 1, or more, 2."""
    side = orient(x, y, qx, qy, rx, ry)
    return 0 if side > 0 else 1 if side == 0 else 2


@kernel
def _beside_rays(
    x: float, y: float, mine: Floats, count: int, theirs: Floats, others: int, within: int, without: int
) -> int:
    """The faces on both sides of the rays of one region, given those of the other."""
    faces = 0
    for i in range(count):
        qx, qy = mine[i, 0], mine[i, 1]
        first = -1
        sector = 3
        shared = False
        for j in range(others):
            rx, ry = theirs[j, 0], theirs[j, 1]
            of_r = _sector(x, y, qx, qy, rx, ry)
            if of_r == 1 and same_direction(x, y, qx, qy, rx, ry):
                faces |= BOTH if mine[i, 2] == theirs[j, 2] else ONLY_A | ONLY_B
                shared = True
                break
            if of_r < sector or (of_r == sector and orient(x, y, rx, ry, theirs[first, 0], theirs[first, 1]) > 0):
                first, sector = j, of_r
        if not shared:
            faces |= within if theirs[first, 2] == _INWARDS else without
    return faces


@kernel
def faces_around(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats, x: float, y: float) -> int:
    """Return the faces around a point of both boundaries; 0 when it is not on both, -1 when there are too many rays."""
    of_a, of_b = np.empty((_MOST, 3)), np.empty((_MOST, 3))
    a_count, b_count = _rays_of(axy, aboxes, x, y, of_a), _rays_of(bxy, bboxes, x, y, of_b)
    if a_count < 0 or b_count < 0:
        return -1
    if a_count == 0 or b_count == 0:
        return 0
    faces = TOUCH | _beside_rays(x, y, of_a, a_count, of_b, b_count, BOTH | ONLY_B, ONLY_A)
    return faces | _beside_rays(x, y, of_b, b_count, of_a, a_count, BOTH | ONLY_A, ONLY_B)
