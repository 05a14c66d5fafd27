"""Geometries in tables: GeoParquet 1.1 and plain columns of WKB, in and out.

A Parquet file with the metadata `geo` says which column holds its geometries and how they are encoded; without it, a
column `geometry` of bytes is WKB, as Spark has it of Sedona's `ST_AsBinary`. Coordinates are taken as they stand.

What is written has the metadata, too: encoding WKB, and `crs` null, since coordinates are whatever they were.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import shapely

from contrada.errors import InvalidValue
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Region
from contrada.spatial.lines.line import Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GEOMETRY: Final = "geometry"
"""The column of geometries, where nothing says otherwise."""

_META: Final = b"geo"
_WKB: Final = "WKB"
_NATIVE: Final = {"point": "Point", "polygon": "Polygon", "multipolygon": "MultiPolygon"}
_WRITTEN: Final = {
    "version": "1.1.0",
    "primary_column": GEOMETRY,
    "columns": {GEOMETRY: {"encoding": _WKB, "geometry_types": [], "crs": None}},
}


class GeometryColumn(NamedTuple):
    """Where a table has its geometries: a column, and the columns of boxes around them, which say nothing new."""

    name: str
    encoding: str
    boxes: frozenset[str] = frozenset()


def geometry_column(schema: pa.Schema, metadata: Mapping[bytes, bytes] | None, file: str) -> GeometryColumn | None:
    """The column of geometries of a table, if it has one; `InvalidValue` for one that is not understood."""
    told = (metadata or {}).get(_META)
    if told is None:
        binary = GEOMETRY in schema.names and _is_binary(schema.field(GEOMETRY).type)
        return GeometryColumn(GEOMETRY, _WKB) if binary else None
    try:
        document = json.loads(told)
        name = document["primary_column"]
        columns = document["columns"]
        column = columns[name]
        boxes = {box[0] for each in columns.values() for box in each.get("covering", {}).get("bbox", {}).values()}
        encoding, edges = column["encoding"], column.get("edges", "planar")
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InvalidValue(f"{file}: its GeoParquet metadata is none: {error!r}") from None
    if name not in schema.names or encoding not in (_WKB, *_NATIVE):
        raise InvalidValue(
            f"{file}: geometries of encoding {encoding!r} in column {name!r}: give WKB, point, polygon or multipolygon"
        )
    if edges != "planar":
        raise InvalidValue(f"{file}: edges are {edges}, and regions have straight ones: convert it")
    return GeometryColumn(name, encoding, frozenset(boxes))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def place_of_wkb(content: bytes) -> Point | Line | Region:
    """The point, line or region that some bytes are; `InvalidValue` says why they are none."""
    try:
        shape = shapely.from_wkb(content)
    except (shapely.errors.ShapelyError, TypeError) as error:
        raise InvalidValue(f"not WKB: {error}") from None
    if isinstance(shape, shapely.LineString | shapely.MultiLineString):
        return Line(shape)
    return Point.of(shape) if isinstance(shape, shapely.Point) else Region(shape)


def _of_native(cell: Any, kind: str) -> Any:
    """A cell of nested lists of {x, y} as GeoJSON has it."""
    return {"type": kind, "coordinates": _positions(cell)}


def _positions(cell: Any) -> Any:
    return [_positions(each) for each in cell] if isinstance(cell, list) else list(cell.values())


def as_wkb(cells: pa.Array, encoding: str) -> pa.Array:
    """The cells of a column of geometries as WKB; what is wrong with one is found when it is read."""
    if encoding == _WKB:
        return cells
    values = (None if each is None else _of_native(each, _NATIVE[encoding]) for each in cells.to_pylist())
    return pa.array(
        [None if each is None else shapely.to_wkb(shapely.geometry.shape(each)) for each in values], pa.binary()
    )


def write_geometries(values: Iterable[Any]) -> pa.Array:
    """Points, lines, regions and boxes as WKB; null for None."""
    return pa.array([None if each is None else shapely.to_wkb(each.to_shapely()) for each in values], pa.binary())


def with_geometry(schema: pa.Schema) -> pa.Schema:
    """A schema of GeoParquet: with a column of geometries, and the metadata that says so."""
    told = {_META: json.dumps(_WRITTEN).encode()}
    return schema.append(pa.field(GEOMETRY, pa.binary())).with_metadata(told)
