"""Covers and conflicts between filters: never unsound, and as complete as is cheap.

A filter's constraints on one name allow, for each kind of value, a set of values: its *domain* (`domains`). Whatever
the types and operators, the questions are then two:

- *empty?* The constraints on a name allow nothing. Filters conflict when their constraints together leave some name
  without an allowed value; a filter that conflicts with itself matches nothing.
- *implied?* Every value of a domain satisfies a given constraint. F covers G when G matches nothing, or when every
  constraint of F is on a name that G has and is implied by what G allows there, for every kind that G allows.

All constraints on a name are weighed together, so `x > 10 and x < 20` is covered by `x > 5`, `x > 5 and x < 3`
conflicts with itself, and `x in [1, 2] and x != 1` is as good as `x = 2`. Regions are weighed by their exact relations.
Under the `Uniform` discretization relations are approximate, and so is what follows from them.

Cost: a few microseconds for scalars; a relation of two regions for each pair of region constraints on a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from contrada.forwarding.constraint import Operator
from contrada.forwarding.domains import bool_domain, finite_domain
from contrada.forwarding.ordered_domain import ordered_domain
from contrada.forwarding.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contrada.forwarding.constraint import Constraint
    from contrada.forwarding.domains import Domain
    from contrada.forwarding.filter import Filter
    from contrada.forwarding.operands import ValueSet

_ALL_KINDS = frozenset(Kind)
_REGION_KINDS = frozenset((Kind.POINT, Kind.REGION))
_ONE_KIND = {kind: frozenset((kind,)) for kind in Kind} | {Kind.REGION: _REGION_KINDS}


def covers(f: Filter, g: Filter) -> bool:
    """Whether whatever matches g matches f."""
    if f == g:
        return True
    allowed = _by_name(g.constraints)
    for name, wanted in _by_name(f.constraints).items():
        if name not in allowed or not _implied(wanted, allowed[name]):
            return not is_satisfiable(g)
    return True


def conflicts(f: Filter, g: Filter) -> bool:
    """Whether nothing matches both."""
    return not _satisfiable(f.constraints + g.constraints)


def is_satisfiable(f: Filter) -> bool:
    """Whether anything may match. False is certain: nothing does."""
    return _satisfiable(f.constraints)


def _satisfiable(constraints: Iterable[Constraint]) -> bool:
    return all(any(True for _ in _domains(group)) for group in _by_name(constraints).values())


def _implied(wanted: list[Constraint], allowed: list[Constraint]) -> bool:
    """Whether every value, of any kind, that satisfies `allowed` satisfies `wanted`."""
    return all(
        constraint.op is Operator.EXISTS or (kind in _kinds(constraint) and domain.implies(constraint))
        for kind, domain in _domains(allowed)
        for constraint in wanted
    )


def _domains(constraints: list[Constraint]) -> Iterator[tuple[Kind, Domain]]:
    """The non-empty domains of constraints on one name."""
    kinds = _ALL_KINDS
    for constraint in constraints:
        kinds = kinds & _kinds(constraint)
    telling = [constraint for constraint in constraints if constraint.op is not Operator.EXISTS]
    for kind in kinds:
        domain = _domain(kind, telling)
        if domain is not None:
            yield kind, domain


def _domain(kind: Kind, constraints: list[Constraint]) -> Domain | None:
    if any(constraint.op in (Operator.EQ, Operator.IN) for constraint in constraints):
        return finite_domain(kind, constraints)
    if kind is Kind.BOOL:
        return bool_domain(constraints)
    if kind in (Kind.NUMBER, Kind.STRING, Kind.TIME):
        return ordered_domain(kind, constraints)

    from contrada.forwarding.spatial_domain import spatial_domain  # loads the compiler

    return spatial_domain(kind, constraints)


def _kinds(constraint: Constraint) -> frozenset[Kind]:
    """The kinds of values on which a constraint can hold."""
    if constraint.kind is not None:
        return _ONE_KIND[constraint.kind]
    if constraint.op is Operator.EXISTS:
        return _ALL_KINDS
    return frozenset(kind for kind, _ in cast("ValueSet", constraint.value).members)


def _by_name(constraints: Iterable[Constraint]) -> dict[str, list[Constraint]]:
    groups: dict[str, list[Constraint]] = {}
    for constraint in constraints:
        groups.setdefault(constraint.name, []).append(constraint)
    return groups
