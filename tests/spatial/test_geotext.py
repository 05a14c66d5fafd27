"""Geotext: how text becomes keywords, and what a GeoText is."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import InvalidValue
from contrada.spatial.geotext import GeoText, check_keywords, fold, tokenise
from contrada.spatial.point import Point
from contrada.spatial.region import Box, Region


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


def test_keywords_given_one_by_one_are_not_split() -> None:
    assert GeoText(["New York", " iPad "], at=(0, 0)).keywords == {"new york", "ipad"}


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
        make()  # type: ignore[operator]
