"""The quick reading of common filters against `parse`: the same filter, or the same error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import ContradaError
from contrada.forwarding.constraint import Constraint
from contrada.forwarding.filter import Filter
from contrada.forwarding.language import parse
from contrada.forwarding.operands import TextMatch
from contrada.forwarding.quick_language import parse_quickly, read_box_match
from contrada.spatial.region import Box
from tests.forwarding.strategies import predicates

if TYPE_CHECKING:
    from collections.abc import Callable

QUICK = [
    'post matches {"ipad"} within BOX(0 0, 5 5)',
    ' post  matches{"b", "a" ,"b"} within BOX( -1.5e1 .5 , 5. 1e2 ) ',
    'a.b-c matches {"x_1"} within BOX(-0.0 -0 , 5 5)',
    "area intersects POLYGON((0 0, 4 0, 0 4))",
    "area covered-by POLYGON ( (0 0,4 0, 0 4, 0 0) )",
    "area inside BOX(1 2, 3 4)",
    "area contains BOX(1 2, 3 4)",
]
SLOW = [
    'post MATCHES {"ipad"} within BOX(0 0, 5 5)',
    'post matches {"iPad"} within BOX(0 0, 5 5)',
    'post matches {"café"} within BOX(0 0, 5 5)',
    'post matches {"a\\u0062"} within BOX(0 0, 5 5)',
    'post matches {" a"} within BOX(0 0, 5 5)',
    'post matches {"a"}',
    'post matches {"a"} within POLYGON((0 0, 4 0, 0 4))',
    '"post" matches {"a"} within BOX(0 0, 5 5)',
    "area inside BOX(1 2, 3 4) or price < 3",
    'stock = "MTK" and price < 100',
]
WRONG = [
    "",
    'and matches {"a"} within BOX(0 0, 5 5)',
    'post matches {"a"} within BOX(5 0, 0 5)',
    'post matches {"a"} within BOX(0 0, 1e300 5)',
    'post matches {"a"} within BOX(0 0, 1e999 5)',
    'post matches {"a"} within BOX(0 1e-200, 1 5)',
    "post matches {} within BOX(0 0, 5 5)",
    f'post matches {{"{"a" * 256}"}} within BOX(0 0, 5 5)',
    f'{"n" * 500} matches {{"a"}} within BOX(0 0, 5 5)',
    "or intersects POLYGON((0 0, 4 0, 0 4))",
    "area intersects POLYGON((0 0, 4 0))",
    "area intersects POLYGON((0 0, 4 4, 4 0, 0 4))",
    "area intersects POLYGON((0 0, 4 0 1, 0 4))",
    "area intersects POLYGON((0 0, 4 e, 0 4))",
    "area intersects POLYGON((0 0, 99999999999999999999 0, 0 4))",
    "area intersects POLYGON((0 0, 4 0, 0 2026-11-16))",
    "area near POLYGON((0 0, 4 0, 0 4))",
]


def outcome(read: Callable[[str], object], text: str) -> object:
    try:
        return read(text)
    except ContradaError as error:
        return type(error), str(error)


def compare(text: str) -> None:
    expected, found = outcome(parse, text), outcome(parse_quickly, text)
    assert found == expected
    quick = read_box_match(text)
    if quick is not None:
        name, keywords, *box = quick
        assert list(keywords) == sorted(set(keywords))
        assert Filter(Constraint(name, "matches", TextMatch(frozenset(keywords), Box(*box)))) == expected


@pytest.mark.parametrize("text", QUICK + SLOW + WRONG)
def test_as_parse_has_it(text: str) -> None:
    compare(text)


def test_which_are_quick() -> None:
    assert [read_box_match(text) is not None for text in QUICK] == [True] * 3 + [False] * 4
    assert not any(map(read_box_match, SLOW))


@given(predicates())
def test_whatever_filters_are_written_as(predicate: object) -> None:
    compare(str(predicate))


@given(
    st.sampled_from(QUICK), st.integers(0, 60), st.sampled_from(['"', ")", ",", "0", "e", "-", " ", "é", "and ", "{"])
)
def test_texts_that_are_nearly_right(text: str, at: int, piece: str) -> None:
    compare(text[:at] + piece + text[at:])
    compare(text[:at] + text[at + 1 :])
