"""Why a notification does or does not match a filter, constraint by constraint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.lonlat import holds_in_degrees, other_side
from contrada.forwarding.language.operands import Negated
from contrada.forwarding.language.values import Kind, check_notification, kind_of
from contrada.spatial.relations.relation import RELATIONS, Relation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.forwarding.language.filter import Filter
    from contrada.forwarding.language.operands import Similar
    from contrada.forwarding.language.values import Notification
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.lines.line import Line
    from contrada.spatial.relations.relate import Discretization
    from contrada.spatial.road.network import RoadNetwork
    from contrada.spatial.textual.geotext import GeoText


@dataclass(frozen=True, slots=True)
class Verdict:
    """One constraint against one notification."""

    constraint: Constraint
    held: bool
    why: str

    def __str__(self) -> str:
        return f"{'yes' if self.held else 'NO ':3} {self.constraint}: {self.why}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `ForwardingTable.explain` returns; `str()` is the readable form."""

    filter: Filter
    interface: object
    matches: bool
    verdicts: tuple[Verdict, ...]

    def __str__(self) -> str:
        head = f"{'matches' if self.matches else 'does not match'} the filter of {self.interface!r}:"
        return "\n".join([head, *(f"  {verdict}" for verdict in self.verdicts or ("yes true: everything matches",))])

    def _repr_html_(self) -> str:
        from contrada.forwarding.language.text.html import explanation_html

        return explanation_html(self)


def explain(
    filter: Filter,
    interface: object,
    notification: Mapping[str, object],
    discretization: Discretization,
    roads: RoadNetwork | None,
    *,
    degrees: bool = False,
) -> Explanation:
    """Evaluate each constraint by its definition and say why."""
    checked = check_notification(notification)
    verdicts = tuple(_verdict(each, checked, discretization, roads, degrees) for each in filter.constraints)
    return Explanation(filter, interface, all(verdict.held for verdict in verdicts), verdicts)


def _verdict(
    constraint: Constraint,
    notification: Notification,
    discretization: Discretization,
    roads: RoadNetwork | None,
    degrees: bool,
) -> Verdict:
    value = notification.get(constraint.name)
    if value is None:
        absent = constraint.op is Operator.NOT_EXISTS
        return Verdict(constraint, absent, f"the notification has no attribute {constraint.name!r}")
    kind = kind_of(value)
    holds = holds_in_degrees if degrees else Constraint.holds
    held = holds(constraint, value, discretization=discretization, roads=roads)
    wanted = constraint.kind
    if wanted is not None and kind is not wanted and not (wanted is Kind.REGION and kind in (Kind.POINT, Kind.LINE)):
        return Verdict(constraint, False, f"the value {value!r} is a {_word(kind)}, and it asks for a {_word(wanted)}")
    if isinstance(constraint.value, Distance):
        return Verdict(constraint, held, _away(constraint, kind, value))
    if constraint.at_line:
        from contrada.spatial.lines.relating import relate_to_line

        word = RELATIONS[relate_to_line(cast("Any", value), cast("Any", constraint.value))].value
        return Verdict(constraint, held, f"the relation of the {_word(kind)} to the line is {word}")
    if constraint.at_point:
        return Verdict(constraint, held, f"the {_word(kind)} {'does' if held else 'does not'}")
    if wanted is Kind.REGION:
        from contrada.spatial.relations.compound.deciding import decided_by
        from contrada.spatial.relations.relate import relate

        shape, region = cast("Point | Line | Region", value), cast("Region", constraint.value)
        found = relate(shape, region, discretization)
        if degrees and found is Relation.DISJOINT and (other := other_side(shape)) is not None:
            shape, found = other, relate(other, region, discretization)
        why = decided_by(shape, region, discretization)
        return Verdict(constraint, held, f"the relation of the {_word(kind)} is {found.value}{why and ': ' + why}")
    if constraint.op in (Operator.SIMILAR, Operator.NOT_SIMILAR) and roads is not None:
        wanted_text = constraint.value.operand if isinstance(constraint.value, Negated) else constraint.value
        return Verdict(constraint, held, _likeness(cast("Similar", wanted_text), cast("GeoText", value), roads))
    if constraint.op in (Operator.EXISTS, Operator.NOT_EXISTS):
        return Verdict(constraint, held, f"the value is {value!r}")
    return Verdict(constraint, held, f"the value {value!r} {'satisfies' if held else 'does not satisfy'} it")


def _away(constraint: Constraint, kind: Kind, value: Any) -> str:
    distance = cast("Distance", constraint.value)
    measured, unit = distance.measure(value), distance.unit and f" {distance.unit}"
    far, most = f"{measured:.12g}{unit}", f"{distance.length:.12g}{unit}"
    if distance.near(value):
        return f"the nearest point of the {_word(kind)} is {far} away, and {most} is the most"
    return f"the {_word(kind)} is {'10,000 km or more' if measured == math.inf else far} away, more than {most}"


def _likeness(wanted: Similar, text: GeoText, roads: RoadNetwork) -> str:
    distance, words, value = roads.similarity(wanted.keywords, wanted.at, wanted.alpha, text)
    shared = f"{words:.4g} of the words by weight"
    if value == float("-inf"):
        far = (
            "cannot be reached along the roads"
            if distance == float("inf")
            else f"is {distance:.6g} away along the roads"
        )
        return f"the text {far}, where nothing beyond {roads.d_max:.6g} is similar; it has {shared}"
    return f"the similarity is {value!r}: {distance:.6g} away along the roads, and {shared}"


def _word(kind: Kind) -> str:
    return kind.name.lower()
