"""Filters (conjunctions of constraints) and predicates (disjunctions of filters): immutable, hashable, canonical.

A filter keeps its constraints sorted and without repeats, so that filters of the same constraints are equal whatever
the order they were written in. A predicate keeps the order of its filters, because the forwarding table numbers them in
it, but compares as a set; a predicate of one filter equals that filter. `&` and `|` combine all of them; `&`
distributes over `|` and refuses to grow a predicate beyond `MAX_FILTERS` filters. `~` is `not` (`negation`).
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from contrada.errors import InvalidValue
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.lonlat import (
    LONLAT,
    PLANE,
    check_crs,
    filter_in_degrees,
    holds_in_degrees,
    notification_in_degrees,
)
from contrada.forwarding.language.negation import MAX_FILTERS, negate
from contrada.forwarding.language.text.formatting import EVERYTHING
from contrada.forwarding.language.values import Kind, check_notification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from contrada.forwarding.language.operands import Roads
    from contrada.forwarding.language.values import Notification
    from contrada.spatial.relations.relate import Discretization

_by_name = attrgetter("name")


class _Unchangeable:
    """What filters and predicates are alike in: they are values, and no truth values."""

    __slots__ = ()

    @property
    def filters(self) -> tuple[Filter, ...]:
        """Of which a notification matches one."""
        raise NotImplementedError

    def __bool__(self) -> NoReturn:
        what = type(self).__name__.lower()
        raise InvalidValue(f"a {what} has no truth value: combine with & and |, and ask for matches(notification)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def _repr_html_(self) -> str:
        from contrada.forwarding.language.text.html import filters_html

        return filters_html(self.filters)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def matches(
        self,
        notification: Notification,
        *,
        discretization: Discretization | None = None,
        roads: Roads | None = None,
        crs: str = PLANE,
    ) -> bool:
        """Whether every constraint of a filter, or of any of a predicate's, holds: the definition, without an index.

        Absence satisfies `not exists` alone. `InvalidValue` for what is no notification, whether or not a constraint
        speaks of the attribute at fault. With `crs="lonlat"` coordinates are degrees, as in a table of that crs.
        """
        degrees = check_crs(crs) == LONLAT
        checked = notification_in_degrees(notification) if degrees else check_notification(notification)
        holds: Callable[..., bool] = holds_in_degrees if degrees else Constraint.holds
        how = {"discretization": discretization, "roads": roads}
        return any(
            all(holds(each, checked.get(each.name), **how) for each in one.constraints)
            for one in _in_degrees(self.filters, crs)
        )


class Filter(_Unchangeable):
    """A conjunction of constraints. A notification matches when every constraint holds on its attribute.

    The filter without constraints is `true`: everything matches.
    """

    __slots__ = ("constraints",)

    constraints: tuple[Constraint, ...]

    def __init__(self, constraints: Iterable[Constraint] | Constraint) -> None:
        if isinstance(constraints, Constraint):
            constraints = (constraints,)
        if type(constraints) is tuple and len(constraints) == 1 and type(constraints[0]) is Constraint:
            _set_constraints(self, constraints)  # the usual case, in which nothing need be hashed
            return
        unique = _distinct(constraints, "a filter is made of constraints")
        if len(unique) != 1:
            unique = _sorted(unique)
        elif type(unique[0]) is not Constraint:
            raise _not_a_constraint(unique[0])
        _set_constraints(self, unique)

    @property
    def filters(self) -> tuple[Filter, ...]:
        """This filter alone, as a predicate's `filters`, so that code can take both."""
        return (self,)

    @property
    def names(self) -> frozenset[str]:
        """The attributes that the constraints speak of."""
        return frozenset(constraint.name for constraint in self.constraints)

    def covers(self, other: Expression, *, crs: str = PLANE) -> bool:
        """Whether whatever matches `other`, by the same crs, matches this. Never wrong when true; may miss some."""
        from contrada.forwarding.covering.covering import covers

        (mine,) = _in_degrees((self,), crs)
        return all(covers(mine, each) for each in _in_degrees(as_filters(other), crs))

    def conflicts(self, other: Expression, *, crs: str = PLANE) -> bool:
        """Whether no notification matches both, by the same crs. Never wrong when true; may miss some."""
        from contrada.forwarding.covering.covering import conflicts

        (mine,) = _in_degrees((self,), crs)
        return all(conflicts(mine, each) for each in _in_degrees(as_filters(other), crs))

    def __and__(self, other: Expression) -> Filter | Predicate:
        if isinstance(other, Predicate):
            return Predicate((self,)) & other
        return Filter(self.constraints + _as_filter(other).constraints)

    def __or__(self, other: Expression) -> Predicate:
        return Predicate((self, *as_filters(other)))

    def __invert__(self) -> Filter | Predicate:
        return _negated((self,))

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __len__(self) -> int:
        return len(self.constraints)

    def __eq__(self, other: object) -> bool:
        return self.constraints == other.constraints if isinstance(other, Filter) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.constraints)

    def __str__(self) -> str:
        return " and ".join(map(str, self.constraints)) or EVERYTHING

    def __reduce__(self) -> tuple[object, ...]:
        return (Filter, (self.constraints,))


_set_constraints = Filter.__dict__["constraints"].__set__


class Predicate(_Unchangeable):
    """A disjunction of one or more filters. A notification matches when it matches any of them."""

    __slots__ = ("filters",)

    filters: tuple[Filter, ...]

    def __init__(self, filters: Iterable[Filter | Constraint]) -> None:
        unique = tuple(dict.fromkeys(map(_as_filter, _distinct(filters, "a predicate is made of filters"))))
        if not unique:
            raise InvalidValue("a predicate needs at least one filter")
        object.__setattr__(self, "filters", unique)

    def covers(self, other: Expression, *, crs: str = PLANE) -> bool:
        """Whether each filter of `other` is covered by one of these. Never wrong when true; may miss some."""
        return all(any(mine.covers(each, crs=crs) for mine in self.filters) for each in as_filters(other))

    def conflicts(self, other: Expression, *, crs: str = PLANE) -> bool:
        """Whether no notification matches both. Never wrong when true; may miss some."""
        return all(mine.conflicts(other, crs=crs) for mine in self.filters)

    def __and__(self, other: Expression) -> Predicate:
        others = as_filters(other)
        if len(self.filters) * len(others) > MAX_FILTERS:
            raise InvalidValue(
                f"this would expand to {len(self.filters)} x {len(others)} filters, more than {MAX_FILTERS}: "
                "subscribe to the parts separately"
            )
        return Predicate(Filter(a.constraints + b.constraints) for a in self.filters for b in others)

    def __or__(self, other: Expression) -> Predicate:
        return Predicate((*self.filters, *as_filters(other)))

    def __invert__(self) -> Filter | Predicate:
        return _negated(self.filters)

    def __iter__(self) -> Iterator[Filter]:
        return iter(self.filters)

    def __len__(self) -> int:
        return len(self.filters)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Filter | Predicate):
            return frozenset(self.filters) == frozenset(other.filters)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.filters[0]) if len(self.filters) == 1 else hash(frozenset(self.filters))

    def __str__(self) -> str:
        return " or ".join(map(str, self.filters))

    def __reduce__(self) -> tuple[object, ...]:
        return (Predicate, (self.filters,))


Expression: TypeAlias = Constraint | Filter | Predicate
"""Whatever may be subscribed to, besides text."""


def as_filters(expression: Expression | str, crs: str = PLANE) -> tuple[Filter, ...]:
    """The filters of a constraint, filter, predicate or text; `InvalidValue` for anything else."""
    if isinstance(expression, Filter | Predicate):
        return expression.filters
    if isinstance(expression, str):
        from contrada.forwarding.language.text.parse import parse

        return parse(expression, crs).filters
    return (_as_filter(expression),)


def _in_degrees(filters: tuple[Filter, ...], crs: str) -> tuple[Filter, ...]:
    """The filters as a table of the crs keeps them."""
    return tuple(map(filter_in_degrees, filters)) if check_crs(crs) == LONLAT else filters


def _negated(filters: Iterable[Filter]) -> Filter | Predicate:
    alternatives = negate([each.constraints for each in filters])
    if not alternatives:
        raise InvalidValue("not true: nothing matches that")
    predicate = Predicate(map(Filter, alternatives))
    return predicate if len(predicate) > 1 else predicate.filters[0]


def vertices_of(filter: Filter) -> int:
    """How many vertices the regions of a filter have: what it costs to take in, beyond its constraints."""
    vertices = 0
    for constraint in filter.constraints:
        value: Any = constraint.value
        if constraint.kind is Kind.GEOTEXT:
            value = getattr(getattr(value, "operand", value), "within", None)
        elif constraint.kind is not Kind.REGION or constraint.at_point:
            continue
        elif isinstance(value, Distance):
            vertices += value.vertices
            continue
        vertices += 0 if value is None else len(value)
    return vertices


def _distinct(things: Iterable[Any], what: str) -> tuple[Any, ...]:
    try:
        return tuple(dict.fromkeys(things))
    except TypeError:  # not iterable, or something that cannot be hashed
        raise InvalidValue(f"{what}; this {type(things).__name__} is not") from None


def _as_filter(expression: object) -> Filter:
    if isinstance(expression, Filter):
        return expression
    if isinstance(expression, Constraint):
        return Filter((expression,))
    raise InvalidValue(f"expected a filter, a constraint or a predicate, not {type(expression).__name__}")


def _sorted(constraints: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
    try:
        names = {constraint.name for constraint in constraints}
    except AttributeError:
        raise _not_a_constraint(next(c for c in constraints if type(c) is not Constraint)) from None
    # The full key is only worth its price when two constraints share a name.
    return tuple(sorted(constraints, key=_by_name if len(names) == len(constraints) else Constraint.order))


def _not_a_constraint(found: object) -> InvalidValue:
    return InvalidValue(f"a filter is made of constraints, not {type(found).__name__}; use & to combine filters")
