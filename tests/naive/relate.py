"""Relations in rational arithmetic: slow, obvious, exact. The oracle for every `relate`.

Rings are sequences of (x, y), unclosed, in either orientation. Floats are taken at their exact binary value, scaled
by one power of two to whole numbers; only constructed points are fractions. ∂A is cut wherever it touches ∂B; inside
a piece the classification against B cannot change, so its midpoint speaks for all of it. Table 1 of [SIENA-2D] then
names the relation.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from contrada.spatial.relations.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Ring = Sequence[tuple[float, float]]
    Exact = tuple[int | Fraction, int | Fraction]

OUT, ON, IN = 0, 1, 2

# (∂A ∩ ∂B, ∂A ∩ B°, A° ∩ ∂B, ∂A ∩ B⁻), [SIENA-2D], Table 1.
TABLE_1 = {
    (False, False, False, True): Relation.DISJOINT,
    (True, False, False, True): Relation.MEETS,
    (True, True, True, True): Relation.OVERLAPS,
    (True, False, False, False): Relation.EQUALS,
    (False, True, False, False): Relation.INSIDE,
    (False, False, True, True): Relation.CONTAINS,
    (True, False, True, True): Relation.COVERS,
    (True, True, False, False): Relation.COVERED_BY,
}


def relate(a: Ring, b: Ring) -> Relation:
    """Return the relation of the simple polygon `a` to `b`."""
    a_exact, b_exact = _exact(a, b)
    touches, of_a = _classify(a_exact, b_exact)
    _, of_b = _classify(b_exact, a_exact)
    return TABLE_1[touches, IN in of_a, IN in of_b, OUT in of_a]


def locate(p: tuple[float, float], ring: Ring) -> int:
    """Classify the point `p` against the polygon: OUT, ON or IN."""
    (point,), polygon = _exact([p], ring)
    return _locate(point, polygon)


def relate_point(p: tuple[float, float], ring: Ring) -> Relation:
    """Return the relation of a point to a polygon."""
    return (Relation.DISJOINT, Relation.MEETS, Relation.INSIDE)[locate(p, ring)]


def is_simple(ring: Ring) -> bool:
    """Tell whether non-adjacent edges never touch and adjacent ones share only their end point (Definition 1)."""
    (points,) = _exact(ring)
    n = len(points)
    if n < 3 or len(set(points)) < n:
        return False
    edges = list(_edges(points))
    for i in range(n):
        for j in range(i + 1, n):
            shared = _contacts(edges[i], edges[j])
            if j == i + 1 and shared != [1]:
                return False
            if i == 0 and j == n - 1 and shared != [0]:
                return False
            if j != i + 1 and not (i == 0 and j == n - 1) and shared:
                return False
    return True


def cleaned(ring: Ring) -> list[tuple[float, float]]:
    """Drop repeated and collinear vertices of a ring, one at a time until none is left."""
    points = [(float(x), float(y)) for x, y in ring]
    i = 0
    while i < len(points) and len(points) > 2:
        (triple,) = _exact((points[i - 1], points[i], points[(i + 1) % len(points)]))
        if _cross(*triple) == 0:
            del points[i]
            i = 0
        else:
            i += 1
    return points


def is_straight(p: tuple[float, float], q: tuple[float, float], r: tuple[float, float]) -> bool:
    """Tell whether q lies on the line from p to r, strictly between them."""
    (points,) = _exact((p, q, r))
    return _cross(*points) == 0 and sorted(points)[1] == points[1] and len(set(points)) == 3


def turn(ring: Ring) -> int:
    """Return the sign of the area: +1 when counter-clockwise, 0 when there is none."""
    (points,) = _exact(ring)
    doubled = sum(px * qy - qx * py for (px, py), (qx, qy) in _edges(points))
    return (doubled > 0) - (doubled < 0)


def _exact(*rings: Ring) -> list[list[Exact]]:
    """Scale rings together to whole numbers. Denominators of floats are powers of two, so the largest serves all."""
    ratios = [[(float(x).as_integer_ratio(), float(y).as_integer_ratio()) for x, y in ring] for ring in rings]
    scale = max((d for ring in ratios for point in ring for _, d in point), default=1)
    return [[(xn * (scale // xd), yn * (scale // yd)) for (xn, xd), (yn, yd) in ring] for ring in ratios]


def _edges(points: Sequence[Exact]) -> Iterator[tuple[Exact, Exact]]:
    return zip(points, [*points[1:], points[0]], strict=True)


def _cross(p: Exact, q: Exact, r: Exact) -> int | Fraction:
    return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])


def _classify(a: Sequence[Exact], b: Sequence[Exact]) -> tuple[bool, set[int]]:
    """Return whether ∂A touches ∂B, and what the pieces of ∂A between the contacts are to B."""
    touches = False
    seen: set[int] = set()
    b_edges = list(_edges(b))
    for p, q in _edges(a):
        cuts = {Fraction(0), Fraction(1)}
        for edge in b_edges:
            contacts = _contacts((p, q), edge)
            touches |= bool(contacts)
            cuts.update(contacts)
        ordered = sorted(cuts)
        for s, t in pairwise(ordered):
            middle = (s + t) / 2
            seen.add(_locate((p[0] + middle * (q[0] - p[0]), p[1] + middle * (q[1] - p[1])), b))
    return touches, seen


def _contacts(first: tuple[Exact, Exact], second: tuple[Exact, Exact]) -> list[Fraction]:
    """Return where the first segment touches the second, as parameters in [0, 1] of the first: both ends of a run."""
    (p, q), (r, s) = first, second
    if max(p[0], q[0]) < min(r[0], s[0]) or max(r[0], s[0]) < min(p[0], q[0]):
        return []
    if max(p[1], q[1]) < min(r[1], s[1]) or max(r[1], s[1]) < min(p[1], q[1]):
        return []
    at_r, at_s = _cross(p, q, r), _cross(p, q, s)
    if at_r == 0 and at_s == 0:
        axis = 0 if p[0] != q[0] else 1
        length = q[axis] - p[axis]
        along = sorted((Fraction(r[axis] - p[axis], length), Fraction(s[axis] - p[axis], length)))
        low, high = max(along[0], Fraction(0)), min(along[1], Fraction(1))
        return [] if low > high else [low] if low == high else [low, high]
    if at_r * at_s > 0 or at_r == at_s:
        return []
    to_p, to_q = _cross(r, s, p), _cross(r, s, q)
    if to_p * to_q > 0:
        return []
    return [Fraction(to_p, to_p - to_q)]


def _locate(p: Exact, polygon: Sequence[Exact]) -> int:
    inside = False
    x, y = p
    for (ax, ay), (bx, by) in _edges(polygon):
        if min(ay, by) > y or max(ay, by) < y:
            continue
        side = _cross((ax, ay), (bx, by), p)
        if side == 0 and min(ax, bx) <= x <= max(ax, bx):
            return ON
        # A ray to the right crosses an edge that is half-open in y and has p on its left when it goes up.
        if (ay <= y < by and side > 0) or (by <= y < ay and side < 0):
            inside = not inside
    return IN if inside else OUT
