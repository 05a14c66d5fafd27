"""GeoParquet and WKB: geometries as regions of subscriptions, as places of events, and beside what comes out."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada import spark_jobs
from contrada.errors import InvalidValue
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.build.plan import plan_build
from contrada.spark_jobs.common.geometries import geometry_column, place_of_wkb, with_geometry, write_geometries
from contrada.spark_jobs.replaying.replay import Replay, replay
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WHEN = datetime(2026, 11, 16, 12, tzinfo=UTC)
RING = "POLYGON((0 0, 10 0, 10 10, 0 10), (4 4, 6 4, 6 6, 4 6))"  # with a hole
ISLES = "MULTIPOLYGON(((20 0, 30 0, 30 10)), ((40 0, 50 0, 50 10)))"
ROWS: list[dict[str, Any]] = [
    {"id": "a", "wkt": RING, "expected": f"area intersects {RING}"},
    {"id": "b", "wkt": ISLES, "attribute": "storm", "relation": "covers", "expected": f"storm covers {ISLES}"},
    {"id": "c", "wkt": RING, "filter": "wind > 3", "expected": f"area intersects {RING} and wind > 3"},
    {"id": "d", "wkt": RING, "keywords": ["ipad"], "expected": f'area matches {{"ipad"}} within {RING}'},
    {"id": "e", "filter": "wind > 9", "expected": "wind > 9"},
    {"id": "f", "wkt": "POINT(1 1)", "wrong": "a subscription's place is a region"},
    {"id": "g", "wkb": b"\x01\x02", "wrong": "not WKB"},
    {"id": "h", "wkt": RING, "relation": "near", "wrong": "near"},
    {"id": "i", "wrong": "needs the property filter"},
]


def wkb(text: str) -> bytes:
    return shapely.to_wkb((Region if "POLYGON" in text else Point).of(text).to_shapely())


def table() -> pa.Table:
    rows = [
        {
            "id": row["id"],
            "interface": "I",
            "attribute": row.get("attribute"),
            "relation": row.get("relation"),
            "keywords": row.get("keywords"),
            "filter": row.get("filter"),
            "geometry": row.get("wkb", wkb(row["wkt"]) if "wkt" in row else None),
        }
        for row in ROWS
    ]
    return pa.Table.from_pylist(rows)


def check_index(path: Path, quarantined: list[dict[str, Any]]) -> None:
    opened = SegmentedTable.open(path)
    for row in ROWS:
        if "expected" in row:
            assert _filter_of(opened, row["id"]) == parse(row["expected"]), row
    wrong = {row["id"]: row["wrong"] for row in ROWS if "wrong" in row}
    assert {row["id"] for row in quarantined} == set(wrong)
    for row in quarantined:
        assert wrong[row["id"]] in row["reason"], row
        assert f'"{row["id"]}"' in row["raw"]


def _filter_of(opened: SegmentedTable[str], id: str) -> Any:
    for segment in opened.segments:
        for row in segment.ids.rows_of(id):
            return segment.table.filter(row)
    raise AssertionError(f"no subscription {id}")


def test_rows_with_geometries_are_subscriptions(tmp_path: Path) -> None:
    plain = tmp_path / "plain.parquet"
    pq.write_table(table(), plain)
    named = table().rename_columns([*table().column_names[:-1], "shape"])
    geo = {
        "version": "1.1.0",
        "primary_column": "shape",
        "columns": {"shape": {"encoding": "WKB", "geometry_types": ["Polygon"]}},
    }
    geoparquet = tmp_path / "geo.parquet"
    pq.write_table(named.replace_schema_metadata({"geo": json.dumps(geo)}), geoparquet)
    for number, source in enumerate((plain, geoparquet)):
        built = build_index(source, tmp_path / f"index{number}", max_quarantined=1)
        assert (built.subscriptions, built.quarantined) == (5, 4)
        check_index(tmp_path / f"index{number}", pq.read_table(built.quarantine).to_pylist())


def test_native_encodings_and_boxes(tmp_path: Path) -> None:
    rings = [[[{"x": 0.0, "y": 0.0}, {"x": 4.0, "y": 0.0}, {"x": 4.0, "y": 4.0}, {"x": 0.0, "y": 0.0}]]]
    boxes = [{"xmin": 0.0, "ymin": 0.0, "xmax": 4.0, "ymax": 4.0}]
    geo = {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {
            "geometry": {
                "encoding": "polygon",
                "geometry_types": ["Polygon"],
                "covering": {"bbox": {side: ["bbox", side] for side in boxes[0]}},
            }
        },
    }
    metadata = {"geo": json.dumps(geo)}
    source = tmp_path / "native.parquet"
    given = pa.table({"id": ["a"], "interface": ["I"], "geometry": rings, "bbox": boxes})
    pq.write_table(given.replace_schema_metadata(metadata), source)
    build_index(source, tmp_path / "index")
    expected = parse("area intersects POLYGON((0 0, 4 0, 4 4))")
    assert _filter_of(SegmentedTable.open(tmp_path / "index"), "a") == expected
    for change, why in (({"encoding": "linestring"}, "encoding 'linestring'"), ({"edges": "spherical"}, "edges are")):
        wrong = geo | {"columns": {"geometry": geo["columns"]["geometry"] | change}}
        pq.write_table(given.replace_schema_metadata({"geo": json.dumps(wrong)}), source)
        with pytest.raises(InvalidValue, match=why):
            plan_build(str(source), tmp_path / "other")
    pq.write_table(given.replace_schema_metadata({"geo": "{}"}), source)
    with pytest.raises(InvalidValue, match="metadata is none"):
        plan_build(str(source), tmp_path / "other")


def test_what_is_written_reads_back() -> None:
    values = [Point(1, 2), Box(0, 0, 2, 2), Region.of(RING), Region.of(ISLES), None]
    cells = write_geometries(values)
    assert [None if each is None else place_of_wkb(each) for each in cells.to_pylist()] == values
    schema = with_geometry(pa.schema([("id", pa.string())]))
    found = geometry_column(schema, schema.metadata, "x")
    assert found is not None
    assert (found.name, found.encoding) == ("geometry", "WKB")


def test_places_of_events_in_and_out(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "rows.parquet")
    spark_jobs.build_index(spark.createDataFrame(table().to_pandas()), tmp_path / "index", max_quarantined=1)
    check = SegmentedTable.open(tmp_path / "index")
    shapes = [Point(1, 1), Point(5, 5), Box(3, 3, 4.5, 4.5), Point(100, 100)]
    events = pa.table(
        {
            "id": [f"e{n}" for n in range(len(shapes))] + ["bad"],
            "time": [WHEN] * 5,
            "area": [*write_geometries(shapes).to_pylist(), b"\x00"],
            "wind": [5, 5, 5, 5, 5],
        }
    )
    pq.write_table(events, tmp_path / "events.parquet")
    told = replay(spark, Replay(tmp_path / "events.parquet", tmp_path / "index", tmp_path / "out", geoparquet=True))
    assert told.rejected == 1
    files = (tmp_path / "out" / "deliveries").rglob("*.parquet")
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    expected = {
        (f"e{n}", id, shape)
        for n, shape in enumerate(shapes)
        for _, id in check.match_subscriptions({"area": shape, "wind": 5})
    }
    assert {(row["event_id"], row["filter_id"], place_of_wkb(row["geometry"])) for row in rows} == expected
    assert {row["filter_id"] for row in rows} == {"a", "c"}
    for name in ("deliveries", "subscriptions"):
        for file in (tmp_path / "out" / name).rglob("*.parquet"):
            assert b"geo" in pq.read_schema(file).metadata
    counts = pq.read_table(tmp_path / "out" / "subscriptions").to_pylist()
    places = {row["filter_id"]: row["geometry"] and place_of_wkb(row["geometry"]) for row in counts}
    ring = Region.of(RING)
    assert places == {"a": ring, "b": Region.of(ISLES), "c": ring, "d": ring, "e": None}
