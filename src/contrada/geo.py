"""Filters of geodata: one for each row of a GeoDataFrame, or for each feature of a collection.

geopandas is not needed for it and never loaded: what has a `geometry` column, or is GeoJSON features, will do.

>>> parks = {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry":
...     {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4]], [[1, 1], [2, 1], [2, 2]]]}}]}
>>> [str(each) for each in filters(parks, "pos")]
['pos inside POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 2, 2 1, 1 1))']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from contrada.errors import InvalidValue, shown
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.distance import shape_of
from contrada.forwarding.language.filter import Filter
from contrada.spatial.relations.relation import Relation

__all__ = ["filters"]


def filters(
    geodata: object, name: str, relation: str | Relation = Relation.INSIDE, *, geometry: str | None = None
) -> list[Filter]:
    """Make one filter per row: that attribute `name` is in the relation to the row's polygon, polygons, line or point.

    `geodata` is a GeoDataFrame or GeoSeries; any frame with a column of shapes, named by `geometry`, "geometry" unless
    told; a GeoJSON FeatureCollection; what has a `__geo_interface__` that is one; or an iterable of shapes. Shapes are
    whatever `Region.of` and `Line.of` take. `relation` is one of the eight, "intersects" or "crosses"; lines and points
    take some of them. Filters are in the order of the rows.
    """
    try:
        operator = Operator.OVERLAPS if relation == "crosses" else Operator(str(relation))
    except ValueError:
        operator = Operator.EXISTS
    if not operator.mask:
        words = ", ".join([*Relation, "intersects", "crosses"])
        raise InvalidValue(f"{shown(relation)} is not a relation of regions: one of {words}")
    made = []
    for row, shape in _shapes(geodata, geometry):
        try:
            if shape is None:
                raise InvalidValue("no shape")
            made.append(Filter([Constraint(name, operator, shape_of(shape))]))
        except InvalidValue as error:
            raise InvalidValue(f"row {shown(row)}: {error}") from None
    return made


def _shapes(geodata: Any, geometry: str | None) -> Iterable[tuple[object, object]]:
    """Rows by their labels, and the shape of each."""
    if hasattr(geodata, "columns") and hasattr(geodata, "index"):  # a frame
        column = geometry
        if column is None:
            column = getattr(geodata, "_geometry_column_name", None) or "geometry"
        if column not in geodata.columns:
            raise InvalidValue(f"no column {column!r}: name the one that has the shapes (geometry=…)")
        return zip(geodata.index, geodata[column], strict=True)
    if geometry is not None:
        raise InvalidValue(f"geometry={geometry!r} names a column, and a {type(geodata).__name__} has none")
    if hasattr(geodata, "index") and hasattr(geodata, "dtype"):  # a series of one
        return zip(geodata.index, geodata, strict=True)
    document = geodata if isinstance(geodata, Mapping) else getattr(geodata, "__geo_interface__", None)
    if isinstance(document, Mapping):
        features = document.get("features") if document.get("type") == "FeatureCollection" else [document]
        if not isinstance(features, Iterable):
            raise InvalidValue("the FeatureCollection has no features")
        return enumerate(features)
    if isinstance(geodata, str) or not isinstance(geodata, Iterable):
        raise InvalidValue(f"a {type(geodata).__name__} is no frame, FeatureCollection or list of shapes")
    return enumerate(geodata)
