"""Distances of points and regions: `near` decides, `distance` says how far, in the plane and on the Earth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.distance.planar import less, more, paths_near, point_near_path
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.predicates import MAX_MAGNITUDE, MIN_MAGNITUDE
from contrada.spatial.geometry.region import Region, ring_of
from contrada.spatial.lines.line import Line, path_of_line

if TYPE_CHECKING:
    from contrada.spatial.geometry.rings import Floats


def path_of(shape: Point | Line | Region) -> tuple[Floats, Floats, bool]:
    """The vertices, the run boxes, and whether the shape is filled, as kernels take it (`planar`)."""
    if isinstance(shape, Point):
        return np.array(((shape.x, shape.y),) * 2), np.array((shape.bounds,)), False
    if isinstance(shape, Line):
        return *path_of_line(shape), False
    return *ring_of(shape), True


def near(a: Point | Line | Region, b: Point | Line | Region, length: float) -> bool:
    """Whether the nearest points of two shapes are at most `length` apart, in the plane. Exact.

    >>> near(Point(0, 0), Point(3, 4), 5.0)
    True
    """
    if isinstance(a, Point):
        return point_near_path(a.x, a.y, *path_of(b), length)
    return paths_near(*path_of(a), *path_of(b), length)


def near_on_earth(a: Point | Line | Region, b: Point | Line | Region, metres: float) -> bool:
    """As `near`, in degrees and metres: along the shortest way on WGS 84, right to a millimetre up to 1,000 km."""
    from contrada.spatial.distance.earth import paths_near_on_earth

    return paths_near_on_earth(*path_of(a), *path_of(b), metres)


def distance_on_earth(a: Point | Line | Region, b: Point | Line | Region) -> float:
    """How many metres the nearest points of two shapes are apart, to a hundredth; infinite beyond 10,000 km."""
    from contrada.spatial.distance.geodesic import LONGEST

    low, high = 0.0, LONGEST
    if not near_on_earth(a, b, high):
        return math.inf
    if near_on_earth(a, b, low):
        return 0.0
    while high - low > 0.005:
        middle = (low + high) / 2
        if near_on_earth(a, b, middle):
            high = middle
        else:
            low = middle
    return round(high, 2)


def distance(a: Point | Line | Region, b: Point | Line | Region) -> float:
    """How far the nearest points of two shapes are from each other, in the plane, rounded: for people to read."""
    import shapely

    return float(shapely.distance(a.to_shapely(), b.to_shapely()))


def grown(bounds: tuple[float, float, float, float], length: float) -> tuple[float, float, float, float]:
    """A box, with an area, that whatever comes within `length` of these bounds meets, and hardly larger.

    It goes no further than coordinates do.
    """
    x1, y1, x2, y2 = bounds
    return _below(less(x1, length)), _below(less(y1, length)), -_below(-more(x2, length)), -_below(-more(y2, length))


def _below(number: float) -> float:
    """The number or less, and a coordinate other than 0: none is too small or too large."""
    return max(min(number, -MIN_MAGNITUDE) if number < MIN_MAGNITUDE else number, -MAX_MAGNITUDE)
