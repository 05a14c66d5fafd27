"""Domains: the values of one kind that constraints on one name allow. Here those that can be listed.

A maker of a domain gives None when the constraints certainly allow nothing.

Nobody says here what coordinates are. So of a point that on the Earth would be on both sides of the 180th meridian
(`lonlat`), a constraint certainly holds if it does in the plane and on the Earth, and may hold if it does in either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.lonlat import holds_in_degrees, is_on_meridian, value_in_degrees
from contrada.forwarding.language.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.operands import Scalar, ValueSet


class Domain(Protocol):
    """A non-empty set of values, or what is known of it."""

    def implies(self, constraint: Constraint, budget: CoveringBudget) -> bool:
        """Whether every value of the domain satisfies the constraint. True is certain."""
        ...


class AbsentDomain:
    """No value at all: what `not exists` allows."""

    def implies(self, constraint: Constraint, budget: CoveringBudget) -> bool:
        """Whether the constraint holds on absence."""
        return constraint.op is Operator.NOT_EXISTS


class FiniteDomain:
    """Values one by one: complete, whatever it is asked."""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[Scalar]) -> None:
        self.values = tuple(values)

    def implies(self, constraint: Constraint, budget: CoveringBudget) -> bool:
        """Whether the constraint holds on each value."""
        budget.spend(len(self.values))
        return all(certainly_holds(constraint, value) for value in self.values)


def certainly_holds(constraint: Constraint, value: Scalar) -> bool:
    """Whether a constraint holds on a value, whatever coordinates are."""
    return constraint.holds(value) and (not is_on_meridian(value) or _holds_on_earth(constraint, value))


def may_hold(constraint: Constraint, value: Scalar) -> bool:
    """Whether a constraint holds on a value, if coordinates are of the plane or if they are degrees."""
    return constraint.holds(value) or (is_on_meridian(value) and _holds_on_earth(constraint, value))


def _holds_on_earth(constraint: Constraint, value: Scalar) -> bool:
    return holds_in_degrees(constraint, value_in_degrees(value))


class SetDomain:
    """Set values that have one of some members, for each `has`, and none of others."""

    __slots__ = ("_refused", "_wanted")

    def __init__(self, wanted: list[frozenset[object]], refused: frozenset[object]) -> None:
        self._wanted = wanted
        self._refused = refused

    def implies(self, constraint: Constraint, budget: CoveringBudget) -> bool:
        """Whether every set satisfies the constraint."""
        budget.spend(1 + len(self._wanted))
        if constraint.kind is not Kind.SET:
            return False
        asked = _members(constraint)
        if constraint.op is Operator.NOT_HAS:
            return asked <= self._refused
        return any(mine - self._refused <= asked for mine in self._wanted)


def set_domain(constraints: list[Constraint]) -> SetDomain | None:
    """The domain of constraints on set values."""
    wanted = [_members(each) for each in constraints if each.op is Operator.HAS]
    refused = frozenset(member for each in constraints if each.op is Operator.NOT_HAS for member in _members(each))
    return SetDomain(wanted, refused) if all(mine - refused for mine in wanted) else None


def _members(constraint: Constraint) -> frozenset[object]:
    return frozenset(cast("ValueSet", constraint.value).members)


def finite_domain(kind: Kind, constraints: list[Constraint], budget: CoveringBudget) -> FiniteDomain | None:
    """The domain of constraints of which one is `=` or `in`: its values that satisfy the others."""
    first = next(c for c in constraints if c.op in (Operator.EQ, Operator.IN))
    if first.op is Operator.EQ:
        candidates = [cast("Scalar", first.value)]
    else:
        candidates = [value for its, value in cast("ValueSet", first.value).members if its is kind]
        if len(constraints) > 1:
            budget.spend(len(candidates) * (len(constraints) - 1))
    return _satisfying(candidates, constraints)


def bool_domain(constraints: list[Constraint]) -> FiniteDomain | None:
    """The domain of constraints on bools."""
    return _satisfying((False, True), constraints)


def listed_domain(values: Iterable[Scalar], constraints: list[Constraint]) -> FiniteDomain | None:
    """The domain of constraints that were found to allow at most these values."""
    return _satisfying(values, constraints)


def _satisfying(candidates: Iterable[Scalar], constraints: list[Constraint]) -> FiniteDomain | None:
    values = [value for value in candidates if all(may_hold(constraint, value) for constraint in constraints)]
    return FiniteDomain(values) if values else None
