"""Indexes of longitudes and latitudes: the same answers as a table's, by whatever way notifications come."""

from __future__ import annotations

import numpy as np
import pytest

from contrada import Box, ForwardingTable, GeoText, InvalidValue, Line, Point, SegmentedTable, parse
from contrada.forwarding.batches.columns import Column, Columns
from contrada.forwarding.batches.packed_columns import Filters, Matches, Relations
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.language.values import Kind
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.segments.manifest import read_manifest
from contrada.forwarding.table.options import TableOptions

FILTERS = {
    "across": "pos inside BOX(170 -10, -170 10)",
    "west": "pos intersects BOX(-180 20, -170 30)",
    "east": "pos intersects BOX(170 40, 180 50)",
    "near": "pos within 300 km of POINT(179 0)",
    "far": "pos beyond 2000 km of POINT(0 0)",
    "pole": "pos within 500 km of POINT(0 88)",
    "route": "pos within 20 km of LINESTRING(170 60, 190 60)",
    "talk": 'post matches {"storm"} within BOX(170 -10, 190 10)',
    "other": "x > 3",
}
VALUES = [
    Point(180, 0),
    Point(-180, 25),
    Point(180, 25),
    Point(-180, 45),
    Point(181, 45),
    Point(-179.9, 60),
    Point(300, 86),
    Point(5, 5),
    Point(-175, 5),
    Box(178, -1, 181, 1),
    Line([(165, 60.05), (195, 60.05)]),
]
NOTIFICATIONS = [{"pos": value, "x": n} for n, value in enumerate(VALUES)] + [
    {"post": GeoText(["storm"], at=(185, 0))},
    {"x": 9},
]


@pytest.fixture
def table():
    made = ForwardingTable(crs="lonlat")
    for interface, text in FILTERS.items():
        made.add(interface, text)
    return made


@pytest.fixture(params=[1, 3, 100])
def index(request, tmp_path):
    rows = [(f"s-{interface}", interface, text) for interface, text in FILTERS.items()]
    write_index(tmp_path, rows, TableOptions(crs="lonlat"), segment_filters=request.param)
    return tmp_path


def test_an_index_answers_as_a_table_does(table, index):
    assert read_manifest(index).options.crs == "lonlat"
    opened = SegmentedTable.open(index)
    assert opened.crs == "lonlat"
    expected = table.match_many(NOTIFICATIONS)
    assert {"across", "west", "east", "near", "far", "pole", "route", "talk", "other"} == set().union(*expected)
    assert [opened.match(each) for each in NOTIFICATIONS] == expected
    assert opened.match_many(NOTIFICATIONS) == expected
    found, refused = opened.match_bodies([encode_notification(each) for each in NOTIFICATIONS] * 3)
    assert list(map(set, found)) == expected * 3
    assert not refused
    places, ids = opened.match_pairs(NOTIFICATIONS)
    pairs = {(place, opened.interface(id)) for place, id in zip(places.tolist(), ids.tolist(), strict=True)}
    assert pairs == {(n, each) for n, interfaces in enumerate(expected) for each in interfaces}
    opened.add("late", "pos within 1 km of POINT(185 0)")
    assert opened.match({"pos": Point(-175, 0)}) == table.match({"pos": Point(-175, 0)}) | {"late"}


@pytest.mark.parametrize("of", ["table", "index"])
def test_notifications_by_columns(table, index, of):
    asked = table if of == "table" else SegmentedTable.open(index)
    points = [value for value in VALUES if isinstance(value, Point)]
    xy = np.array([(point.x, point.y) for point in points])
    there = np.arange(len(points)) != 2
    columns = Columns(
        len(points),
        [
            Column("pos", Kind.POINT, xy, there),
            Column("x", Kind.NUMBER, np.arange(len(points))),
            Column("route", Kind.LINE, [VALUES[-1]] * len(points)),
        ],
    )
    single = [{"x": n} | ({"pos": point} if there[n] else {}) for n, point in enumerate(points)]
    places, ids = asked.match_pairs(columns)
    expected = asked.match_many_filters(single)
    assert [sorted(ids[places == n].tolist()) for n in range(len(points))] == expected
    wrong = Columns(1, [Column("pos", Kind.POINT, np.array([[10.0, 95.0]]))])
    with pytest.raises(InvalidValue, match="attribute 'pos': a latitude of 95 is beyond 90 degrees"):
        asked.match_pairs(wrong)


def test_an_index_and_a_table_of_another_crs_do_not_go_together(index, tmp_path):
    with pytest.raises(InvalidValue, match="the crs of the index is lonlat, and this table's is plane"):
        SegmentedTable().load(index)


def test_packed_tables_take_a_crs():
    pairs = [(interface, parse(text, crs="lonlat")) for interface, text in FILTERS.items()]
    packed = ForwardingTable.packed(pairs, TableOptions(crs="lonlat"))
    assert packed.crs == "lonlat"
    assert packed.match({"pos": Point(-180, 25)}) == {"west", "far"}


def test_columns_of_filters_are_of_degrees():
    none = np.zeros(0, np.int64)
    matches = Matches(none, none, none, none, [], np.zeros((0, 4)))

    def filters(corners):
        relations = Relations(
            np.array([0]), np.array([0]), np.array([0]), np.array([False]), np.array(corners, float), np.array([4])
        )
        return Filters(["pos"], ["i"], np.array([0]), matches, relations, [], np.ones(1, np.bool_))

    made = ForwardingTable.packed_columns(
        filters([(-180, 0), (-170, 0), (-170, 9), (-180, 9)]), TableOptions(crs="lonlat")
    )
    assert made.crs == "lonlat"
    assert len(made) == 1
    with pytest.raises(InvalidValue, match="longitudes are from -180 to 180"):
        ForwardingTable.packed_columns(filters([(170, 0), (190, 0), (190, 9), (170, 9)]), TableOptions(crs="lonlat"))
