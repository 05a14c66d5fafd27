"""Gates of segments: what a notification must have to match anything in one.

Every filter is filed under its *anchor*, one attribute that a notification must have to match it, and for a constraint
on a place the box that the attribute's place must meet. A gate is the union of its filters' anchors: per attribute one
box around all places, or no box where some filter takes the attribute wherever it is. A notification that no anchor
admits matches nothing behind the gate, so whole segments need not be looked at, nor be in memory.

A filter that asks for no attribute to be there (`true`, `not x exists`) has the anchor without a name, and its gate
stands open.

A constraint speaks of a place when it holds only on values whose bounding box meets its own: the relations except
`disjoint`, which holds on everything far away, `matches … within`, and `within` a distance, whose box is the shape's,
grown by it. Sampled relations (`Uniform`) keep to what the boxes leave possible, so a gate serves them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.language.values import Kind
from contrada.spatial.relations import relation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.filter import Filter
    from contrada.spatial.geometry.region import Region

Bounds: TypeAlias = tuple[float, float, float, float]

_MOST: Final = 256  # attributes of a gate; one that needs more stands open
# How much an operator narrows, as far as nothing else is known: lower is the better anchor.
_RANK: Final = {Operator.EQ: 2, Operator.IN: 3, Operator.PREFIX: 4, Operator.SUFFIX: 4, Operator.CONTAINS: 4}


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a notification must have to match a filter: an attribute and, if `box` is given, with a place meeting it."""

    name: str  # empty when it need have none
    box: Bounds | None = None
    kind: Kind | None = None  # REGION or GEOTEXT where the box is one of such a constraint


def place_of(constraint: Constraint) -> Bounds | None:
    """The box that a value's box must meet for the constraint to hold; None when there is no such box."""
    if isinstance(constraint.value, Distance):
        return constraint.value.bounds if constraint.op is Operator.WITHIN else None
    if constraint.kind is Kind.REGION:
        if constraint.mask & 1 << relation.DISJOINT:
            return None
        return cast("Region", constraint.value).bounds
    if isinstance(constraint.value, TextMatch) and constraint.value.within is not None:
        return constraint.value.within.bounds
    return None


def anchor_of(filter: Filter) -> Anchor:
    """The anchor of a filter: its smallest place, or else the attribute of what seems its narrowest constraint."""
    best: tuple[float, float, str] | None = None
    found: Anchor | None = None
    for constraint in filter.constraints:
        if constraint.op is Operator.NOT_EXISTS:
            continue
        box = place_of(constraint)
        if box is not None:
            key = (0.0, (box[2] - box[0]) * (box[3] - box[1]), constraint.name)
        elif constraint.kind is Kind.GEOTEXT:
            key = (1.0, 0.0, constraint.name)
        else:
            key = (float(_RANK.get(constraint.op, 5)), 0.0, constraint.name)
        if best is None or key < best:
            best = key
            found = Anchor(constraint.name, box, constraint.kind if box is not None else None)
    return Anchor("") if found is None else found


class Gate:
    """The attributes, each with its box or None, of which a notification must have one. None admits everything."""

    __slots__ = ("attributes",)

    def __init__(self, attributes: Mapping[str, Bounds | None] | None) -> None:
        self.attributes = None if attributes is None or len(attributes) > _MOST else dict(attributes)

    @classmethod
    def around(cls, anchors: Iterable[Anchor]) -> Gate:
        """The gate of filters with these anchors."""
        attributes: dict[str, Bounds | None] = {}
        for anchor in anchors:
            name, box = anchor.name, anchor.box
            if not name:
                return cls(None)
            if name not in attributes:
                attributes[name] = box
            else:
                before = attributes[name]
                attributes[name] = None if box is None or before is None else _around(before, box)
        return cls(attributes)

    def in_degrees(self) -> Gate:
        """The gate of filters in degrees: a point on the 180th meridian is kept at 180, and is at -180 as well."""
        if self.attributes is None:
            return self
        return Gate(
            {
                name: box if box is None or box[0] > -180 else (box[0], box[1], max(box[2], 180.0), box[3])
                for name, box in self.attributes.items()
            }
        )

    def admits(self, notification: Mapping[str, Any]) -> bool:
        """Whether something behind the gate may match. Never wrong when false."""
        if self.attributes is None:
            return True
        attributes = self.attributes
        return any(
            value is not None and name in attributes and ((box := attributes[name]) is None or _meets(value, box))
            for name, value in notification.items()
        )

    def which(self, notifications: Sequence[Mapping[str, Any]]) -> list[int]:
        """The numbers of those notifications that are admitted."""
        if self.attributes is None:
            return list(range(len(notifications)))
        return [i for i, each in enumerate(notifications) if self.admits(each)]

    def to_plain(self) -> dict[str, list[float] | None] | None:
        """As it is kept in a manifest."""
        if self.attributes is None:
            return None
        return {name: None if box is None else list(box) for name, box in self.attributes.items()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Sequence[float] | None] | None) -> Gate:
        """Undo `to_plain`."""
        if plain is None:
            return cls(None)
        return cls({name: None if box is None else _bounds(box) for name, box in plain.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gate) and self.attributes == other.attributes

    def __hash__(self) -> int:
        return hash(None if self.attributes is None else tuple(sorted(self.attributes)))

    def __repr__(self) -> str:
        return f"Gate({self.attributes!r})"


def _around(a: Bounds, b: Bounds) -> Bounds:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def _bounds(box: Sequence[float]) -> Bounds:
    x1, y1, x2, y2 = map(float, box)
    if not (x1 <= x2 and y1 <= y2):  # nor NaN, which would close the gate to everything
        raise ValueError(f"{box} is not a box")
    return x1, y1, x2, y2


def bounds_of(value: Any) -> Bounds | None:
    """The box of a value's place: of a geotext's, or of a point or region itself; None of what has no place."""
    found: Bounds | None = getattr(getattr(value, "place", value), "bounds", None)
    return found


def _meets(value: Any, box: Bounds) -> bool:
    """Whether a value has a place and its box meets this one. Whatever else it is, no constraint on a place holds."""
    bounds = bounds_of(value)
    return bounds is not None and (
        bounds[0] <= box[2] and box[0] <= bounds[2] and bounds[1] <= box[3] and box[1] <= bounds[3]
    )
