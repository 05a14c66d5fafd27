"""Constraints read word by word, with shapely for relations: the slow twin of `Constraint.holds`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import shapely

from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.operands import Negated, TextMatch
from contrada.forwarding.language.set_value import SetValue
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Region
from contrada.spatial.lines.line import Line
from contrada.spatial.textual.geotext import GeoText
from tests.naive import lines
from tests.naive.distance import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contrada.forwarding.language.filter import Filter

# DE-9IM patterns of the eight relations, from the interiors' and boundaries' intersections ([SIENA-2D], Table 1).
PATTERNS = {
    Operator.DISJOINT: "FF*FF****",
    Operator.EQUALS: "T*F**FFF*",
    Operator.INSIDE: "T*F*FF***",
    Operator.CONTAINS: "T**FF*F**",
    Operator.COVERED_BY: "T*F*TF***",
    Operator.COVERS: "T***T*FF*",
}


def kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    for name, types in (
        ("number", (int, float)),
        ("string", (str,)),
        ("time", (datetime,)),
        ("point", (Point,)),
        ("region", (Region,)),
        ("line", (Line,)),
        ("geotext", (GeoText,)),
        ("set", (SetValue,)),
    ):
        if isinstance(value, types):
            return name
    raise TypeError(type(value))


def holds(constraint: Constraint, value: object) -> bool:
    op, wanted = constraint.op, constraint.value
    if op is Operator.NOT_EXISTS:
        return False
    if op.startswith("not "):
        return denies(positive(constraint), value)
    if op is Operator.EXISTS:
        return True
    if op is Operator.HAS:
        return kind(value) == "set" and any(
            kind(mine) == kind(member) and mine == member for mine in value.members for member in wanted.values
        )
    if op is Operator.IN:
        return any(kind(value) == kind(member) and value == member for member in wanted.values)
    if op is Operator.MATCHES:
        if kind(value) != "geotext" or not wanted.keywords <= value.keywords:
            return False
        return wanted.within is None or shape(value.place).intersects(shape(wanted.within))
    if op in (Operator.CONTAINS, Operator.MEETS) and kind(wanted) == "point":
        return kind(value) == "region" and bool(
            (shapely.contains if op is Operator.CONTAINS else shapely.touches)(shape(value), shape(wanted))
        )
    if isinstance(wanted, Distance):
        if kind(value) not in ("point", "region", "line"):
            return False
        pairs = [(mine, theirs) for mine in paths(value) for theirs in paths(wanted.of)]
        return any(within(*pair, wanted.length) for pair in pairs) == (op is Operator.WITHIN)
    if kind(wanted) == "region":
        if " or " in op:
            return any(holds(Constraint(constraint.name, word, wanted), value) for word in op.split(" or "))
        if kind(value) == "region":
            return region_relation(op, shape(value), shape(wanted))
        if kind(value) == "line":
            found = Operator(lines.relate(value, wanted).value)
            return op is found or (op is Operator.INTERSECTS and found is not Operator.DISJOINT)
        return kind(value) == "point" and point_relation(op, shape(value), shape(wanted))
    if kind(wanted) == "line":
        return kind(value) in ("point", "region", "line") and lines.relate_to(value, wanted).value in op.split(" or ")
    if kind(value) != kind(wanted):
        return False
    return {
        Operator.EQ: lambda a, b: a == b,
        Operator.NE: lambda a, b: not a == b,  # noqa: SIM201  # as the definition has it
        Operator.LT: lambda a, b: a < b,
        Operator.LE: lambda a, b: a < b or a == b,
        Operator.GT: lambda a, b: b < a,
        Operator.GE: lambda a, b: b < a or a == b,
        Operator.PREFIX: lambda a, b: a[: len(b)] == b,
        Operator.SUFFIX: lambda a, b: a[len(a) - len(b) :] == b if len(b) <= len(a) else False,
        Operator.LIKE: is_like,
        Operator.FOLDED: lambda a, b: a.casefold() == b.casefold(),
        Operator.CONTAINS: lambda a, b: any(a[i : i + len(b)] == b for i in range(len(a) + 1)),
    }[op](value, wanted)


def is_like(value: str, pattern: str) -> bool:
    """Whether a text is like a pattern, tried out character by character."""
    if not pattern:
        return not value
    if pattern[0] == "%":
        return is_like(value, pattern[1:]) or bool(value and is_like(value[1:], pattern))
    if pattern[0] == "_":
        return bool(value and is_like(value[1:], pattern[1:]))
    wanted, rest = (pattern[1], pattern[2:]) if pattern[0] == "\\" else (pattern[0], pattern[1:])
    return value[:1] == wanted and is_like(value[1:], rest)


def positive(constraint: Constraint) -> Constraint:
    """The constraint that one with `not` in its operator negates."""
    operand = constraint.value
    operand = operand.operand if isinstance(operand, Negated) else operand
    return Constraint(constraint.name, constraint.op.removeprefix("not "), operand)


def denies(constraint: Constraint, value: object) -> bool:
    """Whether the constraint is false of a value of its own type: what `not` asks for."""
    if constraint.op.startswith("not "):
        return holds(positive(constraint), value)
    if constraint.op is Operator.EXISTS:
        return False
    if constraint.op is Operator.HAS:
        return kind(value) == "set" and not holds(constraint, value)
    if isinstance(constraint.value, TextMatch):
        return kind(value) == "geotext" and not holds(constraint, value)
    wanted = constraint.value.values if constraint.op is Operator.IN else [constraint.value]
    if constraint.at_point and kind(value) == "line":  # of such a point a line is only known to be apart
        return not any(within(mine, path(wanted[0]), 0.0) for mine in paths(value))
    if isinstance(wanted[0], Distance) or constraint.at_point:
        return kind(value) in ("point", "region", "line") and not holds(constraint, value)
    kinds = {kind(each) for each in wanted}
    if kinds & {"region", "line"}:
        kinds |= {"region", "point", "line"}
    return kind(value) in kinds and not holds(constraint, value)


def matches(filter_: Filter, notification: Mapping[str, object]) -> bool:
    return all(
        holds(c, notification[c.name]) if c.name in notification else c.op is Operator.NOT_EXISTS
        for c in filter_.constraints
    )


def matches_none(filters: Iterable[Filter], notification: Mapping[str, object]) -> bool:
    """What `not` of alternatives asks for: of each, one constraint is false of a value of its type."""
    return all(any(_is_denied(c, notification) for c in each.constraints) for each in filters)


def _is_denied(constraint: Constraint, notification: Mapping[str, object]) -> bool:
    if constraint.name not in notification:
        return constraint.op is Operator.EXISTS
    return constraint.op is Operator.NOT_EXISTS or denies(constraint, notification[constraint.name])


def path(place: Point | Region) -> tuple[list[tuple[float, float]], bool]:
    """A point or region as the twin of distances has it."""
    return ([tuple(place)], False) if isinstance(place, Point) else (place.coords.tolist(), True)


def paths(place: Point | Line | Region) -> list[tuple[list[tuple[float, float]], bool]]:
    """As `path`, of each part of a line."""
    return [(part.tolist(), False) for part in place.parts] if isinstance(place, Line) else [path(place)]


def shape(place: object) -> shapely.Geometry:
    if isinstance(place, Point):
        return shapely.Point(place.x, place.y)
    return place.to_shapely()


def region_relation(op: Operator, a: shapely.Geometry, b: shapely.Geometry) -> bool:
    if op is Operator.INTERSECTS:
        return bool(a.intersects(b))
    if op is Operator.MEETS:
        return bool(a.touches(b))
    if op is Operator.OVERLAPS:
        return bool(a.overlaps(b))
    return bool(shapely.relate_pattern(a, b, PATTERNS[op])) and (op is Operator.EQUALS or not a.equals(b))


def point_relation(op: Operator, point: shapely.Geometry, region: shapely.Geometry) -> bool:
    relation = (
        Operator.INSIDE if region.contains(point) else Operator.MEETS if region.touches(point) else Operator.DISJOINT
    )
    return op is relation or (op is Operator.INTERSECTS and relation is not Operator.DISJOINT)
