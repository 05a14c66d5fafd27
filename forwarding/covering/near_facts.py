"""What constraints say of how far a value reaches, and what follows for others.

Grow a shape S by a length d: all points at most d away from it. A constraint on a region or point then may say that
the value has a point in a grown shape (it *touches* that), or that it has none (it is *apart* from it):

    within d of S                     touches S grown by d
    beyond d of S                     apart from S grown by d
    contains or meets a point P       touches P grown by nothing
    any relations but disjoint to R   touches R grown by nothing
    disjoint R                        apart from R grown by nothing

What touches A touches everything that A is a part of, and what is apart from A is apart from every part of it. So all
that is asked is whether one grown shape is part of another, and `is_part` answers yes only where that is certain: for
the same shape; where each vertex of the first is far enough inside the second, grown, and that is a point or a box and
hence convex; or where the first shape lies in the second and is grown by no more. Rounding is always against a yes.

On the Earth, lengths are metres, there are no convex shapes but points; the triangle's inequality holds there too.
What touches in the plane of degrees touches on the Earth, and not the other way round: shapes that end at the 180th
meridian, or a pole, from different sides have points in common there, and relations do not see them. So nothing follows
from a distance for a relation. Nor does anything from a relation to a point on that meridian, which is on both sides.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from contrada.forwarding.covering.budget import OF_REGIONS
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.lonlat import is_on_meridian
from contrada.forwarding.language.values import Kind
from contrada.spatial.distance.near import near_on_earth
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.lines.line import Line
from contrada.spatial.relations.relate import relate
from contrada.spatial.relations.relation import DISJOINT, INTERSECTS, Relation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.language.constraint import Constraint

Grown: TypeAlias = "tuple[Point | Line | Region, float, str]"  # a shape, a length and its unit

_APART: Final = 1 << DISJOINT
_WITHIN: Final = Relation.INSIDE.mask | Relation.COVERED_BY.mask | Relation.EQUALS.mask
_LINE_IN: Final = Relation.INSIDE.mask | Relation.COVERED_BY.mask
_CENTIMETRE: Final = 0.01  # metres, far above what distances on the Earth are wrong by
_ROUNDING: Final = 1e-12  # far above the errors of the few operations that a distance takes, relative to its terms


class NearFacts(NamedTuple):
    """The grown shapes that values touch, and those that they are apart from."""

    touched: list[Grown]
    apart: list[Grown]

    @classmethod
    def of(cls, constraints: Iterable[Constraint]) -> NearFacts:
        """What constraints, on one name, say together."""
        facts = cls([], [])
        for constraint in constraints:
            value = constraint.value
            if isinstance(value, Distance):
                grown = value.of, value.length, value.unit
                (facts.touched if constraint.op is Operator.WITHIN else facts.apart).append(grown)
            elif constraint.at_point or constraint.at_line:
                if is_on_meridian(value):
                    continue
                facts.touched.append((cast("Point | Line", value), 0.0, ""))
            elif constraint.kind is Kind.REGION:
                if not constraint.mask & _APART:
                    facts.touched.append((cast("Region", value), 0.0, ""))
                elif constraint.mask == _APART:
                    facts.apart.append((cast("Region", value), 0.0, ""))
        return facts

    def contradict(self, budget: CoveringBudget) -> bool:
        """Whether nothing is as they say."""
        return any(is_part(touched, apart, budget) for touched in self.touched for apart in self.apart)

    def imply(self, constraint: Constraint, budget: CoveringBudget) -> bool:
        """Whether the constraint, on a region or point, holds on whatever is as they say."""
        value = constraint.value
        if isinstance(value, Distance):
            wanted: Grown = value.of, value.length, value.unit
            touches, apart = constraint.op is Operator.WITHIN, constraint.op is Operator.BEYOND
        else:
            wanted = cast("Region", value), 0.0, ""
            touches, apart = constraint.mask & INTERSECTS == INTERSECTS, bool(constraint.mask & _APART)
        if touches and any(is_part(mine, wanted, budget) for mine in self.touched):
            return True
        return apart and any(is_part(wanted, mine, budget) for mine in self.apart)


def is_part(inner: Grown, outer: Grown, budget: CoveringBudget) -> bool:
    """Whether all points of one grown shape are certainly points of another. Pays for what it looks at."""
    (a, near, unit), (b, far, other) = inner, outer
    budget.spend(OF_REGIONS)
    if (unit and not other) or (other and not unit and near):
        return False
    on_earth = bool(other)
    if unit and not (near + _CENTIMETRE <= far or (a == b and near == far)):
        return False
    if a == b:
        return near <= far
    if on_earth and isinstance(a, Point) and isinstance(b, Point):
        return near + _CENTIMETRE < far and near_on_earth(a, b, far - near - _CENTIMETRE)
    if isinstance(b, Point | Box) and not on_earth:
        budget.spend(0, len(_vertices(a)))
        return _is_in_convex(a, near, b, far)
    if near > far:
        return False
    if not isinstance(b, Region):
        return False
    budget.spend(0, len(_vertices(a)) + len(b))
    if isinstance(a, Line):
        return relate(a, b).mask & _LINE_IN != 0
    return relate(a, b).mask & (INTERSECTS if isinstance(a, Point) else _WITHIN) != 0


def _vertices(shape: Point | Line | Region) -> list[list[float]]:
    if isinstance(shape, Line):
        return [vertex for part in shape.parts for vertex in part.tolist()]
    return [[shape.x, shape.y]] if isinstance(shape, Point) else shape.coords.tolist()


def _is_in_convex(a: Point | Line | Region, near: float, b: Point | Box, far: float) -> bool:
    """As `is_part`: the distance from what is convex is largest at a vertex."""
    x1, y1, x2, y2 = b.bounds
    if near <= far:
        spare = (far - near) - _ROUNDING * far
        for x, y in _vertices(a):
            away = math.hypot(max(x1 - x, 0.0, x - x2), max(y1 - y, 0.0, y - y2))
            if away + _ROUNDING * (abs(x) + abs(y) + max(map(abs, b.bounds))) > spare and away > 0.0:
                break
        else:
            return True
    # What is deep inside a box may be grown by more than the box is.
    ax1, ay1, ax2, ay2 = Distance(near, a).bounds
    return x1 <= ax1 and y1 <= ay1 and ax2 <= x2 and ay2 <= y2
