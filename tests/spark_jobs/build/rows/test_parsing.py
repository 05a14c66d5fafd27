"""Rows of every form into subscriptions, or into the quarantine with the reason; without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from math import isnan
from typing import Any

import pyarrow as pa
import pytest

from contrada.forwarding.language.filter import Filter, Predicate, as_filters
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.segments.manifest import SEGMENT_KINDS
from contrada.forwarding.table.table import ForwardingTable
from contrada.spark_jobs.build.building import filters_of
from contrada.spark_jobs.build.rows import column_language
from contrada.spark_jobs.build.rows.parsing import parse_batch
from contrada.spark_jobs.build.staging import BOX, BOX_MATCH, OTHER, STAGED
from contrada.spark_jobs.warm import compile_kernels


def read(form: str, **columns: list[Any]) -> list[dict[str, Any]]:
    """The good rows, with what rules 1 and 2 found in all of them, and the bad ones."""
    parsed = parse_batch(pa.RecordBatch.from_pydict(columns), form)
    assert len(parsed.rows) == len(parsed.asks) == len(parsed.gives)
    found = {"unsatisfiable": parsed.unsatisfiable, "redundant": parsed.redundant, "reason": None}
    good = [{**row, **found} for row in parsed.rows.to_pylist()]
    return [*good, *parsed.bad.to_pylist()]


def filter_of_row(row: dict[str, Any]) -> Filter | Predicate:
    """The filter of a staged row, by way of the columns that segments are built from."""
    table = pa.Table.from_pylist([{**row, "weigh": False}], STAGED.append(pa.field("weigh", pa.bool_())))
    built = ForwardingTable.packed_columns(filters_of(table))
    filters = [built.filter(n + 1) for n in range(len(built))]
    return filters[0] if len(filters) == 1 else Predicate(filters)


def lines(*texts: str) -> list[dict[str, Any]]:
    return read("lines", source=["f"] * len(texts), value=[text.encode() for text in texts])


def table(filters: Any, ids: Any = None) -> list[dict[str, Any]]:
    n = len(filters)
    return read(
        "columns", source=["f"] * n, row=list(range(n)), id=ids or ["s"] * n, interface=["I"] * n, filter=filters
    )


def features(*documents: Any) -> list[dict[str, Any]]:
    texts = [(each if isinstance(each, str) else json.dumps(each)).encode() for each in documents]
    return read("features", source=["f"] * len(texts), value=texts)


TEXTS = [
    'post matches {"b", "a"} within BOX(0 0, 5 5)',
    'post matches {"Éa", "b"} within BOX(0 0, 5 5)',
    'post matches {"a"} within POLYGON((0 0, 5 0, 0 5))',
    'post matches {"a"}',
    'area inside BOX(0 0, 5 5) and stock = "MTK"',
    "area disjoint BOX(0 0, 5 5)",
    'stock = "MTK" and price < 100 or stock = "DYS"',
    "x > 1 and x > 2",
    "x > 1 and x < 0",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_row_says_everything_about_its_filter(text: str) -> None:
    (row,) = table([text])
    assert row["reason"] is None
    assert filter_of_row(row) == parse(text)
    assert row["filters"] == len(as_filters(parse(text)))
    line = json.dumps({"id": "s", "interface": "I", "filter": text})
    (same,) = lines(line)
    assert same["raw"] == line.encode()
    assert repr({**same, "row": 0, "raw": None}) == repr(row), "repr, since NaN is not equal to itself"


@pytest.mark.parametrize(
    "text",
    [
        " and ".join(f"a{i} = 1" for i in range(300)),
        " or ".join(f"a = {i}" for i in range(1100)),
        f'x contains "{"y" * 300}"',
        f"x in [{', '.join(map(str, range(5000)))}]",
        f'x = "{"y" * (2 << 20)}"',
        'x matches {"' + '", "'.join(map(str, range(66_000))) + '"} within BOX(0 0, 1 1)',
    ],
    ids=["constraints", "filters", "pattern", "set", "string", "keywords"],
)
def test_what_no_stranger_may_send_a_broker_stops_no_job(text: str) -> None:
    (row,) = table([text])
    assert filter_of_row(row) == parse(text)


def test_regions_of_several_rings_are_others() -> None:
    text = "area inside MULTIPOLYGON(((0 0, 2 0, 0 2)), ((3 3, 4 3, 4 4)))"
    (row,) = table([text])
    assert (row["shape"], SEGMENT_KINDS[row["kind"]], row["x2"]) == (OTHER, "region", 4.0)
    assert filter_of_row(row) == parse(text)


def test_kinds_boxes_and_rules() -> None:
    rows = [table([text])[0] for text in TEXTS]
    assert [SEGMENT_KINDS[row["kind"]] for row in rows] == ["geotext"] * 3 + ["hash", "region"] + ["hash"] * 4
    assert [row["shape"] for row in rows] == [BOX_MATCH] * 2 + [OTHER] * 3 + [BOX] + [OTHER] * 3
    assert [row["filter"] is None for row in rows] == [row["shape"] != OTHER for row in rows]
    assert [None if isnan(row["x2"]) else row["x2"] for row in rows] == [5.0] * 3 + [None, 5.0] + [None] * 4
    assert rows[1]["tokens"] == ["b", "éa"]
    assert [row["unsatisfiable"] for row in rows] == [0] * 8 + [1]
    assert [row["redundant"] for row in rows] == [0] * 7 + [1, 0]
    assert rows[4]["uses"] == ["=\tstock", "inside\tarea"]


def test_texts_that_are_not_utf8_are_refused() -> None:
    raw = pa.array([b"x > 1", b"x > \xff", b"x > 3"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    one, three, bad = table(texts, ["a", "b", "c"])
    assert (one["id"], three["id"]) == ("a", "c")
    assert bad["reason"] == "a text that is not UTF-8"
    assert "x > \ufffd" in bad["raw"]


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        ({"name": "x", "op": "=", "value": 3}, "x = 3"),
        ({"name": "x", "op": "<", "number": 2.5}, "x < 2.5"),
        ({"name": "x", "op": ">", "integer": 2**53 + 1}, f"x > {2**53 + 1}"),
        ({"name": "x", "op": "=", "flag": True}, "x = true"),
        ({"name": "x", "op": "prefix", "text": "é"}, 'x prefix "é"'),
        ({"name": "x", "op": "<", "time": datetime(2026, 11, 16, tzinfo=UTC)}, "x < 2026-11-16T00:00:00Z"),
        ({"name": "x", "op": "exists"}, "x exists"),
        ({"name": "x", "op": "in", "values": ["a", "b"]}, 'x in ["a", "b"]'),
        ({"name": "x", "op": "inside", "region": [0.0, 0.0, 2.0, 3.0]}, "x inside BOX(0 0, 2 3)"),
        ({"name": "x", "op": "meets", "region": "POLYGON((0 0, 2 0, 0 2))"}, "x meets POLYGON((0 0, 2 0, 0 2))"),
        (
            {"name": "x", "op": "inside", "region": "MULTIPOLYGON(((0 0, 2 0, 0 2)), ((3 3, 4 3, 4 4)))"},
            "x inside MULTIPOLYGON(((0 0, 2 0, 0 2)), ((3 3, 4 3, 4 4)))",
        ),
        ({"name": "x", "op": "matches", "keywords": ["a", "B"]}, 'x matches {"a", "b"}'),
        (
            {"name": "x", "op": "matches", "keywords": ["a"], "within": [0.0, 0.0, 2.0, 3.0]},
            'x matches {"a"} within BOX(0 0, 2 3)',
        ),
    ],
)
def test_fields(constraint: dict[str, Any], text: str) -> None:
    (row,) = table([[constraint]])
    assert row["reason"] is None
    assert filter_of_row(row) == parse(text)
    (both,) = table([[[constraint], [{**constraint, "name": "y"}]]])
    assert len(filter_of_row(both).filters) == 2


@pytest.mark.parametrize(
    ("constraints", "why"),
    [
        (None, "null or empty"),
        ([], "null or empty"),
        ([None], "a constraint is null"),
        ([[]], "null or empty"),
        ([{"name": "x"}], "a name and an op"),
        ([{"name": "x", "op": "="}], "constraint x ="),
        ([{"name": "x", "op": "=", "number": 1.0, "text": "a"}], "one operand is needed, and there are number, text"),
        ([{"name": "x", "op": "=", "number": float("nan")}], "finite"),
        ([{"name": "x", "op": "near", "number": 1.0}], "not an operator"),
        ([{"name": "x", "op": "inside", "region": "POLYGON((0 0, 1 1))"}], "at least 3"),
        ([{"name": "x", "op": "matches", "keywords": ["a"], "text": "a"}], "takes no text"),
        ([{"name": "x", "op": "matches"}], "at least one keyword"),
    ],
)
def test_bad_fields(constraints: Any, why: str) -> None:
    (row,) = table(pa.array([constraints]) if constraints != [[]] else pa.array([[[]]]))
    assert why in row["reason"]
    assert row["id"] == "s"
    assert json.loads(row["raw"])["interface"] == "I"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("[1]", "a JSON object"),
        ("[" * 100_000, "not JSON"),
        ('{"interface": "I", "filter": "x = 1"}', "id is a string that is not empty, not None"),
        ('{"id": "", "interface": "I", "filter": "x = 1"}', "id is a string that is not empty"),
        ('{"id": "s", "filter": "x = 1"}', "interface is a string"),
        ('{"id": "s", "interface": "I"}', "no filter"),
        ('{"id": "s", "interface": "I", "filter": 3}', "filters"),
        ('{"id": "s", "interface": "I", "filter": "x ="}', "expected a value"),
        ('{"id": "s", "interface": "I", "filter": [[{"name": "x", "op": "<"}]]}', "x <"),
        (
            '{"id": "s", "interface": "I", "filter": "p similar {\\"a\\"} at POINT(0 0) alpha 0.5 tau 0.5"}',
            "road network",
        ),
        ('{"id": "\\ud800", "interface": "I", "filter": "x = 1"}', "surrogate"),
    ],
)
def test_bad_lines(line: str, why: str) -> None:
    good, bad = lines(line, '{"id": 17, "interface": "Iñ", "filter": [[{"name": "x", "op": "=", "value": 1}]]}')
    assert why in bad["reason"]
    assert bad["raw"] == line
    assert good["reason"] is None
    assert (good["id"], good["interface"]) == ("17", "Iñ")


def test_kernels_compile_ahead_of_time() -> None:
    compile_kernels()
    assert column_language._scan.signatures, "the kernel that reads texts"


def test_blank_lines_are_no_rows() -> None:
    assert lines("", "  ") == []
    assert features("", "\x1e \n") == []


SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}


HOLED = {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9]], [[5, 1], [6, 1], [6, 2]]]}
PARTS = {
    "type": "MultiPolygon",
    "coordinates": [[[[0, 0], [1, 0], [1, 1]]], [[[5, 5], [6, 5], [6, 6]], [[5.5, 5.2], [5.6, 5.2], [5.6, 5.3]]]],
}


def feature(geometry: Any = SQUARE, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "id": "s", "geometry": geometry, "properties": {"interface": "I", **properties}}


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (feature(), "area intersects BOX(0 0, 2 2)"),
        (feature(attribute="zone", relation="inside"), "zone inside BOX(0 0, 2 2)"),
        (feature(HOLED), "area intersects POLYGON((0 0, 9 0, 9 9), (5 1, 6 1, 6 2))"),
        (
            feature(PARTS),
            "area intersects MULTIPOLYGON(((0 0, 1 0, 1 1)), ((5 5, 6 5, 6 6), (5.5 5.2, 5.6 5.2, 5.6 5.3)))",
        ),
        (feature(filter="wind > 9"), "area intersects BOX(0 0, 2 2) and wind > 9"),
        (feature(keywords=["Ipad"], attribute="post"), 'post matches {"ipad"} within POLYGON((0 0, 2 0, 2 2, 0 2))'),
        (feature(None, filter="a = 1 or b = 2"), "a = 1 or b = 2"),
        (feature(filter="a = 1 or b = 2"), "area intersects BOX(0 0, 2 2) and (a = 1 or b = 2)"),
    ],
)
def test_features(document: dict[str, Any], text: str) -> None:
    (row,) = features(document)
    assert row["reason"] is None
    assert filter_of_row(row) == parse(text)
    rows = features({"type": "FeatureCollection", "features": [document, document]})
    assert [(each["row"], each["id"]) for each in rows] == [(0, "s"), (1, "s")]
    (sequenced,) = features("\x1e" + json.dumps(document) + "\n")
    assert repr(sequenced) == repr(row)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("{", "not JSON"),
        ({"type": "FeatureCollection"}, "array of features"),
        (SQUARE, "a GeoJSON Feature"),
        (feature(None), "needs the property filter"),
        (feature(filter=3), "filter is text"),
        (feature({"type": "MultiPolygon", "coordinates": []}), "MultiPolygon"),
        (feature(relation="near"), "not an operator"),
        (feature(attribute="\ud800"), "constraint ? intersects"),
        (feature(filter="x = \ud800"), 'found "?"'),
        ({**feature(), "properties": {}}, "interface is a string"),
        ({**feature(), "properties": []}, "interface is a string"),
        ({**feature(), "properties": [1]}, "properties are an object"),
        ({**feature(), "id": None}, "id is a string"),
    ],
)
def test_bad_features(document: Any, why: str) -> None:
    (row,) = features(document)
    assert why in row["reason"]


def test_what_no_table_of_the_plane_takes_is_refused_row_by_row() -> None:
    texts = [
        "pos within 1 km of POINT(1 1)",
        "not pos within 5 m of BOX(0 0, 1 1)",
        'p similar {"a"} at POINT(1 1) alpha 0.5 tau 0.5',
    ]
    found = table([*texts, "pos within 1 of POINT(1 1)"], ["a", "b", "c", "d"])
    assert [row["id"] for row in found] == ["d", "a", "b", "c"]
    assert all("metres" in row["reason"] for row in found[1:3])
    assert "road network" in found[3]["reason"]
