"""Longitude and latitude: what tables whose coordinates are degrees ask of shapes, and the form they keep them in.

A table has a *crs*: "plane", the default, or "lonlat". In the second x is a longitude and y a latitude, in degrees, and
shapes mean what RFC 7946 says: edges are straight in degrees.

- Latitudes lie from -90 to 90. Others are refused: most often the two are swapped.
- Longitudes lie from -180 to 180; shapes given with others, up to 360 to either side, are moved there. -180 and 180 are
  one meridian: a point there is kept at 180, and is compared with regions on both sides.
- Distances have a unit. Without one they are of the plane, and so are refused here; with one they are refused there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from contrada.errors import InvalidValue
from contrada.forwarding.language.values import is_point

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.filter import Filter
    from contrada.forwarding.language.operators import Operator
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Box, Region
    from contrada.spatial.lines.line import Line
    from contrada.spatial.textual.geotext import GeoText

PLANE: Final = "plane"
LONLAT: Final = "lonlat"
SYSTEMS: Final = (PLANE, LONLAT)
_AROUND: Final = 360.0
_BEYOND: Final = (
    91.0  # a latitude: what runs along the edge of a window is in no piece of it, and a pole may be run along
)


def check_crs(crs: object) -> str:
    """The name itself, if it is one of a coordinate reference system."""
    if crs not in SYSTEMS:
        raise InvalidValue(f"crs is {' or '.join(map(repr, SYSTEMS))}, not {crs!r}")
    return str(crs)


def check_degrees(shape: Any) -> None:
    """Refuse a point or region that is not one of degrees."""
    x1, y1, x2, y2 = shape.bounds
    if y1 < -90 or y2 > 90:
        latitude = y1 if y1 < -90 else y2
        raise InvalidValue(f"a latitude of {latitude:g} is beyond 90 degrees: are latitude and longitude swapped?")
    if x1 < -_AROUND or x2 > _AROUND:
        longitude = x1 if x1 < -_AROUND else x2
        raise InvalidValue(f"a longitude of {longitude:g} is beyond 360 degrees")


def point_in_degrees(point: Point) -> Point:
    """The point with its longitude above -180 and up to 180."""
    from contrada.spatial.geometry.point import Point

    check_degrees(point)
    if -180 < point.x <= 180:
        return point
    return Point(point.x + (_AROUND if point.x <= -180 else -_AROUND), point.y)


def points_in_degrees(xy: NDArray[np.float64], there: NDArray[np.bool_]) -> NDArray[np.float64]:
    """As `point_in_degrees`, of rows (x, y) of an array, where there is one."""
    import numpy as np

    from contrada.spatial.geometry.point import Point

    wrong = there & ((np.abs(xy[:, 1]) > 90) | (np.abs(xy[:, 0]) > _AROUND))
    if wrong.any():
        check_degrees(Point(*xy[int(np.argmax(wrong))].tolist()))
    x = xy[:, 0]
    return np.column_stack((np.where(x <= -180, x + _AROUND, np.where(x > 180, x - _AROUND, x)), xy[:, 1]))


def box_in_degrees(x1: float, y1: float, x2: float, y2: float) -> Box:
    """The box of two corners, the short way around: from 170 to -170 it is 20 degrees wide."""
    from contrada.spatial.geometry.region import Box

    if 180 >= x1 > x2 >= -180:  # and no longitude that results is beyond 360
        x1, x2 = (x1, x2 + _AROUND) if x2 <= 0 else (x1 - _AROUND, x2)
    return Box(x1, y1, x2, y2)


def region_in_degrees(region: Region) -> Region:
    """The region with its longitudes from -180 to 180: moved there, or cut at 180 into parts where it crosses it."""
    check_degrees(region)
    x1, _, x2, _ = region.bounds
    if x1 >= -180 and x2 <= 180:
        return region
    if x2 - x1 > _AROUND:
        raise InvalidValue(f"a region from longitude {x1:g} to {x2:g} goes around the Earth more than once")

    import shapely

    from contrada.spatial.geometry.region import Region

    kept = [each for each in _cut(region) if isinstance(each, shapely.Polygon) and each.area > 0]
    if x2 - x1 == _AROUND:  # where it begins and ends, pieces may lie along one another
        kept = shapely.get_parts(shapely.union_all(kept)).tolist()
    return Region.of(kept[0] if len(kept) == 1 else shapely.MultiPolygon(kept))


def line_in_degrees(line: Line) -> Line:
    """As `region_in_degrees`, of a line."""
    check_degrees(line)
    x1, _, x2, _ = line.bounds
    if x1 >= -180 and x2 <= 180:
        return line

    import shapely

    from contrada.spatial.lines.line import Line

    kept = [each for each in _cut(line) if isinstance(each, shapely.LineString) and each.length > 0]
    if x1 < -180 < x2 or x1 < 180 < x2:
        kept += _along_the_meridian(line)
    return Line.of(kept[0] if len(kept) == 1 else shapely.MultiLineString(kept))


def _along_the_meridian(line: Line) -> list[Any]:
    """The edges along the 180th meridian, which are in no piece of what is cut there: at 180, as points are."""
    import shapely

    found = []
    for path in shapely.get_parts(line.to_shapely()):
        xy = shapely.get_coordinates(path)
        for (x, y), (x_next, y_next) in zip(xy[:-1].tolist(), xy[1:].tolist(), strict=True):
            if x == x_next and abs(x) == 180.0:
                found.append(shapely.LineString([(180.0, y), (180.0, y_next)]))
    return found


def _cut(shape: Line | Region) -> list[Any]:
    """The pieces of a shape between meridians of 180 degrees, each moved to where longitudes are."""
    import shapely
    from shapely import affinity

    x1, _, x2, _ = shape.bounds
    whole = shape.to_shapely()
    parts: list[Any] = []
    for turn in (-_AROUND, 0.0, _AROUND):
        west, east = -180 - turn, 180 - turn
        if x1 < east and x2 > west:
            cut = whole if west <= x1 and x2 <= east else shapely.clip_by_rect(whole, west, -_BEYOND, east, _BEYOND)
            if not shapely.is_valid(cut):  # a hole that touched the shell, opened: the ring around it touches itself
                cut = shapely.intersection(whole, shapely.box(west, -_BEYOND, east, _BEYOND))
            parts += shapely.get_parts(affinity.translate(cut, turn)).tolist()
    return parts


def value_in_degrees(value: Any) -> Any:
    """A value of a notification: places as above, others as they are."""
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.lines.line import Line
    from contrada.spatial.textual.geotext import GeoText

    if isinstance(value, Point):
        return point_in_degrees(value)
    if isinstance(value, Region):
        return region_in_degrees(value)
    if isinstance(value, Line):
        return line_in_degrees(value)
    return _text_in_degrees(value) if isinstance(value, GeoText) else value


def _text_in_degrees(text: GeoText) -> GeoText:
    """A text with its place from -180 to 180. Its place is one: a box that crosses the meridian there is refused."""
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Box
    from contrada.spatial.textual.geotext import GeoText

    check_degrees(text.place)
    if isinstance(text.place, Point):
        at = point_in_degrees(text.place)
        return text if at is text.place else GeoText(text.keywords, at=at)
    x1, y1, x2, y2 = text.place.bounds
    if x1 >= -180 and x2 <= 180:
        return text
    turn = _AROUND if x2 <= -180 else -_AROUND if x1 >= 180 else 0.0
    if not turn:
        raise InvalidValue(
            f"a text's box from longitude {x1:g} to {x2:g} crosses the 180th meridian: give one side of it"
        )
    return GeoText(text.keywords, within=Box(x1 + turn, y1, x2 + turn, y2))


def other_text(value: object) -> GeoText | None:
    """Of a text at a point on the 180th meridian the same text at -180; None of all others."""
    from contrada.spatial.textual.geotext import GeoText

    place = other_side(value.place) if isinstance(value, GeoText) else None
    return None if place is None else GeoText(cast("GeoText", value).keywords, at=place)


def notification_in_degrees(notification: Mapping[str, object]) -> dict[str, Any]:
    """A checked notification whose places are in degrees; `InvalidValue` names the attribute at fault."""
    from contrada.forwarding.language.values import check_notification

    checked: dict[str, Any] = dict(check_notification(notification))
    for name, value in checked.items():
        try:
            checked[name] = value_in_degrees(value)
        except InvalidValue as error:
            raise InvalidValue(f"attribute {name!r}: {error}") from None
    return checked


def filter_in_degrees(filter: Filter) -> Filter:
    """The filter as a table of longitudes and latitudes keeps it; `InvalidValue` where it is none for such a table."""
    from contrada.forwarding.language.filter import Filter

    constraints = tuple(map(_constraint_in_degrees, filter.constraints))
    changed = any(mine is not given for mine, given in zip(constraints, filter.constraints, strict=True))
    return Filter(constraints) if changed else filter


def _constraint_in_degrees(constraint: Constraint) -> Constraint:
    from contrada.forwarding.language.constraint import Constraint

    try:
        operand = _operand_in_degrees(constraint)
    except InvalidValue as error:
        raise InvalidValue(f"{constraint}: {error}") from None
    if (relation := _as_relation(constraint.op, operand)) is not None:
        return Constraint(constraint.name, relation, operand.of)
    return constraint if operand is constraint.value else Constraint(constraint.name, constraint.op, operand)


def _as_relation(op: Operator, operand: Any) -> Operator | None:
    """The relation to a region that no distance from it, without a unit, asks for."""
    from contrada.forwarding.language.distance import Distance
    from contrada.forwarding.language.operators import Operator
    from contrada.spatial.geometry.region import Region

    if not isinstance(operand, Distance) or operand.unit or not isinstance(operand.of, Region):
        return None
    return Operator.INTERSECTS if op is Operator.WITHIN else Operator.DISJOINT


def _operand_in_degrees(constraint: Constraint) -> Any:
    from contrada.forwarding.language.distance import Distance
    from contrada.forwarding.language.operands import Negated, TextMatch, ValueSet
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.lines.line import Line

    value: Any = constraint.value
    if isinstance(value, Distance):
        if not value.unit and value.length:
            raise InvalidValue("a distance in degrees means nothing: give it a unit, as in within 500 m of")
        of = value_in_degrees(value.of)
        unit = "m" if other_side(of) is not None else value.unit  # what ends on its other side has it, too
        return value if of is value.of and unit == value.unit else Distance(value.length, of, unit)
    if isinstance(value, Point | Line | Region):
        return value_in_degrees(value)
    if isinstance(value, ValueSet) and any(isinstance(each, Point) for each in value):
        return ValueSet(map(value_in_degrees, value))
    match = value.operand if isinstance(value, Negated) else value
    if isinstance(match, TextMatch) and match.within is not None:
        within = region_in_degrees(match.within)
        return value if within is match.within else TextMatch(match.keywords, within)
    return value


def other_side(value: object) -> Point | None:
    """Of a point on the 180th meridian the same point at -180, for regions that end there; None of all others."""
    from contrada.spatial.geometry.point import Point

    return Point(-180.0, value.y) if isinstance(value, Point) and value.x == 180.0 else None


def is_on_meridian(value: object) -> bool:
    """Whether a value of a known kind would be a point on the 180th meridian, if it were one in degrees."""
    if not is_point(value):
        return False
    x, y = cast("Point", value)
    return abs(x) == 180.0 and abs(y) <= 90.0


def holds_in_degrees(constraint: Constraint, value: Any, **how: Any) -> bool:
    """As `constraint.holds`, of what is in degrees: a point on the 180th meridian is on both sides of it.

    Relations without `disjoint`, and what texts match, hold if they do on one side, those with it if they do on both,
    as `not` asks. So does what asks for no distance from a line, which is how `intersects` and `disjoint` are kept of
    lines.
    """
    held = constraint.holds(value, **how)
    if constraint.op in ("matches", "not matches"):
        text = other_text(value)
        if text is None:
            return held
        also = constraint.holds(text, **how)
        return held or also if constraint.op == "matches" else held and also
    if constraint.at_point and (place := other_side(constraint.value)) is not None:
        return held or type(constraint)(constraint.name, constraint.op, place).holds(value, **how)
    planar = constraint.mask or constraint.at_line or getattr(constraint.value, "unit", None) == ""
    other = other_side(value) if planar else None
    if other is None:
        return held
    also = constraint.holds(other, **how)
    return held and also if constraint.op.mask & 1 or constraint.op == "beyond" else held or also
