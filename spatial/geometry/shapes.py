"""Where shapes come from: coordinates, WKT, GeoJSON, `__geo_interface__` and shapely, in one form; and their pictures.

`geometry_of` tells what something is; `positions` turns loose coordinates into an array of doubles and is strict
about what a coordinate is: a real number, not a bool, not text, two to a position. A third dimension is refused rather
than dropped: planar relations of shapes at different heights would be answers to another question. Shapely is
imported only for shapes that come from it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Set
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.errors import InvalidRegion, InvalidValue, shown
from contrada.spatial.geometry.wkt import Geometry, parse_wkt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_PLAIN = frozenset({int, float})
_PICTURE = 200.0  # pixels of the longer side
_ORDERED = frozenset({tuple, list, np.ndarray})


def geometry_of(shape: object) -> Geometry | None:
    """Read WKT, a GeoJSON geometry or Feature, `__geo_interface__` or shapely; None for anything else."""
    if isinstance(shape, str):
        return parse_wkt(shape)
    if isinstance(shape, Mapping):
        return _from_geojson(shape)
    if type(shape).__module__.startswith("shapely."):
        return _from_shapely(shape)
    interface = getattr(shape, "__geo_interface__", None)
    return None if interface is None else _from_geojson(interface)


def rings_by_part(geometry: Geometry) -> list[list[object]]:
    """Return the rings of a polygon or of several, of each its shell first. Other kinds of shape are refused."""
    kind, coordinates = geometry
    if kind not in ("Polygon", "MultiPolygon"):
        raise InvalidRegion(f"a region is a polygon, not a {kind}")
    parts = _listed(coordinates) if kind == "MultiPolygon" else [coordinates]
    if parts is None:
        raise InvalidRegion(f"{kind}: coordinates are not a list of rings but {_name(coordinates)}")
    rings = []
    for part in parts:
        listed = _listed(part)
        if listed is None:
            raise InvalidRegion(f"{kind}: coordinates are not a list of rings but {_name(part)}")
        if listed:  # a part without rings has no points
            rings.append(listed)
    if not rings:
        raise InvalidRegion(f"an empty {kind} is not a region")
    return rings


def positions(coordinates: object) -> NDArray[np.float64]:
    """Return loose coordinates as a fresh (m, 2) array of doubles, not yet judged as a ring."""
    if isinstance(coordinates, np.ma.MaskedArray):
        raise InvalidRegion("a masked array; fill or leave out what is masked")
    if isinstance(coordinates, memoryview):
        coordinates = np.asarray(coordinates)
    if isinstance(coordinates, np.ndarray):
        if coordinates.dtype.kind not in "fiu":
            raise InvalidRegion(f"coordinates of type {coordinates.dtype}; expected real numbers")
        if coordinates.ndim != 2 or coordinates.shape[1] != 2:
            raise InvalidRegion(f"coordinates of shape {coordinates.shape}; expected (n, 2): x and y of each vertex")
        with np.errstate(over="ignore"):  # what is too large for a double becomes infinite, and is judged as that
            return np.array(coordinates, dtype=np.float64, order="C")
    if isinstance(coordinates, (str, bytes, Set)) or not isinstance(coordinates, Iterable):
        raise InvalidRegion(f"expected a sequence of (x, y) positions, not {_name(coordinates)}")
    points = list(coordinates)
    if not _ORDERED.issuperset(map(type, points)):
        for index, point in enumerate(points):
            if isinstance(point, (Set, Mapping)):
                raise InvalidRegion(f"vertex {index} is {_name(point)}, which has no order; expected a position (x, y)")
    try:
        if any(len(point) != 2 for point in points):
            index = next(i for i, point in enumerate(points) if len(point) != 2)
            raise InvalidRegion(f"vertex {index} has {len(points[index])} coordinates; a region is planar: x and y")
        flat = list(chain.from_iterable(points))
    except TypeError:
        index = next((i for i, p in enumerate(points) if not hasattr(p, "__len__") or not hasattr(p, "__iter__")), 0)
        raise InvalidRegion(f"vertex {index} is {_name(points[index])}; expected a position (x, y)") from None
    if not _PLAIN.issuperset(map(type, flat)):
        for index, value in enumerate(flat):
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
                raise InvalidRegion(
                    f"vertex {index // 2}: coordinate {shown(value)} is {_name(value)}; expected a number"
                )
    try:
        return np.array(flat, dtype=np.float64).reshape(-1, 2)
    except OverflowError:
        index = next(i for i, value in enumerate(flat) if abs(value) > sys.float_info.max)
        raise InvalidRegion(f"vertex {index // 2}: coordinate {shown(flat[index])} is too large for a double") from None


def draw_svg(rings: Sequence[NDArray[np.float64]], bounds: tuple[float, float, float, float]) -> str:
    """An SVG document of rings, closed, as one filled path; y goes up, as on a map."""
    x1, y1, x2, y2 = bounds
    scale = _PICTURE / max(x2 - x1, y2 - y1)
    width, height = (max(1.0, extent * scale) for extent in (x2 - x1, y2 - y1))
    path = []
    for ring in rings:
        points = (ring[:-1] - (x1, y1)) * scale
        path.append("M" + " L".join(f"{x:.6g},{height - y:.6g}" for x, y in points.tolist()) + "Z")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 8:.6g}" height="{height + 8:.6g}" '
        f'viewBox="-4 -4 {width + 8:.6g} {height + 8:.6g}"><path fill="#66cc99" fill-opacity="0.6" stroke="#335544" '
        f'stroke-width="1.5" fill-rule="evenodd" d="{" ".join(path)}"/></svg>'
    )


def _from_geojson(document: Mapping[str, Any]) -> Geometry:
    if not isinstance(document, Mapping):
        raise InvalidValue(f"a geometry is a mapping, not {_name(document)}")
    kind = document.get("type")
    if kind == "Feature":
        geometry = document.get("geometry")
        if not isinstance(geometry, Mapping) or geometry.get("type") == "Feature":
            raise InvalidValue("the GeoJSON Feature has no geometry")
        return _from_geojson(geometry)
    if kind in ("FeatureCollection", "GeometryCollection"):
        raise InvalidValue(f"a {kind} is several shapes: give each geometry on its own")
    if not isinstance(kind, str):
        raise InvalidValue('GeoJSON without a "type"; expected {"type": "Polygon", "coordinates": [[[x, y], …]]}')
    if kind == "Box":
        raise InvalidValue('"Box" is not a type of GeoJSON: give a Polygon, or a Box itself')
    if "coordinates" not in document:
        raise InvalidValue(f"the GeoJSON {kind} has no coordinates")
    return Geometry(kind, document["coordinates"])


def _from_shapely(given: object) -> Geometry:
    import shapely

    if not isinstance(given, shapely.Geometry):
        raise InvalidValue(f"{_name(given)} is not a geometry")
    shape: Any = given  # of which shapely's types say little
    if shape.has_z or getattr(shape, "has_m", False):  # measures came with shapely 2.1
        raise InvalidRegion("the shape has z or m coordinates; a region is planar: use shapely.force_2d first")
    if isinstance(shape, (shapely.Polygon, shapely.MultiPolygon)):
        # Arrays skip a Python object per vertex.
        parts = [
            [shapely.get_coordinates(ring) for ring in (part.exterior, *part.interiors)]
            for part in getattr(shape, "geoms", [shape])
            if not part.is_empty
        ]
        single = isinstance(shape, shapely.Polygon)
        return Geometry("Polygon", parts[0] if parts else []) if single else Geometry("MultiPolygon", parts)
    if isinstance(shape, shapely.LinearRing):
        return Geometry("Polygon", [shapely.get_coordinates(shape)])
    return _from_geojson(shape.__geo_interface__)


def _listed(value: object) -> list[Any] | None:
    """Return the elements of a sequence; None for text, and for what has none."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        return None
    return list(value)


def _name(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
