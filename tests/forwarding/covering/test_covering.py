"""Covers and conflicts: sound against values near the constants, and as complete as promised."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.forwarding.covering.budget import CoveringBudget
from contrada.forwarding.covering.covering import conflicts, covers, is_satisfiable
from contrada.forwarding.covering.ordered_domain import _after_number
from contrada.forwarding.language.constraint import Constraint, relations_operator
from contrada.forwarding.language.filter import Filter, Predicate
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.language.values import INT_MAX, INT_MIN
from contrada.spatial.geometry.region import Region
from contrada.spatial.relations.relate import Uniform
from contrada.spatial.relations.relation import ALL
from tests.forwarding import strategies as given_

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.forwarding.language.values import Value

one_name = given_.filters(given_.constraints(st.just("x")), most=3)
pooled = (*given_.NUMBERS, *given_.STRINGS, *given_.TIMES, *given_.POINTS, *given_.REGIONS, True, False)


def candidates(*filters: Filter) -> Iterator[Value]:
    """Values at which the filters might differ."""
    for f in filters:
        for constraint in f:
            yield from given_.neighbours(constraint.value)
    yield from pooled


@given(one_name, one_name)
@settings(max_examples=500)
def test_sound_on_one_name(f: Filter, g: Filter) -> None:
    covered, apart = f.covers(g), f.conflicts(g)
    if not covered and not apart and is_satisfiable(f):
        return
    for value in candidates(f, g):
        in_f, in_g = f.matches({"x": value}), g.matches({"x": value})
        assert not covered or in_f or not in_g, value
        assert not apart or not (in_f and in_g), value
        assert is_satisfiable(f) or not in_f, value


@given(one_name, one_name, given_.values | given_.any_values)
def test_sound_on_any_value(f: Filter, g: Filter, value: Value) -> None:
    in_f, in_g = f.matches({"x": value}), g.matches({"x": value})
    assert not f.covers(g) or in_f or not in_g
    assert not f.conflicts(g) or not (in_f and in_g)


def _polygon(count: int) -> st.SearchStrategy[Region]:
    """Stars around the origin, which samples at the vertices alone often take for something else."""
    radii = st.lists(st.floats(1, 9), min_size=count, max_size=count)
    angles = [2 * math.pi * k / count for k in range(count)]
    return radii.map(lambda rs: Region([(r * math.cos(a), r * math.sin(a)) for r, a in zip(rs, angles, strict=True)]))


stars = st.integers(3, 7).flatmap(_polygon)


@given(st.lists(stars, min_size=2, max_size=3), st.data(), st.sampled_from([0.0, 0.3]), st.booleans())
@settings(max_examples=200)
def test_sound_where_relations_are_sampled(
    shapes: list[Region], data: st.DataObject, density: float, halo: bool
) -> None:
    constraint = st.builds(
        lambda mask, region: Constraint("x", relations_operator(mask), region),
        st.integers(1, ALL),
        st.sampled_from(shapes),
    )
    f, g = (Filter(data.draw(st.lists(constraint, min_size=1, max_size=3))) for _ in range(2))
    budget = CoveringBudget(bulk=True, sampled=True)
    covered, apart = covers(f, g, budget), conflicts(f, g, budget)
    for value in (*shapes, data.draw(stars)):
        in_f, in_g = (each.matches({"x": value}, discretization=Uniform(density, halo)) for each in (f, g))
        assert not covered or in_f or not in_g
        assert not apart or not (in_f and in_g)


def test_sampled_relations_to_one_region_are_compared_and_no_others() -> None:
    budget = CoveringBudget(sampled=True)
    inside, within = parse("x inside BOX(0 0, 9 9)"), parse("x inside or covered-by BOX(0 0, 9 9)")
    assert covers(within, inside, budget)
    assert conflicts(parse("x disjoint BOX(0 0, 9 9)"), within, budget)
    assert parse("x inside BOX(0 0, 20 20)").covers(inside)
    assert not covers(parse("x inside BOX(0 0, 20 20)"), inside, budget)
    assert covers(parse("x within 9 of POINT(1 1)"), parse("x within 2 of POINT(1 1)"), budget)
    assert not covers(parse("x within 20 of POINT(1 1)"), inside, budget)
    assert covers(parse("y > 1"), parse("y > 2 and x inside BOX(0 0, 9 9)"), budget)


@given(given_.filters(), given_.filters(), given_.notifications())
def test_sound_on_many_names(f: Filter, g: Filter, notification: dict[str, Value]) -> None:
    in_f, in_g = f.matches(notification), g.matches(notification)
    assert not f.covers(g) or in_f or not in_g
    assert not f.conflicts(g) or not (in_f and in_g)


@given(given_.filters(), given_.filters())
def test_laws(f: Filter, g: Filter) -> None:
    assert f.covers(f)
    assert f.covers(f & g)
    assert f.conflicts(g) == g.conflicts(f)
    if f.covers(g) and is_satisfiable(g):
        assert not f.conflicts(g)
    assert (f | g).covers(f)
    assert (f | g).covers(f | g)


chained = st.one_of(
    st.builds(Constraint, st.just("x"), st.sampled_from(("=", "!=")), given_.numbers | given_.times | st.booleans()),
    st.builds(Constraint, st.just("x"), st.sampled_from(given_.ORDERS), given_.numbers | given_.times),
    st.builds(Constraint, st.just("x"), st.just("in"), st.lists(given_.numbers | given_.times, min_size=1, max_size=4)),
)
scalars = given_.filters(chained, most=3)


@given(scalars, scalars)
def test_complete_on_numbers_times_and_bools(f: Filter, g: Filter) -> None:
    """Where values form a chain, boundary values decide: what they cannot separate is covered."""
    near = list(candidates(f, g))
    in_g = [value for value in near if g.matches({"x": value})]
    assert f.covers(g) == all(f.matches({"x": value}) for value in in_g)
    assert f.conflicts(g) == (not any(f.matches({"x": value}) for value in in_g))


COVERS = [
    ("x > 5", "x > 10 and x < 20"),
    ("x >= 5", "x > 5"),
    ("x > 5", "x >= 5 and x != 5"),
    ("x < 5", "x <= 5 and x != 5"),
    ("x >= 5", "x = 5"),
    ("x > 5 and x < 9", "x in [6, 7.5]"),
    ("x = 5", "x >= 5 and x <= 5"),
    ("x in [1, 2, 3]", "x in [1, 3]"),
    ("x = 2", "x in [1, 2] and x != 1"),
    ("x != 1", "x > 1"),
    ("x != 1", "x = 2"),
    ("x != 1", "x in [0, 2]"),
    ("x exists", "x != 1"),
    ("x exists", 'x prefix "a"'),
    ('x in [1, "a"]', 'x = "a"'),
    ('x in [1, "a"]', "x = 1"),
    ("x != true", "x = false"),
    ("x = false", "x != true"),
    ("x in [true, false]", "x != true"),
    ("x > 5", "x > 5 and y = 1"),
    ("x > 9007199254740992", "x >= 9007199254740993"),
    ("x > 9007199254740992.0", "x > 9007199254740992"),
    ("x = 1", "x > 5 and x < 3"),
    ('x >= "ab"', 'x prefix "ab"'),
    ('x < "ac"', 'x prefix "ab"'),
    ('x prefix "a"', 'x prefix "ab"'),
    ('x prefix "a"', 'x >= "ab" and x <= "ac"'),
    ('x prefix ""', 'x suffix "b"'),
    ('x >= ""', 'x contains "b"'),
    ('x suffix "b"', 'x suffix "ab"'),
    ('x contains "b"', 'x suffix "abc"'),
    ('x contains "b"', 'x prefix "abc"'),
    ('x contains "b"', 'x contains "abc"'),
    ('x contains ""', 'x > "a"'),
    ('x != "b"', 'x prefix "a"'),
    ('x != "b"', 'x suffix "a"'),
    ('x prefix "ab" and x suffix "c"', 'x = "abc"'),
    ("t < 2027-01-01T00:00Z", "t < 2026-01-01T00:00Z"),
    ("t > 2026-01-01T00:00Z", "t >= 2026-01-01T00:00:00.000001Z"),
    ("x inside BOX(0 0, 4 4)", "x inside BOX(1 1, 3 3)"),
    ("x inside BOX(0 0, 4 4)", "x covered-by BOX(1 1, 3 3)"),
    ("x inside BOX(0 0, 4 4)", "x equals BOX(1 1, 3 3)"),
    ("x inside BOX(0 0, 4 4)", "x = POINT(1 1)"),
    ("x intersects BOX(0 0, 4 4)", "x inside BOX(1 1, 3 3)"),
    ("x intersects BOX(0 0, 4 4)", "x overlaps BOX(0 0, 4 4)"),
    ("x intersects BOX(0 0, 4 4)", "x intersects BOX(0 0, 2 2)"),
    ("x disjoint BOX(0 0, 1 1)", "x disjoint BOX(0 0, 4 4)"),
    ("x disjoint BOX(0 0, 1 1)", "x inside BOX(5 5, 9 9)"),
    ("x != POINT(1 1)", "x inside BOX(5 5, 9 9) and x != POINT(6 6)"),
    ('x matches {"a"}', 'x matches {"a", "b"} within BOX(0 0, 1 1)'),
    ('x matches {"a"} within BOX(0 0, 4 4)', 'x matches {"a", "b"} within BOX(0 0, 1 1)'),
    ('x matches {"a", "b"}', 'x matches {"a"} and x matches {"b"}'),
    ('x similar {"a"} at POINT(0 0) alpha 0.5 tau 0.5', 'x similar {"a"} at POINT(0 0) alpha 0.5 tau 0.6'),
]
NOT_COVERS = [
    ('x <= "ab"', 'x prefix "a"'),
    ('x < "b"', 'x >= "a"'),
    ("x > 5", "x >= 5"),
    ("x > 5", "y > 6"),
    ("x > 5 and y > 1", "x > 6"),
    ("x != 1", "x exists"),
    ("x != 1", "x >= 1"),
    ("x != 1", 'x = "a"'),
    ("x = 1", "x = true"),
    ("x in [1, 2]", "x in [1, 2, 3]"),
    ("x in [1, 2]", "x >= 1 and x <= 2"),
    ('x suffix "ab"', 'x suffix "b"'),
    ('x contains "ab"', 'x prefix "a" and x suffix "b"'),
    ('x prefix "ab"', 'x >= "ab" and x < "b"'),
    ("x > 9007199254740993", "x > 9007199254740992.0"),
    ("x overlaps BOX(0 0, 4 4)", "x intersects BOX(0 0, 4 4)"),
    ("x inside BOX(0 0, 4 4)", "x inside BOX(1 1, 5 5)"),
    ("x inside BOX(0 0, 4 4)", "x = POINT(0 1)"),
    ("x exists and x inside BOX(0 0, 4 4)", "x exists"),
    ('x matches {"a", "b"}', 'x matches {"a"}'),
    ('x matches {"a"} within BOX(0 0, 1 1)', 'x matches {"a"}'),
    ('x matches {"a"} within BOX(0 0, 1 1)', 'x matches {"a"} within BOX(0 0, 4 4)'),
    ('x similar {"a"} at POINT(0 0) alpha 0.5 tau 0.5', 'x similar {"a"} at POINT(0 0) alpha 0.4 tau 0.6'),
]
CONFLICTS = [
    ("x > 5", "x < 3"),
    ("x > 5", "x <= 5"),
    ("x = 1", "x = 2"),
    ("x = 1", "x != 1"),
    ("x = 1", 'x = "a"'),
    ("x = 1", "x = true"),
    ("x != 1", 'x != "a"'),
    ('x in [1, "a"]', "x = 2"),
    ("x in [1, 2]", "x in [3, 4]"),
    ("x in [1, 2]", "x > 2"),
    ("x >= 5 and x != 5", "x <= 5"),
    ('x prefix "a"', 'x prefix "b"'),
    ('x prefix "ab"', 'x < "ab"'),
    ('x prefix "ab"', 'x >= "ac"'),
    ('x suffix "a"', 'x suffix "b"'),
    ('x > "a"', 'x < "a\\u0000"'),
    ('x < ""', "x exists"),
    ('x = "abc"', 'x contains "d"'),
    ("x != true", "x != false"),
    ("x > 1 and y > 5", "z > 1 and y < 5"),
    ("x > 9007199254740992", "x < 9007199254740993"),
    ("x >= 9223372036854775807", "x < 9223372036854775807"),
    ("t > 2026-01-01T00:00Z", "t < 2026-01-01T00:00:00.000001Z"),
    ("t > 9999-12-31T23:59:59.999999Z", "t exists"),
    ("x = 1", "x inside BOX(0 0, 1 1)"),
    ("x inside BOX(0 0, 1 1)", 'x matches {"a"}'),
    ("x inside BOX(0 0, 1 1)", "x inside BOX(2 2, 3 3)"),
    ("x inside BOX(0 0, 1 1)", "x disjoint BOX(0 0, 4 4)"),
    ("x equals BOX(0 0, 1 1)", "x equals BOX(0 0, 2 2)"),
    ("x inside BOX(0 0, 1 1)", "x covers BOX(0 0, 1 1)"),
    ("x disjoint BOX(0 0, 1 1)", "x intersects BOX(0 0, 1 1)"),
    ("x inside BOX(0 0, 1 1)", "x = POINT(2 2)"),
    ("x != POINT(0 0)", "x contains BOX(0 0, 1 1)"),
]
NOT_CONFLICTS = [
    ("x > 5", "y < 3"),
    ("x > 1", "x < 2"),
    ("x > 5", "x exists"),
    ("x >= 5", "x <= 5"),
    ('x prefix "a"', 'x suffix "b"'),
    ('x prefix "a"', 'x prefix "ab"'),
    ('x in [1, "a"]', 'x = "a"'),
    ("x = POINT(1 1)", "x inside BOX(0 0, 2 2)"),
    ("x covered-by BOX(0 0, 2 2)", "x disjoint BOX(1 1, 3 3)"),
    ('x matches {"a"} within BOX(0 0, 1 1)', 'x matches {"b"} within BOX(5 5, 6 6)'),
]


@pytest.mark.parametrize(("f", "g"), COVERS)
def test_covers(f: str, g: str) -> None:
    assert parse(f).covers(parse(g))


@pytest.mark.parametrize(("f", "g"), NOT_COVERS)
def test_does_not_cover(f: str, g: str) -> None:
    assert not parse(f).covers(parse(g))


@pytest.mark.parametrize(("f", "g"), CONFLICTS)
def test_conflicts(f: str, g: str) -> None:
    assert parse(f).conflicts(parse(g))
    assert parse(g).conflicts(parse(f))


@pytest.mark.parametrize(("f", "g"), NOT_CONFLICTS)
def test_does_not_conflict(f: str, g: str) -> None:
    assert not parse(f).conflicts(parse(g))


def test_predicates() -> None:
    p = parse("x > 5 or y > 5")
    assert p.covers(parse("x > 6"))
    assert p.covers(parse("y > 6 and z = 1 or x = 7"))
    assert not p.covers(parse("x > 6 or z > 6"))
    assert parse("x > 1").covers(parse("x > 2 or x > 3"))
    assert p.conflicts(parse("x < 5 and y < 5"))
    assert not p.conflicts(parse("x < 5 or y < 5"))
    assert isinstance(p, Predicate)


@given(given_.any_numbers)
def test_the_number_after(number: float) -> None:
    after = _after_number(number)
    assert after > number
    if after != math.inf:
        assert isinstance(after, float) or INT_MIN <= after <= INT_MAX
    between = {math.nextafter(float(number), math.inf), math.nextafter(float(number), -math.inf), float(number)}
    if INT_MIN <= number < INT_MAX:
        between.add(math.floor(number) + 1)
    assert not any(number < value < after for value in between)


def test_every_pair_of_operators_is_answered() -> None:
    """No combination of kinds and operators trips over another, in either direction."""
    texts = [
        *(f"x {op} {value}" for op, value in product(("=", "!=", "<", ">="), ("1", '"a"', "2026-01-01T00:00Z"))),
        *("x = true", "x != POINT(1 1)", "x exists", 'x in [1, "a", true, POINT(1 1)]'),
        *(f'x {op} "a"' for op in ("prefix", "suffix", "contains")),
        *(f"x {op.value} BOX(0 0, 2 2)" for op in given_.RELATIONS),
        *("x contains BOX(0 0, 2 2)", 'x matches {"a"}', 'x matches {"a"} within BOX(0 0, 2 2)'),
        'x similar {"a"} at POINT(1 1) alpha 0.5 tau 0.5',
    ]
    filters = [parse(text) for text in texts]
    for f, g in product(filters, filters):
        assert f.covers(g) in (True, False)
        assert f.conflicts(g) == g.conflicts(f)
