"""The relation of a line to a region by shapely's DE-9IM matrix, on coordinates that it computes without rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import shapely

from contrada.spatial.relations.relation import Relation

if TYPE_CHECKING:
    from contrada import Region
    from contrada.spatial.lines.line import Line


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
