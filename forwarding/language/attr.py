"""`attr(name)`: filters as Python expressions.

    (attr("warning") == "hazardous leak") & attr("area").disjoint(region) & (attr("hazard") > 3)

Each operator gives a filter of one constraint, the same object that `parse` makes of the text. Python's own precedence
asks for parentheses around comparisons next to `&` and `|`; leaving them out, or chaining `1 < attr("x") < 5`, raises
an error rather than meaning something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from contrada.errors import InvalidValue
from contrada.forwarding.language.constraint import Constraint, Operator, between, relations_operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.operands import Similar, TextMatch
from contrada.forwarding.language.values import check_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from contrada.forwarding.language.filter import Predicate
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.relations.relation import Relation

_RELATIONS: Final = {op.value: op for op in Operator if op.mask} | {"crosses": Operator.OVERLAPS}


class Attribute:
    """An attribute's name, waiting for an operator. Regions are anything that `Region.of` accepts."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = check_name(name)

    def __eq__(self, value: object) -> Filter:  # type: ignore[override]  # a comparison makes a filter
        return self._filter(Operator.EQ, value)

    def __ne__(self, value: object) -> Filter:  # type: ignore[override]  # a comparison makes a filter
        return self._filter(Operator.NE, value)

    def __lt__(self, value: object) -> Filter:
        return self._filter(Operator.LT, value)

    def __le__(self, value: object) -> Filter:
        return self._filter(Operator.LE, value)

    def __gt__(self, value: object) -> Filter:
        return self._filter(Operator.GT, value)

    def __ge__(self, value: object) -> Filter:
        return self._filter(Operator.GE, value)

    __hash__ = None  # type: ignore[assignment]  # what equals nothing in particular has no hash

    def exists(self) -> Filter:
        """The notification has this attribute, of whatever kind."""
        return self._filter(Operator.EXISTS, None)

    def in_(self, values: Iterable[object]) -> Filter:
        """The value is one of these."""
        return self._filter(Operator.IN, values)

    def not_in(self, values: Iterable[object]) -> Filter | Predicate:
        """The value is none of these, and of the same kind as one of them."""
        return ~self.in_(values)

    def between(self, low: object, high: object) -> Filter:
        """The value is at least `low` and at most `high`."""
        return Filter(between(self.name, low, high))

    def prefix(self, text: str) -> Filter:
        """The value is a string that begins with this text."""
        return self._filter(Operator.PREFIX, text)

    def suffix(self, text: str) -> Filter:
        """The value is a string that ends with this text."""
        return self._filter(Operator.SUFFIX, text)

    def has(self, *members: object) -> Filter:
        """The value is a list with each of these strings and numbers."""
        if not members:
            raise InvalidValue("has asks for at least one member")
        return Filter([Constraint(self.name, Operator.HAS, [member]) for member in members])

    def has_any(self, members: Iterable[object]) -> Filter:
        """The value is a list with one of these strings and numbers at least."""
        return self._filter(Operator.HAS, list(members))

    def like(self, pattern: str) -> Filter:
        r"""The value is a string like this pattern: `%` is any text, `_` one character, `\%` and `\_` themselves."""
        return self._filter(Operator.LIKE, pattern)

    def equals_folded(self, text: str) -> Filter:
        """The value is this string, upper and lower case being the same: `~=` in text."""
        return self._filter(Operator.FOLDED, text)

    def contains(self, part: str | Region | Any) -> Filter:
        """The value is a string with this text in it, or a region with this region in its interior."""
        return self._filter(Operator.CONTAINS, part)

    def disjoint(self, region: Region | Any) -> Filter:
        """The value and the region have no point in common."""
        return self._filter(Operator.DISJOINT, region)

    def meets(self, region: Region | Any) -> Filter:
        """Only the boundaries of the value and the region touch."""
        return self._filter(Operator.MEETS, region)

    def overlaps(self, region: Region | Any) -> Filter:
        """The interiors intersect, and each reaches outside the other."""
        return self._filter(Operator.OVERLAPS, region)

    def crosses(self, region: Region | Any) -> Filter:
        """The value, a line, has points in the region's interior and outside: another word for `overlaps`.

        Or the value is a region, and a line that is given instead of one has.
        """
        return self._filter(Operator.OVERLAPS, region)

    def equals(self, region: Region | Any) -> Filter:
        """The value is the same set of points."""
        return self._filter(Operator.EQUALS, region)

    def inside(self, region: Region | Any) -> Filter:
        """The value lies in the region's interior."""
        return self._filter(Operator.INSIDE, region)

    def covered_by(self, region: Region | Any) -> Filter:
        """The value lies in the region and touches its boundary."""
        return self._filter(Operator.COVERED_BY, region)

    def covers(self, region: Region | Any) -> Filter:
        """The region lies in the value and touches its boundary."""
        return self._filter(Operator.COVERS, region)

    def intersects(self, region: Region | Any) -> Filter:
        """The value and the region have a point in common."""
        return self._filter(Operator.INTERSECTS, region)

    def relates(self, *relations: Relation | str, to: Region | Any) -> Filter:
        """The value is in one of these relations to the region: `relates("inside", "covered-by", to=region)`."""
        mask = 0
        for each in relations:
            op = _RELATIONS.get(str(each))
            if op is None:
                raise InvalidValue(f"{each!r} is not a relation; there are {', '.join(_RELATIONS)}")
            mask |= op.mask
        if not mask:
            raise InvalidValue("relates needs at least one relation")
        return self._filter(relations_operator(mask), to)

    def within(self, distance: float, unit: str = "", *, of: Point | Region | Any) -> Filter:
        """The nearest point of the value is at most this distance away from the shape, a point or region.

        A unit, `m` or `km`, makes it a distance on the Earth, between longitudes and latitudes.
        """
        return self._filter(Operator.WITHIN, Distance(distance, of, unit))

    def beyond(self, distance: float, unit: str = "", *, of: Point | Region | Any) -> Filter:
        """The whole value is farther away from the shape than this distance."""
        return self._filter(Operator.BEYOND, Distance(distance, of, unit))

    def matches(self, keywords: str | Iterable[str], within: Region | Any = None) -> Filter:
        """The value is geotext that has all these keywords and, if a region is given, a place that intersects it."""
        return self._filter(Operator.MATCHES, TextMatch(keywords, within))  # type: ignore[arg-type]  # it makes a set of them

    def similar(
        self, keywords: str | Iterable[str], at: Point | tuple[float, float], alpha: float = 0.4, tau: float = 0.7
    ) -> Filter:
        """The value is geotext whose likeness in words and in road distance is at least `tau`."""
        return self._filter(Operator.SIMILAR, Similar(keywords, at, alpha, tau))  # type: ignore[arg-type]  # it makes a set and a Point of them

    def _filter(self, op: Operator, value: object) -> Filter:
        return Filter((Constraint(self.name, op, value),))

    def __bool__(self) -> NoReturn:
        raise InvalidValue(f"attr({self.name!r}) has no truth value: apply an operator, as in attr({self.name!r}) > 3")

    def __repr__(self) -> str:
        return f"attr({self.name!r})"


def attr(name: str) -> Attribute:
    """An attribute by name, to build filters with.

    >>> str((attr("hazard") > 3) & attr("warning").prefix("leak"))
    'hazard > 3 and warning prefix "leak"'
    """
    return Attribute(name)
