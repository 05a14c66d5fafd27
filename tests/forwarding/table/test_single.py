"""One notification at a time: the same answers and the same refusals as by batches, whatever has happened before."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import SegmentedTable
from contrada.errors import InvalidValue
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.kernels.match.single import MOST_TREES
from contrada.forwarding.language.attr import attr
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.textual.geotext import GeoText
from tests.forwarding.strategies import filters, notifications

pytestmark = pytest.mark.usefixtures("every_matching")


class Level(IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()


@given(
    st.lists(st.tuples(st.integers(0, 2), filters()), max_size=30), st.lists(notifications(), min_size=1, max_size=10)
)
def test_the_answers_are_those_of_batches(pairs: list[Any], batch: list[Any]) -> None:
    table = ForwardingTable(geotext_index="scan")
    table.add_many(pairs)
    expected = table.match_many(batch)
    assert [table.match(each) for each in batch] == expected
    for each, answer in zip(batch, expected, strict=True):
        assert table.match_bodies([encode_notification(each)]) == ([answer], {})


ODD = [
    {},
    {"x": Level.HIGH},
    {"x": np.int64(3)},
    {"x": np.float64(3.0)},
    {"s": Text("k")},
    {"s": "é" * 40_000},
    {"x": 3, "nothing": None},
    {"deep": {"x": 3}},
    {"deep.x": 3},
    MappingProxyType({"x": 3}),
    {f"n{i}": i for i in range(70)} | {"x": 3},
    {"x": [1, 2, 3]},
    {"x": 2**63 - 1},
    {"x": -(2**63)},
    {"t": datetime(2026, 1, 1, tzinfo=UTC)},
    {"t": datetime(1926, 1, 1, tzinfo=UTC)},
    {"t": datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))},
    {"pos": Point(3, 3), "x": 3},
    {"pos": {"type": "Point", "coordinates": [3, 3]}},
    {"pos": Box(1, 1, 2, 2)},
    {"pos": GeoText("k", at=(1, 1))},
    {"n" * 255: 1, "x": 3},
    {"é" * 255: 1, "x": 3},
]


@pytest.mark.parametrize("notification", ODD, ids=range(len(ODD)))
def test_whatever_a_notification_is(notification: Any) -> None:
    table = ForwardingTable()
    table.add_many(
        [
            ("three", "x = 3"),
            ("deep", "deep.x = 3"),
            ("s", "s exists"),
            ("fold", 's ~= "K"'),
            ("in", "pos inside BOX(0 0, 4 4)"),
        ]
    )
    table.add_many([("t", "t >= 2026-01-01T00:00:00Z"), ("big", "x > 9"), ("low", "x < 0"), ("has", "x has 3")])
    (expected,) = table.match_many([notification])
    for _ in range(3):
        assert table.match(notification) == expected


WRONG = [
    {"": 3},
    {"": b"payload"},
    {1: 3},
    {"x": 2**63},
    {"x": -(2**63) - 1},
    {"x": float("nan")},
    {"y": float("inf")},
    {"x": "\ud800"},
    {"\ud800": 1},
    {"t": datetime(2026, 1, 1)},
    {"n" * 256: 1},
    {"x": b"bytes"},
    {"x": object()},
    {"x": 3j},
    {"pos": (1, object())},
    ["x"],
    "x",
    None,
    3,
]


@pytest.mark.parametrize("notification", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_refused_as_in_batches(notification: Any) -> None:
    table = ForwardingTable()
    table.add_many([("three", "x = 3"), ("in", "pos inside BOX(0 0, 4 4)")])
    with pytest.raises(InvalidValue) as one:
        table.match(notification)
    with pytest.raises(InvalidValue) as many:
        table.match_many([notification])
    assert str(one.value) == str(many.value)
    assert table.match({"x": 3}) == {"three"}, "what follows is not disturbed"


def test_answers_larger_than_there_was_room_for() -> None:
    table: ForwardingTable[int] = ForwardingTable(simplify=False)
    table.add_many([(i, attr("x") > i % 7) for i in range(10_000)])
    assert table.match({"x": 8}) == set(range(10_000))
    table.add_many([(-i, (attr("k") == 1) & attr("pos").inside(Box(0, 0, 9, 9 + i / 1e4))) for i in range(1, 3000)])
    assert table.match({"k": 1, "pos": Point(5, 5)}) == set(range(-2999, 0))
    table._check()


def test_a_table_that_grows_between_notifications() -> None:
    table: ForwardingTable[int] = ForwardingTable()
    rng = np.random.default_rng(1)
    boxes = [(x, y, x + 5, y + 5) for x, y in (rng.random((600, 2)) * 50).tolist()]
    for i, box in enumerate(boxes):
        table.add(i, attr(f"pos{i % 3}").intersects(Box(*box)) & (attr(f"n{i % 50}") >= 0))
        name, x, y = f"pos{i % 3}", *(rng.random(2) * 50).tolist()
        inside = [j for j, (a, b, c, d) in enumerate(boxes[: i + 1]) if j % 3 == i % 3 and a <= x <= c and b <= y <= d]
        everything = {f"n{j}": j for j in range(50)}
        assert table.match({name: Point(x, y), **everything}) == set(inside)
    for id in table.interface_filters(0):
        table.remove(id)
    assert 0 not in table.match({"pos0": Point(*boxes[0][:2]), "n0": 0})


def test_more_attributes_with_trees_than_are_known_at_once() -> None:
    table: ForwardingTable[int] = ForwardingTable()
    for i in range(MOST_TREES + 2):
        table.add(i, attr(f"pos{i}").inside(Box(0, 0, 2, 2)))
        assert table.match({f"pos{j}": Point(1, 1) for j in range(i + 1)}) == set(range(i + 1))


def test_distances_and_lines_beside_regions() -> None:
    table = ForwardingTable()
    table.add("in", "pos inside BOX(0 0, 4 4)")
    assert table.match({"pos": Point(1, 1)}) == {"in"}
    (near,) = table.add("near", "pos within 3 of POINT(1 1)")
    (late,) = table.add("late", "k = 1 and pos beyond 3 of POINT(1 1)")
    for _ in range(100):
        assert table.match({"pos": Point(1, 1), "k": 1}) == {"in", "near"}
        assert table.match({"pos": Point(9, 9), "k": 1}) == {"late"}
    table.remove(near)
    table.remove(late)
    for _ in range(100):
        assert table.match({"pos": Point(1, 1), "k": 1}) == {"in"}


def test_distances_that_go_the_long_way() -> None:
    table = ForwardingTable()
    table.add("near", "pos within 5 of POINT(0 0)")
    table.add("around", "pos contains POINT(1 1)")
    table.add("line", "x = 1 and pos crosses LINESTRING(0 0, 9 9)")
    for _ in range(40):
        assert table.match({"pos": Point(3, 4), "x": 1}) == {"near"}
        assert table.match({"pos": Box(0, 0, 2, 2), "x": 1}) == {"near", "around", "line"}
    earth = ForwardingTable(crs="lonlat")
    earth.add("near", "pos within 300 km of POINT(179 0)")
    for _ in range(40):
        assert earth.match({"pos": Point(-180, 0)}) == {"near"}
        assert earth.match({"pos": Point(180, 9)}) == set()


def test_distances_in_a_table_of_segments() -> None:
    table: SegmentedTable[int] = SegmentedTable()
    table.add_many([(n, attr("pos").within(n % 6, of=Point(n % 12, n % 7))) for n in range(150)])
    for x, y in np.random.default_rng(18).integers(0, 16, (60, 2)).tolist():
        near = {n for n in range(150) if (x - n % 12) ** 2 + (y - n % 7) ** 2 <= (n % 6) ** 2}
        assert table.match({"pos": Point(x, y)}) == near


def test_regions_with_holes_and_parts() -> None:
    table = ForwardingTable()
    holed = Region([(0, 0), (9, 0), (9, 9), (0, 9)], holes=[[(3, 3), (6, 3), (6, 6), (3, 6)]])
    table.add("in", attr("pos").inside(holed))
    table.add("on", attr("pos").meets(holed))
    table.add("out", (attr("k") == 1) & attr("pos").disjoint(holed))
    for place, expected in ((Point(1, 1), {"in"}), (Point(3, 4), {"on"}), (Point(4, 4), {"out"})):
        assert table.match({"pos": place, "k": 1}) == expected


def test_threads_match_one_by_one_while_filters_change() -> None:
    table: ForwardingTable[int] = ForwardingTable()
    table.add_many([(i, attr("pos").inside(Box(i, 0, i + 2, 2)) & (attr("x") > i % 3)) for i in range(50)])
    done = threading.Event()
    wrong: list[Any] = []

    def match() -> None:
        while not done.is_set():
            found = table.match({"pos": Point(10.5, 1), "x": 5}) & set(range(50))
            if found != {9, 10}:
                wrong.append(found)

    threads = [threading.Thread(target=match) for _ in range(3)]
    for thread in threads:
        thread.start()
    for round in range(30):
        ids = [
            id
            for i in range(100)
            for id in table.add(
                1000 + i, attr(f"n{round}-{i}").exists() & attr(f"pos{round % 5}").inside(Box(i, 0, i + 1, 2))
            )
        ]
        for id in ids:
            table.remove(id)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    table._check()
