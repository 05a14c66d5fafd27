"""What the application hands over, as bytes: notifications with shapes from anywhere, and filters.

Wherever a value may be a region or a point, GeoJSON mappings, shapely geometries and everything else with a
`__geo_interface__` are taken too. Text stays text: WKT in a notification is a string unless `Region.of` reads it.
The engine's spatial modules are loaded only when the first shape turns up.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from contrada.forwarding.filter import Expression

_SCALARS = frozenset({bool, int, float, str, datetime})


def encode_notification(notification: Mapping[str, object]) -> bytes:
    """Check a notification and encode it; `InvalidValue` names the attribute at fault."""
    from contrada.forwarding.codec import encode_notification

    if isinstance(notification, Mapping):
        for value in notification.values():
            if type(value) not in _SCALARS and _is_shape(value):
                return encode_notification({name: _value(name, value) for name, value in notification.items()})
    return encode_notification(notification)


def encode_filters(expression: Expression | str) -> tuple[bytes, ...]:
    """Encode the filters of a predicate one by one."""
    from contrada.forwarding.codec import encode_filter
    from contrada.forwarding.filter import as_filters

    return tuple(map(encode_filter, as_filters(expression)))


def encode_predicate(expression: Expression | str) -> bytes:
    """Encode all filters of a predicate as one."""
    from contrada.forwarding.codec import encode_filter
    from contrada.forwarding.filter import Predicate, as_filters

    return encode_filter(Predicate(as_filters(expression)))


def _is_shape(value: object) -> bool:
    if type(value).__module__.startswith("contrada."):
        return False
    return isinstance(value, Mapping) or hasattr(value, "__geo_interface__")


def _value(name: str, value: object) -> object:
    if type(value) in _SCALARS or not _is_shape(value):
        return value
    from contrada.spatial.region import Point, Region
    from contrada.spatial.shapes import geometry_of

    try:
        geometry = geometry_of(value)
        if geometry is None:
            raise InvalidValue("neither GeoJSON nor a shape")
        return Point.of(value) if geometry.kind == "Point" else Region.of(value)
    except InvalidValue as error:
        raise InvalidValue(f"attribute {name!r}: {error}") from error
