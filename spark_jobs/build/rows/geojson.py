"""Subscriptions as GeoJSON features: a map is a list of who wants to hear of what happens where.

    {"type": "Feature", "id": "s-17", "geometry": {"type": "Polygon", …},
     "properties": {"interface": "gateway-3", "filter": "wind > 90"}}

The geometry is the region of one constraint, `area intersects …` unless the properties `attribute` and `relation` say
otherwise; with `keywords` it is `… matches {keywords} within …`. A `filter`, as text, must hold as well. A feature
without geometry has its filter alone. The id is the feature's, or the property `id`. Rows of tables with a column of
geometries are the same, their columns being the properties (`filter_of_place`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contrada.errors import InvalidValue
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.language.text.parse import parse
from contrada.spatial.geometry.region import Region

if TYPE_CHECKING:
    from contrada.forwarding.language.filter import Expression


def filter_of_feature(feature: Any) -> tuple[Any, Any, Expression]:
    """The id, the interface and the filter of a feature."""
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        raise InvalidValue("a subscription is a GeoJSON Feature")
    properties = feature.get("properties") or {}
    if not isinstance(properties, dict):
        raise InvalidValue("a feature's properties are an object")
    geometry = feature.get("geometry")
    whole = filter_of_place(
        None if geometry is None else Region(geometry),
        properties.get("attribute"),
        properties.get("relation"),
        properties.get("keywords"),
        properties.get("filter"),
    )
    return feature.get("id", properties.get("id")), properties.get("interface"), whole


def filter_of_place(region: Region | None, attribute: Any, relation: Any, keywords: Any, text: Any) -> Expression:
    """The filter of a region and what stands beside it."""
    parts: list[Expression] = []
    name = "area" if attribute is None else attribute
    if keywords is not None:
        parts.append(Constraint(name, "matches", TextMatch(keywords, region)))
    elif region is not None:
        parts.append(Constraint(name, "intersects" if relation is None else relation, region))
    if text is not None:
        if not isinstance(text, str):
            raise InvalidValue("the filter beside a geometry: filter is text")
        parts.append(parse(text))
    if not parts:
        raise InvalidValue("without a geometry one needs the property filter")
    return parts[0] if len(parts) == 1 else parts[0] & parts[1]
