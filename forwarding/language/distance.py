"""The right-hand side of `within` and `beyond`: a length and the shape that it is measured from.

    pos within 500 of POINT(1 2)        the value's nearest point is at most 500 away from the shape
    pos beyond 500 of BOX(0 0, 9 9)     it is farther away than that
    pos within 3 km of POINT(12.5 41.9) the same on the Earth: degrees, and metres along the shortest way on WGS 84

A value that is a region is as near as its nearest point, and at no distance from what it has a point in common with.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

from contrada.errors import InvalidValue
from contrada.forwarding.language.lonlat import check_degrees

if TYPE_CHECKING:
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.lines.line import Line


UNITS: Final = {"m": 1.0, "km": 1000.0}
METRES: Final = "m"
MOST_METRES: Final = 1e7  # as far as kernels are right (spatial/distance/geodesic.py)


@dataclass(frozen=True, slots=True)
class Distance:
    """Operand of `within` and `beyond`: at most, or more than, this length away from a point or region.

    Without a unit the length is one of the plane. With one, `m` or `km`, it is one on the Earth, and kept in metres.
    """

    length: float
    of: Point | Line | Region
    unit: str = ""

    def __post_init__(self) -> None:
        from contrada.spatial.geometry.point import Point, coordinate

        length = coordinate(self.length, "a distance")
        if length < 0:
            raise InvalidValue(f"a distance is not negative: {self.length!r}")
        object.__setattr__(self, "of", self.of if isinstance(self.of, Point) else shape_of(self.of))
        if self.unit:
            if self.unit not in UNITS:
                raise InvalidValue(f"{self.unit!r} is not a unit of distance; there are {' and '.join(UNITS)}")
            length *= UNITS[self.unit]
            if length > MOST_METRES:
                raise InvalidValue(f"a distance on the Earth is at most 10,000 km, not {length / 1000:g} km")
            check_degrees(self.of)
            object.__setattr__(self, "unit", METRES)
        object.__setattr__(self, "length", length)

    def near(self, value: Point | Line | Region) -> bool:
        """Whether a shape is at most the length away: exact in the plane, right to a millimetre on the Earth."""
        from contrada.spatial.distance.near import near, near_on_earth

        return near_on_earth(value, self.of, self.length) if self.unit else near(value, self.of, self.length)

    def measure(self, value: Point | Line | Region) -> float:
        """How far a shape is away, rounded; infinite beyond 10,000 km."""
        from contrada.spatial.distance.near import distance, distance_on_earth

        return distance_on_earth(value, self.of) if self.unit else distance(value, self.of)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """A box that whatever is near meets: the shape's, grown by the length."""
        if self.unit:
            from contrada.spatial.distance.earth import grown_on_earth

            return grown_on_earth(self.of.bounds, self.length)
        from contrada.spatial.distance.near import grown

        return grown(self.of.bounds, self.length)

    def order(self) -> tuple[object, ...]:
        """A key under which all operands are ordered."""
        return (self.unit, self.length, self.vertices, self.of.wkt)

    @property
    def vertices(self) -> int:
        """How many vertices the shape has."""
        from contrada.spatial.geometry.point import Point

        return 1 if isinstance(self.of, Point) else len(self.of)


def shape_of(shape: Any) -> Point | Line | Region:
    """A point, line or region of whatever `of` of these takes; a pair of numbers is a point."""
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.geometry.shapes import geometry_of
    from contrada.spatial.lines.line import Line

    if shape is None:
        raise InvalidValue("a distance is measured from a point, line or region")
    if isinstance(shape, Region | Line):
        return shape
    if isinstance(shape, tuple) and len(shape) == 2 and all(isinstance(each, Real) for each in shape):
        return Point(*shape)
    geometry = geometry_of(shape)
    if geometry is not None and geometry.kind.endswith("LineString"):
        return Line.of(shape)
    return Point.of(shape) if geometry is not None and geometry.kind == "Point" else Region.of(shape)
