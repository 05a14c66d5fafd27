"""Algorithm 1 of [SIENA-2D], with the definitions that `spatial.uniform` adds to it, as one reads them.

Samples are the same doubles as in the kernels, so they are computed by the same expressions; everything else is
rational arithmetic and plain loops over all edges.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from contrada.spatial.geometry.region import Box
from contrada.spatial.relations.relation import Relation
from tests.naive import relate as exact
from tests.naive.faces import relate as relate_exactly
from tests.naive.relate import IN, ON, OUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contrada.spatial.geometry.region import Region

    Position = tuple[float, float]
    Ring = Sequence[Position]

WIDENED = {
    Relation.DISJOINT: Relation.MEETS,
    Relation.INSIDE: Relation.COVERED_BY,
    Relation.CONTAINS: Relation.COVERS,
}


def relate(a: Ring, b: Ring, density: float, halo: bool) -> Relation:
    """Return the relation of A to B by samples. Rings are canonical: see `Region`."""
    rectangles = exact.relate(_rectangle(a), _rectangle(b))
    if rectangles is Relation.DISJOINT:
        return Relation.DISJOINT
    if _cross(a, b):
        return Relation.OVERLAPS
    if (_length(a), list(a)) <= (_length(b), list(b)):
        relation = _algorithm_1(a, b, density, halo)
    else:
        relation = _algorithm_1(b, a, density, halo).converse
    return _nearest(rectangles, relation)


def relate_regions(a: Region, b: Region, density: float, halo: bool) -> Relation:
    """Return the relation of regions either of which has several rings: every ring is sampled, and faces decide."""
    rectangles = relate_exactly(Box(*a.bounds), Box(*b.bounds))
    several = len(a.parts) > 1 or len(b.parts) > 1
    if rectangles is Relation.DISJOINT:
        return Relation.DISJOINT
    corners = [_rectangle(region.coords.tolist()) for region in (a, b)]
    if not several and _cross(*corners):
        return Relation.OVERLAPS
    of_a, of_b = _sampled_rings(a, b, density, halo), _sampled_rings(b, a, density, halo)
    seen_a, seen_b = set().union(*of_a), set().union(*of_b)
    if {ON} in of_a or {ON} in of_b:
        relation = relate_exactly(a, b)
        if halo:
            relation = Relation.EQUALS if seen_a == seen_b == {ON} else WIDENED.get(relation, relation)
    else:
        both = IN in seen_a or IN in seen_b
        only_a, only_b = OUT in seen_a or IN in seen_b, OUT in seen_b or IN in seen_a
        touch = ON in seen_a | seen_b
        if not both:
            relation = Relation.MEETS if touch else Relation.DISJOINT
        elif only_a and only_b:
            relation = Relation.OVERLAPS
        elif only_a:
            relation = Relation.COVERS if touch else Relation.CONTAINS
        elif only_b:
            relation = Relation.COVERED_BY if touch else Relation.INSIDE
        else:
            relation = Relation.EQUALS
    if several and rectangles is Relation.EQUALS and relation is Relation.DISJOINT:
        return relation
    return _nearest(rectangles, relation)


def _sampled_rings(a: Region, b: Region, density: float, halo: bool) -> list[set[int]]:
    mine, theirs = (
        [[tuple(vertex) for vertex in ring[:-1].tolist()] for part in region.rings for ring in part]
        for region in (a, b)
    )
    density = min(density, 1_000_000 / sum(map(_length, mine)))
    return [set(_samples(ring, theirs, density, halo)) for ring in mine]


def _algorithm_1(a: Ring, b: Ring, density: float, halo: bool) -> Relation:
    of_a = list(_samples(a, [b], density, halo))
    if IN in of_a and OUT in of_a:
        return Relation.OVERLAPS
    if IN in of_a:
        return Relation.COVERED_BY if ON in of_a else Relation.INSIDE
    witness = next((where for where in _samples(b, [a], density, halo) if where != ON), ON)
    if OUT in of_a:
        if witness == IN:
            return Relation.COVERS if ON in of_a else Relation.CONTAINS
        if witness == OUT:
            return Relation.MEETS if ON in of_a else Relation.DISJOINT
    elif halo and witness == ON:
        return Relation.EQUALS
    relation = exact.relate(a, b)
    return WIDENED.get(relation, relation) if halo else relation


def _samples(a: Ring, b: Sequence[Ring], density: float, halo: bool) -> Iterator[int]:
    """Yield what each sample of ring A is to B: the vertices, then the edges."""
    density = min(density, 1_000_000 / _length(a))
    edges = [(p, a[(i + 1) % len(a)]) for i, p in enumerate(a)]
    parts = [max(1, math.ceil(_distance(p, q) * density)) for p, q in edges]
    spacing = [_distance(p, q) / n for (p, q), n in zip(edges, parts, strict=True)]
    corners = []
    for i, p in enumerate(a):
        corners.append(_check(p, min(spacing[i - 1], spacing[i]) / 2 if halo else 0.0, b))
        yield corners[-1]
    for i, (p, q) in enumerate(edges):
        radius = _distance(p, q) / parts[i] / 2 if halo else 0.0
        before = corners[i]
        for k in range(1, parts[i] + 1):
            here = corners[(i + 1) % len(a)] if k == parts[i] else _on_edge(p, q, k / parts[i], radius, b)
            if before == here == ON and not halo:
                yield _on_edge(p, q, (2 * k - 1) / (2 * parts[i]), radius, b)
            yield here
            before = here


def _on_edge(p: Position, q: Position, t: float, radius: float, b: Sequence[Ring]) -> int:
    sample = (_between(p[0], q[0], t), _between(p[1], q[1], t))
    axis = 0 if abs(q[0] - p[0]) >= abs(q[1] - p[1]) else 1
    for r, s in _edges(b):
        shared = exact.turn([p, q, r]) == 0 == exact.turn([p, q, s])
        if shared and min(r[axis], s[axis]) <= sample[axis] <= max(r[axis], s[axis]):
            return ON
    return _check(sample, radius, b)


def _edges(rings: Sequence[Ring]) -> Iterator[tuple[Position, Position]]:
    for ring in rings:
        yield from zip(ring, [*ring[1:], ring[0]], strict=True)


def _check(p: Position, radius: float, rings: Sequence[Ring]) -> int:
    if radius > 0:
        for (ax, ay), (bx, by) in _edges(rings):
            ux, uy = bx - ax, by - ay
            t = min(max(((p[0] - ax) * ux + (p[1] - ay) * uy) / (ux * ux + uy * uy), 0.0), 1.0)
            if _distance((ax + t * ux, ay + t * uy), p) <= radius:
                return ON
    places = [exact.locate(p, ring) for ring in rings]
    return ON if ON in places else IN if places.count(IN) % 2 else OUT


def _between(a: float, b: float, t: float) -> float:
    c = min(max(a + t * (b - a), min(a, b)), max(a, b))
    return c if abs(c) >= 1e-100 else 0.0


def _distance(p: Position, q: Position) -> float:
    x, y = q[0] - p[0], q[1] - p[1]
    return math.sqrt(x * x + y * y)


def _length(ring: Ring) -> float:
    return sum(_distance(p, ring[(i + 1) % len(ring)]) for i, p in enumerate(ring))


def _bounds(ring: Ring) -> tuple[float, float, float, float]:
    xs, ys = zip(*ring, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _rectangle(ring: Ring) -> Ring:
    x1, y1, x2, y2 = _bounds(ring)
    return [(x1, y1), (x2, y1), (x2, y2), (x1, y2)]


def _cross(a: Ring, b: Ring) -> bool:
    for first, second in ((a, b), (b, a)):
        x1, y1, x2, y2 = _bounds(first)
        u1, v1, u2, v2 = _bounds(second)
        if x1 < u1 and x2 > u2 and y1 > v1 and y2 < v2:
            return True
    return False


def _nearest(rectangles: Relation, relation: Relation) -> Relation:
    """Return the relation itself, or the nearest one, if the MBRs rule it out."""
    within = (Relation.INSIDE, Relation.COVERED_BY)
    around = (Relation.CONTAINS, Relation.COVERS)
    if rectangles is Relation.MEETS:
        return relation if relation is Relation.DISJOINT else Relation.MEETS
    if rectangles is Relation.EQUALS:
        touching = {
            Relation.INSIDE: Relation.COVERED_BY,
            Relation.CONTAINS: Relation.COVERS,
            Relation.DISJOINT: Relation.OVERLAPS,
        }
        return touching.get(relation, relation)
    if relation in within or relation in around or relation is Relation.EQUALS:
        for side in (within, around):
            if rectangles in side and (relation in side or relation is Relation.EQUALS):
                return side[1] if rectangles is side[1] or relation is Relation.EQUALS else relation
        return Relation.OVERLAPS
    return relation
