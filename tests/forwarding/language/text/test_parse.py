"""The text language: what it means, that it round-trips, and how it says no."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contrada.errors import FilterSyntaxError
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.filter import Filter, Predicate
from contrada.forwarding.language.text.parse import MAX_DEPTH, parse
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from tests.forwarding import strategies as given_
from tests.naive import parse as naive

TRIANGLE = Region([(3, 2), (15, 40), (20, 5)])


@given(
    given_.predicates(
        given_.filters(given_.constraints(given_.any_names, given_.any_scalars, given_.any_strings, similar=True))
    )
)
def test_text_reads_back(predicate: Predicate) -> None:
    assert parse(str(predicate)) == predicate
    for f in predicate:
        assert parse(str(f)) == f
        assert isinstance(parse(str(f)), Filter)


@given(given_.predicates(given_.filters(given_.constraints(similar=True))))
def test_text_of_likely_filters_reads_back(predicate: Predicate) -> None:
    assert parse(str(predicate)) == predicate


@given(st.lists(given_.filters(given_.constraints(similar=True)), min_size=1, max_size=4), st.data())
def test_reads_as_its_twin_does(filters: list[Filter], data: st.DataObject) -> None:
    """Parentheses, other white space, words in capitals: read as the slow twin reads them."""
    text = str(filters[0])
    for f in filters[1:]:
        text = f"({text}) {data.draw(st.sampled_from(('and', 'or', 'AND', 'Or')))} ({f})"
    text = text.replace("(", data.draw(st.sampled_from(("(", " (", "( ", "\n(\t")))).replace("BOX", "box")
    assert Predicate(parse(text).filters) == naive.parse(text)


def test_shapes_are_read_alike_in_ordinary_and_in_unusual_writing() -> None:
    ordinary = parse("a inside POLYGON((0 0, 4 0, 4 3)) or a inside BOX(1 2, 3.5 4e0)")
    assert parse("a inside polygon\n( (0 0,4 0,4+3 ) ) or a inside Box (1 2,3.5+4.e0)") == ordinary
    assert parse("a inside POLYGON((0-0, 4 0, 4.0.3e1)) or a inside BOX(1+2, 3.5 4e0)") == ordinary


@pytest.mark.parametrize("start", ['s = "\\"', "a in POLYGON((", "a in BOX(", "a in POLYGON(( 1 2,"])
def test_cutting_a_hostile_text_takes_time_in_proportion(start: str) -> None:
    """Each of these would be quadratic if a token that fails were looked for again from every place in it."""
    with pytest.raises(FilterSyntaxError):
        parse(start + '\\"' * 200_000)
    with pytest.raises(FilterSyntaxError):
        parse(start * 20_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", attr("x") == 1),
        ("x=1.0", attr("x") == 1),
        ("x > -1.5e3", attr("x") > -1500),
        ("x>.5", attr("x") > 0.5),
        ("x < +5.", attr("x") < 5),
        ("x = 9223372036854775807", attr("x") == 2**63 - 1),
        ("x = -9223372036854775808", attr("x") == -(2**63)),
        ("x = 000000000000000000000000001", attr("x") == 1),
        ("x != TRUE", attr("x") != True),  # noqa: E712  # a comparison makes a filter
        ('s >= "é\\u00e9\\ud83d\\ude00\\n\\""', attr("s") >= 'éé😀\n"'),
        ("x Exists", attr("x").exists()),
        ('x in [1, "a", true, POINT(1 2)]', attr("x").in_([1, "a", True, Point(1, 2)])),
        ('s prefix "a\\"b"', attr("s").prefix('a"b')),
        ('s suffix ""', attr("s").suffix("")),
        ('s contains "b"', attr("s").contains("b")),
        ("a contains BOX(0 0, 1 1)", attr("a").contains(Box(0, 0, 1, 1))),
        ("a disjoint POLYGON((3 2, 15 40, 20 5))", attr("a").disjoint(TRIANGLE)),
        ("a covered-by polygon ( ( 3 2 , 15 40, 20 5, 3 2 ) )", attr("a").covered_by(TRIANGLE)),
        ("p = point(1 -2)", attr("p") == Point(1, -2)),
        ("t < 2026-11-16T09:30Z", attr("t") < datetime(2026, 11, 16, 9, 30, tzinfo=UTC)),
        ("t < 2026-11-16T10:30:00.5+01:00", attr("t") < datetime(2026, 11, 16, 9, 30, 0, 500_000, tzinfo=UTC)),
        ('p matches {"iPad", "sale"}', attr("p").matches(["ipad", "sale"])),
        ('p matches {"a"} within BOX(0 0, 5 5)', attr("p").matches(["a"], within=Box(0, 0, 5, 5))),
        (
            'p similar {"a"} at POINT(1 2) alpha 0.4 tau 0.7',
            attr("p").similar(["a"], at=(1, 2), alpha=0.4, tau=0.7),
        ),
        ('"and" = 1', attr("and") == 1),
        ('"two words" = 1', attr("two words") == 1),
        ("in in [1]", attr("in").in_([1])),
        ("exists exists", attr("exists").exists()),
        ("true = true", attr("true") == True),  # noqa: E712  # a comparison makes a filter
        ("air-quality.pm_2.5 > 3", attr("air-quality.pm_2.5") > 3),
        ("größe > 3", attr("größe") > 3),
        ("a = 1 and b = 2", (attr("a") == 1) & (attr("b") == 2)),
        ("a = 1 or b = 2 and c = 3", (attr("a") == 1) | (attr("b") == 2) & (attr("c") == 3)),
        ("(a = 1 or b = 2) AND c = 3", ((attr("a") == 1) | (attr("b") == 2)) & (attr("c") == 3)),
        ("((a = 1))", attr("a") == 1),
        ("a = 1 or a = 1", attr("a") == 1),
        ("\n a\t= 1\n and b = 2 \n", (attr("a") == 1) & (attr("b") == 2)),
    ],
)
def test_meaning(text: str, expected: Filter | Predicate) -> None:
    assert parse(text) == expected
    assert parse(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ("", 1, 1, "expected an attribute's name, found the end"),
        ("x", 1, 2, "expected an operator"),
        ("x >", 1, 4, "expected a value"),
        ("x > 1 y", 1, 7, 'expected "and", "or" or the end, found "y"'),
        ("x > 1 and", 1, 10, "expected an attribute's name"),
        ("x > 1\nand y ~ 3", 2, 7, 'expected an operator .* found "~"'),
        ("x == 1", 1, 3, r'found "==" \(write "="\)'),
        ("x > 1 && y > 1", 1, 7, r'\(write "and"\)'),
        ("x > 1 || y > 1", 1, 7, r'\(write "or"\)'),
        ("x = 'a'", 1, 5, "double quotes"),
        ("not = 1", 1, 5, "attribute's name"),
        ('s not suffix ""', 1, 14, "every string has the empty one"),
        ("x = 1 and not true", 1, 1, "nothing matches"),
        ("true x", 1, 6, "an operator"),
        ('not s prefix ""', 1, 14, "every string"),
        ("x between 1 or 5", 1, 13, 'expected "and"'),
        ("x between true and 5", 1, 11, "not a bool"),
        ('x between 1 and "b"', 1, 11, "a number and a string, and no value is both"),
        ("a inside or b > 1", 1, 13, "a relation of regions"),
        ('x = "abc', 1, 5, "Unterminated"),
        ('x = "a\nb"', 1, 7, "control character"),
        ('x = "\\x"', 1, 6, "escape"),
        ('x = "\\ud800"', 1, 5, "surrogate"),
        ("x = 9223372036854775808", 1, 5, "64 bits"),
        ("x = 1" + "0" * 10_000, 1, 5, "64 bits"),
        ("x = 1e999", 1, 5, "64-bit float"),
        ("x = 2026-11-16", 1, 5, "a time such as"),
        ("x = 2026-11-16T09:30:00", 1, 5, "with Z or an offset"),
        ("x = 2026-02-30T00:00:00Z", 1, 5, "a time that exists"),
        ("x = 0001-01-01T00:00:00+01:00", 1, 5, "outside the years"),
        ("x in []", 1, 7, "expected a value"),
        ("x in [1 2]", 1, 9, r'expected "," or "]"'),
        ("x in 1", 1, 6, r'expected "\["'),
        ("x prefix 1", 1, 10, "a string"),
        ("x inside 1", 1, 10, "POLYGON or BOX"),
        ("x contains 1", 1, 12, "a string, POINT, POLYGON or BOX"),
        ("x inside BOX(1 1, 0 0)", 1, 10, "x1 < x2"),
        ("x inside POLYGON((0 0, 1 0))", 1, 10, "vertices"),
        ("x inside POLYGON((0 0, 1 1, 1 0, 0 1))", 1, 10, "self-intersection"),
        ("x inside POLYGON((0 0, 1 0, 0 1), (0 0, 1 0, 0 1))", 1, 10, "hole 0 and the shell share"),
        ("x inside MULTIPOLYGON((0 0, 1 0, 0 1))", 1, 24, r'expected "\("'),
        ("x inside MULTIPOLYGON(((0 0, 1 0, 0 1)), ((0 0.5, 1 0, 1 1)))", 1, 10, "part . and part . overlap"),
        ("x inside POLYGON(0 0, 1 0, 0 1)", 1, 18, r'expected "\("'),
        ("x = BOX(0 0, 1 1)", 1, 5, "expected a value"),
        ("x < true", 1, 5, "not a bool"),
        ("x < POINT(1 1)", 1, 5, "not a point"),
        ("x matches {}", 1, 12, "a string"),
        ('x matches {" "}', 1, 11, "blank"),
        ('x similar {"a"} at POINT(1 2) alpha 2 tau 0.5', 1, 11, "alpha"),
        ('x similar {"a"}', 1, 16, 'expected "at"'),
        ('"" = 1', 1, 6, "must not be empty"),
        ("x" * 300 + " = 1", 1, 304, "at most 255"),
        ("(x = 1", 1, 7, r'expected "\)"'),
        ("x = 1)", 1, 6, "the end"),
        ("x = \x00", 1, 5, "expected a value"),
    ],
)
def test_errors_show_where_and_what(text: str, line: int, column: int, expected: str) -> None:
    with pytest.raises(FilterSyntaxError, match=expected) as caught:
        parse(text)
    message, shown, caret = str(caught.value).split("\n")
    assert message.startswith(f"line {line}, column {column}: ")
    assert len(shown) <= 105
    assert caret.strip() == "^"
    if column <= 60:
        assert caret.index("^") == column + 1


def test_not_text() -> None:
    with pytest.raises(FilterSyntaxError):
        parse(3)


@given(st.text() | st.text('x=<>()[]{},"0123456789.eE+-TZ: andorinPOLYGONBOX'))
@example("(" * 100_000)
@example("x in [" * 10_000)
@example("(x=1 or y=1) and " * 10_000 + "x=1")
@example("x = 1 and " * 10_000 + "x = 1")
def test_any_text_is_a_filter_or_a_syntax_error(text: str) -> None:
    try:
        parsed = parse(text)
    except FilterSyntaxError:
        return
    assert parse(str(parsed)) == parsed


def test_nesting_and_expansion_are_bounded() -> None:
    deepest = "(" * MAX_DEPTH + "x = 1" + ")" * MAX_DEPTH
    assert parse(deepest) == parse("x = 1")
    assert parse(" and ".join([deepest] * 3)) == parse("x = 1")
    with pytest.raises(FilterSyntaxError, match="at most 64"):
        parse(f"({deepest})")
    pairs = [f"(a{i} = 1 or b{i} = 1)" for i in range(11)]
    assert len(parse(" and ".join(pairs[:10]))) == 1024
    with pytest.raises(FilterSyntaxError, match="fewer alternatives"):
        parse(" and ".join(pairs))
    common = " and ".join(f"c{i} = 1" for i in range(1_000))
    with pytest.raises(FilterSyntaxError, match="fewer alternatives"):
        parse(" and ".join([*pairs[:7], common]))


def test_a_wide_disjunction_parses() -> None:
    assert len(parse(" or ".join(f"x = {i}" for i in range(5_000)))) == 5_000


def test_operators_have_distinct_words() -> None:
    assert len({op.value for op in Operator}) == len(Operator)
