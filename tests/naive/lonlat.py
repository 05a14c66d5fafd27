"""What constraints mean in degrees, word by word: the slow twin of `holds_in_degrees`.

The plane of degrees is glued together at the 180th meridian for points, and for points alone: one that lies there has
two places, and is related to a region or line as the place is that touches it, if one does.
"""

from __future__ import annotations

from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.distance import Distance
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Region
from contrada.spatial.textual.geotext import GeoText
from tests.naive import constraints


def places(value: object) -> list[object]:
    """Where a value lies in the plane of degrees."""
    if isinstance(value, Point) and abs(value.x) == 180:
        return [Point(180, value.y), Point(-180, value.y)]
    if isinstance(value, GeoText) and isinstance(value.place, Point) and abs(value.place.x) == 180:
        return [GeoText(value.keywords, at=place) for place in places(value.place)]
    return [value]


def holds(constraint: Constraint, value: object) -> bool:
    op, operand = constraint.op, constraint.value
    if isinstance(operand, Distance) and operand.unit:
        return operand.near(value) == (op is Operator.WITHIN)  # tests/naive/earth.py is the twin of that
    if isinstance(operand, Distance):
        return any(operand.near(place) for place in places(value)) == (op is Operator.WITHIN)
    if isinstance(value, Region) and isinstance(operand, Point):
        return any(constraints.holds(Constraint("x", op, place), value) for place in places(operand))
    if op in (Operator.MATCHES, Operator.NOT_MATCHES):
        wanted = operand.operand if op is Operator.NOT_MATCHES else operand
        return any(wanted.holds(place) for place in places(value)) == (op is Operator.MATCHES)
    if constraint.kind is None or isinstance(operand, Point):
        return constraints.holds(constraint, value)
    nearest = [place for place in places(value) if not constraints.holds(apart_from(operand), place)]
    return constraints.holds(constraint, (nearest or [value])[0])


def apart_from(shape: object) -> Constraint:
    """What is apart from a region or line."""
    return Constraint("x", Operator.DISJOINT, shape)
