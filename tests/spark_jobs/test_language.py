"""Every operator of the language in bulk: built, matched and replayed as a table filled one by one answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from contrada import spark_jobs
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.table.table import ForwardingTable
from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.common.geometries import place_of_wkb
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText
from tests.spark_jobs.build.test_similar_in_bulk import network

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

START = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOLED = "POLYGON((0 0, 9 0, 9 9, 0 9), (2 2, 5 2, 5 5, 2 5))"
PARTS = "MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4)), ((6 6, 9 6, 9 9, 6 9)))"
FILTERS = (
    *("n = 3", "n != 3", "n < 2", "n <= 2", "n > 6", "n >= 6", "n exists", "not n exists", "n in [1, 4, 9]"),
    *('s prefix "a"', 's suffix "b"', 's contains "c"', 'not s suffix "b"', 'not s contains "c"', 's = "ab"'),
    *('s like "%a_"', 'not s like "_b%"', 's ~= "AB"', 'not s ~= "AB"', 's < "b" and n > 2', "n between 2 and 5"),
    *("flag = true", "at > 2026-11-16T12:03:00Z", 'tags has "ice"', 'not tags has "ice"', "sizes has 2"),
    *(f"area {op} {HOLED}" for op in ("disjoint", "meets", "overlaps", "inside", "covered-by", "intersects")),
    *(f"area {op} {PARTS}" for op in ("covers", "contains", "equals", "inside or covered-by", "not intersects")),
    *("area contains POINT(1 1)", "area within 1 of POINT(3 3)", "area beyond 2 of LINESTRING(0 9, 9 9)"),
    *(
        "spot inside BOX(0 0, 4 4)",
        "spot within 2 of BOX(5 5, 6 6)",
        "spot beyond 3 of POINT(1 1)",
        "spot meets " + HOLED,
    ),
    *('post matches {"ipad"} within BOX(0 0, 5 5)', f'post matches {{"sale"}} within {HOLED}', 'post matches {"sale"}'),
    *('not post matches {"ipad"} within BOX(0 0, 5 5)', 'post similar {"ipad"} at POINT(1 1) alpha 0.4 tau 0.3'),
    *('not post similar {"ipad"} at POINT(1 1) alpha 0.4 tau 0.3', "engine.rpm > 3", "engine.oil.hot = true and n < 8"),
    *('n > 100 or s = "ab" or engine.rpm < 2', "not (n > 2 or s exists)", "true"),
)
SHAPES = (
    *("POINT(1 1)", "POINT(2 2)", "LINESTRING(0 0, 3 3)", "MULTILINESTRING((0 9, 9 9), (20 20, 30 30))", HOLED, PARTS),
    *("POLYGON((3 3, 4 3, 4 4, 3 4))", "POLYGON((20 20, 21 20, 21 21))", "POLYGON((0 0, 9 0, 9 9, 0 9))", None),
    *("POLYGON((0 0, 1 0, 1 1, 0 1))", "POLYGON((-1 -1, 10 -1, 10 10, -1 10))"),
)
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "time": pa.timestamp("us", tz="UTC"),
        "n": pa.int64(),
        "s": pa.string(),
        "flag": pa.bool_(),
        "at": pa.timestamp("us", tz="UTC"),
        "tags": pa.list_(pa.string()),
        "sizes": pa.list_(pa.int64()),
        "area": pa.binary(),
        "spot": pa.struct({"x": pa.float64(), "y": pa.float64()}),
        "post": pa.struct({"keywords": pa.list_(pa.string()), "x": pa.float64(), "y": pa.float64()}),
        "engine": pa.struct({"rpm": pa.int64(), "oil": pa.struct({"hot": pa.bool_()})}),
    }
)


def rows() -> list[dict[str, Any]]:
    made = []
    for n in range(60):
        shape = SHAPES[n % len(SHAPES)]
        wkb = None if shape is None else shapely.to_wkb(place_of_text(shape))
        made.append(
            {
                "id": f"e{n}",
                "time": START + timedelta(minutes=n),
                "n": None if n % 7 == 0 else n % 10,
                "s": (None, "ab", "AB", "cb", "xab")[n % 5],
                "flag": (None, True, False)[n % 3],
                "at": START + timedelta(minutes=n % 6),
                "tags": (None, [], ["ice"], ["snow", "ice", "snow"])[n % 4],
                "sizes": (None, [1], [2, 3])[n % 3],
                "area": wkb,
                "spot": None if n % 8 == 0 else {"x": float(n % 6), "y": float(n % 7)},
                "post": None
                if n % 9 == 0
                else {"keywords": [["ipad"], ["sale", "iPad"], []][n % 3], "x": n % 6, "y": n % 5},
                "engine": None if n % 4 == 0 else {"rpm": n % 6, "oil": None if n % 3 == 0 else {"hot": n % 2 == 0}},
            }
        )
    return made


def place_of_text(wkt: str) -> Any:
    return place_of_wkb(shapely.to_wkb(shapely.from_wkt(closed(wkt)))).to_shapely()


def closed(wkt: str) -> str:
    """Rings may be left open in the language; not so in WKT."""
    if not wkt.startswith(("POLYGON", "MULTIPOLYGON")):
        return wkt
    return str(parse(f"x intersects {wkt}").constraints[0].value.wkt)


def notification(row: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in row.items() if value is not None and name not in ("id", "time")}
    if "area" in found:
        found["area"] = place_of_wkb(found["area"])
    if "spot" in found:
        found["spot"] = Point(**found["spot"])
    if "post" in found:
        post = found["post"]
        found["post"] = GeoText(post["keywords"], at=(post["x"], post["y"]))
    return found


def test_every_operator_is_built_matched_and_replayed(spark: SparkSession, tmp_path: Path) -> None:
    streets = network()
    table: ForwardingTable[str] = ForwardingTable(road_network=streets)
    used = set()
    for number, text in enumerate(FILTERS):
        expression = parse(text)
        used |= {c.op for each in getattr(expression, "filters", [expression]) for c in each.constraints}
        table.add(f"s{number}", expression)
    assert set(Operator) <= used
    given = rows()
    expected = sorted((row["id"], id) for row in given for id in table.match(notification(row)))
    assert {id for _, id in expected} == {f"s{n}" for n in range(len(FILTERS))}, "each filter has a delivery"
    columns = {"id": [f"s{n}" for n in range(len(FILTERS))], "interface": ["I"] * len(FILTERS), "filter": FILTERS}
    pq.write_table(pa.table(columns), tmp_path / "filters.parquet")
    pq.write_table(pa.Table.from_pylist(given, SCHEMA), tmp_path / "events.parquet", row_group_size=20)
    for name, simplify in (("index", True), ("whole", False)):
        built = build_index(tmp_path / "filters.parquet", tmp_path / name, roads=streets, simplify=simplify)
        assert (built.subscriptions, built.quarantined) == (len(FILTERS), 0)
        assert (built.covered > 0) == simplify
    events = spark.read.parquet(str(tmp_path / "events.parquet"))
    found = spark_jobs.match(events, tmp_path / "index", rejects=True).collect()
    assert sorted((row.event_id, row.filter_id) for row in found) == expected
    for name, memory in (("index", None), ("whole", 1)):
        out = tmp_path / f"out-{name}"
        done = spark_jobs.replay(
            tmp_path / "events.parquet", tmp_path / name, out, session=spark, worker_memory=memory, geoparquet=True
        )
        assert (done.events, done.rejected) == (60, 0)
        told = pq.read_table(out / "deliveries").to_pylist()
        assert sorted((row["event_id"], row["filter_id"]) for row in told) == expected


DEGREES = (
    *("at inside BOX(170 -10, -170 10)", "at within 300 km of POINT(179.5 0)", "at beyond 3000 km of POINT(0 51.5)"),
    *("at intersects POLYGON((-180 -5, -175 -5, -175 5, -180 5))", "area intersects BOX(175 0, 185 5)", "n > 3"),
    *('post matches {"ipad"} within BOX(170 -20, 190 20)', "at within 2 km of LINESTRING(0 51, 1 51)"),
    *("at within 3 of POINT(1 1)", "area inside BOX(0 0, 5 95)"),
)
PLACES = (
    *((179.9, 1.0), (-180.0, 0.0), (180.0, 0.0), (181.0, 2.0), (-179.0, -3.0), (0.5, 51.001), (12.0, 41.9)),
    (5.0, 95.0),
)


def test_longitudes_and_latitudes_in_bulk(spark: SparkSession, tmp_path: Path) -> None:
    table: ForwardingTable[str] = ForwardingTable(crs="lonlat")
    for number, text in enumerate(DEGREES[:-2]):
        table.add(f"s{number}", text)
    columns = {"id": [f"s{n}" for n in range(len(DEGREES))], "interface": ["I"] * len(DEGREES), "filter": DEGREES}
    pq.write_table(pa.table(columns), tmp_path / "filters.parquet")
    built = build_index(tmp_path / "filters.parquet", tmp_path / "index", crs="lonlat", max_quarantined=0.5)
    assert (built.subscriptions, built.quarantined) == (len(DEGREES) - 2, 2)
    rows = [
        {
            "id": f"e{n}",
            "time": START,
            "at": {"x": x, "y": y},
            "area": None if n % 2 else {"x1": x, "y1": min(y, 80.0), "x2": x + 1, "y2": min(y, 80.0) + 1},
            "post": {"keywords": ["iPad"], "x": x, "y": min(y, 90.0)},
            "n": n,
        }
        for n, (x, y) in enumerate(PLACES)
    ]
    box = pa.struct(dict.fromkeys(("x1", "y1", "x2", "y2"), pa.float64()))
    kinds = {name: SCHEMA.field(name).type for name in ("id", "time", "post", "n")}
    schema = pa.schema(kinds | {"at": SCHEMA.field("spot").type, "area": box})
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "events.parquet")
    expected = sorted(
        (row["id"], id)
        for row in rows[:-1]  # the last is beyond the pole
        for id in table.match(
            {
                "at": Point(**row["at"]),
                "post": GeoText(row["post"]["keywords"], at=(row["post"]["x"], row["post"]["y"])),
                "n": row["n"],
                **({} if row["area"] is None else {"area": Box(*row["area"].values())}),
            }
        )
    )
    assert {id for _, id in expected} == {f"s{n}" for n in range(len(DEGREES) - 2)}
    events = spark.read.parquet(str(tmp_path / "events.parquet"))
    found = spark_jobs.match(events, tmp_path / "index", rejects=True).collect()
    assert sorted((row.event_id, row.filter_id) for row in found if row.reason is None) == expected
    assert [(row.event_id, "latitude" in row.reason) for row in found if row.reason] == [("e7", True)]
    for memory in (None, 1):
        out = tmp_path / f"out-{memory}"
        done = spark_jobs.replay(events, tmp_path / "index", out, worker_memory=memory)
        assert (done.events, done.rejected) == (len(PLACES) - 1, 1)
        told = pq.read_table(out / "deliveries").to_pylist()
        assert sorted((row["event_id"], row["filter_id"]) for row in told) == expected
    done = spark_jobs.replay(events, tmp_path / "index", tmp_path / "tried", what_if=tmp_path / "filters.parquet")
    assert done.what_if is not None
    assert (done.what_if.deliveries, done.what_if.rejected_filters) == (len(expected), 2)
