"""Searches that counting postpones: the answers of the twin, whichever way is taken, and when it is taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.forwarding.kernels.match.verifying import C_POSTPONED
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.table.table import ForwardingTable
from contrada.forwarding.types import postponing, trying
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from tests.forwarding.strategies import filters, notifications
from tests.naive.table import NaiveTable

beside = st.sampled_from(
    [attr("x").exists(), attr("x") > 0, attr("s") != "a", attr("x").in_([1, 2]), ~attr("y").exists()]
)


@given(
    st.lists(st.tuples(st.integers(0, 2), filters(), st.none() | beside), min_size=1, max_size=12),
    st.lists(notifications(), min_size=1, max_size=5),
    st.sampled_from([0.0, 4.0]),
    st.data(),
)
def test_the_answers_are_those_of_the_twin(given_: list[Any], batch: list[Any], too_many: float, data: Any) -> None:
    table: ForwardingTable[int] = ForwardingTable(matching="counting", geotext_index="scan")
    naive = NaiveTable()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postponing, "_cost", lambda _trying: 1e6 if too_many else postponing.WORTH)
        patch.setattr(postponing, "_TOO_MANY", too_many)
        patch.setattr(postponing, "_SOME", 0)
        for interface, each, also in given_:
            made = each if also is None else each & also
            naive.add(interface, made, table.add(interface, made))
            if data.draw(st.booleans()):
                assert table.match_many(batch) == [naive.match(each) for each in batch]
            if len(naive.filters) > 2 and data.draw(st.booleans()):
                id = data.draw(st.sampled_from(sorted(naive.filters)))
                table.remove(id)
                naive.remove(id)
        for _ in range(2):
            assert table.match_many(batch) == [naive.match(each) for each in batch]
            assert table.match_many_filters(batch) == [naive.match_filters(each) for each in batch]


def leaf(i: int) -> Region:
    return Region([(-i / 1000, 0), (9, 1), (10, 10), (1, 9)])


def mix(count: int, kinds: int) -> ForwardingTable[int]:
    """Filters of an area that every notification must be related to, a kind and a number."""
    table: ForwardingTable[int] = ForwardingTable(matching="counting")
    table.add_many(
        [(i, attr("area").overlaps(leaf(i)) & (attr("kind") == i % kinds) & (attr("n") > i)) for i in range(count)]
    )
    return table


def ask(kind: int, side: float) -> dict[str, Any]:
    return {"area": Region([(side, 2), (side + 9, 3), (side + 4, 12)]), "kind": kind, "n": 1000}


def searches(table: ForwardingTable[int]) -> int:
    (regions,) = table._types.values()
    return int(next(iter(regions._trees.values())).counters.searches)


@pytest.fixture
def only_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried or sifted: that is another choice, which is made by the clock."""
    monkeypatch.setattr(trying, "WORTH", float("inf"))


@pytest.mark.usefixtures("only_searches")
def test_of_selective_filters_nothing_is_searched_for() -> None:
    table = mix(400, 50)
    for i in range(20):
        assert table.match(ask(i, i / 9)) == {*range(i, 400, 50)}
    before = searches(table)
    for i in range(20):
        assert table.match(ask(i, i / 9)) == {*range(i, 400, 50)}
        assert table.match_many([ask(i, i / 9), {"area": Point(5, 5), "kind": i, "n": 1000}])[1] == set()
    assert searches(table) == before


@pytest.mark.usefixtures("only_searches")
def test_a_filter_of_regions_alone_is_searched_for() -> None:
    table = mix(400, 50)
    for i in range(20):
        table.match(ask(i, i / 9))
    (id,) = table.add(1000, attr("area").overlaps(leaf(0)) & attr("area").intersects(Box(0, 0, 90, 90)))
    before = searches(table)
    assert table.match(ask(3, 0)) == {*range(3, 400, 50), 1000}
    table.remove(id)
    assert table.match(ask(3, 0)) == {*range(3, 400, 50)}
    assert searches(table) > before
    for i in range(40):
        table.match(ask(i, 0))
    before = searches(table)
    table.match(ask(3, 0))
    assert searches(table) == before


@pytest.mark.usefixtures("only_searches")
def test_where_too_many_are_left_they_are_searched_for() -> None:
    table = mix(40, 1)
    for i in range(2000):
        table.add(i + 2000, parse(f"area inside BOX({i} 0, {i + 1} 1) and kind = 0"))
    regions = [{"area": Box(i + 0.2, 0.2, i + 0.5, 0.4), "kind": 0, "n": 0} for i in range(8)]
    for _ in range(3):
        assert [table.match(each) for each in regions] == [{i + 2000} for i in range(8)]
    before = searches(table)
    assert [table.match(each) for each in regions] == [{i + 2000} for i in range(8)]
    assert searches(table) == before + 8
    assert table._memory.counted[C_POSTPONED] == 0
