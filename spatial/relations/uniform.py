"""The paper's discretization: sample a boundary uniformly, check each point against the other region.

[SIENA-2D], Algorithm 1 and section 3.3. ∂X is sampled at its vertices and, on each edge of length L, at the points that
cut it into ⌈L·D⌉ equal parts, so that there are at least D samples to a unit of length; D = 0 samples the vertices
alone. With a halo, a sample also meets the other boundary when it is within r = d/2 of it, d being the distance to
its nearest neighbour on the same edge. O(ℓD) point checks, each O(n/16) or better (`rings.locate`).

The result approximates the exact relation. Where the printed algorithm leaves it open or contradicts itself, it is
defined here, once, so that a linear scan and an index agree:

- *Converse.* The boundary sampled first is the shorter one, ties broken by the vertices in order. So the relation of
  A to B is always the converse of that of B to A.
- *No witness.* When every sample of a boundary meets the other, Algorithm 1 answers equals after its first loop, and
  falls through to meets after its second, though a triangle inscribed in a hexagon is covered by it. Between two
  contacts that follow each other on an edge the midpoint is sampled too (without halo), and if there is still no
  witness, the exact relation decides. A halo then widens it: disjoint to meets, inside to covered-by, contains to
  covers, and regions each of whose samples meet the other are equal.
- *Shared edges.* Samples are rounded to doubles, and on a slanted edge almost none would lie on it. A sample of an
  edge that runs exactly along an edge of the other region is on its boundary because the edges are collinear, not by
  locating it.
- *Rectangles first.* Disjoint MBRs are disjoint whatever the halo, crossing ones overlap, and an answer that the MBRs
  rule out (`mbr.POSSIBLE`) becomes the nearest one they allow: an index by MBR stays right.
- *Holes and parts.* Algorithm 1 takes a region for connected. Of compound regions both boundaries are sampled, every
  ring, and the faces that the samples show decide (`compound`). If some ring's samples all meet the other boundary,
  which of the faces beside it are there is not seen, and the exact relation decides, widened by a halo.
- *Bounded work.* At most `MAX_SAMPLES` samples are taken of a boundary, by lowering D for it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.compound.rows import (
    MARK,
    locate_in,
    next_ring,
    part_count,
    ring_boxes_at,
    ring_count,
    ring_xy_at,
)
from contrada.spatial.geometry.predicates import MIN_MAGNITUDE, orient
from contrada.spatial.geometry.rings import IN, ON, OUT, RUN, next_run
from contrada.spatial.relations.compound.faces import BOTH, ONLY_A, ONLY_B, TOUCH
from contrada.spatial.relations.compound.relating import relate_regions, relation_of_faces
from contrada.spatial.relations.mbr import boxes_cross, relate_boxes
from contrada.spatial.relations.relation import (
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
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.rings import Floats

MAX_SAMPLES: Final = 1_000_000
_PER_SAMPLE: Final = 40  # nanoseconds, about

_SEEN_OUT: Final = 1 << OUT
_SEEN_ON: Final = 1 << ON
_SEEN_IN: Final = 1 << IN

# Row: relation of the MBRs. Column: what the samples say. Entry: the nearest relation that the MBRs allow.
_NEAREST: Final = np.array(
    [
        # disjoint, meets, overlaps, equals, inside, contains, covered-by, covers
        [DISJOINT, DISJOINT, DISJOINT, DISJOINT, DISJOINT, DISJOINT, DISJOINT, DISJOINT],
        [DISJOINT, MEETS, MEETS, MEETS, MEETS, MEETS, MEETS, MEETS],
        [DISJOINT, MEETS, OVERLAPS, OVERLAPS, OVERLAPS, OVERLAPS, OVERLAPS, OVERLAPS],
        [OVERLAPS, MEETS, OVERLAPS, EQUALS, COVERED_BY, COVERS, COVERED_BY, COVERS],
        [DISJOINT, MEETS, OVERLAPS, COVERED_BY, INSIDE, OVERLAPS, COVERED_BY, OVERLAPS],
        [DISJOINT, MEETS, OVERLAPS, COVERS, OVERLAPS, CONTAINS, OVERLAPS, COVERS],
        [DISJOINT, MEETS, OVERLAPS, COVERED_BY, COVERED_BY, OVERLAPS, COVERED_BY, OVERLAPS],
        [DISJOINT, MEETS, OVERLAPS, COVERS, OVERLAPS, COVERS, OVERLAPS, COVERS],
    ],
    dtype=np.int64,
)
_WIDENED: Final = (MEETS, MEETS, OVERLAPS, EQUALS, COVERED_BY, COVERS, COVERED_BY, COVERS)


@kernel
def _norm(x: float, y: float) -> float:
    # Within the range of coordinates squares neither overflow nor vanish; unlike hypot, the same on every platform.
    return math.sqrt(x * x + y * y)


@kernel
def _edge_length(xy: Floats, i: int) -> float:
    return _norm(xy[i + 1, 0] - xy[i, 0], xy[i + 1, 1] - xy[i, 1])


@kernel
def boundary_length(xy: Floats) -> float:
    """Return the length of a closed ring, summed from its first edge on."""
    total = 0.0
    for i in range(xy.shape[0] - 1):
        total += _edge_length(xy, i)
    return total


@kernel
def _parts(length: float, density: float) -> int:
    """Into how many parts the samples cut an edge."""
    return max(1, math.ceil(length * density))


@kernel
def _between(a: float, b: float, t: float) -> float:
    """Return the coordinate at t from a to b, rounded, never beyond either, and in the range of coordinates."""
    c = min(max(a + t * (b - a), min(a, b)), max(a, b))
    return c if abs(c) >= MIN_MAGNITUDE else 0.0


@kernel
def _near(px: float, py: float, radius: float, xy: Floats, boxes: Floats) -> bool:
    """Whether some edge of a region is within `radius` of the point."""
    rings = ring_count(xy)
    k = next_ring(xy, 0, px - radius, py - radius, px + radius, py + radius)
    while k < rings:
        if _near_ring(px, py, radius, ring_xy_at(xy, k), ring_boxes_at(xy, boxes, k)):
            return True
        k = next_ring(xy, k + 1, px - radius, py - radius, px + radius, py + radius)
    return False


@kernel
def _near_ring(px: float, py: float, radius: float, xy: Floats, boxes: Floats) -> bool:
    edges = xy.shape[0] - 1
    runs = (edges + RUN - 1) // RUN
    x1, y1, x2, y2 = px - radius, py - radius, px + radius, py + radius
    run = next_run(boxes, runs, 0, x1, y1, x2, y2)
    while run < runs:
        for i in range(run * RUN, min((run + 1) * RUN, edges)):
            ax, ay = xy[i, 0], xy[i, 1]
            ux, uy = xy[i + 1, 0] - ax, xy[i + 1, 1] - ay
            t = ((px - ax) * ux + (py - ay) * uy) / (ux * ux + uy * uy)
            t = min(max(t, 0.0), 1.0)
            if _norm(ax + t * ux - px, ay + t * uy - py) <= radius:
                return True
        run = next_run(boxes, runs, run + 1, x1, y1, x2, y2)
    return False


@kernel
def _check(px: float, py: float, radius: float, xy: Floats, boxes: Floats) -> int:
    """Do the paper's pointCheck, with its halo when the radius is positive."""
    if radius > 0.0 and _near(px, py, radius, xy, boxes):
        return ON
    return locate_in(px, py, xy, boxes)


@kernel
def _shared_runs(axy: Floats, i: int, bxy: Floats, bboxes: Floats, axis: int, runs_of_i: Floats) -> int:
    """Fill in where edges of B lie along edge i of A, as intervals on the axis; return how many do."""
    ax, ay, bx, by = axy[i, 0], axy[i, 1], axy[i + 1, 0], axy[i + 1, 1]
    x1, y1, x2, y2 = min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)
    rings = ring_count(bxy)
    count = 0
    k = next_ring(bxy, 0, x1, y1, x2, y2)
    while k < rings:
        ring, boxes = ring_xy_at(bxy, k), ring_boxes_at(bxy, bboxes, k)
        count = _shared_runs_of_ring(ax, ay, bx, by, ring, boxes, axis, runs_of_i, count)
        k = next_ring(bxy, k + 1, x1, y1, x2, y2)
    return count


@kernel
def _shared_runs_of_ring(
    ax: float, ay: float, bx: float, by: float, bxy: Floats, bboxes: Floats, axis: int, runs_of_i: Floats, count: int
) -> int:
    x1, y1, x2, y2 = min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)
    edges = bxy.shape[0] - 1
    runs = (edges + RUN - 1) // RUN
    run = next_run(bboxes, runs, 0, x1, y1, x2, y2)
    while run < runs:
        for j in range(run * RUN, min((run + 1) * RUN, edges)):
            starts_on = orient(ax, ay, bx, by, bxy[j, 0], bxy[j, 1]) == 0
            if starts_on and orient(ax, ay, bx, by, bxy[j + 1, 0], bxy[j + 1, 1]) == 0:
                runs_of_i[count, 0] = min(bxy[j, axis], bxy[j + 1, axis])
                runs_of_i[count, 1] = max(bxy[j, axis], bxy[j + 1, axis])
                count += 1
        run = next_run(bboxes, runs, run + 1, x1, y1, x2, y2)
    return count


@kernel
def _witnesses(seen: int) -> int:
    """How many of IN and OUT have been seen."""
    return (seen & _SEEN_IN != 0) + (seen & _SEEN_OUT != 0)


@kernel
def _scan(axy: Floats, bxy: Floats, bboxes: Floats, density: float, halo: bool, enough: int) -> int:
    """Check the samples of ring A against region B and return the set of what was seen.

    Vertices come first: few, and often sufficient. The scan ends as soon as samples IN and OUT have been seen, or,
    with `enough` = 1, at the first sample that is not ON.
    """
    edges = axy.shape[0] - 1
    length = boundary_length(axy)
    if length * density > MAX_SAMPLES:
        density = MAX_SAMPLES / length
    seen = 0
    at_vertex = np.empty(edges + 1, np.int64)
    before = 0.0
    if halo:
        last = _edge_length(axy, edges - 1)
        before = last / _parts(last, density)
    for i in range(edges):
        radius = 0.0
        if halo:
            side = _edge_length(axy, i)
            after = side / _parts(side, density)
            radius = min(before, after) / 2.0
            before = after
        where = _check(axy[i, 0], axy[i, 1], radius, bxy, bboxes)
        at_vertex[i] = where
        seen |= 1 << where
        if _witnesses(seen) >= enough:
            return seen
    at_vertex[edges] = at_vertex[0]
    runs_of_i = np.empty((bxy.shape[0], 2))
    for i in range(edges):
        ax, ay, bx, by = axy[i, 0], axy[i, 1], axy[i + 1, 0], axy[i + 1, 1]
        side = _edge_length(axy, i)
        parts = _parts(side, density)
        if parts == 1 and (halo or at_vertex[i] != ON or at_vertex[i + 1] != ON):
            continue
        axis = 0 if abs(bx - ax) >= abs(by - ay) else 1
        shared = _shared_runs(axy, i, bxy, bboxes, axis, runs_of_i)
        radius = side / parts / 2.0 if halo else 0.0
        earlier = at_vertex[i]
        # Odd steps are midpoints, needed only between contacts. Even ones are the samples; the last is the next vertex.
        for step in range(2, 2 * parts + 1, 2):
            t = step / (2.0 * parts)
            where = at_vertex[i + 1]
            if step < 2 * parts:
                where = _sample(ax, ay, bx, by, t, axis, runs_of_i, shared, radius, bxy, bboxes)
            found = 1 << where
            if not halo and where == ON and earlier == ON:
                t = (step - 1) / (2.0 * parts)
                found |= 1 << _sample(ax, ay, bx, by, t, axis, runs_of_i, shared, radius, bxy, bboxes)
            seen |= found
            if _witnesses(seen) >= enough:
                return seen
            earlier = where
    return seen


@kernel
def _sample(
    ax: float,
    ay: float,
    bx: float,
    by: float,
    t: float,
    axis: int,
    runs_of_i: Floats,
    shared: int,
    radius: float,
    bxy: Floats,
    bboxes: Floats,
) -> int:
    """Check the point at t on the edge from a to b, `shared` stretches of which lie on the other boundary."""
    px, py = _between(ax, bx, t), _between(ay, by, t)
    along = px if axis == 0 else py
    for k in range(shared):
        if runs_of_i[k, 0] <= along <= runs_of_i[k, 1]:
            return ON
    return _check(px, py, radius, bxy, bboxes)


@kernel
def _first_smaller(axy: Floats, bxy: Floats) -> bool:
    """Whether A's vertices, read in order, come before B's: a total order on rings."""
    for i in range(min(axy.shape[0], bxy.shape[0])):
        for axis in range(2):
            if axy[i, axis] != bxy[i, axis]:
                return bool(axy[i, axis] < bxy[i, axis])
    return bool(axy.shape[0] < bxy.shape[0])


@kernel
def _algorithm_1(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats, density: float, halo: bool) -> int:
    seen = _scan(axy, bxy, bboxes, density, halo, 2)
    i1 = seen & _SEEN_ON != 0
    i2 = seen & _SEEN_IN != 0
    i4 = seen & _SEEN_OUT != 0
    if i2 and i4:
        return OVERLAPS
    if i2:
        return COVERED_BY if i1 else INSIDE
    if i4 or halo:
        seen = _scan(bxy, axy, aboxes, density, halo, 1)
        if i4 and seen & _SEEN_IN != 0:
            return COVERS if i1 else CONTAINS
        if i4 and seen & _SEEN_OUT != 0:
            return MEETS if i1 else DISJOINT
        if not i4 and seen == _SEEN_ON:
            return EQUALS
    # Every sample of one boundary meets the other, and only that: there is no witness to go by.
    relation = relate_regions(axy, aboxes, bxy, bboxes)
    return _WIDENED[relation] if halo else relation


@kernel
def _scan_rings(axy: Floats, bxy: Floats, bboxes: Floats, density: float, halo: bool) -> tuple[int, bool]:
    """Return what the samples of all rings of A saw of B, and whether some ring's samples all meet its boundary."""
    length = 0.0
    for k in range(ring_count(axy)):
        length += boundary_length(ring_xy_at(axy, k))
    if length * density > MAX_SAMPLES:
        density = MAX_SAMPLES / length
    seen = 0
    blind = False
    for k in range(ring_count(axy)):
        of_ring = _scan(ring_xy_at(axy, k), bxy, bboxes, density, halo, 2)
        seen |= of_ring
        blind |= of_ring == _SEEN_ON
    return seen, blind


@kernel
def _by_faces(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats, density: float, halo: bool) -> int:
    """The relation by samples of two regions either of which may be compound."""
    of_a, a_blind = _scan_rings(axy, bxy, bboxes, density, halo)
    of_b, b_blind = _scan_rings(bxy, axy, aboxes, density, halo)
    faces = TOUCH if (of_a | of_b) & _SEEN_ON else 0
    if of_a & _SEEN_IN:
        faces |= BOTH | ONLY_B
    if of_a & _SEEN_OUT:
        faces |= ONLY_A
    if of_b & _SEEN_IN:
        faces |= BOTH | ONLY_A
    if of_b & _SEEN_OUT:
        faces |= ONLY_B
    if not a_blind and not b_blind:
        return relation_of_faces(faces)
    if halo and of_a == _SEEN_ON and of_b == _SEEN_ON:
        return EQUALS
    relation = relate_regions(axy, aboxes, bxy, bboxes)
    return _WIDENED[relation] if halo else relation


@kernel
def _samples(xy: Floats, boxes: Floats, density: float) -> float:
    """How many samples are taken of a boundary, about; of several rings, at most."""
    mbr = boxes[boxes.shape[0] - 1]
    edges = xy.shape[0] - 1
    length = edges * ((mbr[2] - mbr[0]) + (mbr[3] - mbr[1]))
    if xy[0, 0] != MARK:
        length = 0.0
        for i in range(edges):
            length += abs(xy[i + 1, 0] - xy[i, 0]) + abs(xy[i + 1, 1] - xy[i, 1])
    return float(edges + min(length * density, 1.0 * MAX_SAMPLES))


@kernel
def sampling_cost(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats, density: float) -> int:
    """About how many nanoseconds `relate_uniform` takes, if it samples both boundaries to their ends."""
    of_a, of_b = _samples(axy, aboxes, density), _samples(bxy, bboxes, density)
    return int(of_a * (_PER_SAMPLE + bxy.shape[0] // 8) + of_b * (_PER_SAMPLE + axy.shape[0] // 8))


@kernel
def relate_uniform(axy: Floats, aboxes: Floats, bxy: Floats, bboxes: Floats, density: float, halo: bool) -> int:
    """Return the code of the relation of region A to region B by samples, `density` to a unit of length."""
    a, b = aboxes.shape[0] - 1, bboxes.shape[0] - 1
    ax1, ay1, ax2, ay2 = aboxes[a, 0], aboxes[a, 1], aboxes[a, 2], aboxes[a, 3]
    bx1, by1, bx2, by2 = bboxes[b, 0], bboxes[b, 1], bboxes[b, 2], bboxes[b, 3]
    rectangles = relate_boxes(ax1, ay1, ax2, ay2, bx1, by1, bx2, by2)
    if rectangles == DISJOINT:
        return DISJOINT
    several = part_count(axy) > 1 or part_count(bxy) > 1
    if not several and boxes_cross(ax1, ay1, ax2, ay2, bx1, by1, bx2, by2):
        return OVERLAPS
    if axy[0, 0] == MARK or bxy[0, 0] == MARK:
        relation = _by_faces(axy, aboxes, bxy, bboxes, density, halo)
        if several and rectangles == EQUALS and relation == DISJOINT:
            return DISJOINT
        return int(_NEAREST[rectangles, relation])
    a_length, b_length = boundary_length(axy), boundary_length(bxy)
    if a_length < b_length or (a_length == b_length and _first_smaller(axy, bxy)):
        relation = _algorithm_1(axy, aboxes, bxy, bboxes, density, halo)
    else:
        relation = CONVERSE_CODE[_algorithm_1(bxy, bboxes, axy, aboxes, density, halo)]
    return int(_NEAREST[rectangles, relation])
