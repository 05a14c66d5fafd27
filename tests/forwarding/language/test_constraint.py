"""Constraints: what can be made, when they are equal, and on what they hold."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given

from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.codec.msgpack import decode_filter, encode_filter
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.operands import Similar, TextMatch, ValueSet
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.language.values import INT_MAX, INT_MIN, Kind, check_notification, check_value, kind_of
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.textual.geotext import GeoText
from tests.forwarding import strategies as given_
from tests.naive.constraints import holds

BOX = Box(0, 0, 4, 4)
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_numbers_compare_exactly_across_int_and_float() -> None:
    assert Constraint("x", ">", 4).holds(5.2)
    assert not Constraint("x", "=", 2**53 + 1).holds(2.0**53)
    assert Constraint("x", "<", 2**53 + 1).holds(2.0**53)
    assert Constraint("x", "=", 1).holds(1.0)
    assert Constraint("x", "=", 0).holds(-0.0)


def test_a_constraint_never_holds_on_another_kind() -> None:
    assert not Constraint("x", "=", 1).holds(True)
    assert not Constraint("x", "=", True).holds(1)
    assert not Constraint("x", "!=", 1).holds("a")
    assert not Constraint("x", "!=", 1).holds(True)
    assert not Constraint("x", "in", [1]).holds(True)
    assert not Constraint("x", "<", "b").holds(1)
    assert not Constraint("x", "disjoint", BOX).holds("far away")
    assert not Constraint("x", "disjoint", BOX).holds(GeoText("far", at=(9, 9)))


def test_strings_order_by_code_point() -> None:
    assert Constraint("x", "<", "\U00010000").holds("\uffff")
    assert Constraint("x", ">=", "").holds("")
    assert Constraint("x", "prefix", "").holds("")
    assert not Constraint("x", "<=", "ab").holds("aba")


def test_a_point_is_inside_meets_or_is_disjoint() -> None:
    for point, relation in ((Point(1, 1), "inside"), (Point(0, 1), "meets"), (Point(9, 9), "disjoint")):
        for op in given_.RELATIONS:
            expected = relation in op.split(" or ") or (op is Operator.INTERSECTS and relation != "disjoint")
            assert Constraint("x", op, BOX).holds(point) == expected


def test_contains_is_a_substring_or_a_relation() -> None:
    assert Constraint("x", "contains", "b").holds("abc")
    assert Constraint("x", "contains", Box(1, 1, 2, 2)).holds(BOX)
    assert not Constraint("x", "contains", "b").holds(BOX)


def test_geotext_matches_all_keywords_and_intersecting_places() -> None:
    triangle = Region([(0, 0), (4, 0), (0, 4)])
    wanted = Constraint("x", "matches", TextMatch(frozenset({"iPad"}), triangle))
    assert wanted.holds(GeoText("an IPAD for sale", at=(2, 2)))
    assert not wanted.holds(GeoText("an ipad", at=(3, 3)))  # in the triangle's MBR, not in the triangle
    assert not wanted.holds(GeoText("a sale", at=(1, 1)))
    assert wanted.holds(GeoText("ipad", within=Box(2, 2, 9, 9)))
    assert not wanted.holds(GeoText("ipad", within=Box(3, 3, 9, 9)))
    assert attr("x").matches("ipad").matches({"x": GeoText("ipad", at=(99, 99))})


@pytest.mark.parametrize("phrase", ["AT&T", "wi-fi", "new york", "e-book", "NEW  York!"])
def test_a_listed_keyword_is_found_in_the_text_that_has_it(phrase: str) -> None:
    """One of several words asks for all of them, in any order, on both sides and through every form of a filter."""
    post = GeoText(f"free {phrase} here", at=(1, 1))
    wanted = parse(f'x matches {{"{phrase}"}} within BOX(0 0, 5 5)')
    assert wanted == attr("x").matches([phrase], within=Box(0, 0, 5, 5)) == attr("x").matches(phrase, Box(0, 0, 5, 5))
    assert wanted.matches({"x": post})
    assert wanted.matches({"x": GeoText(["free", phrase], at=(1, 1))})
    assert not wanted.matches({"x": GeoText(phrase[:2], at=(1, 1))})
    assert parse(str(wanted)) == decode_filter(encode_filter(wanted)) == wanted
    assert attr("x").similar([phrase], at=(1, 2)) == parse(f'x similar {{"{phrase}"}} at POINT(1 2) alpha 0.4 tau 0.7')


def test_covering_looks_at_words_and_not_at_how_they_were_listed() -> None:
    city, both = parse('x matches {"New York"}'), parse('x matches {"york", "new", "hotel"}')
    assert city == parse('x matches {"york", "new"}')
    assert city.covers(both)
    assert not both.covers(city)
    assert parse('x matches {"new"}').covers(city)


@pytest.mark.parametrize("what", ["matches {%s}", "similar {%s} at POINT(0 0) alpha 0.4 tau 0.7"])
def test_a_keyword_without_a_word_is_refused_by_name(what: str) -> None:
    for keywords in ('"&&&"', '"sale", "&&&"'):
        with pytest.raises(ContradaError, match="'&&&' has neither letters nor digits"):
            parse("x " + what % keywords)


def test_a_time_without_a_zone_is_refused_when_compared() -> None:
    with pytest.raises(InvalidValue, match="time zone"):
        Constraint("x", "<", NOON).holds(datetime(2026, 1, 1))
    assert not Constraint("x", "=", 1).holds(datetime(2026, 1, 1))


def test_similar_asks_the_road_network() -> None:
    class Roads:
        def similar(self, keywords: frozenset[str], at: Point, alpha: float, tau: float, text: GeoText) -> bool:
            return bool(keywords & text.keywords) and tau < 0.5

    text = GeoText("ipad", at=(0, 0))
    wanted = Constraint("x", "similar", Similar(frozenset({"ipad"}), Point(1, 2), 0.4, 0.3))
    with pytest.raises(InvalidValue, match="road network"):
        wanted.holds(text)
    assert wanted.holds(text, roads=Roads())
    assert not wanted.holds("ipad", roads=Roads())


@given(given_.constraints(), given_.values)
def test_holds_agrees_with_the_naive_reading(constraint: Constraint, value: object) -> None:
    assert constraint.holds(value) == holds(constraint, value)


def test_equality_is_that_of_meaning() -> None:
    assert Constraint("x", "=", 1) == Constraint("x", "=", 1.0)
    assert Constraint("x", ">", -0.0) == Constraint("x", ">", 0)
    assert type(Constraint("x", "=", -(2.0**63)).value) is int
    assert type(Constraint("x", "=", 2.0**63).value) is float  # one more than a 64-bit integer can be
    assert len({Constraint("x", "=", v) for v in (1, 1.0, True, "1")}) == 3
    assert Constraint("x", "in", [2, 1, 1.0]) == Constraint("x", "in", (1, 2))
    assert Constraint("x", "in", [1]) != Constraint("x", "in", [True])
    assert Constraint("x", "in", [False, True, 2]) != Constraint("x", "in", [False, 1, 2])
    assert Constraint("x", "in", [1, True]).value.values == (True, 1)
    assert Constraint("x", "inside", BOX) == Constraint("x", "inside", Region(BOX.coords))
    late = timezone(timedelta(hours=1))
    assert Constraint("x", "<", NOON) == Constraint("x", "<", datetime(2026, 11, 16, 13, tzinfo=late))


@given(given_.constraints(similar=True))
def test_copies_are_equal(constraint: Constraint) -> None:
    for copied in (pickle.loads(pickle.dumps(constraint)), copy.deepcopy(constraint)):
        assert copied == constraint
        assert hash(copied) == hash(constraint)


@pytest.mark.parametrize(
    ("op", "value", "why"),
    [
        ("=", float("nan"), "finite"),
        ("=", float("inf"), "finite"),
        ("=", 2**63, "64 bits"),
        ("=", -(2**63) - 1, "64 bits"),
        ("=", None, "NoneType"),
        ("=", [1], "list"),
        ("=", b"a", "bytes"),
        ("=", "\ud800", "surrogate"),
        ("=", datetime(2026, 1, 1), "time zone"),
        ("=", BOX, "use equals"),
        ("!=", GeoText("a", at=(0, 0)), "use matches"),
        ("<", True, "not a bool"),
        ("<", Point(0, 0), "not a point"),
        ("prefix", 3, "takes a string"),
        ("exists", 3, "takes no value"),
        ("in", [], "at least one"),
        ("in", "abc", "list of values"),
        ("in", 3, "list of values"),
        ("in", [[1]], "list"),
        ("inside", None, "takes a region"),
        ("inside", 3, "int"),
        ("inside", "POLYGON((0 0, 1 1))", "vertices"),
        ("matches", {"a"}, "TextMatch"),
        ("similar", {"a"}, "Similar"),
        ("is", 3, "not an operator"),
    ],
)
def test_what_makes_no_constraint_is_refused(op: str, value: object, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        Constraint("x", op, value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TextMatch(frozenset()),
        lambda: TextMatch(frozenset({" "})),
        lambda: TextMatch(frozenset({3})),
        lambda: TextMatch(3),
        lambda: TextMatch(frozenset({"x" * 300})),
        lambda: TextMatch(frozenset({"\ud800"})),
        lambda: TextMatch(frozenset({"a"}), "nowhere"),
        lambda: Similar(frozenset({"a"}), Point(0, 0), 1.5, 0.5),
        lambda: Similar(frozenset({"a"}), Point(0, 0), 0.5, float("nan")),
        lambda: Similar(frozenset({"a"}), Point(0, 0), 0.5, True),
        lambda: Similar(frozenset({"a"}), (0, 0, 0), 0.5, 0.5),
    ],
)
def test_what_makes_no_operand_is_refused(make: object) -> None:
    with pytest.raises(InvalidValue):
        make()


@pytest.mark.parametrize("name", ["", "x" * 256, "\udfff", 3, None, b"x"])
def test_names_are_checked(name: object) -> None:
    with pytest.raises(InvalidValue):
        Constraint(name, "=", 1)
    with pytest.raises(InvalidValue):
        check_notification({name: 1})
    with pytest.raises(InvalidValue):
        attr(name)


def test_constraints_cannot_be_changed() -> None:
    constraint = Constraint("x", "in", [1])
    with pytest.raises(AttributeError):
        constraint.name = "y"
    with pytest.raises(AttributeError):
        constraint.value.values = ()
    with pytest.raises(ContradaError, match="truth"):
        bool(constraint)


def test_values_are_kept_in_one_form() -> None:
    assert check_value(np.int32(3)) == (Kind.NUMBER, 3)
    assert type(check_value(np.float32(0.5))[1]) is float
    assert check_value(np.bool_(True)) == (Kind.BOOL, True)
    assert check_value(np.str_("a")) == (Kind.STRING, "a")
    assert check_value(Operator.EQ) == (Kind.STRING, "=")
    assert type(check_value(Operator.EQ)[1]) is str
    assert kind_of(Box(0, 0, 1, 1)) is Kind.REGION
    local = datetime(2026, 11, 16, 13, tzinfo=timezone(timedelta(hours=1)))
    kept = check_value(local)[1]
    assert kept == NOON
    assert kept.tzinfo is UTC
    assert check_notification({"x": np.int8(1), "y": local}) == {"x": 1, "y": NOON}


@pytest.mark.parametrize(
    "value",
    [
        np.float64("nan"),
        np.datetime64("2026-01-01"),
        np.complex64(1),
        np.array([1]),
        1j,
        {"a": {"b": 1j}},
        object(),
        INT_MAX + 1,
        INT_MIN - 1,
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
    ],
)
def test_what_no_notification_may_hold_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidValue, match="attribute 'speed'"):
        check_notification({"speed": value})


def test_a_notification_is_a_mapping() -> None:
    with pytest.raises(InvalidValue, match="mapping"):
        check_notification([("x", 1)])


def test_value_sets_know_their_members() -> None:
    values = ValueSet([3, "a", True, 3.0])
    assert len(values) == 3
    assert 3.0 in values
    assert 1 not in values
    assert list(values) == [True, 3, "a"]
