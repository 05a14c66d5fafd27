"""What `parse` reads at a glance is what it reads word by word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import FilterSyntaxError
from contrada.forwarding.language.lonlat import PLANE
from contrada.forwarding.language.text import tokens
from contrada.forwarding.language.text.parse import _Parser, parse
from contrada.forwarding.language.text.usual import read_usual

_pieces = st.sampled_from(
    [
        "a",
        "and",
        "x.y",
        " ",
        "  ",
        "matches",
        "inside",
        "contains",
        "within",
        "{",
        "}",
        '"w"',
        '"New York"',
        '""',
        ",",
        "é",
        "BOX(0 0, 5 5)",
        "BOX (1 1, 0 0)",
        "POLYGON((0 0, 4 0, 4 3))",
        "POLYGON((0 0, 1 1, 1 0, 0 1))",
        "BOX(0 0)",
        "or",
    ]
)
_usual = st.builds(
    lambda name, words, gap, shape: f"{name} matches{gap}{{{', '.join(words)}}}{gap}within{gap}{shape}",
    st.sampled_from(["post", "Not", "p-1"]),
    st.lists(st.sampled_from(['"a"', '"b c"', '"&"', '"\\u00e9"', '"x\\ty"']), max_size=3),
    st.sampled_from([" ", "", "  "]),
    st.sampled_from(["BOX(0 0, 5 5)", "BOX(5 5, 0 0)", "BOX(0 0,5 5)", "BOX(1e400 0, 5 5)", "BOX (0 0, 1 1)"]),
)


@given(_usual | st.lists(_pieces, max_size=7).map(" ".join) | st.lists(_pieces, max_size=5).map("".join))
def test_read_at_a_glance_or_word_by_word(text: str) -> None:
    try:
        expected = _Parser(text, tokens.EXACT, PLANE).parse()
    except FilterSyntaxError:
        assert read_usual(text) is None
        with pytest.raises(FilterSyntaxError):
            parse(text)
    else:
        assert read_usual(text) in (None, expected)
        assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    ['post matches {"a", "b"} within BOX(0 0, 5 5)', "area inside POLYGON((0 0, 4 0, 4 3))", "a.b meets BOX(0 0, 5 5)"],
)
def test_the_usual_is_usual(text: str) -> None:
    assert read_usual(text) == parse(text)
