"""Filters as fields: an array of constraints, or of arrays of them, whose members are columns of a typed table.

A constraint is a struct with `name` and `op`, and its operand in whichever of these members is not null; a table need
only have those it uses:

    value, text, number, integer, flag, time   what `= != < <= > >= prefix suffix contains` compare with
    values                                     an array, for `in`
    region                                     WKT, or an array of the four corners x1, y1, x2, y2 of a box
    keywords, within                           for `matches`: an array of strings; as `region`, or null
"""

from __future__ import annotations

from typing import Any, Final

from contrada.errors import InvalidValue
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter, Predicate
from contrada.forwarding.language.operands import TextMatch
from contrada.spatial.geometry.region import Box, Region

SCALARS: Final = ("value", "text", "number", "integer", "flag", "time")
MEMBERS: Final = frozenset(("name", "op", *SCALARS, "values", "region", "keywords", "within"))


def filter_of_fields(value: Any) -> Filter | Predicate:
    """The filter of an array of constraints, or the predicate of an array of arrays."""
    if not isinstance(value, list) or not value:
        raise InvalidValue("no filter: null or empty")
    if isinstance(value[0], list):
        predicate = Predicate([Filter([_constraint(each) for each in _some(group)]) for group in value])
        return predicate if len(predicate) > 1 else predicate.filters[0]
    return Filter([_constraint(each) for each in value])


def _some(group: Any) -> list[Any]:
    if not group:
        raise InvalidValue("a filter of a predicate is null or empty")
    return group  # type: ignore[no-any-return]  # a list, or it would have been refused before


def _constraint(struct: Any) -> Constraint:
    if not isinstance(struct, dict):
        raise InvalidValue("a constraint is null")
    given = {member: value for member, value in struct.items() if value is not None}
    name, op = given.pop("name", None), given.pop("op", None)
    if name is None or op is None:
        raise InvalidValue("a constraint has a name and an op")
    if op == Operator.MATCHES:
        within = given.pop("within", None)
        operand: object = TextMatch(given.pop("keywords", ()), None if within is None else _region(within))
    else:
        if len(given) > 1:
            raise InvalidValue(f"{name} {op}: one operand is needed, and there are {', '.join(sorted(given))}")
        member, operand = given.popitem() if given else ("", None)
        if member == "region":
            operand = _region(operand)
    if given:
        raise InvalidValue(f"{name} {op} takes no {', '.join(sorted(given))}")
    return Constraint(name, op, operand)


def _region(value: Any) -> Region:
    return Box(*value) if isinstance(value, list) and len(value) == 4 else Region.of(value)
