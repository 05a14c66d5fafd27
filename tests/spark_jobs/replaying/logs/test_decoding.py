"""Events at the border: every layout gives the same notifications, and what breaks a rule is rejected, row by row."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import InvalidValue
from contrada.forwarding.codec.json import notification_to_json
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.language.values import check_notification, microseconds
from contrada.forwarding.segments.gate import Gate
from contrada.forwarding.table.table import ForwardingTable
from contrada.spark_jobs.common.geometries import place_of_wkb
from contrada.spark_jobs.common.index_cache import admitted
from contrada.spark_jobs.common.instants import parse_time, zone_of
from contrada.spark_jobs.replaying.logs.decoding import Form, Format, decode
from contrada.spark_jobs.replaying.logs.event_stream import row_of
from contrada.spark_jobs.replaying.logs.typed import check_attributes
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.textual.geotext import GeoText
from tests.forwarding.strategies import filters, geotexts, regions

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
UTC_TIME = pa.timestamp("us", tz="UTC")


def batch(attributes: pa.Array, ids: list[Any] | None = None, times: pa.Array | None = None) -> pa.RecordBatch:
    size = len(attributes)
    ids = [f"e{n}" for n in range(size)] if ids is None else ids
    times = pa.array([NOON + timedelta(hours=n) for n in range(size)], UTC_TIME) if times is None else times
    return pa.RecordBatch.from_arrays(
        [pa.array(ids, pa.string()), times, attributes], ["event_id", "time", "attributes"]
    )


def lines(*documents: object) -> pa.RecordBatch:
    encoded = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in documents]
    return pa.RecordBatch.from_arrays([pa.array(encoded, pa.binary())], ["line"])


def matched(table: ForwardingTable, notifications: Any) -> set[tuple[int, int]]:
    places, ids = table.match_pairs(notifications)
    return set(zip(places.tolist(), ids.tolist(), strict=True))


# ---------------------------------------------------------------------------------------------- typed columns

SCALARS = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(-3, 3),
        "b": st.none() | st.sampled_from((0.0, -0.0, 0.5, 2.0, 1e300)),
        "c": st.none() | st.text("abé", max_size=3),
        "d": st.none() | st.booleans(),
        "t": st.none() | st.sampled_from((NOON, NOON + timedelta(microseconds=1))),
        "p": st.none()
        | st.fixed_dictionaries({"x": st.sampled_from((-0.0, 1.0, 4.0)), "y": st.integers(0, 4).map(float)}),
    }
)
TYPES = pa.struct(
    {
        "a": pa.int32(),
        "b": pa.float64(),
        "c": pa.string(),
        "d": pa.bool_(),
        "t": UTC_TIME,
        "p": pa.struct({"x": pa.float64(), "y": pa.float64()}),
    }
)


def as_notification(row: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in row.items() if value is not None}
    return found | {"p": Point(found["p"]["x"], found["p"]["y"])} if "p" in found else found


@given(st.lists(filters(), max_size=8), st.lists(SCALARS, max_size=8), st.integers(0, 3))
def test_typed_columns_match_as_the_same_notifications(wanted: list[Any], rows: list[Any], skipped: int) -> None:
    table = ForwardingTable(geotext_index="scan")
    table.add_many(("I", each) for each in wanted)
    table.add("J", 'p inside BOX(0 0, 3 3) or c prefix "a" or t exists or d = true or b < 1')
    events = decode(batch(pa.array(rows, TYPES)).slice(skipped), Format(Form.TYPED))
    assert not events.rejects
    expected = [as_notification(row) for row in rows[skipped:]]
    assert matched(table, events.notifications) == matched(table, expected)


@given(st.lists(st.none() | regions | geotexts, min_size=1, max_size=5))
def test_places_in_structs(values: list[Any]) -> None:
    areas = [value if isinstance(value, Region) else None for value in values]
    posts = [value if isinstance(value, GeoText) else None for value in values]
    at = [each.place if each is not None and isinstance(each.place, Point) else None for each in posts]
    within = [each.place if each is not None and isinstance(each.place, Box) else None for each in posts]
    words = [None if each is None else sorted(each.keywords) for each in posts]
    struct = pa.StructArray.from_arrays(
        [
            pa.array([None if each is None else {"wkt": each.wkt} for each in areas], pa.struct({"wkt": pa.string()})),
            pa.array(
                [None if p is None else {"keywords": w, "x": p.x, "y": p.y} for w, p in zip(words, at, strict=True)],
                pa.struct({"x": pa.float64(), "keywords": pa.list_(pa.string()), "y": pa.float64()}),
            ),
            pa.array(
                [
                    None if b is None else dict(zip(("x1", "y1", "x2", "y2"), b.bounds, strict=True)) | {"keywords": w}
                    for w, b in zip(words, within, strict=True)
                ],
                pa.struct({**dict.fromkeys(("x1", "y1", "x2", "y2"), pa.float64()), "keywords": pa.list_(pa.string())}),
            ),
        ],
        ["area", "post", "zone"],
    )
    table = ForwardingTable(geotext_index="scan")
    table.add("I", 'area overlaps BOX(1 1, 5 5) or post matches {"ipad"} within BOX(0 0, 2 2) or zone matches {"sale"}')
    table.add("I", "area exists or post exists or zone exists")
    expected = []
    for area, post in zip(areas, posts, strict=True):
        named = {"area": area, "post" if post is not None and isinstance(post.place, Point) else "zone": post}
        expected.append({name: value for name, value in named.items() if value is not None})
    events = decode(batch(struct), Format(Form.TYPED))
    assert not events.rejects
    assert matched(table, events.notifications) == matched(table, expected)


def test_points_and_regions_in_one_column_of_wkt() -> None:
    kind = pa.struct({"wkt": pa.string()})
    places = pa.array([{"wkt": "POINT(1 1)"}, {"wkt": "POLYGON((0 0, 4 0, 0 4))"}, None, {"wkt": "nonsense"}], kind)
    events = decode(batch(pa.StructArray.from_arrays([places], ["area"])), Format(Form.TYPED))
    assert [(each.row, each.event_id) for each in events.rejects] == [(3, "e3")]
    table = ForwardingTable()
    table.add("I", "area intersects BOX(0 0, 2 2)")
    assert {place for place, _ in matched(table, events.notifications)} == {0, 1}


@pytest.mark.parametrize(
    ("kind", "good", "bad", "why"),
    [
        (pa.float64(), 1.5, float("nan"), "finite"),
        (pa.float32(), 1.5, float("inf"), "finite"),
        (pa.struct({"x": pa.float64(), "y": pa.float64()}), {"x": 1, "y": 2}, {"x": 1, "y": float("nan")}, "no point"),
        (pa.struct({"x": pa.float64(), "y": pa.float64()}), {"x": 1, "y": 2}, {"x": None, "y": 2}, "no point"),
        (pa.struct({"wkt": pa.string()}), {"wkt": "POINT(1 2)"}, {"wkt": None}, "without its WKT"),
        (pa.struct({"wkt": pa.string()}), {"wkt": "POINT(1 2)"}, {"wkt": "POLYGON((0 0, 1 1))"}, "'v'"),
        (
            pa.struct({"keywords": pa.string(), "x": pa.int64(), "y": pa.int64()}),
            {"keywords": "iPad on sale", "x": 1, "y": 2},
            {"keywords": None, "x": 1, "y": 2},
            "keywords",
        ),
        (pa.struct(dict.fromkeys(("x1", "y1", "x2", "y2"), pa.float64())), {"x1": 0, "y1": 0, "x2": 1, "y2": 1},
         {"x1": 0, "y1": 0, "x2": 0, "y2": 1}, "'v'"),
        (UTC_TIME, NOON, -(2**62), "years 1 to 9999"),
    ],
)  # fmt: skip
def test_one_bad_value_rejects_one_event(kind: pa.DataType, good: Any, bad: Any, why: str) -> None:
    cells = pa.array([good, None, good], kind)
    wrong = pa.array([bad], pa.int64()).cast(kind) if isinstance(bad, int) else pa.array([bad], kind)
    struct = pa.StructArray.from_arrays([pa.concat_arrays([cells, wrong, cells])], ["v"])
    events = decode(batch(struct), Format(Form.TYPED))
    (reject,) = events.rejects
    assert reject.row == 3
    assert why in reject.reason
    assert events.ids.to_pylist() == ["e0", "e1", "e2", "e4", "e5", "e6"]
    table = ForwardingTable()
    table.add("I", "v exists")
    assert {place for place, _ in matched(table, events.notifications)} == {0, 2, 3, 5}


def test_decimals_are_numbers() -> None:
    cells = [pa.array([Decimal("3")], pa.decimal128(18, 0)), pa.array([Decimal("0.5")], pa.decimal128(10, 2))]
    events = decode(batch(pa.StructArray.from_arrays(cells, ["whole", "part"])), Format(Form.TYPED))
    table = ForwardingTable()
    table.add("I", "whole = 3 and part = 0.5")
    assert len(matched(table, events.notifications)) == 1


NESTED = {
    "tags": pa.list_(pa.string()),
    "sizes": pa.list_(pa.float64()),
    "engine": pa.struct({"rpm": pa.int64(), "oil": pa.struct({"hot": pa.bool_()}), "parts": pa.list_(pa.int64())}),
    "route": pa.binary(),
}
WKB = [
    shapely.to_wkb(shapely.from_wkt(wkt))
    for wkt in (
        "LINESTRING(0 0, 5 5)",
        "MULTILINESTRING((0 9, 9 9), (20 20, 30 30))",
        "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (2 2, 4 2, 4 4, 2 4, 2 2))",
        "MULTIPOLYGON(((0 0, 1 0, 0 1, 0 0)), ((6 6, 8 6, 6 8, 6 6)))",
        "POINT(3 3)",
    )
]
NESTED_ROWS = st.fixed_dictionaries(
    {
        "tags": st.none() | st.lists(st.sampled_from(("ice", "snow", "")), max_size=3),
        "sizes": st.none() | st.lists(st.sampled_from((1.0, 2.5, -0.0)), max_size=3),
        "engine": st.none()
        | st.fixed_dictionaries(
            {
                "rpm": st.none() | st.integers(0, 3),
                "oil": st.none() | st.fixed_dictionaries({"hot": st.none() | st.booleans()}),
                "parts": st.none() | st.lists(st.integers(0, 2), max_size=2),
            }
        ),
        "route": st.none() | st.sampled_from(WKB),
    }
)
NESTED_FILTERS = (
    'tags has "ice"',
    'not tags has "snow"',
    "sizes has 1 and tags exists",
    "engine.rpm > 1",
    "engine.oil.hot = true or engine.parts has 2",
    "not engine.rpm exists",
    "route within 1 of POINT(3 3)",
    "route beyond 2 of POINT(3 3)",
    "route intersects BOX(3 3, 3.5 3.5)",
    "route disjoint POLYGON((0 0, 2 0, 2 2))",
    "route inside BOX(-1 -1, 40 40)",
    "route contains POINT(7 6.5)",
)


def in_python(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a publisher would have it."""
    found = {name: value for name, value in row.items() if value is not None}
    return found | ({"route": place_of_wkb(found["route"])} if "route" in found else {})


@given(st.lists(NESTED_ROWS, min_size=1, max_size=8))
def test_sets_nested_attributes_lines_and_compound_regions(rows: list[Any]) -> None:
    table = ForwardingTable()
    table.add_many(("I", each) for each in NESTED_FILTERS)
    kind = pa.struct(NESTED)
    check_attributes(kind, None)
    events = decode(batch(pa.array(rows, kind)), Format(Form.TYPED))
    assert not events.rejects
    expected = [in_python(row) for row in rows]
    assert matched(table, events.notifications) == matched(table, expected)
    gate = Gate({"route": (3.0, 3.0, 3.5, 3.5)})
    assert admitted(gate, events.notifications).tolist() == gate.which(expected)
    assert [row_of(events.notifications, n) for n in range(len(rows))] == [check_notification(e) for e in expected]


def test_an_attribute_that_is_there_twice_and_structs_without_end() -> None:
    with pytest.raises(InvalidValue, match=r"'a\.b' is there twice"):
        check_attributes(pa.struct({"a.b": pa.int64(), "a": pa.struct({"b": pa.string()})}), None)
    deep = pa.int64()
    for _ in range(20):
        deep = pa.struct({"a": deep})
    with pytest.raises(InvalidValue, match="nested more than"):
        check_attributes(deep, None)


@pytest.mark.parametrize("kind", [pa.list_(pa.bool_()), pa.date32(), pa.struct({"q": pa.date32()}), pa.struct([])])
def test_a_column_that_is_no_value_is_refused_before_anything_is_read(kind: pa.DataType) -> None:
    with pytest.raises(InvalidValue, match="attribute 'v"):
        check_attributes(pa.struct({"v": kind}), None)


def test_strings_that_are_not_utf8() -> None:
    raw = pa.array([b"caf\xc3\xa9", b"caf\xe9", "東京".encode()], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    events = decode(batch(pa.StructArray.from_arrays([text], ["v"])), Format(Form.TYPED))
    assert [(each.row, each.reason) for each in events.rejects] == [(1, "attribute 'v': not UTF-8")]
    table = ForwardingTable()
    table.add("I", 'v in ["café", "東京"]')
    assert {place for place, _ in matched(table, events.notifications)} == {0, 1}


# ---------------------------------------------------------------------------------------------- the other forms

NOTES = [
    {"stock": "MTK", "price": 50, "at": Point(1, 2), "when": NOON},
    {"post": GeoText("iPad 東京", at=(1, 2)), "ok": True, "größe": 1.5},
    {"area": Box(0, 0, 2, 2)},
    {},
]


def test_every_form_gives_the_same() -> None:
    text = decode(batch(pa.array([notification_to_json(each) for each in NOTES])), Format(Form.TEXT))
    bodies = batch(pa.array([encode_notification(each) for each in NOTES], pa.binary())).rename_columns(
        ["event_id", "time", "body"]
    )
    documents = [
        {
            "id": f"e{n}",
            "time": (NOON + timedelta(hours=n)).isoformat(),
            "attributes": json.loads(notification_to_json(each)),
        }
        for n, each in enumerate(NOTES)
    ]
    rows = decode(lines(*documents), Format(Form.LINES))
    for events in (text, decode(bodies, Format(Form.BODIES)), rows):
        assert not events.rejects
        assert events.notifications == NOTES
        assert events.ids.to_pylist() == ["e0", "e1", "e2", "e3"]
        assert events.times.tolist() == [microseconds(NOON + timedelta(hours=n)) for n in range(4)]


def test_maps() -> None:
    kind = pa.map_(pa.string(), pa.float64())
    cells = pa.array([[("price", 50.0), ("size", None)], [], None, [("", 1.0)], [("price", float("nan"))]], kind)
    events = decode(batch(cells), Format(Form.MAP))
    assert events.notifications == [{"price": 50.0}, {}]
    assert [each.row for each in events.rejects] == [2, 3, 4]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[1]", "an event is an object"),
        ({"time": "2026-11-16T12:00:00Z", "attributes": {}}, "no id"),
        ({"id": True, "time": "2026-11-16T12:00:00Z", "attributes": {}}, "no id"),
        ({"id": "", "time": "2026-11-16T12:00:00Z", "attributes": {}}, "no id"),
        ({"id": "e", "attributes": {}}, "no time"),
        ({"id": "e", "time": "yesterday", "attributes": {}}, "ISO 8601"),
        ({"id": "e", "time": 5, "attributes": {}}, "ISO 8601"),
        ({"id": "e", "time": "2026-11-16T12:00:00", "attributes": {}}, "no time zone"),
        ({"id": "e", "time": "2026-11-16T12:00:00Z"}, "no attributes"),
        (b'{"id": "e", "time": "2026-11-16T12:00:00Z", "attributes": {"a": 1, "a": 2}}', "repeated name"),
        (b'{"id": "e", "time": "2026-11-16T12:00:00Z", "attributes": {"a": NaN}}', "not a number"),
        (b'{"id": "\\ud800", "time": "2026-11-16T12:00:00Z", "attributes": {}}', "surrogate"),
        (b"[" * 100_000, "nested"),
    ],
)
def test_lines_that_are_no_events(line: Any, why: str) -> None:
    fine = {"id": 7, "time": "2026-11-16T12:00:00Z", "attributes": {"a": 1}}
    events = decode(lines(fine, line, b"  ", fine), Format(Form.LINES))
    assert events.ids.to_pylist() == ["7", "7"]
    (reject,) = events.rejects
    assert why in reject.reason
    assert len(reject.raw) <= 4096


def test_events_without_an_id_or_a_time() -> None:
    times = pa.array([NOON, None, NOON], UTC_TIME)
    struct = pa.array([{"a": 1}, {"a": 2}, None], pa.struct({"a": pa.int64()}))
    events = decode(batch(struct, [None, "e1", "e2"], times), Format(Form.TYPED))
    assert len(events) == 0
    assert [each.reason for each in events.rejects] == [
        "the event has no id",
        "the event has no time",
        "the event has no attributes",
    ]


# ---------------------------------------------------------------------------------------------- times


def test_local_times_count_in_the_zone_that_was_told() -> None:
    rome = zone_of("Europe/Rome")
    assert parse_time("2026-11-16T12:00:00", rome) == microseconds(datetime(2026, 11, 16, 11, tzinfo=UTC))
    assert parse_time("2026-07-16T12:00:00", rome) == microseconds(datetime(2026, 7, 16, 10, tzinfo=UTC))
    assert parse_time("2026-07-16T12:00:00-05:00", rome) == microseconds(datetime(2026, 7, 16, 17, tzinfo=UTC))
    with pytest.raises(InvalidValue, match="summer time skips it"):
        parse_time("2026-03-29T02:30:00", rome)
    twice = parse_time("2026-10-25T02:30:00", rome)
    assert twice == microseconds(datetime(2026, 10, 25, 0, 30, tzinfo=UTC))  # the earlier of the two


def test_columns_of_local_times() -> None:
    local = pa.array([datetime(2026, 11, 16, 0, 30), datetime(2026, 3, 29, 2, 30)], pa.timestamp("us"))
    struct = pa.array([{"a": 1}, {"a": 2}], pa.struct({"a": pa.int64()}))
    events = decode(batch(struct, times=local), Format(Form.TYPED, "Europe/Rome"))
    assert events.times.tolist() == [microseconds(datetime(2026, 11, 15, 23, 30, tzinfo=UTC))]
    assert "does not exist in Europe/Rome" in events.rejects[0].reason
    with pytest.raises(InvalidValue, match="--timezone"):
        check_attributes(pa.struct({"when": pa.timestamp("us")}), None)
    check_attributes(pa.struct({"when": pa.timestamp("us")}), "UTC")
    with pytest.raises(InvalidValue, match="no time zone is called 'Rome'"):
        zone_of("Rome")


# ---------------------------------------------------------------------------------------------- gates


@given(st.lists(filters(), min_size=1, max_size=5), st.lists(SCALARS, max_size=6))
def test_gates_admit_columns_as_they_admit_notifications(wanted: list[Any], rows: list[Any]) -> None:
    from contrada.forwarding.segments.gate import Gate, anchor_of

    gate = Gate.around(anchor_of(each) for each in wanted)
    columns = decode(batch(pa.array(rows, TYPES)), Format(Form.TYPED)).notifications
    expected = gate.which([as_notification(row) for row in rows])
    assert np.array_equal(admitted(gate, columns), expected)
