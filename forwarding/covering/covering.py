"""Covers and conflicts between filters: never unsound, and as complete as is cheap.

A filter's constraints on one name allow, for each kind of value, a set of values: its *domain* (`domains`). Whatever
the types and operators, the questions are then two:

- *empty?* The constraints on a name allow nothing. Filters conflict when their constraints together leave some name
  without an allowed value; a filter that conflicts with itself matches nothing.
- *implied?* Every value of a domain satisfies a given constraint. F covers G when G matches nothing, or when every
  constraint of F is on a name that G has and is implied by what G allows there, for every kind that G allows.

All constraints on a name are weighed together, so `x > 10 and x < 20` is covered by `x > 5`, `x > 5 and x < 3`
conflicts with itself, and `x in [1, 2] and x != 1` is as good as `x = 2`. Regions are weighed by their exact relations.
Where relations are sampled (`CoveringBudget.sampled`), what follows from exact ones need not hold: a sampled relation
is only known to be one, and always the same, for a value and a region. So constraints on the same region are compared,
by the relations that they allow, and those on different regions are not.

What filters allow is remembered for the last few hundred, since one filter is usually weighed against many. Then
covers costs a microsecond or two for each constraint of F, and a relation of regions for each pair of region
constraints on a name; conflicts, some ten microseconds for each name in common. Who asks on behalf of others, the table
and the covering sets, asks within a budget (`covering_budget`).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from contrada.forwarding.covering.budget import UNLIMITED, OutOfBudget
from contrada.forwarding.covering.domains import AbsentDomain, bool_domain, finite_domain, set_domain
from contrada.forwarding.covering.ordered_domain import ordered_domain
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.values import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.covering.domains import Domain
    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.filter import Filter
    from contrada.forwarding.language.operands import ValueSet

_ALL_KINDS = frozenset(Kind)
_ABSENT: Final = [(None, AbsentDomain())]
_ONE_KIND = {kind: frozenset((kind,)) for kind in Kind} | {Kind.REGION: frozenset((Kind.POINT, Kind.REGION, Kind.LINE))}


def covers(f: Filter, g: Filter, budget: CoveringBudget = UNLIMITED) -> bool:
    """Whether whatever matches g matches f; false also when that would cost more than the budget has."""
    try:
        budget.spend(1)
        allowed = _allowed(g, budget)
        for constraint in f.constraints:
            domains = allowed.get(constraint.name)
            if domains is None or not all(_implied(constraint, kind, domain, budget) for kind, domain in domains):
                return not all(allowed.values())
    except OutOfBudget:
        return False
    return True


def conflicts(f: Filter, g: Filter, budget: CoveringBudget = UNLIMITED) -> bool:
    """Whether nothing matches both; false also when that would cost more than the budget has."""
    try:
        budget.spend(1)
        allowed, others = _allowed(f, budget), _allowed(g, budget)
        if not all(allowed.values()) or not all(others.values()):
            return True
        together = f.constraints + g.constraints
        common = allowed.keys() & others.keys()
        return any(not _domains([c for c in together if c.name == name], budget) for name in common)
    except OutOfBudget:
        return False


def is_satisfiable(f: Filter, budget: CoveringBudget = UNLIMITED) -> bool:
    """Whether anything may match. False is certain: nothing does. True also when the budget does not suffice."""
    try:
        return all(_allowed(f, budget).values())
    except OutOfBudget:
        return True


_Allowed: TypeAlias = "dict[str, list[tuple[Kind | None, Domain]]]"
_REMEMBERED: Final = 256  # few: a remembered filter may be megabytes of hostile strings and regions
_remembered: OrderedDict[tuple[bool, Filter], _Allowed] = OrderedDict()


def _allowed(f: Filter, budget: CoveringBudget) -> _Allowed:
    """What a filter allows on each of its names: the non-empty domains, by kind. No domain, no match."""
    key = (budget.sampled, f)
    known = _remembered.get(key)
    if known is None:
        groups: dict[str, list[Constraint]] = {}
        for constraint in f.constraints:
            groups.setdefault(constraint.name, []).append(constraint)
        known = {name: _domains(constraints, budget) for name, constraints in groups.items()}
        _remembered[key] = known
        if len(_remembered) > _REMEMBERED:
            _remembered.popitem(last=False)  # the oldest; each of these calls is atomic
    return known


def _implied(constraint: Constraint, kind: Kind | None, domain: Domain, budget: CoveringBudget) -> bool:
    if kind is None or constraint.op is Operator.NOT_EXISTS:
        return kind is None and constraint.op is Operator.NOT_EXISTS
    if constraint.op is Operator.EXISTS:
        return True
    if constraint.kind is not None and kind not in _ONE_KIND[constraint.kind]:
        return False
    return domain.implies(constraint, budget)


def _domains(constraints: Sequence[Constraint], budget: CoveringBudget) -> list[tuple[Kind | None, Domain]]:
    """The non-empty domains of constraints on one name; of kind None if they ask for absence."""
    absent = [constraint.op is Operator.NOT_EXISTS for constraint in constraints]
    if any(absent):
        return list(_ABSENT) if all(absent) else []
    kinds = _ALL_KINDS
    for constraint in constraints:
        kinds = kinds & _kinds(constraint)
    telling = [constraint for constraint in constraints if constraint.op is not Operator.EXISTS]
    found = ((kind, _domain(kind, telling, budget)) for kind in kinds)
    return [(kind, domain) for kind, domain in found if domain is not None]


def _domain(kind: Kind, constraints: list[Constraint], budget: CoveringBudget) -> Domain | None:
    if any(constraint.op in (Operator.EQ, Operator.IN) for constraint in constraints):
        return finite_domain(kind, constraints, budget)
    if kind is Kind.BOOL:
        return bool_domain(constraints)
    if kind is Kind.SET:
        return set_domain(constraints)
    if kind in (Kind.NUMBER, Kind.STRING, Kind.TIME):
        return ordered_domain(kind, constraints)

    from contrada.forwarding.covering.spatial_domain import spatial_domain  # loads the compiler

    return spatial_domain(kind, constraints, budget)


def _kinds(constraint: Constraint) -> frozenset[Kind]:
    """The kinds of values on which a constraint can hold."""
    if constraint.kind is not None:
        return _ONE_KIND[constraint.kind]
    if constraint.op is Operator.EXISTS:
        return _ALL_KINDS
    return frozenset(kind for kind, _ in cast("ValueSet", constraint.value).members)
