"""Right-hand sides of constraints that are more than one value: `in` sets, geotext matches, road-network similarity.

`not matches` and `not similar` have a `Negated` one, so that whoever looks for a `TextMatch` does not take one for the
other.

All are immutable and hashable, and have one canonical form, so that equal constraints are equal objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from contrada.errors import InvalidValue
from contrada.forwarding.language.values import INT_MAX, INT_MIN, Kind, check_float, check_time, check_value, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from contrada.forwarding.language.values import Value
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.textual.geotext import GeoText

    Scalar: TypeAlias = bool | int | float | str | datetime | Point

COMPARABLE: Final = frozenset((Kind.BOOL, Kind.NUMBER, Kind.STRING, Kind.TIME, Kind.POINT))
"""Kinds that `=`, `!=` and `in` speak of. Regions have `equals`; geotext has `matches`."""


_ELSEWHERE: Final = {
    Kind.REGION: ("a region", "equals"),
    Kind.LINE: ("a line", "intersects"),
    Kind.GEOTEXT: ("a geotext", "matches"),
    Kind.SET: ("a list", "has"),
}


def check_scalar(value: object) -> tuple[Kind, Scalar]:
    """A constant for `=`, `!=` or `in`, in canonical form: a float that is a 64-bit integer becomes that integer."""
    if type(value) is int and INT_MIN <= value <= INT_MAX:  # the two usual cases first: tables take in millions
        return Kind.NUMBER, value
    if type(value) is str and value.isascii():
        return Kind.STRING, value
    kind, checked = check_value(value)
    if kind not in COMPARABLE:
        what, other = _ELSEWHERE[kind]
        raise InvalidValue(f"=, != and in do not compare {what}: use {other}")
    if type(checked) is float and checked.is_integer() and INT_MIN <= checked <= INT_MAX:
        return kind, int(checked)
    return kind, cast("Scalar", checked)


def scalar_order(kind: Kind, value: Scalar) -> tuple[int, object]:
    """A sort key: by kind, then by value."""
    if kind is Kind.POINT:
        point = cast("Point", value)
        return (kind, (point.x, point.y))
    return (kind, value)


class ValueSet:
    """The set of an `in` constraint: values of any comparable kinds, in canonical order, without repeats.

    `True` and `1` are different members; `1` and `1.0` are the same.
    """

    __slots__ = ("_members", "values")

    values: tuple[Scalar, ...]
    _members: frozenset[tuple[Kind, Scalar]]

    def __init__(self, values: Iterable[object]) -> None:
        if isinstance(values, str | bytes):
            raise InvalidValue("in takes a list of values; for one string write in_([text])")
        try:
            members = frozenset(check_scalar(value) for value in values)
        except TypeError:
            raise InvalidValue(f"in takes a list of values, not {type(values).__name__}") from None
        if not members:
            raise InvalidValue("in needs at least one value: nothing is in an empty list")
        ordered = sorted(members, key=lambda member: scalar_order(*member))
        object.__setattr__(self, "_members", members)
        object.__setattr__(self, "values", tuple(value for _, value in ordered))

    @property
    def members(self) -> frozenset[tuple[Kind, Scalar]]:
        """The values with their kinds."""
        return self._members

    def __contains__(self, value: object) -> bool:
        kind = kind_of(cast("Value", value))
        if kind is Kind.TIME:  # an instant, whatever the zone: Python tells apart some equal times of unlike zones
            value = check_time(cast("datetime", value))
        return (kind, value) in self._members

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return self._members == other._members if isinstance(other, ValueSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._members)

    def __repr__(self) -> str:
        return f"ValueSet({list(self.values)!r})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a ValueSet cannot be changed")

    def __reduce__(self) -> tuple[object, ...]:
        return (ValueSet, (self.values,))


@dataclass(frozen=True, slots=True)
class TextMatch:
    """Operand of `matches`: all keywords are among the message's and, if a region is given, the places intersect."""

    keywords: frozenset[str]
    within: Region | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "keywords", _keywords(self.keywords))
        if self.within is not None:
            from contrada.spatial.geometry.region import Region

            object.__setattr__(self, "within", Region.of(self.within))

    @classmethod
    def trusted(cls, keywords: frozenset[str], within: Region | None) -> TextMatch:
        """Make one of parts that were checked before: for filters from our own files."""
        made = object.__new__(cls)
        object.__setattr__(made, "keywords", keywords)
        object.__setattr__(made, "within", within)
        return made

    @classmethod
    def of(cls, keywords: Iterable[str], within: Region | None) -> TextMatch:
        """Make one of keywords and of a Region: as the constructor does, and quicker."""
        return cls.trusted(_keywords(keywords), within)

    def holds(self, text: GeoText) -> bool:
        """Whether a message's geotext satisfies this."""
        from contrada.spatial.geometry.region import Box
        from contrada.spatial.relations.relate import relate
        from contrada.spatial.relations.relation import Relation

        if not self.keywords <= text.keywords:
            return False
        if self.within is None:
            return True
        ax1, ay1, ax2, ay2 = self.within.bounds
        bx1, by1, bx2, by2 = text.box
        if bx2 < ax1 or ax2 < bx1 or by2 < ay1 or ay2 < by1:
            return False
        return type(self.within) is Box or relate(text.place, self.within) is not Relation.DISJOINT


@dataclass(frozen=True, slots=True)
class Similar:
    """Operand of `similar`: likeness of words and nearness along roads, weighted, reach `tau` ([ROADS], Def. 7)."""

    keywords: frozenset[str]
    at: Point
    alpha: float = 0.4
    tau: float = 0.7

    def __post_init__(self) -> None:
        from contrada.spatial.geometry.point import Point

        object.__setattr__(self, "keywords", _keywords(self.keywords))
        object.__setattr__(self, "at", Point.of(self.at))
        for name in ("alpha", "tau"):
            kind, number = check_value(getattr(self, name))
            if kind is not Kind.NUMBER or not 0 <= cast("float", number) <= 1:
                raise InvalidValue(f"{name} must be a number from 0 to 1, not {number!r}")
            object.__setattr__(self, name, check_float(float(cast("float", number))))

    @classmethod
    def trusted(cls, keywords: frozenset[str], at: Point, alpha: float, tau: float) -> Similar:
        """Make one of parts that were checked before: for filters from our own files."""
        made = object.__new__(cls)
        for name, part in (("keywords", keywords), ("at", at), ("alpha", alpha), ("tau", tau)):
            object.__setattr__(made, name, part)
        return made


@dataclass(frozen=True, slots=True)
class Negated:
    """Operand of `not matches` and `not similar`: what must not hold."""

    operand: TextMatch | Similar


class Roads(Protocol):
    """What evaluating `similar` asks of a road network."""

    def similar(self, keywords: frozenset[str], at: Point, alpha: float, tau: float, text: GeoText) -> bool:
        """Whether the message's similarity to a subscription of these keywords at this place is at least `tau`."""
        ...


@cache
def _reader() -> Callable[[str | Iterable[str]], frozenset[str]]:
    """What reads keywords, loaded when it is first needed."""
    from contrada.spatial.textual.geotext import wanted_keywords

    return wanted_keywords


def _keywords(keywords: str | Iterable[str]) -> frozenset[str]:
    checked = _reader()(keywords)
    if not checked:
        raise InvalidValue("matches and similar need at least one keyword")
    return checked
