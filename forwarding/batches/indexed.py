r"""What constraints are in the table where its kernels do not know their operators: others that say the same.

    s like "a%b_"      s prefix "a" and s like "a%b_"    what every such text begins, ends or goes on with leads to it
    s ~= "Straße"      s is a string, and its folded twin = "strasse"
    s not ~= "a"       s is a string, and its folded twin != "a"

The *folded twin* of an attribute that is a string is the same string with its case folded, under a name that is longer
than names may be. Notifications get it where some filter asks for it (`NameNumbering.folded`), so that `~=` is found by
hash as `=` is. A filter is given back as it came: what is implied is left out again (`as_given`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.like import read_pattern
from contrada.forwarding.language.values import MAX_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

_TWIN: Final = "\0" * (MAX_NAME + 1)
FOLDED: Final = {Operator.FOLDED: Operator.EQ, Operator.NOT_FOLDED: Operator.NE}
_UNFOLDED: Final = {plain: folded for folded, plain in FOLDED.items()}
ADDED: Final = frozenset((Operator.LIKE, *FOLDED))
"""Operators whose constraints are more than themselves in the table."""


def folded_name(name: str) -> str:
    """The name of an attribute's folded twin."""
    return name + _TWIN


def own_name(name: str) -> str | None:
    """The name of the attribute whose folded twin has this one; None if it is no twin's."""
    return name[: -len(_TWIN)] if len(name) > MAX_NAME else None


def as_indexed(constraint: Constraint) -> tuple[tuple[str, Constraint], ...]:
    """The constraints that stand for one in the table, each under the name it is indexed by."""
    name, op = constraint.name, constraint.op
    if op in FOLDED:
        return (name, _is_string(name)), (folded_name(name), Constraint(name, FOLDED[op], constraint.value))
    if op is Operator.LIKE and (implied := _implied(constraint)) is not None:
        return (name, implied), (name, constraint)
    return ((name, constraint),)


def unfolded(name: str, op: Operator, value: object) -> Constraint:
    """The constraint that one under the name of a folded twin stands for."""
    return Constraint(name, _UNFOLDED[op], value)


def as_given(constraints: list[Constraint]) -> list[Constraint]:
    """The constraints of a filter, without those that are there because others imply them."""
    for each in [c for c in constraints if c.op in ADDED]:
        implied = _is_string(each.name) if each.op in FOLDED else _implied(each)
        if implied is not None:
            constraints.remove(implied)
    return constraints


def twins_of(names: Iterable[str]) -> dict[str, str]:
    """Of the names in use, those of folded twins, by the attributes' own."""
    return {own: name for name in names if (own := own_name(name)) is not None}


def _is_string(name: str) -> Constraint:
    return Constraint(name, Operator.PREFIX, "")


def _implied(like: Constraint) -> Constraint | None:
    """What leads to a `like` constraint: the longest text that every value must have at one place or somewhere."""
    pattern = read_pattern(str(like.value))
    found = [(len(text), Operator.CONTAINS, text) for _, text in pattern.literals]
    found += [
        (len(pattern.suffix), Operator.SUFFIX, pattern.suffix),
        (len(pattern.prefix), Operator.PREFIX, pattern.prefix),
    ]
    length, op, text = max(found, key=lambda each: (each[0], each[1] is not Operator.CONTAINS))
    return Constraint(like.name, op, text) if length else None
