"""A constraint: a name, an operator, and what the operator compares with.

Which operators go with which kinds of values, and what each asks, is the table `_OPERANDS` and the method `holds`: the
reference evaluation, to which every index is held. A constraint is checked once, when it is made, and immutable after.

Equality is that of meaning as far as one constraint can tell: `x > 1` equals `x > 1.0` (a float that is an integer is
kept as one), but `x = 1` differs from `x = true`, also as a dictionary key.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, cast

from contrada.errors import InvalidValue
from contrada.forwarding.language.distance import Distance, shape_of
from contrada.forwarding.language.like import check_pattern, is_like, simplest
from contrada.forwarding.language.operands import Negated, Similar, TextMatch, ValueSet, check_scalar, scalar_order
from contrada.forwarding.language.operators import (
    MASKS,
    NEGATED,
    POSITIVE,
    RANK,
    Operator,
    relation_to_line,
    relations_operator,
    relations_to_point,
)
from contrada.forwarding.language.values import Kind, check_name, check_time, check_value, is_line, is_point, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from contrada.forwarding.language.filter import Filter, Predicate
    from contrada.forwarding.language.operands import Roads, Scalar
    from contrada.forwarding.language.set_value import SetValue
    from contrada.forwarding.language.values import Value
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.lines.line import Line
    from contrada.spatial.relations.relate import Discretization
    from contrada.spatial.textual.geotext import GeoText

    Operand: TypeAlias = Scalar | Region | ValueSet | TextMatch | Similar | Negated | Distance | None


__all__ = ["NEGATED", "RANK", "Constraint", "Operator", "relations_operator"]

_COMPARE: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
    Operator.PREFIX: lambda value, constant: value.startswith(constant),
    Operator.SUFFIX: lambda value, constant: value.endswith(constant),
}
_ORDERED: Final = (Kind.NUMBER, Kind.STRING, Kind.TIME)


class Constraint:
    """`name op value`, checked and immutable. `attr(name)` and `parse` are the comfortable ways to make one.

    `kind` is the kind of value the constraint speaks of; `None` for `exists`, `not exists` and `in`, which may hold on
    several. A constraint of kind REGION also holds on points, which are inside, meet or are disjoint from a region, or
    so far away from it, and on lines (`spatial.lines.relating`).
    """

    __slots__ = ("kind", "name", "op", "value")

    name: str
    op: Operator
    kind: Kind | None
    value: Operand

    def __init__(self, name: str, op: Operator | str, value: object = None) -> None:
        if type(op) is not Operator:
            try:
                op = Operator(op)
            except ValueError:
                raise InvalidValue(f"{op!r} is not an operator; there are {', '.join(Operator)}") from None
        try:
            kind, operand = _OPERANDS[op](op, value)
            if op is Operator.LIKE or op is Operator.NOT_LIKE:
                op, operand = _plainer(op, cast("str", operand))
            elif kind is Kind.POINT and op.mask:
                op, kind, operand = _at_point(op, cast("Point", operand))
            elif kind is Kind.LINE:
                op, kind, operand = _at_line(op, cast("Line", operand))
            _set_name(self, check_name(name))
        except InvalidValue as error:
            raise InvalidValue(f"constraint {name} {op}: {error}") from None
        _set_op(self, op)
        _set_kind(self, kind)
        _set_value(self, operand)

    @property
    def mask(self) -> int:
        """The relations that satisfy this constraint, when it is one on regions; else 0."""
        return self.op.mask if self.kind is Kind.REGION and not self.at_point and not self.at_line else 0

    @property
    def at_point(self) -> bool:
        """Whether this asks for a region that contains, or meets, a point."""
        return self.kind is Kind.REGION and is_point(self.value)

    @property
    def at_line(self) -> bool:
        """Whether this asks for a region that a line crosses, or that contains it."""
        return self.kind is Kind.REGION and is_line(self.value)

    def holds(
        self, value: Value | None, *, discretization: Discretization | None = None, roads: Roads | None = None
    ) -> bool:
        """Whether a present value satisfies this: the definition, without any index. None stands for absence.

        `discretization` is that of `relate` (exact by default); `roads` is needed for `similar` alone.
        """
        op = self.op
        if value is None or op is Operator.NOT_EXISTS:
            return value is None and op is Operator.NOT_EXISTS
        if op is Operator.EXISTS:
            return True
        if op is Operator.IN:
            return value in cast("ValueSet", self.value)
        kind = kind_of(value)
        if kind is not self.kind and not (self.kind is Kind.REGION and kind in (Kind.POINT, Kind.LINE)):
            return False
        if op in POSITIVE:
            return not self.opposite.holds(value, discretization=discretization, roads=roads)
        if isinstance(self.value, Distance):
            return self.value.near(cast("Region", value)) is (op is Operator.WITHIN)
        if self.kind is Kind.REGION:
            from contrada.spatial.relations.relate import EXACT, relate

            if self.at_point:
                if kind is not Kind.REGION:
                    return False
                return bool(op.mask & relate(cast("Point", self.value), cast("Region", value)).converse.mask)
            if self.at_line:
                from contrada.spatial.lines.relating import relate_to_line

                return bool(op.mask >> relate_to_line(cast("Region", value), cast("Line", self.value)) & 1)
            found = relate(cast("Region", value), cast("Region", self.value), discretization or EXACT)
            return bool(self.op.mask & found.mask)
        if op is Operator.CONTAINS:
            return cast("str", self.value) in cast("str", value)
        if op is Operator.HAS:
            return cast("SetValue", value).has_any(cast("ValueSet", self.value))
        if op is Operator.LIKE:
            return is_like(cast("str", value), cast("str", self.value))
        if op is Operator.FOLDED:
            return cast("str", value).casefold() == self.value
        if op is Operator.MATCHES:
            return cast("TextMatch", self.value).holds(cast("GeoText", value))
        if op is Operator.SIMILAR:
            if roads is None:
                raise InvalidValue(f"{self} can only be evaluated on a road network: give one as roads")
            wanted = cast("Similar", self.value)
            return roads.similar(wanted.keywords, wanted.at, wanted.alpha, wanted.tau, cast("GeoText", value))
        if kind is Kind.TIME:
            value = check_time(cast("datetime", value))  # or Python would refuse to compare one without a zone
        return _COMPARE[op](value, self.value)

    @property
    def opposite(self) -> Constraint:
        """The constraint that this one negates, or that negates it, where the two are operators of their own."""
        op = POSITIVE.get(self.op) or NEGATED[self.op]
        return Constraint(self.name, op, self.value.operand if isinstance(self.value, Negated) else self.value)

    def covers(self, other: Constraint | Filter) -> bool:
        """Whether whatever satisfies `other` satisfies this. Never wrong when true; may miss some."""
        return self._filter().covers(other)

    def conflicts(self, other: Constraint | Filter) -> bool:
        """Whether nothing satisfies both. Never wrong when true; may miss some."""
        return self._filter().conflicts(other)

    def order(self) -> tuple[object, ...]:
        """A key under which all constraints are totally ordered: name, operator, kind, operand."""
        return (self.name, RANK[self.op], -1 if self.kind is None else self.kind, _operand_order(self))

    def _filter(self) -> Filter:
        from contrada.forwarding.language.filter import Filter

        return Filter((self,))

    def __and__(self, other: Constraint | Filter | Predicate) -> Filter | Predicate:
        return self._filter() & other

    def __invert__(self) -> Filter | Predicate:
        return ~self._filter()

    def __or__(self, other: Constraint | Filter | Predicate) -> Predicate:
        return self._filter() | other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraint):
            return NotImplemented
        return (
            self.name == other.name
            and self.op is other.op
            and self.kind is other.kind
            and (self.value is other.value or self.value == other.value)
        )

    def __hash__(self) -> int:
        return hash((self.name, self.op, self.kind, self.value))

    def __bool__(self) -> NoReturn:
        raise InvalidValue("a constraint has no truth value: combine with & and |, and ask c.holds(value)")

    def __str__(self) -> str:
        from contrada.forwarding.language.text.formatting import format_constraint

        return format_constraint(self)

    def __repr__(self) -> str:
        return f"<Constraint {self}>"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Constraint cannot be changed")

    def __reduce__(self) -> tuple[object, ...]:
        return (Constraint, (self.name, self.op.value, self.value))


# Slot descriptors write past the `__setattr__` that makes constraints immutable, at a third of the cost of
# object.__setattr__: a table takes in millions.
_set_name = Constraint.__dict__["name"].__set__
_set_op = Constraint.__dict__["op"].__set__
_set_kind = Constraint.__dict__["kind"].__set__
_set_value = Constraint.__dict__["value"].__set__


def _comparable(op: Operator, value: object) -> tuple[Kind, Operand]:
    return check_scalar(value)


def _ordered(op: Operator, value: object) -> tuple[Kind, Operand]:
    kind, scalar = check_scalar(value)
    if kind not in _ORDERED:
        raise InvalidValue(f"{op} orders numbers, strings and datetimes, not a {kind.name.lower()}")
    return kind, scalar


def _text(op: Operator, value: object) -> tuple[Kind, Operand]:
    kind, text = check_value(value)
    if kind is not Kind.STRING:
        raise InvalidValue(f"{op} takes a string, not a {kind.name.lower()}")
    return kind, cast("str", text)


def _members(op: Operator, value: object) -> tuple[Kind, Operand]:
    if not isinstance(value, ValueSet):
        value = ValueSet([value] if isinstance(value, str | bytes) or not isinstance(value, Iterable) else value)
    for kind, member in value.members:
        if kind not in (Kind.STRING, Kind.NUMBER):
            raise InvalidValue(f"{op} asks for strings and numbers, not {member!r}")
    return Kind.SET, value


def _folded(op: Operator, value: object) -> tuple[Kind, Operand]:
    kind, text = _text(op, value)
    return kind, cast("str", text).casefold()


def _plainer(op: Operator, text: str) -> tuple[Operator, str]:
    """An operator and operand that say what `like` or `not like` does, the same only if no plainer ones do."""
    plain = simplest(text)
    if plain is None:
        return op, check_pattern(text)
    word, operand = plain
    if op is Operator.LIKE:
        return Operator(word), operand
    if word == "=":
        return Operator.NE, operand
    if not operand:
        raise InvalidValue("every string is like that")
    return (op, check_pattern(text)) if word == "prefix" else (Operator(f"not {word}"), operand)


def _region(op: Operator, value: object) -> tuple[Kind, Operand]:
    from contrada.spatial.geometry.region import Region

    if value is None:
        raise InvalidValue(f"{op} takes a region")
    if isinstance(value, Region):
        return Kind.REGION, value
    shape = shape_of(value)
    if isinstance(shape, Region):
        return Kind.REGION, shape
    return kind_of(cast("Value", shape)), cast("Operand", shape)


def _at_point(op: Operator, point: Point) -> tuple[Operator, Kind, Operand]:
    """An operator, kind and operand that say what a relation to a point does."""
    found = relations_to_point(op.mask, point)
    if len(found) > 1:
        raise InvalidValue("write the relations to a point one by one, with or")
    word, operand = found[0]
    kind_of(point)  # it is known for a point from now on
    return Operator(word), Kind.POINT if word == "=" else Kind.REGION, operand


def _at_line(op: Operator, line: Line) -> tuple[Operator, Kind, Operand]:
    """An operator, kind and operand that say what a relation to a line does."""
    kind_of(cast("Value", line))  # it is known for a line from now on
    word, operand = relation_to_line(op, line)
    return word, Kind.REGION, cast("Operand", operand)


def _text_or_region(op: Operator, value: object) -> tuple[Kind, Operand]:
    return _text(op, value) if isinstance(value, str) else _region(op, value)


def _nothing(op: Operator, value: object) -> tuple[None, Operand]:
    if value is not None:
        raise InvalidValue(f"{op} takes no value")
    return None, None


def _set(op: Operator, value: object) -> tuple[None, Operand]:
    return None, value if type(value) is ValueSet else ValueSet(cast("list[object]", value))


def _text_match(op: Operator, value: object) -> tuple[Kind, Operand]:
    if not isinstance(value, TextMatch):
        raise InvalidValue(f"{op} takes a TextMatch, not {type(value).__name__}")
    return Kind.GEOTEXT, value


def _similar(op: Operator, value: object) -> tuple[Kind, Operand]:
    if not isinstance(value, Similar):
        raise InvalidValue(f"{op} takes a Similar, not {type(value).__name__}")
    return Kind.GEOTEXT, value


def _negated(op: Operator, value: object) -> tuple[Kind, Operand]:
    if isinstance(value, Negated):
        value = value.operand
    kind, operand = _OPERANDS[POSITIVE[op]](op, value)
    return cast("Kind", kind), Negated(cast("TextMatch | Similar", operand))


def _without_text(op: Operator, value: object) -> tuple[Kind, Operand]:
    kind, text = _text(op, value)
    if not text:
        raise InvalidValue("every string has the empty one in it")
    return kind, text


def _distance(op: Operator, value: object) -> tuple[Kind, Operand]:
    if not isinstance(value, Distance):
        raise InvalidValue(f"{op} takes a Distance, not {type(value).__name__}")
    return Kind.REGION, value


_OPERANDS: Final[dict[Operator, Callable[[Operator, object], tuple[Kind | None, Operand]]]] = {
    Operator.EQ: _comparable,
    Operator.NE: _comparable,
    Operator.LT: _ordered,
    Operator.LE: _ordered,
    Operator.GT: _ordered,
    Operator.GE: _ordered,
    Operator.EXISTS: _nothing,
    Operator.IN: _set,
    Operator.PREFIX: _text,
    Operator.SUFFIX: _text,
    Operator.CONTAINS: _text_or_region,
    Operator.MATCHES: _text_match,
    Operator.SIMILAR: _similar,
    Operator.NOT_EXISTS: _nothing,
    Operator.LIKE: _text,
    Operator.NOT_LIKE: _text,
    Operator.FOLDED: _folded,
    Operator.NOT_FOLDED: _folded,
    Operator.HAS: _members,
    Operator.NOT_HAS: _members,
    Operator.NOT_SUFFIX: _without_text,
    Operator.NOT_CONTAINS: _without_text,
    Operator.NOT_MATCHES: _negated,
    Operator.NOT_SIMILAR: _negated,
    Operator.WITHIN: _distance,
    Operator.BEYOND: _distance,
    **{op: _region for op in MASKS if op is not Operator.CONTAINS},
}


def between(name: str, low: object, high: object) -> tuple[Constraint, Constraint]:
    """The constraints of a value from `low` to `high`, which are of one kind: no value is of two."""
    least, most = Constraint(name, Operator.GE, low), Constraint(name, Operator.LE, high)
    kinds = [cast("Kind", each.kind).name.lower() for each in (least, most)]
    if kinds[0] != kinds[1]:
        raise InvalidValue(f"constraint {name} between: a {kinds[0]} and a {kinds[1]}, and no value is both")
    return least, most


def _operand_order(constraint: Constraint) -> tuple[object, ...]:
    """Orders operands of one operator and kind."""
    value = constraint.value
    if isinstance(value, Negated):
        value = value.operand
    if isinstance(value, ValueSet):
        return tuple(scalar_order(kind_of(member), member) for member in value)
    if isinstance(value, TextMatch):
        return (sorted(value.keywords), value.within is not None, _region_order(value.within))
    if isinstance(value, Similar):
        return (sorted(value.keywords), value.at.x, value.at.y, value.alpha, value.tau)
    if isinstance(value, Distance):
        return value.order()
    if constraint.at_point:
        return (cast("Point", value).bounds, [])
    if constraint.at_line:
        return (cast("Any", value).bounds, [part.tolist() for part in cast("Any", value).parts])
    if constraint.kind is Kind.REGION:
        return _region_order(cast("Region", value))
    if constraint.kind is None:
        return ()
    return scalar_order(constraint.kind, cast("Scalar", value))


def _region_order(region: Region | None) -> tuple[object, ...]:
    return () if region is None else (region.bounds, [ring.tolist() for part in region.rings for ring in part])
