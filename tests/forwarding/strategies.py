"""Values, constraints, filters and notifications for property tests.

Names and values come from small pools, so that constraints meet values that satisfy them, that just fail to, and that
are of another kind. `neighbours` gives the values next to a constant, where operators change their mind.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from contrada.forwarding.language.constraint import Constraint, Operator, relations_operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.filter import Filter, Predicate
from contrada.forwarding.language.operands import Negated, Similar, TextMatch, ValueSet
from contrada.forwarding.language.set_value import SetValue
from contrada.forwarding.language.values import INT_MAX, INT_MIN
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.lines.line import Line
from contrada.spatial.textual.geotext import GeoText

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.forwarding.language.values import Value

NAMES = ("a", "b", "c")
NUMBERS = (0, 1, 2, 3, -1, 0.0, -0.0, 1.0, 0.5, 1.5, 2**53, 2**53 + 1, 2.0**53, INT_MIN, INT_MAX, 1e300, -1e300, 5e-324)
STRINGS = (
    "",
    "A",
    "Ab",
    "ss",
    "%a_",
    "a",
    "b",
    "ab",
    "aa",
    "abc",
    "ba",
    "bab",
    "a\0",
    "é",
    "\U0010ffff",
    "a\U0010ffff",
    "\ud7ff",
    "\ue000",
)
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
TIMES = (NOON, NOON + timedelta(microseconds=1), NOON - timedelta(days=1), datetime(1, 1, 1, tzinfo=UTC))
POINTS = tuple(Point(x, y) for x, y in ((0, 0), (1, 1), (2, 2), (4, 2), (2, 4), (3, 1), (9, 9)))
REGIONS = (
    Box(0, 0, 4, 4),
    Box(0, 0, 2, 2),
    Box(1, 1, 3, 3),
    Box(2, 2, 6, 6),
    Box(4, 0, 8, 4),
    Box(8, 8, 10, 10),
    Region([(0, 0), (4, 0), (0, 4)]),
    Region([(0, 0), (4, 0), (4, 4), (2, 2), (0, 4)]),
    Region([(0, 0), (8, 0), (8, 8), (0, 8)]),
    Region([(0, 0), (4, 0), (4, 4), (0, 4)], holes=[[(1, 1), (3, 1), (3, 3), (1, 3)]]),
    Region([(0, 0), (4, 0), (4, 4), (0, 4)], holes=[[(0, 0), (2, 1), (1, 2)]]),
    Region.of("MULTIPOLYGON(((0 0, 2 0, 2 2, 0 2)), ((2 2, 4 2, 4 4, 2 4)))"),
    Region.of("MULTIPOLYGON(((2 0, 4 0, 4 2)), ((0 2, 2 4, 0 4)))"),
    Region.of(
        "MULTIPOLYGON(((0 0, 8 0, 8 8, 0 8), (1 1, 7 1, 7 7, 1 7)), ((2 2, 6 2, 6 6, 2 6), (3 3, 4 3, 4 4, 3 4)))"
    ),
)
LINES = (
    Line([(0, 0), (4, 4)]),
    Line([(1, 1), (2, 1), (2, 2)]),
    Line([(-1, 2), (9, 2)]),
    Line([(4, 0), (4, 4)]),
    Line.of_parts([[(0, 0), (1, 0)], [(5, 5), (9, 9)]]),
)
WORDS = ("ipad", "sale", "café", "東京", "AT&T", "on sale")
PLACES = (*POINTS[:4], Box(0, 0, 1, 1), Box(3, 3, 5, 5))

RELATIONS = (
    *(op for op in Operator if op.mask and op is not Operator.CONTAINS),
    relations_operator(0b11),
    relations_operator(0b10110),
    relations_operator(0xFE ^ 0x20),
    relations_operator(0xFF),
)
ORDERS = (Operator.LT, Operator.LE, Operator.GT, Operator.GE)
DISTANCES = (Operator.WITHIN, Operator.BEYOND)
TO_LINES = (
    Operator.OVERLAPS,
    Operator.INSIDE,
    Operator("meets or inside or contains or covers"),
    Operator("meets or overlaps or contains or covers"),
)
PATTERNS = (Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS)
REFUSALS = (Operator.NOT_SUFFIX, Operator.NOT_CONTAINS)
LIKES = ("a%b", "%a_", "_", "__%", "a%", "%b%", "ab", "%", "%a%b%", "é%", "_%é", "\\%a%\\_", "a%%_%a", "\\\\%b")
FOLDS = ("A", "aB", "É", "ß", "SS", "", "ﬁ")

names = st.sampled_from(NAMES)
keywords = st.frozensets(st.sampled_from(WORDS), min_size=1, max_size=3)
numbers = st.sampled_from(NUMBERS)
strings = st.sampled_from(STRINGS) | st.text("ab", max_size=3)
like_patterns = st.sampled_from(LIKES) | st.text("ab%_", max_size=6)
times = st.sampled_from(TIMES)
points = st.sampled_from(POINTS)
regions = st.sampled_from(REGIONS)
lines = st.sampled_from(LINES)
shapes = points | regions | lines
lengths = st.sampled_from((0, 1, 2, 0.5, math.sqrt(2), 3, 5, 7.5, 1e50))
geotexts = st.builds(
    lambda words, place: GeoText(words, at=place) if isinstance(place, Point) else GeoText(words, within=place),
    st.frozensets(st.sampled_from(WORDS)),
    st.sampled_from(PLACES),
)
scalars = numbers | strings | st.booleans() | times | points
MEMBERS = ("ice", "snow", "", 1, 2, 0.5)
sets = st.lists(st.sampled_from(MEMBERS), max_size=4).map(SetValue)
values = numbers | strings | st.booleans() | times | points | regions | lines | geotexts | sets

# Everything that may be sent, rather than what is likely to match.
any_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
any_numbers = st.integers(INT_MIN, INT_MAX) | st.floats(allow_nan=False, allow_infinity=False)
any_strings = st.text(st.characters(exclude_categories=["Cs"]))
any_times = st.datetimes(timezones=st.just(UTC))
_coordinates = st.floats(-1e6, 1e6).filter(lambda c: c == 0 or abs(c) > 1e-100)
any_points = st.builds(Point, _coordinates, _coordinates)
any_scalars = any_numbers | any_strings | st.booleans() | any_times | any_points
any_values = any_scalars | regions | lines | geotexts | st.lists(any_numbers | any_strings, max_size=5).map(SetValue)


def constraints(
    names: st.SearchStrategy[str] = names,
    scalars: st.SearchStrategy[Value] = scalars,
    strings: st.SearchStrategy[str] = strings,
    *,
    similar: bool = False,
) -> st.SearchStrategy[Constraint]:
    """Constraints of every operator; `similar`, which needs a road network to evaluate, when asked."""
    ordered = scalars.filter(lambda value: type(value) in (int, float, str, datetime))
    kinds = [
        st.builds(Constraint, names, st.sampled_from((Operator.EQ, Operator.NE)), scalars),
        st.builds(Constraint, names, st.sampled_from(ORDERS), ordered),
        st.builds(Constraint, names, st.sampled_from((Operator.EXISTS, Operator.NOT_EXISTS))),
        st.builds(Constraint, names, st.just(Operator.IN), st.lists(scalars, min_size=1, max_size=4).map(ValueSet)),
        st.builds(Constraint, names, st.sampled_from(PATTERNS), strings),
        st.builds(Constraint, names, st.sampled_from(REFUSALS), strings.filter(bool)),
        st.builds(
            Constraint,
            names,
            st.sampled_from((Operator.HAS, Operator.NOT_HAS)),
            st.lists(st.sampled_from(MEMBERS), min_size=1, max_size=3).map(ValueSet),
        ),
        st.builds(Constraint, names, st.just(Operator.LIKE), like_patterns),
        st.builds(Constraint, names, st.just(Operator.NOT_LIKE), like_patterns.filter(lambda p: p.strip("%"))),
        st.builds(
            Constraint,
            names,
            st.sampled_from((Operator.FOLDED, Operator.NOT_FOLDED)),
            strings | st.sampled_from(FOLDS),
        ),
        st.builds(Constraint, names, st.sampled_from((*RELATIONS, Operator.CONTAINS)), regions),
        st.builds(Constraint, names, st.sampled_from((Operator.CONTAINS, Operator.MEETS)), points),
        st.builds(Constraint, names, st.sampled_from(TO_LINES), lines),
        st.builds(
            Constraint, names, st.sampled_from(DISTANCES), st.builds(Distance, lengths, points | regions | lines)
        ),
        st.builds(
            Constraint,
            names,
            st.sampled_from((Operator.MATCHES, Operator.NOT_MATCHES)),
            st.builds(TextMatch, keywords, st.none() | regions),
        ),
    ]
    if similar:
        unit = st.floats(0, 1)
        kinds.append(
            st.builds(
                Constraint,
                names,
                st.sampled_from((Operator.SIMILAR, Operator.NOT_SIMILAR)),
                st.builds(Similar, keywords, points, unit, unit),
            )
        )
    return st.one_of(kinds)


def filters(constraints: st.SearchStrategy[Constraint] | None = None, most: int = 4) -> st.SearchStrategy[Filter]:
    """Conjunctions of up to `most` constraints, `true` among them."""
    return st.lists(constraints if constraints is not None else _constraints, max_size=most).map(Filter)


def predicates(filters_: st.SearchStrategy[Filter] | None = None) -> st.SearchStrategy[Predicate]:
    """Disjunctions of one to three filters."""
    return st.lists(filters() if filters_ is None else filters_, min_size=1, max_size=3).map(Predicate)


def notifications(
    names: st.SearchStrategy[str] = names, values: st.SearchStrategy[Value] = values
) -> st.SearchStrategy[dict[str, Value]]:
    """Notifications of up to four attributes."""
    return st.dictionaries(names, values, max_size=4)


_constraints = constraints()


def neighbours(value: object) -> Iterator[Value]:
    """A constant and the values next to it in every order, and some of other kinds that look alike."""
    if isinstance(value, ValueSet):
        kept = [member for member in value if type(member) in (str, int, float)]
        yield from (SetValue([]), SetValue(kept), SetValue(kept[:1]), SetValue([*kept[1:], "rain"]))
        for member in value:
            yield from neighbours(member)
    elif isinstance(value, bool):
        yield from (value, not value, int(value))
    elif isinstance(value, int | float):
        number = float(value)
        yield from (i for i in (value, value + 1, value - 1) if isinstance(i, float) or INT_MIN <= i <= INT_MAX)
        nearest = (number, math.nextafter(number, math.inf), math.nextafter(number, -math.inf))
        yield from (f for f in nearest if math.isfinite(f))
        yield bool(value)
        yield str(value)
    elif isinstance(value, str):
        yield from (value.upper(), value.replace("%", "ab").replace("_", "é").replace("\\", ""))
        yield from (value, value + "\0", value + "a", value + "\U0010ffff", "a" + value, value[:-1], value[1:])
        if value:
            last = ord(value[-1])
            yield from (value[:-1] + chr(c) for c in (last - 1, last + 1) if 0 <= c < 0xD800 or 0xDFFF < c < 0x110000)
    elif isinstance(value, datetime):
        yield value
        if value.year > 1:
            yield from (value - timedelta(microseconds=1), value + timedelta(microseconds=1))
    elif isinstance(value, Point):
        yield from (value, Point(value.x + 1, value.y))
    elif isinstance(value, Region):
        x1, y1, x2, y2 = value.bounds
        width, height = x2 - x1, y2 - y1
        yield from (value, Box(x1, y1, x2, y2), Box(x1 - 1, y1 - 1, x2 + 1, y2 + 1), Box(x1, y1, x2 + 1, y2))
        yield Box(x1 + width / 4, y1 + height / 4, x1 + width / 3, y1 + height / 3)
        yield Box(x2, y1, x2 + width, y2)
        yield from (Point(*corner) for corner in value.coords.tolist())
        yield from (Line([(x1, y1), (x2, y2)]), Line([(x1 - 1, y1), (x1, y1)]), Line([(x1 - 1, y1), (x2, y2)]))
        yield Point(x1 + width / 4, y1 + height / 4)
    elif isinstance(value, Negated):
        yield from neighbours(value.operand)
    elif isinstance(value, Line):
        yield from (value, Line([(x + 1, y) for x, y in value.parts[0].tolist()]))
        yield from (Point(*vertex) for vertex in value.parts[0].tolist())
        x1, y1, x2, y2 = value.bounds
        yield from (Box(x1 - 1, y1 - 1, x2 + 1, y2 + 1), Box(x1 - 1, y1 - 1, x1 + 1, y1 + 1))
        yield Box(x1 - 1, y1, x1, y2 + 1)
    elif isinstance(value, Distance):
        yield from neighbours(value.of)
        x1, y1, x2, y2 = value.of.bounds
        yield from (Point(x2 + value.length, y2), Point(x1, y1 - value.length), Box(x1 - 20, y1 - 20, x1 - 1, y1 - 1))
        yield Box(x1 - 20, y1 - 20, x2 + 20, y2 + 20)
    elif isinstance(value, TextMatch):
        yield GeoText(value.keywords, at=(0, 0))
        yield GeoText(WORDS, within=Box(0, 0, 1, 1))
        if value.within is not None:
            x1, y1, x2, y2 = value.within.bounds
            yield from (GeoText(value.keywords, at=(x1, y1)), GeoText(WORDS, within=Box(x1, y1, x2, y2)))
