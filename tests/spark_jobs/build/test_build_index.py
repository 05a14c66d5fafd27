"""The whole job on a real Spark session: what comes out answers as a table filled one by one, whatever came in."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from contrada.client.cli.jobs import build_index as command
from contrada.client.cli.main import app
from contrada.errors import InvalidValue
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.segments.manifest import read_manifest
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.common.errors import NotCommitted
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText
from tests.naive.segments import NaiveSubscriptions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Rows = list[tuple[str, str, str]]


def subscriptions(seed: int = 1) -> Rows:
    """Some hundreds, crowded: half of the places in one spot, one keyword in most, few interfaces."""
    rng = random.Random(seed)
    words = ["sale", "ipad", "東京", "café", *(f"w{i}" for i in range(20))]
    texts = []
    for i in range(240):
        x, y = (50.0, 50.0) if i % 2 else (rng.uniform(0, 100), rng.uniform(0, 100))
        chosen = {"sale", *rng.sample(words, rng.randint(0, 2))} if i % 4 else {rng.choice(words)}
        box = f"BOX({x} {y}, {x + rng.choice((1, 5, 20))} {y + 3})"
        keywords = ", ".join(f'"{word}"' for word in sorted(chosen))
        texts.append(f"post matches {{{keywords}}} within {box}")
    for _ in range(60):
        x, y, size = rng.uniform(0, 100), rng.uniform(0, 100), rng.choice((1, 10, 40))
        relation = rng.choice(("intersects", "inside", "overlaps", "disjoint"))
        ring = f"({x} {y}, {x + size} {y}, {x} {y + size})"
        hole = f"({x + size / 9} {y + size / 9}, {x + size / 3} {y + size / 9}, {x + size / 9} {y + size / 3})"
        far = f"({x + 60} {y}, {x + 61} {y}, {x + 60} {y + 1})"
        shapes = f"POLYGON({ring})", f"POLYGON({ring}, {hole})", f"MULTIPOLYGON(({ring}, {hole}), ({far}))"
        texts.append(f"area {relation} {rng.choice(shapes)}")
    texts += [
        rng.choice((f'stock = "S{i % 5}"', f'stock = "S{i % 5}" and price < {i}', f"price > {i}")) for i in range(60)
    ]
    texts += ['stock = "S1" and price < 3 or post matches {"ipad"}', "price > 5 and price < 2", 'city = "Köln"'] * 2
    return [(f"sub-é{i}", f"I{rng.randrange(6)}", text) for i, text in enumerate(texts)]


def events(seed: int = 2) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    made: list[dict[str, Any]] = [{}, {"city": "Köln"}, {"post": GeoText("ipad", at=(-9, -9))}]
    for _ in range(25):
        x, y = rng.choice(((51.0, 51.0), (rng.uniform(0, 100), rng.uniform(0, 100))))
        words = ["sale", *rng.sample(["ipad", "東京", "café", "w1", "w2", "w3"], 3)]
        made.append({"post": GeoText(words, at=(x, y)), "price": rng.randrange(60)})
        made.append({"area": rng.choice((Point(x, y), Box(x, y, x + 5, y + 5))), "stock": f"S{rng.randrange(6)}"})
    return made


def twin(rows: Rows) -> NaiveSubscriptions:
    return NaiveSubscriptions((id, interface, parse(text)) for id, interface, text in rows)


def compare(index: Path, rows: Rows) -> SegmentedTable:
    table = SegmentedTable.open(index)
    naive = twin(rows)
    batch = events()
    assert table.match_many_subscriptions(batch) == [naive.match_subscriptions(each) for each in batch]
    assert table.match_many(batch) == [naive.match(each) for each in batch]
    assert len(table) == len(naive)
    return table


def write_parquet(path: Path, rows: Rows, categories: bool = False) -> Path:
    names = ("id", "interface", "filter")
    columns = {name: pa.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    if categories:
        columns |= {name: columns[name].dictionary_encode() for name in ("interface", "filter")}
    pq.write_table(pa.table(columns), path, row_group_size=100)
    return path


def folder(index: Path, name: str) -> Path:
    return index / read_manifest(index).folders[name]


def quarantined(spark: SparkSession, path: Path) -> dict[str, str]:
    return {row["id"] or row["source"]: row["reason"] for row in spark.read.parquet(str(path)).collect()}


def test_answers_as_a_table_filled_one_by_one(spark: SparkSession, tmp_path: Path) -> None:
    rows = subscriptions()
    bad: Rows = [("bad-1", "I1", "price >"), ("bad-2", "", "price > 1"), ("twice", "I1", "price > 1")]
    bad.append(("twice", "I2", "price > 1"))
    source = write_parquet(tmp_path / "subscriptions.parquet", [*rows, *bad, *rows[:7]])
    told: list[str] = []
    built = build_index(source, tmp_path / "index", session=spark, segments=8, tell=told.append)
    table = compare(tmp_path / "index", rows)
    assert built.rows == len(rows) + 4 + 7
    assert (built.subscriptions, built.quarantined, built.duplicates) == (len(rows), 4, 7)
    assert built.unsatisfiable == 2
    assert built.covered > 50
    assert table.stats().covered >= built.covered, "what is covered stands beside its coverer"
    assert told[-1].startswith("committed")
    reasons = quarantined(spark, folder(tmp_path / "index", "quarantine"))
    assert reasons.keys() == {"bad-1", "bad-2", "twice"}
    assert "different subscriptions" in reasons["twice"]

    manifest = read_manifest(tmp_path / "index")
    assert {each.kind for each in manifest.segments} == {"region", "geotext", "hash"}
    assert max(each.subscriptions for each in manifest.segments) < 3 * len(rows) / 8, "one hot cell is spread"
    first = manifest.statistics["tokens"][0]
    assert first["token"] == "sale"
    assert first["documents"] == sum('"sale"' in text for _, _, text in rows)
    attributes = {(each["attribute"], each["operator"]): each for each in manifest.statistics["attributes"]}
    assert attributes["post", "matches"]["subscriptions"] == 242
    assert attributes["post", "matches"]["share"] == pytest.approx(242 / len(rows))
    tokens = spark.read.parquet(str(folder(tmp_path / "index", "statistics") / "tokens"))
    assert tokens.where("token = '東京'").first()["documents"] == sum("東京" in text for _, _, text in rows)
    places = spark.read.parquet(str(folder(tmp_path / "index", "statistics") / "places"))
    assert places.where("kind = 'geotext'").agg({"subscriptions": "max"}).first()[0] >= 40, "the hot spot"

    files = {file.name for file in (tmp_path / "index").glob("segment-*")}
    again = build_index(source, tmp_path / "index", session=spark, segments=8)
    assert read_manifest(tmp_path / "index") == manifest
    assert {file.name for file in (tmp_path / "index").glob("segment-*")} == files
    measured = {"seconds": 0, "stages": []}
    assert again.as_dict() | measured == built.as_dict() | measured
    assert not list((tmp_path / "index").glob(".staging*"))


def test_json_lines_and_geojson_together_with_nonsense(spark: SparkSession, tmp_path: Path) -> None:
    rows = subscriptions()[230:]
    lines = [json.dumps({"id": id, "interface": i, "filter": text}) for id, i, text in rows]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("\n".join([*lines[:50], "{]", ""]), encoding="utf-8")
    (tmp_path / "in" / "b.jsonl").write_bytes("\n".join(lines[50:]).encode() + b'\n\xff\xfe{"id"\n')
    (tmp_path / "in" / "_SUCCESS").touch()
    built = build_index(
        str(tmp_path / "in"), str(tmp_path / "index"), session=spark, quarantine=str(tmp_path / "rejected")
    )
    compare(tmp_path / "index", rows)
    assert built.quarantined == 2
    assert spark.read.parquet(str(tmp_path / "rejected")).where("reason like 'not JSON%'").count() == 2

    square = {"type": "Polygon", "coordinates": [[[0, 0], [60, 0], [60, 60], [0, 60], [0, 0]]]}
    collection = {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "id": 1, "geometry": square, "properties": {"interface": "I1"}},
            {"type": "Feature", "id": 2, "geometry": None, "properties": {"interface": "I2", "filter": "price > 5"}},
            {"type": "Feature", "id": 3, "geometry": None, "properties": {"interface": "I2"}},
        ],
    }
    (tmp_path / "wards.geojson").write_text(json.dumps(collection))
    built = build_index(tmp_path / "wards.geojson", tmp_path / "index", session=spark, max_quarantined=0.5)
    compare(tmp_path / "index", [("1", "I1", "area intersects BOX(0 0, 60 60)"), ("2", "I2", "price > 5")])
    assert built.quarantined == 1


def test_fields_corrupt_files_and_the_command(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constraint = {"name": "post", "op": "matches", "keywords": ["ipad"], "within": [0.0, 0.0, 60.0, 60.0], "text": None}
    other = {"name": "stock", "op": "=", "keywords": None, "within": None, "text": "S1"}
    (tmp_path / "in").mkdir()
    fields = pa.table({"id": [1, 2], "interface": ["I1", "I2"], "filter": [[constraint], [other]]})
    pq.write_table(fields, tmp_path / "in" / "a.parquet")
    whole = (tmp_path / "in" / "a.parquet").read_bytes()
    (tmp_path / "in" / "b.parquet").write_bytes(whole[:-20])
    (tmp_path / "in" / "c.parquet").write_bytes(b"")
    monkeypatch.setattr(command, "spark_session", lambda name, master, py_env, quiet: nullcontext(spark))
    arguments = ["build-index", str(tmp_path / "in"), str(tmp_path / "index"), "--strict", "--json"]
    arguments += ["--max-quarantined", "50"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 5
    summary = json.loads(result.stdout)
    assert (summary["subscriptions"], summary["quarantined"]) == (2, 2)
    assert "committed" in result.stderr
    rows = [("1", "I1", 'post matches {"ipad"} within BOX(0 0, 60 60)'), ("2", "I2", 'stock = "S1"')]
    compare(tmp_path / "index", rows)
    reasons = quarantined(spark, folder(tmp_path / "index", "quarantine"))
    assert all("not a whole Parquet file" in reason for reason in reasons.values())
    assert {name.rpartition("/")[2] for name in reasons} == {"b.parquet", "c.parquet"}


def test_damage_inside_a_file_costs_only_the_row_groups_it_is_in(spark: SparkSession, tmp_path: Path) -> None:
    rows = subscriptions()
    (tmp_path / "in").mkdir()
    write_parquet(tmp_path / "in" / "a.parquet", rows[:100], categories=True)  # no other schema than the strings'
    damaged = write_parquet(tmp_path / "in" / "b.parquet", rows[100:200])
    whole = bytearray(damaged.read_bytes())
    whole[4:2000] = bytes(1996)  # the footer stays
    damaged.write_bytes(whole)
    with pytest.raises(NotCommitted, match=r"\d\d% of the input went to the quarantine"):
        build_index(tmp_path / "in", tmp_path / "index", session=spark)
    built = build_index(tmp_path / "in", tmp_path / "index", session=spark, max_quarantined=0.6)
    compare(tmp_path / "index", rows[:100])
    assert (built.subscriptions, built.quarantined, built.duplicates) == (100, 1, 0)
    ((name, reason),) = quarantined(spark, folder(tmp_path / "index", "quarantine")).items()
    assert name.endswith("b.parquet")
    assert reason.startswith("row groups 0 to 0 cannot be read")


def test_nothing_to_build(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "none.jsonl").touch()
    built = build_index(tmp_path / "none.jsonl", tmp_path / "index", session=spark, allow_empty=True)
    assert (built.subscriptions, built.segments, built.quarantined) == (0, 0, 0)
    compare(tmp_path / "index", [])
    assert spark.read.parquet(built.quarantine).count() == 0
    empty = pa.table({name: pa.array([], pa.string()) for name in ("id", "interface", "filter")})
    pq.write_table(empty, tmp_path / "none.parquet")
    monkeypatch.setattr(command, "spark_session", lambda name, master, py_env, quiet: nullcontext(spark))
    arguments = ["build-index", str(tmp_path / "none.parquet"), str(tmp_path / "index"), "-q"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 5
    assert "no subscription was accepted, of 0 rows" in result.stderr
    result = CliRunner().invoke(app, [*arguments, "--allow-empty"])
    assert result.exit_code == 0
    assert "0 subscriptions, 0 filters in 0 segments" in " ".join(result.stdout.split())
    assert result.stderr == ""


def schema(**changes: Any) -> dict[str, Any]:
    columns = {"id": pa.string(), "interface": pa.string(), "filter": pa.string()} | changes
    return {name: kind for name, kind in columns.items() if kind is not None}


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (schema(), schema(filter=None), "filter is not there"),
        (schema(), schema(id=pa.int64()), "id is int64, and in"),
        (schema(interface=None), None, "no column interface; there are id, filter"),
        (schema(id=pa.float64()), None, "column id is double"),
        (schema(filter=pa.int64()), None, "column filter is int64"),
        (
            schema(filter=pa.list_(pa.struct({"name": pa.string(), "oper": pa.string()}))),
            None,
            "members name, oper; it needs name and op",
        ),
    ],
)
def test_schemas_that_are_wrong_or_drift(
    spark: SparkSession, tmp_path: Path, first: dict[str, Any], second: dict[str, Any] | None, why: str
) -> None:
    (tmp_path / "in").mkdir()
    for name, columns in (("a", first), ("b", second)):
        if columns is not None:
            pq.write_table(pa.schema(list(columns.items())).empty_table(), tmp_path / "in" / f"{name}.parquet")
    with pytest.raises(InvalidValue, match=why):
        build_index(tmp_path / "in", tmp_path / "index", session=spark)
    assert not (tmp_path / "index" / "manifest.json").exists()


def test_sources_that_are_not_there_or_not_told(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.geojson"):
        (tmp_path / name).touch()
    for name in ("_subs.jsonl", ".subs.jsonl", "a[1].jsonl", "a:b.jsonl"):
        (tmp_path / name).write_text('{"id": "s", "interface": "I", "filter": "x = 1"}')
        assert build_index(tmp_path / name, tmp_path / "index").subscriptions == 1
        (tmp_path / name).unlink()
    for source, format, why in (
        (tmp_path / "nowhere.parquet", None, "no such file"),
        (tmp_path / "*.xyz", None, "no such file"),
        (tmp_path, None, "the names do not tell the format"),
        (tmp_path, "csv", "no format is called 'csv'"),
    ):
        with pytest.raises(InvalidValue, match=why):
            build_index(source, tmp_path / "index", session=spark, format=format)


def test_a_place_that_holds_something_else_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letters.txt").touch()
    (tmp_path / "none.jsonl").touch()
    with pytest.raises(InvalidValue, match="something other than an earlier table"):
        build_index(
            str(tmp_path / "none.jsonl"), str(tmp_path / "index"), session=spark, quarantine=str(tmp_path / "mine")
        )
    assert (tmp_path / "mine" / "letters.txt").exists()
    assert not (tmp_path / "index").exists()


def test_a_killed_job_leaves_the_old_index(tmp_path: Path) -> None:
    rows = subscriptions()
    index = tmp_path / "index"
    write_index(index, rows[:20])
    source = write_parquet(tmp_path / "subscriptions.parquet", rows)
    program = """
import os, signal, sys
from contrada.spark_jobs.build import build_index

build_index.commit_build = lambda *given, **options: os.kill(os.getpid(), signal.SIGKILL)
build_index.build_index(*sys.argv[1:])
"""
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)  # noqa: PTH100  # a link stays a link
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program, source, index], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL, "it was killed when all segments were built"
    assert list(index.glob(".staging-*/segments/*"))
    compare(index, rows[:20])
    build_index(source, index)
    assert not list(index.glob(".staging-*")), "what it left is swept away"
    compare(index, rows)


def test_without_java_a_build_runs_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the files that Spark writes; and with Java it does so when it is told to."""
    rows = subscriptions()
    source = write_parquet(tmp_path / "subscriptions.parquet", rows)

    def started(*given: object, **options: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(command, "spark_session", started)
    told = CliRunner().invoke(
        app, ["build-index", str(source), str(tmp_path / "index"), "-q", "--json", "--engine", "local"]
    )
    assert json.loads(told.stdout)["subscriptions"] == len(rows)
    compare(tmp_path / "index", rows)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert CliRunner().invoke(app, ["build-index", str(source), str(tmp_path / "again"), "-q"]).exit_code == 0
    names = [sorted(each.name for each in (tmp_path / where).glob("segment-*")) for where in ("index", "again")]
    assert names[0] == names[1]


def test_one_build_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    import fcntl

    (tmp_path / "none.jsonl").touch()
    (tmp_path / "index").mkdir()
    with (tmp_path / "index" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InvalidValue, match="another job is writing"):
            build_index(tmp_path / "none.jsonl", tmp_path / "index", session=spark)
