"""How a line lies to a region: five of the eight relations, each line in exactly one of them. Exact.

    disjoint     no point in common
    meets        only points of the boundary in common
    inside       all of it in the interior
    covered-by   all of it in the region, some on the boundary and some in the interior
    overlaps     some of it in the interior and some outside: it *crosses* the region

What composition of relations says of regions (`rcc8`) holds of lines too, as going through the table shows: where a
line has a point in the interior of R2, and that of R1 is around it, it has one in the interior of R1, and so on.

Decided as for regions (`contacts`): a proper crossing of two edges is overlaps; else every contact is at a vertex of
the line or of the boundary, and the angular order there says on which side the line leaves. A line is looked at as a
ring that goes there and back, so that each vertex has an edge before and one behind. Without any contact, one vertex
decides for each part. Where the line goes through a point at which rings of the region touch one another, the corner of
one ring is not the whole truth: the line is then cut at all its contacts, and the middles of the pieces are located, in
rational numbers.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial import allowance
from contrada.spatial.geometry.compound.rows import (
    MARK,
    locate_in,
    next_ring,
    ring_boxes_at,
    ring_count,
    ring_xy_at,
    touch_points,
)
from contrada.spatial.geometry.predicates import orient
from contrada.spatial.geometry.region import Region, ring_of
from contrada.spatial.geometry.rings import IN, ON, OUT, RUN, next_run
from contrada.spatial.lines.line import Line, path_of_line
from contrada.spatial.relations.contacts import A_IN_B, A_OUT_OF_B, CONTACT, contact_witnesses
from contrada.spatial.relations.relation import CONVERSE_CODE, COVERED_BY, DISJOINT, INSIDE, MEETS, OVERLAPS
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.spatial.allowance import Left
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.rings import Floats

    Exact = tuple[Fraction, Fraction]

_UNDECIDED: Final = -1
_BOTH: Final = A_IN_B | A_OUT_OF_B
_RUN_COST: Final = 16 * RUN  # nanoseconds, about, that an edge takes beside a run of others
_RATIONAL_COST: Final = 20_000  # and one edge beside another in rational numbers


@kernel
def _there_and_back(xy: Floats) -> Floats:
    edges = xy.shape[0] - 1
    ring = np.empty((2 * edges + 1, 2))
    for i in range(edges + 1):
        ring[i] = xy[i]
        ring[2 * edges - i] = xy[i]
    return ring


@kernel
def _part_witnesses(path: Floats, rxy: Floats, rboxes: Floats, left: Left) -> int:
    """Which of A_IN_B, A_OUT_OF_B and CONTACT are known of one part of a line; -1 when it crosses the boundary.

    Also -1 when nothing is `left` (`allowance`).
    """
    ring = _there_and_back(path)
    found = 0
    for i in range(path.shape[0]):  # the edges there, and the one that starts at the far end: so all vertices start one
        x1, x2 = min(ring[i, 0], ring[i + 1, 0]), max(ring[i, 0], ring[i + 1, 0])
        y1, y2 = min(ring[i, 1], ring[i + 1, 1]), max(ring[i, 1], ring[i + 1, 1])
        left[0] -= ring_count(rxy)
        k = next_ring(rxy, 0, x1, y1, x2, y2)
        while k < ring_count(rxy):
            bxy, boxes = ring_xy_at(rxy, k), ring_boxes_at(rxy, rboxes, k)
            edges = bxy.shape[0] - 1
            runs = (edges + RUN - 1) // RUN
            left[0] -= runs
            run = next_run(boxes, runs, 0, x1, y1, x2, y2)
            while run < runs:
                left[0] -= _RUN_COST
                if left[0] < 0:
                    return -1
                for j in range(run * RUN, min((run + 1) * RUN, edges)):
                    if (bxy[j, 0] > x2 and bxy[j + 1, 0] > x2) or (bxy[j, 0] < x1 and bxy[j + 1, 0] < x1):
                        continue
                    if (bxy[j, 1] > y2 and bxy[j + 1, 1] > y2) or (bxy[j, 1] < y1 and bxy[j + 1, 1] < y1):
                        continue
                    witnesses = contact_witnesses(ring, i, bxy, j)
                    if witnesses < 0:
                        return -1
                    found |= witnesses & (_BOTH | CONTACT)
                run = next_run(boxes, runs, run + 1, x1, y1, x2, y2)
            k = next_ring(rxy, k + 1, x1, y1, x2, y2)
    if found & CONTACT == 0:
        return A_IN_B if locate_in(path[0, 0], path[0, 1], rxy, rboxes) == IN else A_OUT_OF_B
    return found


@kernel
def _goes_through(lxy: Floats, x: float, y: float) -> bool:
    """Whether a vertex or an edge of a line is at a point."""
    for k in range(ring_count(lxy)):
        path = ring_xy_at(lxy, k)
        for i in range(path.shape[0] - 1):
            ax, ay, bx, by = path[i, 0], path[i, 1], path[i + 1, 0], path[i + 1, 1]
            near = min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by)
            if near and orient(ax, ay, bx, by, x, y) == 0:
                return True
    return False


@kernel
def relate_paths(lxy: Floats, lboxes: Floats, rxy: Floats, rboxes: Floats, left: Left) -> int:
    """Return the code of the relation of a line to a region, or -1 where only rational numbers tell."""
    a, b = lboxes[lboxes.shape[0] - 1], rboxes[rboxes.shape[0] - 1]
    if a[0] > b[2] or a[2] < b[0] or a[1] > b[3] or a[3] < b[1]:
        return DISJOINT
    if rxy[0, 0] == MARK:
        touches = touch_points(rxy)
        left[0] -= touches.shape[0] * lxy.shape[0]
        for k in range(touches.shape[0]):
            if _goes_through(lxy, touches[k, 0], touches[k, 1]):
                return _UNDECIDED
    found = 0
    for k in range(ring_count(lxy)):
        witnesses = _part_witnesses(ring_xy_at(lxy, k), rxy, rboxes, left)
        if witnesses < 0:
            return OVERLAPS
        found |= witnesses
    return relation_of(found & A_IN_B != 0, found & A_OUT_OF_B != 0, found & CONTACT != 0)


@kernel
def relation_of(is_in: bool, is_out: bool, is_on: bool) -> int:
    """The relation of a line that has, or has not, points in the interior, outside and on the boundary."""
    if is_in:
        return OVERLAPS if is_out else COVERED_BY if is_on else INSIDE
    return MEETS if is_on else DISJOINT


def relate_line(line: Line, region: Region) -> int:
    """Return the code of the relation of a line to a region. Exact."""
    left = allowance.left()
    code = int(relate_paths(*path_of_line(line), *ring_of(region), left))
    allowance.check(left)
    if code != _UNDECIDED:
        return code
    allowance.spend(_RATIONAL_COST * len(line) * len(region))
    return _relate_by_pieces(line, region)


def relate_to_line(value: Point | Line | Region, line: Line) -> int:
    """Return the code of the relation of a value to a line. Exact.

    What lies on it as a whole is inside; another line that touches it meets it. Regions have the converse of its
    relation to them.
    """
    if isinstance(value, Region):
        return CONVERSE_CODE[relate_line(line, value)]
    from contrada.spatial.distance.near import near

    if not near(value, line, 0.0):
        return DISJOINT
    return INSIDE if not isinstance(value, Line) or _lies_on(value, line) else MEETS


def _lies_on(inner: Line, outer: Line) -> bool:
    """Whether every point of a line is one of another: edges in line with an edge cover it without a gap."""
    edges = np.concatenate([np.hstack((part[:-1], part[1:])) for part in outer.parts])
    allowance.spend(len(inner) * (_RATIONAL_COST + _RUN_COST * len(edges)))
    low, high = np.minimum(edges[:, :2], edges[:, 2:]), np.maximum(edges[:, :2], edges[:, 2:])
    for part in inner.parts:
        for a, b in pairwise(part.tolist()):
            first, last = np.minimum(a, b), np.maximum(a, b)
            beside = edges[((low <= last) & (high >= first)).all(axis=1)].tolist()
            inline = [(c, d) for *c, x, y in beside if _in_line(a, b, c) and _in_line(a, b, d := [x, y])]
            axis = 0 if a[0] != b[0] else 1
            reached = first[axis]
            for start, end in sorted(sorted((c[axis], d[axis])) for c, d in inline):
                if start > reached:
                    break
                reached = max(reached, end)
            if reached < last[axis]:
                return False
    return True


def _in_line(a: list[float], b: list[float], c: list[float]) -> bool:
    return orient(*a, *b, *c) == 0


def _relate_by_pieces(line: Line, region: Region) -> int:
    """As `relate_line`, in rational numbers: O(n m), for lines through points where rings touch."""
    edges = [(_exact(a), _exact(b)) for part in region.rings for ring in part for a, b in pairwise(ring.tolist())]
    seen: set[int] = set()
    for part in line.parts:
        for start, end in pairwise(part.tolist()):
            a, b = _exact(start), _exact(end)
            cuts = {Fraction(0), Fraction(1), *(t for edge in edges for t in _contacts(a, b, *edge))}
            seen |= {_locate(_along(a, b, t), edges) for t in cuts}
            seen |= {_locate(_along(a, b, (s + t) / 2), edges) for s, t in pairwise(sorted(cuts))}
    return int(relation_of(IN in seen, OUT in seen, ON in seen))


def _exact(position: list[float]) -> Exact:
    return Fraction(position[0]), Fraction(position[1])


def _along(a: Exact, b: Exact, t: Fraction) -> Exact:
    return a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])


def _turn(a: Exact, b: Exact, c: Exact) -> Fraction:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _contacts(a: Exact, b: Exact, c: Exact, d: Exact) -> Iterator[Fraction]:
    """Where the edge cd touches the edge ab: parameters along that."""
    for end in (c, d):
        if _turn(a, b, end) == 0:
            axis = 0 if a[0] != b[0] else 1
            t = (end[axis] - a[axis]) / (b[axis] - a[axis])
            if 0 < t < 1:
                yield t
    from_a, from_b = _turn(c, d, a), _turn(c, d, b)
    if from_a * from_b < 0 and _turn(a, b, c) * _turn(a, b, d) < 0:
        yield from_a / (from_a - from_b)


def _locate(p: Exact, edges: list[tuple[Exact, Exact]]) -> int:
    """Where a point is, by the edges of all rings together."""
    inside = False
    for a, b in edges:
        turn = _turn(a, b, p)
        if turn == 0 and min(a[0], b[0]) <= p[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= p[1] <= max(a[1], b[1]):
            return ON
        if (a[1] > p[1]) != (b[1] > p[1]) and (turn > 0) == (b[1] > a[1]):
            inside = not inside
    return IN if inside else OUT
