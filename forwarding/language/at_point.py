"""Relations to a point: storms over my house. What regions and points can be to one, in the operators that say it.

    area contains POINT(1 2)      the point lies in the region's interior
    area meets POINT(1 2)         it lies on the boundary

These two are constraints with a point as operand, and hold on regions only. The others are said already:

    area intersects, covers P     area within 0 of P           pos equals P      pos = P
    area disjoint P               area beyond 0 of P

Nothing overlaps a point, or is inside of or covered by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.errors import InvalidValue
from contrada.forwarding.language.distance import Distance
from contrada.spatial.relations.relation import CONTAINS, COVERS, DISJOINT, EQUALS, INTERSECTS, MEETS

if TYPE_CHECKING:
    from contrada.spatial.geometry.point import Point

_POSSIBLE: Final = 1 << CONTAINS | 1 << MEETS | 1 << DISJOINT | 1 << EQUALS
_TOUCHING: Final = 1 << CONTAINS | 1 << MEETS | 1 << EQUALS
_ALTERNATIVES: Final = {
    "within": _TOUCHING,
    "beyond": 1 << DISJOINT,
    "contains": 1 << CONTAINS,
    "meets": 1 << MEETS,
    "=": 1 << EQUALS,
}


def relations_to_point(mask: int, point: Point, *, negated: bool = False) -> list[tuple[str, Point | Distance]]:
    """The operators and operands of which one says that a value is in one of these relations to a point, or in none.

    What nothing satisfies is refused. `covers` asks for the point to be a point of the value.
    """
    if mask == INTERSECTS or mask & 1 << COVERS:
        mask |= _TOUCHING
    mask = (~mask if negated else mask) & _POSSIBLE
    if not mask:
        raise InvalidValue("a point is contained in a region, meets its boundary or is disjoint: nothing else")
    found: list[tuple[str, Point | Distance]] = []
    for word, means in _ALTERNATIVES.items():
        if mask & means == means:
            mask &= ~means
            found.append((word, Distance(0.0, point) if word in ("within", "beyond") else point))
    return found
