"""A place without extent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from numbers import Real
from typing import TYPE_CHECKING, Any

from contrada.errors import InvalidValue, shown
from contrada.spatial.geometry.shapes import geometry_of
from contrada.spatial.geometry.wkt import format_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import shapely
    from numpy.typing import NDArray

# The range in which orientation tests are exact (`predicates`, which this module does not load: clients that only
# publish points need no compiler).
_MIN_MAGNITUDE = 1e-100
_MAX_MAGNITUDE = 1e100


def coordinate(value: object, name: str) -> float:
    """Return `value` as a coordinate: a finite real number, zero or of a magnitude from 1e-100 to 1e100."""
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):  # (an ABC is slow)
        raise InvalidValue(f"{name} is {shown(value)}, a {type(value).__name__}; expected a number")
    try:
        number = float(value) + 0.0  # -0.0 becomes 0.0, so that equal points have equal bits
    except OverflowError:
        number = float("inf")
    if number != 0.0 and not _MIN_MAGNITUDE <= abs(number) <= _MAX_MAGNITUDE:
        what = "not finite" if number - number != 0.0 else "outside 1e-100 to 1e100 in magnitude"
        raise InvalidValue(f"{name} is {shown(value)}: {what}")
    return number


def check_coordinates(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers of an array `coordinate` would take."""
    magnitude = abs(numbers)
    fine: NDArray[np.bool_] = (magnitude == 0.0) | ((magnitude >= _MIN_MAGNITUDE) & (magnitude <= _MAX_MAGNITUDE))
    return fine


class Point:
    """A point of the plane: x then y (longitude then latitude). Immutable and hashable; unpacks as `x, y = point`.

    Against a region it is inside, meets (on the boundary) or disjoint.
    """

    __slots__ = ("_x", "_y")

    _x: float
    _y: float

    def __init__(self, x: float, y: float) -> None:
        object.__setattr__(self, "_x", coordinate(x, "x"))
        object.__setattr__(self, "_y", coordinate(y, "y"))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable: {name} cannot be deleted")

    @classmethod
    def unchecked(cls, x: float, y: float) -> Point:
        """Make a point of floats that `coordinate` would return as they are: for arrays checked as a whole."""
        point = cls.__new__(cls)
        object.__setattr__(point, "_x", x)
        object.__setattr__(point, "_y", y)
        return point

    @classmethod
    def of(cls, shape: object) -> Point:
        """Read a point from a Point, an (x, y) pair, WKT, GeoJSON, `__geo_interface__` or shapely."""
        if isinstance(shape, Point):
            return shape
        geometry = geometry_of(shape)
        if geometry is not None:
            if geometry.kind != "Point":
                raise InvalidValue(f"expected a Point, not a {geometry.kind}")
            shape = geometry.coordinates
        if isinstance(shape, (str, bytes, Set, Mapping)) or not isinstance(shape, Iterable):
            raise InvalidValue(f"a {type(shape).__name__} is not a point; expected (x, y)")
        try:
            numbers = list(shape)
        except (TypeError, NotImplementedError):  # arrays of no dimension, and views of two, say that they are iterable
            raise InvalidValue(f"a {type(shape).__name__} is not a point; expected (x, y)") from None
        if len(numbers) != 2:
            raise InvalidValue(f"a point has two coordinates, x and y, not {len(numbers)}")
        return cls(*numbers)

    @property
    def x(self) -> float:
        """The first coordinate (longitude)."""
        return self._x

    @property
    def y(self) -> float:
        """The second coordinate (latitude)."""
        return self._y

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The point as a degenerate rectangle: (x, y, x, y)."""
        return self._x, self._y, self._x, self._y

    @property
    def wkt(self) -> str:
        """Well-known text that reads back as an equal point."""
        return f"POINT({format_number(self._x)} {format_number(self._y)})"

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        return {"type": "Point", "coordinates": (self._x, self._y)}

    def to_shapely(self) -> shapely.Point:
        """Return the point as shapely has it."""
        import shapely

        return shapely.Point(self._x, self._y)

    def __iter__(self) -> Iterator[float]:
        return iter((self._x, self._y))

    def __len__(self) -> int:
        return 2

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Point):
            return NotImplemented
        return self._x == other._x and self._y == other._y

    def __hash__(self) -> int:
        return hash((self._x, self._y))

    def __reduce__(self) -> tuple[type[Point], tuple[float, float]]:
        return Point, (self._x, self._y)

    def __repr__(self) -> str:
        return f"Point({format_number(self._x)}, {format_number(self._y)})"
