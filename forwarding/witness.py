"""A witness of a filter: one notification that matches it, made from its own constants.

Whatever covers a filter matches its witness, so a witness tells cheaply which filters need a real `covers`. For each
name, candidate values are tried against all the constraints on it: the constants themselves, their near neighbours, the
middles between them, and for regions simple shapes in each relation to the given one. Every witness is checked by the
definition before it is handed out; a filter for which no candidate passes (it may be unsatisfiable, or just
unlucky) has none.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from contrada.errors import InvalidValue
from contrada.forwarding.constraint import Constraint, Operator
from contrada.forwarding.operands import TextMatch, ValueSet
from contrada.forwarding.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from contrada.forwarding.filter import Filter
    from contrada.forwarding.values import Value
    from contrada.spatial.region import Region


def witness(f: Filter) -> dict[str, Value] | None:
    """Return a notification that matches `f`, or None when none was found."""
    by_name: dict[str, list[Constraint]] = {}
    for constraint in f.constraints:
        by_name.setdefault(constraint.name, []).append(constraint)
    found: dict[str, Value] = {}
    for name, constraints in by_name.items():
        value = _satisfying(constraints)
        if value is None:
            return None
        found[name] = value
    return found


def _satisfying(constraints: list[Constraint]) -> Value | None:
    if any(constraint.op is Operator.SIMILAR for constraint in constraints):
        return None
    for candidate in _candidates(constraints):
        if all(constraint.holds(candidate) for constraint in constraints):
            return candidate
    return None


def _candidates(constraints: list[Constraint]) -> Iterator[Value]:
    constants: list[Any] = []
    for constraint in constraints:
        value = constraint.value
        if isinstance(value, ValueSet):
            yield from value
        elif isinstance(value, TextMatch):
            yield from _texts(value)
        elif constraint.kind is Kind.REGION:
            yield from _shapes(cast("Region", value))
        elif value is not None:
            yield cast("Value", value)
            constants.append((constraint.kind, value))
    for kind in {kind for kind, _ in constants}:
        yield from _near(kind, [value for of, value in constants if of is kind])
    if all(constraint.op is Operator.EXISTS for constraint in constraints):
        yield 0


def _near(kind: Kind, values: list[Any]) -> Iterator[Value]:
    """Yield values beside and between the constants of one ordered kind."""
    if kind is Kind.NUMBER:
        ordered = sorted(values)
        yield from ((a + b) / 2 for a, b in pairwise(ordered))
        yield from (value + step for value in ordered for step in (-1, 1) if abs(value) < 2**62)
    elif kind is Kind.STRING:
        yield ""
        yield from (value + "a" for value in values)
        yield "".join(values)
    elif kind is Kind.TIME:
        second = timedelta(seconds=1)
        for value in cast("list[datetime]", values):
            try:
                yield value + second
                yield value - second
            except OverflowError:  # beside the first or last moment there is
                continue
    elif kind is Kind.BOOL:
        yield from (True, False)
    elif kind is Kind.POINT:
        yield from (type(value)(value.x + 1.0, value.y) for value in values)


def _texts(match: TextMatch) -> Iterator[Value]:
    from contrada.spatial.geotext import GeoText
    from contrada.spatial.region import Point

    if match.within is None:
        yield GeoText(sorted(match.keywords), at=(0.0, 0.0))
    else:
        for shape in _shapes(match.within):
            if isinstance(shape, Point):
                yield GeoText(sorted(match.keywords), at=(shape.x, shape.y))


def _shapes(region: Region) -> Iterator[Value]:
    """Yield simple values in every relation to `region`, the cheapest first: points, itself, boxes, a triangle."""
    from contrada.spatial.region import Box, Point, Region

    x1, y1, x2, y2 = region.bounds
    width, height = x2 - x1, y2 - y1
    coords = region.coords
    # An ear of the ring, or the triangle at some vertex, has its centroid inside; the middle of the box often does.
    middle = (x1 + width / 2, y1 + height / 2)
    (ax, ay), (bx, by), (cx, cy) = coords[-1].tolist(), coords[0].tolist(), coords[1].tolist()
    ear = ((ax + bx + cx) / 3, (ay + by + cy) / 3)
    for make in (
        lambda: Point(*middle),
        lambda: Point(*ear),
        lambda: Point(bx, by),
        lambda: Point(x2 + width, y2 + height),
        lambda: region,
        lambda: Box(x1 - width, y1 - height, x2 + width, y2 + height),
        lambda: Box(x1 - width, y1 - height, *middle),
        lambda: Box(x1, y1 - height, x2 + width, y2 + height),
        lambda: Region([(bx, by), (cx, cy), ear]),
        lambda: Box(*ear, ear[0] + width, ear[1] + height),
    ):
        try:
            yield make()
        except InvalidValue:  # a sliver too thin to hold the shape: the others may do
            continue
