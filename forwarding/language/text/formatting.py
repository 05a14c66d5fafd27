"""Constraints as text that `parse` reads back to an equal constraint."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.operands import Negated, Similar, TextMatch, ValueSet
from contrada.forwarding.language.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.operands import Scalar
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.lines.line import Line

PLAIN_NAME: Final = re.compile(r"[^\W\d][\w.-]*")
RESERVED: Final = frozenset(("and", "or", "not"))
EVERYTHING: Final = "true"
"""The filter without constraints."""


def format_constraint(constraint: Constraint) -> str:
    """`name op operand` in the text language."""
    name, op, value = format_name(constraint.name), constraint.op.value, constraint.value
    if isinstance(value, Negated):
        value = value.operand
    if value is None:
        return f"{name} {op}"
    if isinstance(value, ValueSet) and constraint.kind is not None:
        members = [format_scalar(member) for member in value]
        return f"{name} {op} {members[0]}" if len(members) == 1 else f"{name} {op} any [{', '.join(members)}]"
    if isinstance(value, ValueSet):
        return f"{name} {op} [{', '.join(map(format_scalar, value))}]"
    if isinstance(value, TextMatch):
        within = "" if value.within is None else f" within {format_region(value.within)}"
        return f"{name} {op} {_format_keywords(value.keywords)}{within}"
    if isinstance(value, Similar):
        place, alpha, tau = format_point(value.at), format_number(value.alpha), format_number(value.tau)
        return f"{name} {op} {_format_keywords(value.keywords)} at {place} alpha {alpha} tau {tau}"
    if isinstance(value, Distance):
        return f"{name} {op} {format_length(value)} of {format_shape(value.of)}"
    if constraint.kind is Kind.REGION and not constraint.at_point:
        return f"{name} {op} {format_shape(cast('Region', value))}"
    return f"{name} {op} {format_scalar(cast('Scalar', value))}"


def format_name(name: str) -> str:
    """A name as it is, or in quotes when it is not a plain word."""
    return name if PLAIN_NAME.fullmatch(name) and name.lower() not in RESERVED else format_string(name)


def format_string(text: str) -> str:
    """A string literal: JSON's, with non-ASCII characters as they are."""
    return json.dumps(text, ensure_ascii=False)


def format_number(number: float) -> str:
    """The shortest text that reads back to the same number."""
    if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
        return str(int(number))
    return repr(number)


def format_time(time: datetime) -> str:
    """An ISO 8601 time in UTC, with a Z."""
    return time.isoformat().replace("+00:00", "Z")


def format_scalar(value: Scalar) -> str:
    """A literal of any kind that `=` compares."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return format_number(value)
    if isinstance(value, str):
        return format_string(value)
    if isinstance(value, datetime):
        return format_time(value)
    return format_point(value)


def format_point(point: Point) -> str:
    """A POINT literal."""
    return f"POINT({_format_position(point.x, point.y)})"


def format_length(distance: Distance) -> str:
    """A length with its unit, if it has one: whole kilometres as such."""
    if distance.unit and distance.length and distance.length % 1000 == 0:
        return f"{format_number(distance.length / 1000)} km"
    return format_number(distance.length) + (" m" if distance.unit else "")


def format_shape(shape: Point | Line | Region) -> str:
    """A literal of a point, line or region."""
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region

    if isinstance(shape, Point):
        return format_point(shape)
    return format_region(shape) if isinstance(shape, Region) else shape.wkt


def format_region(region: Region) -> str:
    """A BOX literal for a Box, else a POLYGON or MULTIPOLYGON, closed as WKT asks."""
    from contrada.spatial.geometry.region import Box

    if isinstance(region, Box):
        x1, y1, x2, y2 = region.bounds
        return f"BOX({_format_position(x1, y1)}, {_format_position(x2, y2)})"
    parts = [
        "(" + ", ".join(f"({', '.join(_format_position(x, y) for x, y in ring.tolist())})" for ring in part) + ")"
        for part in region.rings
    ]
    return f"POLYGON{parts[0]}" if len(parts) == 1 else f"MULTIPOLYGON({', '.join(parts)})"


def _format_position(x: float, y: float) -> str:
    return f"{format_number(x)} {format_number(y)}"


def _format_keywords(keywords: Iterable[str]) -> str:
    return "{" + ", ".join(map(format_string, sorted(keywords))) + "}"
