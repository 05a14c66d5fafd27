"""The relation of regions with holes and parts, slow and obvious, in rational arithmetic.

All edges of both regions are cut at all points where any two meet. Along a piece nothing changes, so its midpoint
tells: a ray from it upwards (from a vertical piece, to the right) counts the edges that it crosses, which says whether
the face on that side of the piece belongs to a region; the face on the other side does too, unless the piece is of its
boundary. The faces beside all pieces are all the faces there are.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

from contrada import Region, Relation

Point = tuple[Fraction, Fraction]
Edge = tuple[Point, Point]


def edges_of(region: Region) -> list[Edge]:
    """The edges of all rings."""
    found = []
    for part in region.rings:
        for ring in part:
            points = [(Fraction(x), Fraction(y)) for x, y in ring.tolist()]
            found += pairwise(points)
    return found


def _cross(o: Point, a: Point, b: Point) -> Fraction:
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def _on(p: Point, edge: Edge) -> bool:
    a, b = edge
    within = min(a[0], b[0]) <= p[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= p[1] <= max(a[1], b[1])
    return within and _cross(a, b, p) == 0


def _meeting(first: Edge, second: Edge) -> list[Point]:
    """Where two edges meet: at most the ends of what they share."""
    points = [p for p in first if _on(p, second)] + [p for p in second if _on(p, first)]
    (a, b), (c, d) = first, second
    one, other = _cross(c, d, a), _cross(c, d, b)
    if one * other < 0 and _cross(a, b, c) * _cross(a, b, d) < 0:
        t = one / (one - other)
        points.append((a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])))
    return points


def _inside_beside(middle: Point, steep: bool, edges: list[Edge]) -> bool:
    """Whether the face above a piece (to the right of a vertical one) is inside, its midpoint being `middle`."""
    along, across = (1, 0) if steep else (0, 1)
    inside = False
    for a, b in edges:
        if (a[along] <= middle[along]) == (b[along] <= middle[along]):
            continue
        t = (middle[along] - a[along]) / (b[along] - a[along])
        if a[across] + t * (b[across] - a[across]) > middle[across]:
            inside = not inside
    return inside


def faces(a: Region, b: Region) -> tuple[set[tuple[bool, bool]], bool]:
    """The faces, as (in A, in B), and whether the boundaries touch."""
    of_a, of_b = edges_of(a), edges_of(b)
    cuts: dict[Edge, set[Point]] = {edge: set(edge) for edge in of_a + of_b}
    touch = False
    for first, second in combinations([(edge, 0) for edge in of_a] + [(edge, 1) for edge in of_b], 2):
        for point in _meeting(first[0], second[0]):
            cuts[first[0]].add(point)
            cuts[second[0]].add(point)
            touch = touch or first[1] != second[1]
    found = set()
    for points in cuts.values():
        ordered = sorted(points)
        for p, q in pairwise(ordered):
            middle = (p[0] + q[0]) / 2, (p[1] + q[1]) / 2
            first = [_inside_beside(middle, p[0] == q[0], edges) for edges in (of_a, of_b)]
            second = [
                inside != any(_on(middle, edge) for edge in edges)
                for inside, edges in zip(first, (of_a, of_b), strict=True)
            ]
            found |= {tuple(first), tuple(second)}
    return found, touch


def relate(a: Region, b: Region) -> Relation:
    """The relation of A to B."""
    found, touch = faces(a, b)
    if (True, True) not in found:
        return Relation.MEETS if touch else Relation.DISJOINT
    if (True, False) not in found and (False, True) not in found:
        return Relation.EQUALS
    if (True, False) not in found:
        return Relation.COVERED_BY if touch else Relation.INSIDE
    if (False, True) not in found:
        return Relation.COVERS if touch else Relation.CONTAINS
    return Relation.OVERLAPS


def contains(region: Region, at: tuple[float, float]) -> bool:
    """Whether a point is in the interior; one on the boundary may be either."""
    x, y = map(Fraction, at)
    return _inside_beside((x, y), False, edges_of(region))
