"""Geotext: how text becomes keywords, and what a GeoText is."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import InvalidValue
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.textual.geotext import MOST_MARKS, GeoText, check_keywords, fold, tokenise, wanted_keywords


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("iPad on SALE: 50% off!", ["ipad", "on", "sale", "50", "off"]),
        ("", []),
        ("... !?", []),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("ｉＰａｄ", ["ipad"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("snake_case", ["snake_case"]),
        ("東京 タワー", ["東京", "タワー"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("ﬁne", ["fine"]),
    ],
)
def test_tokenise(text: str, words: list[str]) -> None:
    assert tokenise(text) == words


@given(st.text())
def test_folding_is_idempotent_and_words_stay_words(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    for word in tokenise(text):
        assert word
        assert tokenise(word) == [word]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_keywords_of_keywords_are_the_same(text: str) -> None:
    keywords = check_keywords(text)
    assert check_keywords(keywords) == keywords


PHRASES = ["AT&T", "wi-fi", "New York", "e-book", " iPad ", "C++", "🎉party", "a\nb", "x", "Straße-NORD", "ﬁ\u0301ne"]


@pytest.mark.parametrize("keyword", PHRASES)
def test_a_listed_keyword_is_read_as_a_text_is(keyword: str) -> None:
    words = frozenset(tokenise(keyword))
    assert words
    assert GeoText([keyword], at=(0, 0)).keywords == GeoText(keyword, at=(0, 0)).keywords == words
    assert wanted_keywords([keyword]) == wanted_keywords(keyword) == words


@given(st.lists(st.one_of(st.sampled_from(PHRASES), st.text(st.characters(exclude_categories=["Cs"]), max_size=12))))
def test_lists_are_read_word_by_word(listed: list[str]) -> None:
    listed = [keyword for keyword in listed if keyword.strip()]
    each = [frozenset(tokenise(keyword)) for keyword in listed]
    assert check_keywords(listed) == frozenset().union(*each)
    if all(each):
        assert wanted_keywords(listed) == frozenset().union(*each)
    else:
        with pytest.raises(InvalidValue, match="neither letters nor digits"):
            wanted_keywords(listed)


def test_keywords_without_a_word_are_left_out_of_messages_and_refused_where_they_are_asked_for() -> None:
    assert GeoText(["sale", "&&&", "🎉"], at=(0, 0)).keywords == {"sale"}
    for asked in ("&&&", ["sale", "&&&"], ["🎉"]):
        with pytest.raises(InvalidValue, match="neither letters nor digits"):
            wanted_keywords(asked)


def test_a_word_too_long_is_never_dropped_from_what_is_asked_for() -> None:
    for asked in (f"new {'x' * 256}", ["new", "x" * 256], ["y" * 100] * 40 + ["x" * 300]):
        with pytest.raises(InvalidValue, match="at most 255"):
            wanted_keywords(asked)
    assert wanted_keywords(["x" * 255, "y" * 255]) == {"x" * 255, "y" * 255}


def test_marks_without_end_are_cut_and_not_sorted() -> None:
    """Python sorts the marks of a character by insertion: a hundred thousand of them would take minutes."""
    folded = fold("a" + "\u0301\u0316" * 100_000 + "b" + "\uff9e\u0316" * 50_000)
    assert len(folded) < 2 * MOST_MARKS + 10
    assert fold(folded) == folded
    assert fold("e\u0301\u0316") == fold("e\u0316\u0301") == "é\u0316"


def test_words_that_no_one_can_ask_for_are_left_out() -> None:
    assert GeoText("x" * 256 + " y " + "é" * 256, at=(0, 0)).keywords == {"y"}


def test_another_tokeniser_can_be_given() -> None:
    post = GeoText("running dogs", at=(0, 0), tokenise=lambda text: [word.rstrip("s") for word in text.split()])
    assert post.keywords == {"running", "dog"}


def test_places() -> None:
    assert GeoText("a", at=(1, 2)).place == Point(1, 2)
    assert GeoText("a", at=(1, 2)).box == (1, 2, 1, 2)
    assert GeoText("a", within=Box(0, 0, 5, 5)).box == (0, 0, 5, 5)


def test_equality_and_copies() -> None:
    a, b = GeoText("iPad sale", at=(1, 2)), GeoText(["sale", "IPAD"], at=Point(1, 2))
    assert a == b
    assert hash(a) == hash(b)
    assert a != GeoText("ipad", at=(1, 2))
    assert a != GeoText("ipad sale", within=Box(1, 2, 3, 4))
    assert a != "ipad sale"
    for text in (a, GeoText("x", within=Box(0, 0, 1, 1)), GeoText("", at=(0, 0))):
        assert pickle.loads(pickle.dumps(text)) == copy.deepcopy(text) == text
        assert eval(repr(text)) == text
    with pytest.raises(AttributeError):
        a.place = Point(0, 0)
    with pytest.raises(AttributeError):
        del a.place


@pytest.mark.parametrize(
    "make",
    [
        lambda: GeoText("a"),
        lambda: GeoText("a", at=(0, 0), within=Box(0, 0, 1, 1)),
        lambda: GeoText("a", at=(0, 0, 0)),
        lambda: GeoText("a", at=3),
        lambda: GeoText("a", at=(float("nan"), 0)),
        lambda: GeoText("a", within=Region([(0, 0), (1, 0), (0, 1)])),
        lambda: GeoText("a", within=(0, 0, 1, 1)),
        lambda: GeoText(3, at=(0, 0)),
        lambda: GeoText(None, at=(0, 0)),
        lambda: GeoText([3], at=(0, 0)),
        lambda: GeoText([""], at=(0, 0)),
        lambda: GeoText(["\ud800"], at=(0, 0)),
        lambda: GeoText(["x" * 256], at=(0, 0)),
    ],
)
def test_what_is_no_geotext_is_refused(make: object) -> None:
    with pytest.raises(InvalidValue):
        make()
