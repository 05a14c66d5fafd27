r"""`like` and `~=`: patterns against their twin, canonical forms, plainer operators, bounds."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import ForwardingTable
from contrada.errors import InvalidValue
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.like import LONGEST, MOST, check_pattern, is_like, read_pattern
from contrada.forwarding.language.text.parse import parse
from tests.forwarding.strategies import like_patterns, strings
from tests.naive import constraints as naive

texts = strings | st.text("abé%_\\", max_size=8)
escaped = st.lists(st.sampled_from(["%", "_", "a", "b", "é", "\\%", "\\_", "\\\\"]), max_size=8).map("".join)


@given(like_patterns | escaped, texts)
def test_like_is_what_it_says_whatever_plainer_operator_stands_for_it(pattern: str, value: str) -> None:
    expected = naive.is_like(value, pattern)
    assert is_like(value, pattern) == expected
    assert Constraint("s", "like", pattern).holds(value) == expected
    assert is_like(value, check_pattern(pattern)) == expected
    assert check_pattern(check_pattern(pattern)) == check_pattern(pattern)
    table = ForwardingTable[str]()
    table.add("I", attr("s").like(pattern))
    assert table.match({"s": value}) == ({"I"} if expected else set())


@given(escaped, texts)
def test_every_literal_of_a_pattern_is_in_what_is_like_it(pattern: str, value: str) -> None:
    read = read_pattern(pattern)
    if is_like(value, pattern):
        assert value.startswith(read.prefix)
        assert value.endswith(read.suffix)
        assert all(text in value for _, text in read.literals)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("abc", attr("s") == "abc"),
        ("a%", attr("s").prefix("a")),
        ("%a", attr("s").suffix("a")),
        ("%%a%", attr("s").contains("a")),
        ("%", attr("s").prefix("")),
        ("50\\%", attr("s") == "50%"),
        ("a%_%_", attr("s").like("a__%")),
    ],
)
def test_plainer_operators_and_canonical_forms(pattern: str, expected: object) -> None:
    assert attr("s").like(pattern) == expected


def test_negation_is_one_constraint() -> None:
    assert parse('not s like "a%b"') == parse('s not like "a%b"') == ~attr("s").like("a%b")
    assert parse('s not like "a%"').constraints[0].op is Operator.NOT_LIKE
    assert parse('s not like "%a"') == ~attr("s").suffix("a")
    assert parse('s not like "a"') == (attr("s") != "a")
    with pytest.raises(InvalidValue, match="every string"):
        Constraint("s", "not like", "%")


@pytest.mark.parametrize("pattern", ["a\\", "\\a", "a%" + MOST * "b"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidValue, match="like pattern"):
        attr("s").like(pattern)


def test_a_long_text_is_like_no_pattern_but_has_prefixes() -> None:
    value = "a" * LONGEST + "b"
    table = ForwardingTable[str]()
    table.add("like", 's like "a%b"')
    table.add("not like", 's not like "a%b"')
    table.add("plain", 's like "%b"')
    assert table.match({"s": value}) == {"not like", "plain"}
    assert table.match({"s": value[1:]}) == {"like", "plain"}


def test_folding_twice_changes_nothing() -> None:
    for code in range(sys.maxunicode + 1):
        folded = chr(code).casefold()
        assert folded.casefold() == folded


def test_equal_but_for_case() -> None:
    assert parse('s ~= "STRASSE"') == attr("s").equals_folded("Straße")
    assert parse('s ~= "Straße"').covers(parse('s = "strasse"'))
    assert parse('s ~= "a"').conflicts(parse('s ~= "b"'))
    table = ForwardingTable[str]()
    ids = table.add("I", 's ~= "Straße"') + table.add("J", 's not ~= "a" and n > 1')
    assert table.match({"s": "STRASSE", "n": 2}) == {"I", "J"}
    assert table.match({"s": "A", "n": 2}) == table.match({"n": 2}) == table.match({"s": 1, "n": 2}) == set()
    assert [str(table.filter(id)) for id in ids] == ['s ~= "strasse"', 'n > 1 and s not ~= "a"']
    for id in ids:
        table.remove(id)
    table._check()
    assert table.stats().names == 0
