"""Covers and conflicts are never wrong in degrees: at poles, and at the 180th meridian, where points have two sides.

Operands and values have few coordinates, most of them at the meridian and the poles; what each constraint says of each
value is asked of the twin once.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Box, ForwardingTable, Line, Point, Region, parse
from contrada.errors import InvalidValue
from contrada.forwarding.covering.covering import conflicts, covers, is_satisfiable
from contrada.forwarding.covering.covering_set import CoveringSet
from contrada.forwarding.covering.simplify import split_redundant
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.lonlat import filter_in_degrees, holds_in_degrees, value_in_degrees
from contrada.forwarding.table.options import TableOptions
from tests.naive import lonlat

BOXES = [
    Box(178, 0, 180, 4),
    Box(179, 1, 180, 2),
    Box(178, 2, 179, 6),
    Box(-180, 0, -178, 4),
    Box(-180, 1, -179, 2),
    Box(-180, 4, -178, 6),
    Box(178, 0, 182, 4),
    Box(-180, -90, 180, 90),
    Box(178, 88, 180, 90),
    Box(-180, 88, -178, 90),
    Box(10, 89, 20, 90),
]
REGIONS = [*BOXES, Region([(178, 0), (180, 0), (180, 4)]), Region([(-180, 0), (-178, 4), (-180, 4)])]
POINTS = [Point(x, y) for x in (-179, 179, 180) for y in (0, 1, 4, 90)] + [Point(10, 90), Point(-180, 2)]
LINES = [Line([(179, 1), (180, 1)]), Line([(-180, 1), (-179, 1)]), Line([(179, 2), (181, 2)]), Line([(5, 90), (9, 90)])]
VALUES = [
    value_in_degrees(each)
    for each in (*REGIONS, *POINTS, *LINES, *(Point(x, y) for x in (178, 178.5, 179.5) for y in (0, 1, 1.5, 2)))
]
RELATIONS = ["disjoint", "meets", "overlaps", "equals", "inside", "covered-by", "covers", "contains", "intersects"]


def made():
    """Constraints of every kind on a place."""
    for region in REGIONS:
        yield from (Constraint("x", relation, region) for relation in RELATIONS)
        yield Constraint("x", "disjoint or meets", region)
        yield Constraint("x", "inside or covered-by", region)
    for point in POINTS:
        yield from (Constraint("x", op, point) for op in ("=", "!=", "contains", "meets"))
    yield Constraint("x", "in", POINTS[:2])
    yield Constraint("x", "in", [Point(180, 1), Point(180, 4)])
    for line in LINES:
        yield from (Constraint("x", op, line) for op in ("overlaps", "inside", "meets or inside or contains or covers"))
    for shape in (*REGIONS[::3], *POINTS[::3], *LINES[:2]):
        for length in (0, 1, 250_000):
            yield from (Constraint("x", op, Distance(length, shape, "m")) for op in ("within", "beyond"))
        yield Constraint("x", "within", Distance(0, shape))


CONSTRAINTS = list(dict.fromkeys(filter_in_degrees(Filter(each)).constraints[0] for each in made()))
filters = st.lists(st.sampled_from(CONSTRAINTS), min_size=1, max_size=3).map(Filter)


@cache
def satisfied(constraint):
    """The values on which a constraint holds, by their places in the list."""
    return frozenset(place for place, value in enumerate(VALUES) if lonlat.holds(constraint, value))


def matched(f):
    return frozenset.intersection(*map(satisfied, f.constraints))


def named(places):
    return [VALUES[place] for place in places]


def test_the_definition_agrees_with_its_twin():
    for constraint in CONSTRAINTS:
        for place, value in enumerate(VALUES):
            assert holds_in_degrees(constraint, value) == (place in satisfied(constraint)), (constraint, value)


def test_no_pair_of_constraints_is_wrong():
    """Of pairs of which an answer would be right, one in seven is asked: much of what is so is known."""
    singles = [Filter(each) for each in CONSTRAINTS]
    asked = found = 0
    for number, (f, g) in enumerate(product(singles, repeat=2)):
        one, other = matched(f), matched(g)
        if not other <= one:
            assert not covers(f, g), (f, g, named(other - one))
        elif number % 7 == 0:
            asked += 1
            found += covers(f, g)
        if one & other:
            assert not conflicts(f, g), (f, g, named(one & other))
        elif number % 7 == 0:
            asked += 1
            found += conflicts(f, g)
    assert found > asked / 3


def test_filters_are_told_that_they_are_in_degrees():
    one, other = parse("x inside BOX(178 0, 182 4)"), parse("x equals BOX(179 1, 181 2)")
    assert one.covers(other)
    assert not one.covers(other, crs="lonlat")  # where it is cut, it is covered by it and not inside
    assert parse("x covered-by BOX(178 0, 182 4)").covers(other, crs="lonlat")
    assert not parse("x inside BOX(178 0, 182 4)").conflicts(parse("x = POINT(-179 1)"), crs="lonlat")
    assert parse("x inside BOX(178 0, 182 4) or y > 1").covers(parse("x = POINT(-179 1)"), crs="lonlat")
    assert parse("x meets BOX(-180 0, -170 9)").matches({"x": Point(180, 1)}, crs="lonlat")
    assert not parse("x meets BOX(-180 0, -170 9)").matches({"x": Point(180, 1)})
    with pytest.raises(InvalidValue, match="mars"):
        one.covers(other, crs="mars")


@given(filters, filters)
@settings(max_examples=500)
def test_no_filters_of_several_constraints_are_wrong(f, g):
    assert not covers(f, g) or matched(g) <= matched(f)
    assert not conflicts(f, g) or not matched(f) & matched(g)
    assert is_satisfiable(f) or not matched(f)
    needed, _, void = split_redundant(f)
    assert not matched(f) if void else matched(Filter(needed)) == matched(f)


@given(st.lists(filters, min_size=2, max_size=5))
@settings(max_examples=100)
def test_shown_filters_say_it_all(given_filters):
    """What a broker tells its neighbours."""
    shown = CoveringSet[int]()
    for key, f in enumerate(given_filters):
        shown.add(key, f)
    told = frozenset().union(*map(matched, shown.shown.values()))
    assert told == frozenset().union(*map(matched, given_filters))


@given(st.lists(filters, min_size=1, max_size=4), st.booleans())
@settings(max_examples=60)
def test_tables_that_simplify_match_what_others_do(given_filters, packed):
    if packed:
        table = ForwardingTable.packed([("I", f) for f in given_filters], TableOptions(crs="lonlat"))
    else:
        table = ForwardingTable(crs="lonlat")
        for f in given_filters:
            table.add("I", f)
    wanted = frozenset().union(*map(matched, given_filters))
    answers = table.match_many([{"x": value} for value in VALUES])
    assert {place for place, found in enumerate(answers) if found} == wanted
