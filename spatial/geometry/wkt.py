"""Well-known text, as much of it as has a meaning here: POINT, lines, polygons, and BOX(x1 y1, x2 y2).

Text becomes a `Geometry`, the same intermediate form that GeoJSON becomes, so that holes, parts and dimensions are
judged in one place whatever a shape was written in. Numbers are written in the shortest form that reads back as the
same double. Rings need not be closed; of several shapes, what is EMPTY has no points and is left out. Reading is linear
in the text; nothing is evaluated before its characters are known to be numbers' characters.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from contrada.errors import InvalidValue


class Geometry(NamedTuple):
    """A kind in GeoJSON's spelling, or "Box", and its nested coordinates as GeoJSON nests them (a Box: two corners)."""

    kind: str
    coordinates: Any


_HEAD = re.compile(r"\s*([A-Za-z]+)(?:\s+(ZM|Z|M))?\s*(EMPTY\b|\()", re.IGNORECASE)
_NUMBERS = re.compile(r"[-+0-9.eE\s]+")
_GROUP = re.compile(r"\(([^()]*)\)")
_KINDS = {kind.upper(): kind for kind in ("Point", "Polygon", "MultiPolygon", "LineString", "MultiLineString", "Box")}
_SKELETONS = {
    "Polygon": re.compile(r"\(r(,r)*\)"),
    "MultiLineString": re.compile(r"\((r|EMPTY)(,(r|EMPTY))*\)"),
    "MultiPolygon": re.compile(r"\((\(r(,r)*\)|EMPTY)(,(\(r(,r)*\)|EMPTY))*\)"),
}
_NOTHING = re.compile(r"\(\s*EMPTY\s*(,\s*EMPTY\s*)*\)", re.IGNORECASE)
_PARTS = re.compile(r"\(r(?:,r)*\)")
_SHOWN = 40


def parse_wkt(text: str) -> Geometry:
    """Read one geometry. Raises `InvalidValue` that says what was expected and shows what was found."""
    head = _HEAD.match(text)
    if head is None:
        if text.lstrip().upper().startswith("SRID="):
            raise InvalidValue(f"not well-known text: {_show(text)}; leave out SRID, coordinates are the table's (crs)")
        raise InvalidValue(f"not well-known text: {_show(text)}; expected for example POLYGON((0 0, 4 0, 4 3))")
    word = head[1].upper()
    if word not in _KINDS:
        raise InvalidValue(
            f"{word} is not a shape that is read here; expected POLYGON, MULTIPOLYGON, POINT, BOX or a line"
        )
    if head[2]:
        raise InvalidValue(f"{word} {head[2].upper()}: coordinates are planar, x and y only; drop the others")
    kind = _KINDS[word]
    rest = text[head.start(3) :].strip()
    if head[3] != "(":
        if len(rest) > len("EMPTY"):
            raise InvalidValue(f"{word}: unexpected text after EMPTY: {_show(rest[5:])}")
        return Geometry(kind, [])
    if rest.count("(") != rest.count(")"):
        raise InvalidValue(f"{word}: parentheses do not balance in {_show(rest)}")
    if kind in ("Point", "Box", "LineString"):
        points = _positions(_only_group(rest, word), word)
        if kind == "Point":
            if len(points) != 1:
                raise InvalidValue(f"POINT has {len(points)} positions, not one")
            return Geometry(kind, points[0])
        if kind == "LineString":
            return Geometry(kind, points)
        if len(points) != 2:
            raise InvalidValue(f"BOX has {len(points)} corners, not two: BOX(x1 y1, x2 y2)")
        return Geometry(kind, points)
    if kind != "Polygon" and _NOTHING.fullmatch(rest):
        return Geometry(kind, [])
    # Innermost groups are rings. What is left when each is replaced by a letter shows the nesting.
    rings = [_positions(ring, word) for ring in _GROUP.findall(rest)]
    skeleton = re.sub(r"\s+", "", _GROUP.sub("r", rest)).replace("empty", "EMPTY")
    if not _SKELETONS[kind].fullmatch(skeleton):
        if kind == "MultiPolygon":
            raise InvalidValue(f"MULTIPOLYGON is not a list of polygons: {_show(rest)}")
        raise InvalidValue(f"{word} is not a list of rings, {word}((x y, x y, x y)): {_show(rest)}")
    if kind != "MultiPolygon":
        return Geometry(kind, rings)
    supply = iter(rings)
    return Geometry(kind, [[next(supply) for _ in range(part.count("r"))] for part in _PARTS.findall(skeleton)])


def format_number(value: float) -> str:
    """Write the shortest decimal that reads back as the same double; whole numbers without a point."""
    if value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return repr(value)


def format_positions(points: list[list[float]]) -> str:
    """Write positions as WKT does: `x y, x y`."""
    return ", ".join(f"{format_number(x)} {format_number(y)}" for x, y in points)


def _only_group(rest: str, word: str) -> str:
    group = _GROUP.fullmatch(rest)
    if group is None:
        raise InvalidValue(f"{word} is not one list of positions: {_show(rest)}")
    return group[1]


def _positions(body: str, word: str) -> list[list[float]]:
    points = []
    for index, position in enumerate(body.split(",")):
        # float() alone would also take "nan", "infinity" and "1_000".
        if not _NUMBERS.fullmatch(position):
            raise InvalidValue(f"{word}: position {index} is not two numbers: {_show(position)}")
        try:
            points.append([float(number) for number in position.split()])
        except ValueError as error:
            raise InvalidValue(f"{word}: position {index} is not two numbers: {_show(position)}") from error
    return points


def _show(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
