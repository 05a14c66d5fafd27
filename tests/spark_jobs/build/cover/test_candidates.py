"""Where filters meet that may cover one another."""

from __future__ import annotations

import pytest
from hypothesis import given

from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.text.parse import parse
from contrada.spark_jobs.build.cover.candidates import asks, gives
from tests.forwarding.strategies import filters


def single(text: str) -> Filter:
    parsed = parse(text)
    assert isinstance(parsed, Filter)
    return parsed


@pytest.mark.parametrize(
    ("coverer", "covered"),
    [
        ('stock = "MTK"', 'stock = "MTK" and price < 100'),
        ("x = 1", "x = 1.0 and y > 2"),
        ("price < 100", 'stock = "MTK" and price < 50'),
        ("area exists", "area inside BOX(0 0, 1 1)"),
        ("area intersects BOX(0 0, 100 100)", "area intersects BOX(40 40, 41 41)"),
        ("area intersects BOX(0 0, 100 100)", "area intersects BOX(0 0, 100 100) and wind > 3"),
        ("area inside BOX(-7 -7, 9 9)", "area inside POLYGON((-6 -6, 8 -6, 0 8))"),
        ('post matches {"a"} within BOX(0 0, 9 9)', 'post matches {"a", "b"} within BOX(1 1, 2 2)'),
        ('post matches {"ünï"}', 'post matches {"ünï", "b"} within BOX(1 1, 2 2)'),
    ],
)
def test_a_coverer_meets_what_it_covers(coverer: str, covered: str) -> None:
    f, g = single(coverer), single(covered)
    assert f.covers(g)
    assert set(asks(f)) & set(gives(g))


@given(filters())
def test_equal_filters_meet(f: Filter) -> None:
    assert set(asks(f)) & set(gives(Filter(f.constraints)))
    assert len(asks(f)) <= 9


def test_what_has_nothing_in_common_does_not_meet() -> None:
    f = single('stock = "MTK"')
    for other in ('stock = "DYS"', "price < 3", 'stock prefix "MT"'):
        assert not set(asks(f)) & set(gives(single(other)))
