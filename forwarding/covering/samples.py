"""Witnesses of a filter: values that satisfy it, made from its own constants.

Whatever covers a filter holds on its witnesses, so witnesses tell cheaply which filters need a real `covers`. For each
name, candidate values are tried against all the constraints on it: the constants themselves, their near neighbours, the
middles between them, and for regions points by the corners, then simple shapes in each relation to the given one.
Every witness is checked by the definition before it is handed out; a filter for which no candidate passes (it may be
unsatisfiable, or just unlucky) has none.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.like import read_pattern
from contrada.forwarding.language.operands import Negated, TextMatch, ValueSet
from contrada.forwarding.language.set_value import SetValue
from contrada.forwarding.language.values import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from contrada.forwarding.language.filter import Filter
    from contrada.forwarding.language.values import Value
    from contrada.spatial.geometry.region import Point, Region


_METRES_PER_DEGREE: Final = 111_320.0  # about


def witnesses(f: Filter) -> dict[str, list[Value]] | None:
    """For each name that must be there, values on which all constraints hold; None when some name has none.

    A notification that takes any of them for each name, and has no other attribute, matches the filter.
    """
    by_name: dict[str, list[Constraint]] = {}
    for constraint in f.constraints:
        by_name.setdefault(constraint.name, []).append(constraint)
    found: dict[str, list[Value]] = {}
    for name, constraints in by_name.items():
        if all(constraint.op is Operator.NOT_EXISTS for constraint in constraints):
            continue
        values = _satisfying(constraints)
        if not values:
            return None
        found[name] = values
    return found


def _satisfying(constraints: list[Constraint]) -> list[Value]:
    if any(constraint.op in (Operator.SIMILAR, Operator.NOT_SIMILAR) for constraint in constraints):
        return []
    for candidates in (_candidates(constraints), _last_resort(constraints)):
        values = [each for each in candidates if all(constraint.holds(each) for constraint in constraints)]
        if values:
            return values
    return []


def _candidates(constraints: list[Constraint]) -> Iterator[Value]:
    constants: list[Any] = []
    for constraint in constraints:
        value = constraint.value
        if constraint.kind is Kind.SET:
            wanted = [c for c in constraints if c.op is Operator.HAS]
            yield SetValue(member for c in wanted for member in cast("ValueSet", c.value))
            yield SetValue(next(iter(cast("ValueSet", c.value))) for c in wanted)
        elif isinstance(value, ValueSet):
            yield from value
        elif isinstance(value, TextMatch):
            yield from _texts(value)
        elif isinstance(value, Negated):
            yield _silence()
        elif isinstance(value, Distance):
            yield from _around(value)
        elif constraint.at_point or constraint.at_line:
            continue
        elif constraint.kind is Kind.REGION:
            yield from _points(cast("Region", value))
        elif constraint.op in (Operator.LIKE, Operator.NOT_LIKE):
            pattern = read_pattern(cast("str", value))
            yield "".join(each or "a" for each in pattern.characters)
        elif value is not None:
            yield cast("Value", value)
            constants.append((constraint.kind, value))
    for kind in {kind for kind, _ in constants}:
        yield from _near(kind, [value for of, value in constants if of is kind])
    if all(constraint.op is Operator.EXISTS for constraint in constraints):
        yield 0


def _last_resort(constraints: list[Constraint]) -> Iterator[Value]:
    for constraint in constraints:
        if constraint.at_point:
            yield from _over(cast("Point", constraint.value))
        elif constraint.kind is Kind.REGION and constraint.mask:
            yield from _shapes(cast("Region", constraint.value))


def _near(kind: Kind, values: list[Any]) -> Iterator[Value]:
    """Yield values beside and between the constants of one ordered kind."""
    if kind is Kind.NUMBER:
        ordered = sorted(values)
        yield from ((a + b) / 2 for a, b in pairwise(ordered))
        yield from (value + step for value in ordered for step in (-1, 1) if abs(value) < 2**62)
    elif kind is Kind.STRING:
        yield ""
        yield from (value.upper() for value in values)
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
    from contrada.spatial.textual.geotext import GeoText

    if match.within is None:
        yield GeoText(sorted(match.keywords), at=(0.0, 0.0))
    else:
        for point in _points(match.within):
            yield GeoText(sorted(match.keywords), at=(point.x, point.y))


def _silence() -> Value:
    """A text without words, which matches nothing."""
    from contrada.spatial.textual.geotext import GeoText

    return GeoText([], at=(0.0, 0.0))


def _over(point: Point) -> Iterator[Region]:
    """Yield a region that contains a point and one that meets it."""
    from contrada.spatial.geometry.region import Box

    reach = 1.0 + abs(point.x) + abs(point.y)
    try:
        yield Box(point.x - reach, point.y - reach, point.x + reach, point.y + reach)
        yield Box(point.x, point.y - reach, point.x + reach, point.y + reach)
    except InvalidValue:  # beyond the largest coordinate
        return


def _around(distance: Distance) -> Iterator[Point]:
    """Yield points of the shape, some that are nearly as far away as the distance goes, and some beyond it."""
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.lines.line import Line

    shape, reach = distance.of, distance.length / _METRES_PER_DEGREE if distance.unit else distance.length
    if isinstance(shape, Point):
        corners = [[shape.x, shape.y]]
    elif isinstance(shape, Line):
        corners = shape.parts[0][[0, -1]].tolist()
    else:
        corners = shape.coords[[0, len(shape) // 2]].tolist()
    x1, y1, x2, y2 = shape.bounds
    places = [*corners, (x1 - 0.999 * reach, y1), (x2 + 0.999 * reach, y2), (x1, y1 - 0.999 * reach)]
    places += [(x2, y2 + 0.999 * reach), (x1 - 2 * reach - 1, y1), (x2 + 2 * reach + 1, y2 + 2 * reach + 1)]
    for x, y in places:
        if distance.unit and not (-180 < x <= 180 and -90 <= y <= 90):
            continue
        try:
            yield Point(float(x), float(y))
        except InvalidValue:  # beyond the largest coordinate: the others may do
            continue


def _points(region: Region) -> Iterator[Point]:
    """Yield points in every relation to `region`: near the corners of its extent, within, on the boundary, outside."""
    from contrada.spatial.geometry.region import Point

    x1, y1, x2, y2 = region.bounds
    width, height = x2 - x1, y2 - y1
    coords = region.coords
    middle = np.array([x1 + width / 2, y1 + height / 2])
    diagonal = coords.sum(axis=1)
    ear = coords[[-1, 0, 1]].mean(axis=0)
    for x, y in (
        coords[diagonal.argmin()] * 0.999 + middle * 0.001,
        coords[diagonal.argmax()] * 0.999 + middle * 0.001,
        middle,
        ear,
        coords[0],
        (x2 + width, y2 + height),
    ):
        try:
            yield Point(float(x), float(y))
        except InvalidValue:  # beyond the largest coordinate: the others may do
            continue


def _shapes(region: Region) -> Iterator[Value]:
    """Yield regions in every relation to `region` that a point cannot be in."""
    from contrada.spatial.geometry.region import Box, Region

    x1, y1, x2, y2 = region.bounds
    width, height = x2 - x1, y2 - y1
    middle = (x1 + width / 2, y1 + height / 2)
    (ax, ay), (bx, by), (cx, cy) = region.coords[-1].tolist(), region.coords[0].tolist(), region.coords[1].tolist()
    ear = ((ax + bx + cx) / 3, (ay + by + cy) / 3)
    makers: tuple[Callable[[], Region], ...] = (
        lambda: region,
        lambda: Box(x1 - width, y1 - height, x2 + width, y2 + height),
        lambda: Box(x1 - width, y1 - height, *middle),
        lambda: Box(x1, y1 - height, x2 + width, y2 + height),
        lambda: Region([(bx, by), (cx, cy), ear]),
        lambda: Box(*ear, ear[0] + width, ear[1] + height),
    )
    for make in makers:
        try:
            yield make()
        except InvalidValue:  # a sliver too thin to hold the shape: the others may do
            continue
