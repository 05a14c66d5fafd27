"""Regions that no filter of a notification's kind stands under are not looked at, and nothing is missed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contrada.forwarding.batches.columns import Column, Columns
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.values import Kind
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region

if TYPE_CHECKING:
    from contrada.forwarding.language.filter import Filter

TRIANGLES = [Region([(x, y), (x + 6, y), (x, y + 6)]) for x in range(0, 8, 2) for y in range(0, 8, 2)]
REGIONS = [*TRIANGLES, Box(0, 0, 5, 5), Box(2, 2, 9, 9)]
KINDS = 10


@st.composite
def filters(draw: Any) -> Filter:
    area = draw(st.sampled_from(REGIONS))
    made: Filter = getattr(attr("pos"), draw(st.sampled_from(["intersects", "inside", "disjoint", "meets"])))(area)
    for name in draw(st.sets(st.sampled_from(["kind", "level", "other"]))):
        number = draw(st.integers(0, 2))
        made = made & (attr(name) > number if name == "level" else attr(name) == number)
    return made


def events() -> st.SearchStrategy[dict[str, Any]]:
    numbers = st.integers(0, 2)
    places = st.builds(Point, st.integers(0, 14), st.integers(0, 14))
    return st.fixed_dictionaries({}, optional={"pos": places, "kind": numbers, "level": numbers, "other": numbers})


@given(st.lists(filters(), max_size=40), st.lists(events(), min_size=1, max_size=8))
def test_nothing_is_missed(given_filters: list[Filter], batch: list[dict[str, Any]]) -> None:
    table: ForwardingTable[int] = ForwardingTable()
    table.add_many(enumerate(given_filters))
    expected = [{n for n, each in enumerate(given_filters) if each.matches(event)} for event in batch]
    for _ in range(3):
        assert [table.match(event) for event in batch] == expected
        assert table.match_many(batch) == expected
    table._check()


def crowded() -> tuple[ForwardingTable[int], list[dict[str, Any]]]:
    """Polygons of 20 vertices and 10 kinds, and points that dozens of them are around."""
    rng = np.random.default_rng(3)
    table: ForwardingTable[int] = ForwardingTable()
    angles = np.arange(20) * (np.pi / 10)
    around = 4 * np.column_stack((np.cos(angles), np.sin(angles)))
    areas = [Region(centre + around) for centre in rng.random((1_000, 2)) * 50]
    table.add_many((n, attr("pos").intersects(area) & (attr("kind") == n % KINDS)) for n, area in enumerate(areas))
    places = rng.random((200, 2)) * 50
    return table, [{"pos": Point(x, y), "kind": n % KINDS} for n, (x, y) in enumerate(places.tolist())]


def related(table: ForwardingTable[int]) -> int:
    return table._types[layout.REGION].decided


def test_only_regions_of_the_kind_are_looked_at() -> None:
    table, notifications = crowded()
    for _ in range(40):
        table.match_many(notifications)  # by now all are posted where points are looked for
    (tree,) = table._types[layout.REGION]._trees.values()
    assert len(tree) == 1_000
    places = np.array([(each["pos"].x, each["pos"].y) for each in notifications])
    before = related(table)
    tree.search_places(places)
    everything = related(table) - before
    kinds = Column("kind", Kind.NUMBER, np.array([each["kind"] for each in notifications]))
    columns = Columns(len(places), [kinds, Column("pos", Kind.POINT, places)])
    for match in (
        lambda: table.match_many(notifications),
        lambda: table.match_pairs(columns),
        lambda: [table.match(each) for each in notifications],
    ):
        before = related(table)
        match()
        assert related(table) - before <= everything / 4  # those of its kind, and some points from which it learns


def test_filters_are_posted_anew_once_values_turn_out_to_be_points() -> None:
    """Before any value has come they are thought to be as large as what is asked for, and regions hit too often."""
    table, notifications = crowded()
    regions = table._types[layout.REGION]
    before = sum(map(len, regions._trees.values()))
    assert before < 500
    for event in notifications[:64]:
        table.match(event)
    assert sum(map(len, regions._trees.values())) == 1_000
    assert not regions.news
    table._check()
