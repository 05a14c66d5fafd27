"""Domains of points, regions and geotext.

Regions: each constraint says that the value's relation to a region is one of a set (a mask). What follows for the
relation to another region is RCC-8 composition (`spatial.rcc8`), which is sound for points too. A point is inside,
meets or is disjoint from a region; having no other relations makes its masks smaller and answers about points more
complete. What several constraints leave possible is the intersection of what each does. Distances, and what they say
of relations, are in `near_facts`.

Geotext: `matches` asks for all of its keywords and for places that intersect, so it is implied by constraints that
together ask for as many keywords, and one of which has a region within its own. Two `matches` never conflict: a message
may have many words, and its box may intersect any two regions. `not matches` is implied by one that refuses as much or
more, and contradicts a `matches` that asks for what it refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from contrada.forwarding.covering.budget import OF_REGIONS
from contrada.forwarding.covering.domains import may_hold
from contrada.forwarding.covering.near_facts import NearFacts
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.operands import Similar
from contrada.forwarding.language.values import Kind
from contrada.spatial.geometry.region import Box
from contrada.spatial.relations import mbr, rcc8, relation
from contrada.spatial.relations.relate import relate
from contrada.spatial.relations.relation import Relation

if TYPE_CHECKING:
    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.covering.domains import Domain
    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.operands import Negated, TextMatch
    from contrada.spatial.geometry.region import Region

_OF_POINTS: Final = Relation.INSIDE.mask | Relation.MEETS.mask | Relation.DISJOINT.mask
_REFUSALS: Final = (Operator.NOT_MATCHES, Operator.NOT_SIMILAR)
_OF_LINES: Final = _OF_POINTS | Relation.COVERED_BY.mask | Relation.OVERLAPS.mask
# What points and lines can be to a line, besides apart from it.
_TO_LINES: Final = {Kind.POINT: Relation.INSIDE.mask, Kind.LINE: Relation.INSIDE.mask | Relation.MEETS.mask}
_WITHIN: Final = Relation.INSIDE.mask | Relation.COVERED_BY.mask | Relation.EQUALS.mask


def spatial_domain(kind: Kind, constraints: list[Constraint], budget: CoveringBudget) -> Domain | None:
    """The domain of constraints on points, regions or geotext, none of them `=` or `in`."""
    if kind is Kind.GEOTEXT:
        domain_of_texts = GeotextDomain(constraints)
        refused = [cast("Negated", c.value).operand for c in constraints if c.op in _REFUSALS]
        return None if any(domain_of_texts.asks(each, budget) for each in refused) else domain_of_texts
    possible = {Kind.POINT: _OF_POINTS, Kind.LINE: _OF_LINES}.get(kind, relation.ALL)
    if kind is not Kind.REGION and any(
        constraint.at_point or (constraint.at_line and not constraint.op.mask & _TO_LINES[kind])
        for constraint in constraints
    ):
        return None
    masks: dict[Region, int] = {}
    for constraint in constraints:
        if constraint.mask:
            region = cast("Region", constraint.value)
            masks[region] = masks.get(region, possible) & constraint.mask
    domain = RelationDomain(possible, masks, constraints)
    if domain.facts is not None and domain.facts.contradict(budget):
        return None
    if not all(masks.values()):
        return None
    if budget.sampled and kind is Kind.REGION:
        return SampledDomain(masks, constraints)
    # One region in some relation to the value leaves something possible; several may contradict one another.
    if len(masks) > 1 and any(not domain.relations_to(region, budget) & mask for region, mask in masks.items()):
        return None
    return domain


def relation_in(wanted: int, a: Region, b: Region, budget: CoveringBudget) -> bool:
    """Whether the relation of two regions is in a set. Vertices are paid for, where the MBRs do not tell."""
    budget.spend(OF_REGIONS)
    possible = relations_by_mbr(a, b)
    if not possible & wanted or not possible & ~wanted:
        return bool(possible & wanted)
    budget.spend(0, len(a) + len(b))
    return bool(relate(a, b).mask & wanted)


def relations_by_mbr(a: Region, b: Region) -> int:
    """The relations of two regions that their MBRs leave possible; of boxes, one."""
    if a is b:
        return Relation.EQUALS.mask
    code = mbr.relate_boxes(*a.bounds, *b.bounds)
    if type(a) is Box and type(b) is Box:
        return 1 << code
    return (mbr.POSSIBLE if a.in_one_part and b.in_one_part else mbr.POSSIBLE_OF_PARTS)[code]


class RelationDomain:
    """Points or regions in given relations to given regions, and at given distances from shapes."""

    __slots__ = ("_constraints", "_masks", "_possible", "facts")

    def __init__(self, possible: int, masks: dict[Region, int], constraints: list[Constraint]) -> None:
        self._possible = possible
        self._masks = masks
        self._constraints = constraints
        far = any(isinstance(each.value, Distance) or each.at_point or each.at_line for each in constraints)
        self.facts = NearFacts.of(constraints) if far else None  # where relations alone say it all, there are none

    def relations_to(self, region: Region, budget: CoveringBudget) -> int:
        """The relations to a region that the constraints leave possible, one by one composed and then intersected."""
        possible = self._possible
        for mine, mask in self._masks.items():
            budget.spend(OF_REGIONS)
            relations = relations_by_mbr(mine, region)
            if relations & (relations - 1):
                budget.spend(0, len(mine) + len(region))
                relations = relate(mine, region).mask
            possible &= rcc8.compose(mask, relations)
        return possible

    def implies(self, constraint: Constraint, budget: CoveringBudget) -> bool:
        """Whether every value of the domain satisfies the constraint."""
        if constraint.op is Operator.NE:
            budget.spend(len(self._constraints))
            return not all(may_hold(mine, cast("Any", constraint.value)) for mine in self._constraints)
        if constraint.kind is not Kind.REGION:
            return False
        if constraint.at_point or constraint.at_line:
            return constraint in self._constraints
        if self.facts is not None or isinstance(constraint.value, Distance):
            if (self.facts or NearFacts.of(self._constraints)).imply(constraint, budget):
                return True
            if not constraint.mask or not self._masks:
                return False
        region = cast("Region", constraint.value)
        if len(self._masks) == 1:
            ((mine, mask),) = self._masks.items()
            wanted = rcc8.covering_relations(constraint.mask | relation.ALL & ~self._possible, mask)
            return relation_in(wanted, mine, region, budget)
        return not self.relations_to(region, budget) & ~constraint.mask


class SampledDomain:
    """Regions in given sampled relations to given regions, and at given distances, which are exact, from shapes.

    A sampled relation is a function of the value and the region. So one set of relations to a region implies a larger
    set to the same region, and nothing about any other.
    """

    __slots__ = ("_constraints", "_facts", "_masks")

    def __init__(self, masks: dict[Region, int], constraints: list[Constraint]) -> None:
        self._masks = masks
        self._constraints = constraints
        self._facts = NearFacts.of([each for each in constraints if not each.mask])

    def implies(self, constraint: Constraint, budget: CoveringBudget) -> bool:
        """Whether every region of the domain satisfies the constraint."""
        if constraint.mask:
            mine = self._masks.get(cast("Region", constraint.value), relation.ALL)
            return not mine & ~constraint.mask
        if isinstance(constraint.value, Distance):
            return self._facts.imply(constraint, budget)
        return constraint in self._constraints


class GeotextDomain:
    """Geotext that satisfies `matches` and `similar` constraints, and not others."""

    __slots__ = ("_matches", "_refused", "_similar")

    def __init__(self, constraints: list[Constraint]) -> None:
        self._matches = [cast("TextMatch", c.value) for c in constraints if c.op is Operator.MATCHES]
        self._similar = [cast("Similar", c.value) for c in constraints if c.op is Operator.SIMILAR]
        self._refused = [c.opposite for c in constraints if c.op in _REFUSALS]

    def implies(self, constraint: Constraint, budget: CoveringBudget) -> bool:
        """Whether every geotext of the domain satisfies the constraint."""
        budget.spend(1)
        if constraint.kind is not Kind.GEOTEXT:
            return False
        if constraint.op in _REFUSALS:
            refused = GeotextDomain([constraint.opposite])  # what satisfies this must not satisfy what is refused here
            return any(refused.asks(cast("TextMatch | Similar", mine.value), budget) for mine in self._refused)
        return self.asks(cast("TextMatch | Similar", constraint.value), budget)

    def asks(self, match: TextMatch | Similar, budget: CoveringBudget) -> bool:
        """Whether every geotext of the domain satisfies `matches` or `similar` with this operand."""
        budget.spend(1)
        if isinstance(match, Similar):
            return any(
                (mine.keywords, mine.at, mine.alpha) == (match.keywords, match.at, match.alpha)
                and mine.tau >= match.tau
                for mine in self._similar
            )
        if not match.keywords.issubset(word for mine in self._matches for word in mine.keywords):
            return False
        if match.within is None:
            return True
        return any(
            mine.within is not None and relation_in(_WITHIN, mine.within, match.within, budget)
            for mine in self._matches
        )
