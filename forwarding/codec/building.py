"""Filters and geotext of decoded parts, whichever codec decoded them; `CodecError` says what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.codec.limits import NO_LIMITS, Limits
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.distance import METRES, Distance
from contrada.forwarding.language.filter import Filter, Predicate
from contrada.forwarding.language.operands import Similar, TextMatch, ValueSet
from contrada.forwarding.language.values import Kind, check_value, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.forwarding.language.values import Value
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Box, Region
    from contrada.spatial.lines.line import Line
    from contrada.spatial.textual.geotext import GeoText


_PATTERNS: Final = frozenset((Operator.CONTAINS, Operator.NOT_CONTAINS, Operator.LIKE, Operator.NOT_LIKE))


def build_predicate(
    document: object, limits: Limits, constraint_of: Callable[[object, Limits], Constraint]
) -> Filter | Predicate:
    """A decoded array of arrays of constraints as a filter or predicate."""
    filters = []
    for index, items in enumerate(listed(document, "filters", limits.filters)):
        constraints = []
        for item in listed(items, f"constraints in filter {index}", limits.constraints, least=0):
            try:
                constraints.append(constraint_of(item, limits))
            except InvalidValue as error:
                raise CodecError(f"filter {index}: {error}") from None
        filters.append(Filter(constraints))
    predicate = Predicate(filters)
    return predicate if len(predicate) > 1 else predicate.filters[0]


def build_constraint(name: object, word: object, operand: object, limits: Limits) -> Constraint:
    """A constraint of decoded parts: containers still lists, values already of their types."""
    if type(name) is not str or not 0 < len(name) <= limits.name_length:
        raise CodecError(wrong_name(name, limits.name_length))
    try:
        op = Operator(cast("str", word))
    except ValueError:
        raise CodecError(f"{describe(word)} is not an operator") from None
    if op in (Operator.IN, Operator.HAS, Operator.NOT_HAS):
        members = listed(operand, f"values of {op}", limits.set_size)
        return Constraint(name, op, ValueSet(checked(member) for member in members))
    if op in (Operator.MATCHES, Operator.NOT_MATCHES):
        keywords, within = parts(operand, op, 2)
        if within is not None:
            within = region(within)
        words, make = _words_of(keywords, limits), TextMatch.trusted if limits is NO_LIMITS else TextMatch
        return Constraint(name, op, make(words, within))
    if op in (Operator.SIMILAR, Operator.NOT_SIMILAR):
        keywords, at, alpha, tau = parts(operand, op, 4)
        if kind_of(checked(at)) is not Kind.POINT:
            raise CodecError(f"similar is at a point, not {describe(at)}")
        if limits is NO_LIMITS:
            return Constraint(name, op, Similar.trusted(_words_of(keywords, limits), at, alpha, tau))
        return Constraint(name, op, Similar(_words_of(keywords, limits), at, alpha, tau))
    if op in (Operator.WITHIN, Operator.BEYOND):
        metres = type(operand) is list and len(operand) == 3
        length, of, *unit = parts(operand, op, 3 if metres else 2)
        if type(length) not in (int, float) or (metres and unit != [METRES]):
            raise CodecError(f"{op}: a distance is a number, perhaps of metres, not {describe(operand)}")
        return Constraint(name, op, Distance(length, shape(of), *unit))
    if op in _PATTERNS and type(operand) is str:
        length = len(operand.encode(errors="replace"))  # a lone surrogate is refused below
        if length > limits.pattern_length:
            raise CodecError(f"{op} a string of {length} bytes, more than the limit of {limits.pattern_length}")
    if op.mask and not (op is Operator.CONTAINS and type(operand) is str):
        operand = shape(operand)  # or WKT and other forms that users may give would pass
    return Constraint(name, op, operand)


def listed(items: object, what: str, most: int, least: int = 1) -> list[Any]:
    """A decoded array of at least one, or `least`, and at most so many items."""
    if type(items) is not list:
        raise CodecError(f"{what}: an array is needed, not {describe(items)}")
    if len(items) < least:
        raise CodecError(f"{what}: none, and at least one is needed")
    if len(items) > most:
        raise CodecError(f"{what}: {len(items)}, more than the limit of {most}")
    return items


def keyword_list(keywords: object, limits: Limits) -> list[str]:
    """Decoded keywords, within limits: strings; whether each is a keyword is left to what takes them."""
    if type(keywords) is not list or len(keywords) > limits.keywords:
        raise CodecError(f"keywords are an array of at most {limits.keywords} strings, not {describe(keywords)}")
    for keyword in keywords:
        if type(keyword) is not str:
            raise CodecError(f"a keyword is a string, not {describe(keyword)}")
    return keywords


def _words_of(keywords: object, limits: Limits) -> frozenset[str]:
    """What decoded keywords of a constraint ask for; one of several words is read as these.

    Those of our own files stay as they are: an index of an earlier version has them so.
    """
    from contrada.spatial.textual.geotext import wanted_keywords

    listed = keyword_list(keywords, limits)
    if limits is NO_LIMITS and listed and all(type(keyword) is str for keyword in listed):
        return frozenset(listed)
    most = min(limits.wanted, limits.keywords)
    if len(listed) <= most:
        _refuse_long(listed, limits)
        words = wanted_keywords(listed)
        if len(words) <= most:
            return words
    raise CodecError(f"a constraint asks for more keywords than the limit of {most}")


def _refuse_long(listed: list[str], limits: Limits) -> None:
    length = sum([len(keyword) for keyword in listed if type(keyword) is str])
    if length > limits.text:
        raise CodecError(f"keywords of {length} characters, more than the limit of {limits.text}")


def region(value: object) -> Region:
    """A decoded value, if it is a region."""
    if not is_spatial(value) or kind_of(cast("Value", value)) is not Kind.REGION:
        raise CodecError(f"a region is needed, not {describe(value)}")
    return cast("Region", value)


def shape(value: object) -> Point | Line | Region:
    """A decoded value, if it is a point, a line or a region."""
    if not is_spatial(value) or kind_of(cast("Value", value)) not in (Kind.POINT, Kind.LINE, Kind.REGION):
        raise CodecError(f"a point, line or region is needed, not {describe(value)}")
    return cast("Point | Line | Region", value)


def make_geotext(keywords: object, place: object, limits: Limits) -> GeoText:
    """Geotext of decoded parts. A keyword of several words counts as these."""
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.textual.geotext import GeoText

    listed = keyword_list(keywords, limits)
    if isinstance(place, Point):
        text = GeoText(listed, at=place)
    elif not is_spatial(place):
        raise CodecError(f"geotext is at a point or within a box, not {describe(place)}")
    else:
        text = GeoText(listed, within=cast("Box", place))
    if len(text.keywords) > limits.keywords:
        raise CodecError(f"geotext of {len(text.keywords)} words, more than the limit of {limits.keywords}")
    return text


def checked(value: object) -> Value:
    """A decoded value, if a notification may hold it."""
    try:
        return check_value(value)[1]
    except InvalidValue as error:
        raise CodecError(str(error)) from None


def parts(items: object, what: str, count: int) -> list[Any]:
    """The members of a decoded array that must have so many."""
    if type(items) is not list or len(items) != count:
        raise CodecError(f"{what} has {count} parts in an array, not {describe(items)}")
    return items


def is_spatial(value: object) -> bool:
    """Whether a decoded value is a point, a region or geotext."""
    if value is None or type(value) in (dict, list, bytes):
        return False
    return Kind.POINT <= kind_of(cast("Value", value)) <= Kind.LINE


def wrong_name(name: object, longest: int) -> str:
    """What is wrong with a name."""
    if type(name) is str:
        return f"a name has 1 to {longest} characters, not {len(name)}"
    return f"a name is a string, not {describe(name)}"


def describe(value: object) -> str:
    """A decoded value in a few words."""
    if isinstance(value, list | dict | bytes):
        return f"{ {list: 'an array', dict: 'a map', bytes: 'binary'}[type(value)] } of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"
