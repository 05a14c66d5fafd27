"""The relation of a line to a region by shapely's DE-9IM matrix, on coordinates that it computes without rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import shapely

from contrada.spatial.geometry.region import Region
from contrada.spatial.relations.relation import Relation

if TYPE_CHECKING:
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.lines.line import Line


def relate_to(value: Point | Line | Region, line: Line) -> Relation:
    """The relation of a value to a line; what lies on it as a whole is inside, another line that touches it meets."""
    if isinstance(value, Region):
        return relate(line, value).converse
    mine, other = shapely.geometry.shape(value.__geo_interface__), line.to_shapely()
    if not shapely.intersects(mine, other):
        return Relation.DISJOINT
    return Relation.INSIDE if shapely.covers(other, mine) else Relation.MEETS


def relate(line: Line, region: Region) -> Relation:
    matrix = shapely.relate(line.to_shapely(), region.to_shapely())
    parts = [
        matrix[0] != "F" or matrix[3] != "F",
        matrix[1] != "F" or matrix[4] != "F",
        matrix[2] != "F" or matrix[5] != "F",
    ]
    is_in, is_on, is_out = parts
    if is_in:
        return Relation.OVERLAPS if is_out else Relation.COVERED_BY if is_on else Relation.INSIDE
    return Relation.MEETS if is_on else Relation.DISJOINT
