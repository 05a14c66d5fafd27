"""Operators: what constraints ask of values, and what of them is said by another.

A set of relations of regions is an operator too, whether or not it has a word of its own: `inside or covered-by`.

Relations to a point, storms over my house:

    area contains POINT(1 2)      the point lies in the region's interior
    area meets POINT(1 2)         it lies on the boundary

These two are constraints with a point as operand, and hold on regions only. The others are said already:

    area intersects, covers P     area within 0 of P           pos equals P      pos = P
    area disjoint P               area beyond 0 of P

Nothing overlaps a point, or is inside of or covered by one.

Relations to a line, areas on my route:

    area crosses LINESTRING(…)    the line has points in the region's interior, and outside
    pos inside LINESTRING(…)      the value, a point or line, lies on the line as a whole
    area intersects, disjoint L   area within, beyond 0 of L

What `not` makes of the first two is to be apart from the line, or to touch it in another way; those two sets of
relations are taken as well.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from contrada.errors import InvalidValue
from contrada.forwarding.language.distance import Distance
from contrada.spatial.relations import relation

if TYPE_CHECKING:
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.lines.line import Line


class Operator(StrEnum):
    """What a constraint asks of a value. The values are the language's words."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EXISTS = "exists"
    IN = "in"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"  # a substring, or the region relation: the operand's kind tells
    DISJOINT = "disjoint"
    MEETS = "meets"
    OVERLAPS = "overlaps"
    EQUALS = "equals"
    INSIDE = "inside"
    COVERED_BY = "covered-by"
    COVERS = "covers"
    INTERSECTS = "intersects"
    MATCHES = "matches"
    SIMILAR = "similar"
    NOT_EXISTS = "not exists"
    NOT_SUFFIX = "not suffix"
    NOT_CONTAINS = "not contains"
    NOT_MATCHES = "not matches"
    NOT_SIMILAR = "not similar"
    WITHIN = "within"
    BEYOND = "beyond"
    LIKE = "like"
    NOT_LIKE = "not like"
    FOLDED = "~="
    NOT_FOLDED = "not ~="
    HAS = "has"
    NOT_HAS = "not has"

    @property
    def mask(self) -> int:
        """The set of relations that satisfy a region operator (bits as in `spatial.relation`); 0 for the others."""
        return MASKS.get(self, 0)


NEGATED: Final = {Operator(op.removeprefix("not ")): op for op in Operator if op.startswith("not ")}
"""Operators whose negation is one of its own. That of the others is another of them: `not x > 5` is `x <= 5`."""
POSITIVE: Final = {negated: op for op, negated in NEGATED.items()}
"""The other way round."""

RANK: Final = {op: rank for rank, op in enumerate(Operator)}
MASKS: Final = {Operator(r.value): r.mask for r in relation.RELATIONS} | {Operator.INTERSECTS: relation.INTERSECTS}


def _relation_sets() -> dict[int, Operator]:
    """An operator for every set of relations: those with a word of their own, and `inside or covered-by` and so on.

    The others are members of the enumeration too, found by their words, although it does not list them.
    """
    sets = {mask: op for op, mask in MASKS.items()}
    for mask in range(1, relation.ALL + 1):
        if mask not in sets:
            words = " or ".join(r.value for r in relation.RELATIONS if r.mask & mask)
            op = str.__new__(Operator, words)
            op._name_ = words.upper()
            op._value_ = words
            Operator._value2member_map_[words] = op
            sets[mask], MASKS[op], RANK[op] = op, mask, len(RANK)
    return sets


_BYMASKS: Final = _relation_sets()


def relations_operator(mask: int) -> Operator:
    """The operator that asks for one of a set of relations (bits as in `spatial.relation`)."""
    return _BYMASKS[mask]


_POSSIBLE: Final = 1 << relation.CONTAINS | 1 << relation.MEETS | 1 << relation.DISJOINT | 1 << relation.EQUALS
_TOUCHING: Final = 1 << relation.CONTAINS | 1 << relation.MEETS | 1 << relation.EQUALS
_ALTERNATIVES: Final = {
    "within": _TOUCHING,
    "beyond": 1 << relation.DISJOINT,
    "contains": 1 << relation.CONTAINS,
    "meets": 1 << relation.MEETS,
    "=": 1 << relation.EQUALS,
}


def relations_to_point(mask: int, point: Point, *, negated: bool = False) -> list[tuple[str, Point | Distance]]:
    """The operators and operands of which one says that a value is in one of these relations to a point, or in none.

    What nothing satisfies is refused. `covers` asks for the point to be a point of the value.
    """
    if mask == relation.INTERSECTS or mask & 1 << relation.COVERS:
        mask |= _TOUCHING
    mask = (~mask if negated else mask) & _POSSIBLE
    if not mask:
        raise InvalidValue("a point is contained in a region, meets its boundary or is disjoint: nothing else")
    found: list[tuple[str, Point | Distance]] = []
    for word, means in _ALTERNATIVES.items():
        if mask & means == means:
            mask &= ~means
            found.append((word, Distance(0.0, point) if word in ("within", "beyond") else point))
    return found


_TO_LINES: Final = relation.INTERSECTS & ~(1 << relation.EQUALS | 1 << relation.COVERED_BY)
_OF_LINES: Final = (1 << relation.OVERLAPS, 1 << relation.INSIDE)


def relation_to_line(op: Operator, line: Line) -> tuple[Operator, Line | Distance]:
    """The operator and operand that say what a set of relations to a line does. Few sets are taken."""
    if op is Operator.INTERSECTS or op is Operator.DISJOINT:
        return Operator.WITHIN if op is Operator.INTERSECTS else Operator.BEYOND, Distance(0.0, line)
    if op.mask not in _OF_LINES and _TO_LINES & ~op.mask not in _OF_LINES:
        raise InvalidValue(
            "of a line one asks intersects, disjoint, crosses, inside, within or beyond a distance, and nothing else"
        )
    return op, line


def not_to_line(op: Operator, line: Line) -> list[tuple[Operator, Line | Distance]]:
    """The operators and operands of which one says that a value is in none of these relations to a line."""
    return [(Operator.BEYOND, Distance(0.0, line)), (relations_operator(_TO_LINES & ~op.mask), line)]
