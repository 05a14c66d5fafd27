"""What `not` makes of a constraint, and what `and` makes of alternatives: disjunctive normal form, within bounds.

A negated constraint holds only on a value that is there and of the constraint's type, so that `not` gives constraints
of the language again:

    not x = 5            x != 5                          not x in [1, 2, "a"]     x != 1 and x != 2, or x != "a"
    not x > 5            x <= 5                          not s prefix "ab"        s < "ab" or s >= "ac"
    not area inside R    area in one of the seven other relations to R
    not area contains P  area beyond 0 of P or area meets P or area = P, of a point P
    not s suffix "b"     s not suffix "b", an operator of its own; so with contains a string, matches and similar
    not x exists         x not exists, which alone holds where there is no value
    not p within 5 of S  p beyond 5 of S                 not p beyond 5 of S      p within 5 of S

Alternatives are lists of conjunctions, each a tuple of constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from contrada.errors import InvalidValue
from contrada.forwarding.language.constraint import Constraint, Operator, relations_operator
from contrada.forwarding.language.operators import not_to_line, relations_to_point
from contrada.forwarding.language.values import Kind
from contrada.spatial.relations import relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.forwarding.language.operands import ValueSet
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.lines.line import Line

Alternatives: TypeAlias = "list[tuple[Constraint, ...]]"

MAX_FILTERS: Final = 1024
"""The most filters that `and` over `or` may expand to."""
MAX_EXPANSION: Final = 65_536
"""The most constraints of all these filters together."""

_OPPOSITE: Final = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
    Operator.WITHIN: Operator.BEYOND,
    Operator.BEYOND: Operator.WITHIN,
}
_LAST: Final = "\U0010ffff"


def negate_constraint(constraint: Constraint) -> Alternatives:
    """The alternatives that hold on just those values of the constraint's type on which it does not."""
    name, op, value = constraint.name, constraint.op, constraint.value
    if op in _OPPOSITE:
        return [(Constraint(name, _OPPOSITE[op], value),)]
    if op is Operator.IN:
        kinds: dict[Kind, list[Constraint]] = {}
        members = cast("ValueSet", value)
        for member in members:
            kind = next(kind for kind, its in members.members if its is member)
            kinds.setdefault(kind, []).append(Constraint(name, Operator.NE, member))
        return [tuple(unequal) for unequal in kinds.values()]
    if op is Operator.PREFIX:
        return _outside_prefix(name, cast("str", value))
    if constraint.at_point:
        words = relations_to_point(op.mask, cast("Point", value), negated=True)
        return [(Constraint(name, word, operand),) for word, operand in words]
    if constraint.at_line:
        return [(Constraint(name, word, operand),) for word, operand in not_to_line(op, cast("Line", value))]
    if constraint.kind is Kind.REGION:
        if constraint.mask == relation.ALL:
            raise InvalidValue(f"not {name} {op}: nothing is in none of the relations")
        return [(Constraint(name, relations_operator(relation.ALL & ~constraint.mask), value),)]
    if op in (Operator.SUFFIX, Operator.CONTAINS) and value == "":
        raise InvalidValue(f'not {name} {op} "": every string has the empty one in it')
    return [(constraint.opposite,)]


def negate(filters: Sequence[Sequence[Constraint]]) -> Alternatives:
    """The alternatives of which one holds when none of these filters does, each constraint on a value of its type."""
    return all_of([[each for c in constraints for each in negate_constraint(c)] for constraints in filters])


def all_of(factors: Sequence[Alternatives]) -> Alternatives:
    """The alternatives of a conjunction of alternatives, none when one has none; `InvalidValue` when too many."""
    common = tuple(c for factor in factors if len(factor) == 1 for c in factor[0])
    filters = [common]
    for choice in factors:
        if len(choice) == 1:
            continue
        if not choice:
            return []
        size = len(filters) * len(choice)
        longest = max(map(len, filters)) + max(map(len, choice))
        if size > MAX_FILTERS or size * longest > MAX_EXPANSION:
            raise InvalidValue(
                f"expected fewer alternatives: these expand to {size} filters of up to {longest} constraints"
            )
        filters = [left + right for left in filters for right in choice]
    return filters


def _outside_prefix(name: str, prefix: str) -> Alternatives:
    """Strings without a prefix: they come before it, or after all that begin with it."""
    if not prefix:
        raise InvalidValue(f'not {name} prefix "": every string begins with the empty one')
    outside: list[tuple[Any, ...]] = [(Constraint(name, Operator.LT, prefix),)]
    if stem := prefix.rstrip(_LAST):
        after = 0xE000 if stem[-1] == "\ud7ff" else ord(stem[-1]) + 1  # no string holds a surrogate
        outside.append((Constraint(name, Operator.GE, stem[:-1] + chr(after)),))
    return outside
