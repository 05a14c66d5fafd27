"""What filters look like on a map: the regions and places that their constraints speak of, as GeoJSON. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contrada.errors import ContradaError
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.filter import as_filters

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST: Final = 50  # shapes of one subscription


def shapes_of(texts: Iterable[str]) -> list[dict[str, Any]]:
    """The shapes of filters given as text: the attribute, the operator, the geometry. Of many, the first.

    Of a distance also how long it is, and its unit; the geometry is what it is measured from.
    """
    found: list[dict[str, Any]] = []
    for text in texts:
        try:
            filters = as_filters(text)
        except ContradaError:
            continue  # a text that was cut
        for each in filters:
            for constraint in each.constraints:
                operand = constraint.value
                shape = next(
                    (one for one in (operand, *_parts(operand)) if hasattr(one, "__geo_interface__")),
                    None,
                )
                if shape is not None and len(found) < _MOST:
                    told: dict[str, Any] = {"attribute": constraint.name, "operator": str(constraint.op)}
                    if isinstance(operand, Distance):
                        told |= {"distance": operand.length, "unit": operand.unit}
                    found.append({**told, "geometry": shape.__geo_interface__})
    return found


def _parts(operand: object) -> tuple[Any, ...]:
    return tuple(getattr(operand, name, None) for name in ("within", "at", "of"))
