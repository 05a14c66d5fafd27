"""Jobs by URL: an index and events in a local S3 server; built, opened, matched and replayed as on a disk."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contrada
from contrada import spark_jobs
from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.segments import stored_index
from contrada.forwarding.segments.manifest import MANIFEST, read_manifest
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import join, name_inside
from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.build.plan import plan_build
from contrada.spark_jobs.common.errors import NotCommitted, OutOfReach
from contrada.spark_jobs.replaying.logs.event_logs import Layout
from contrada.spark_jobs.replaying.logs.event_stream import stream
from contrada.spark_jobs.replaying.replay import Replay, plan_replay, replay
from contrada.spark_jobs.stores import places
from contrada.spark_jobs.stores.listing import stored_files
from tests.spark_jobs.replaying.test_replay import record

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = [
    *({"id": f"s{n}", "interface": f"I{n % 7}", "filter": f"price > {n} and kind = {n % 3}"} for n in range(300)),
    *({"id": f"g{n}", "interface": "G", "filter": f"area inside BOX({n} {n}, {n + 9} {n + 9})"} for n in range(300)),
]
WHEN = datetime(2026, 11, 16, 12, tzinfo=UTC)


def put_rows(url: str, rows: list[dict[str, str]], name: str = "rows.jsonl") -> str:
    address = join(url, name)
    object_store.write(address, "".join(json.dumps(row) + "\n" for row in rows).encode())
    return address


def names(url: str) -> set[str]:
    return {name_inside(url, each.address) for each in object_store.entries(url)}


def answers(table: SegmentedTable[str]) -> list[list[tuple[str, str]]]:
    asked = [{"price": n, "kind": n % 3, "area": contrada.Box(n, n, n + 1, n + 1)} for n in range(0, 300, 17)]
    return [sorted(table.match_subscriptions(each)) for each in asked]


def put_events(url: str, tmp_path: Path) -> list[dict[str, object]]:
    """The same events as Parquet, and as packed and plain lines."""
    prices = list(range(0, 300, 5))
    times = [WHEN + timedelta(minutes=30 * n) for n in range(len(prices))]
    ids, kinds = [f"e{price}" for price in prices], [price % 3 for price in prices]
    file = tmp_path / "events.parquet"
    pq.write_table(pa.table({"id": ids, "time": times, "price": prices, "kind": kinds}), file, row_group_size=20)
    object_store.upload(file, join(url, "events", "a.parquet"))
    lines = [
        {"id": id, "time": time.isoformat(), "attributes": {"price": price, "kind": kind}}
        for id, time, price, kind in zip(ids, times, prices, kinds, strict=True)
    ]
    half = len(lines) // 2
    plain, packed = (
        "".join(json.dumps(each) + "\n" for each in some).encode() for some in (lines[:half], lines[half:])
    )
    object_store.write(join(url, "lines", "a.jsonl"), plain)
    object_store.write(join(url, "lines", "b.jsonl.gz"), gzip.compress(packed))
    return lines


@pytest.fixture
def built(url: str, tmp_path: Path) -> tuple[str, Path]:
    """The same index by URL and by path."""
    source = put_rows(url, ROWS)
    by_url = build_index(source, join(url, "index"), segments=4)
    (tmp_path / "rows.jsonl").write_bytes(object_store.read(source, 1 << 20))
    by_path = build_index(tmp_path / "rows.jsonl", tmp_path / "index", segments=4)
    assert (by_url.subscriptions, by_url.segments, by_url.bytes) == (600, by_path.segments, by_path.bytes)
    assert "secret" not in json.dumps(by_url.as_dict())
    return join(url, "index"), tmp_path / "index"


def test_an_index_by_url_is_that_on_a_disk(built: tuple[str, Path], url: str) -> None:
    index, path = built
    manifest = read_manifest(index)
    assert manifest == read_manifest(path)
    files = {name for segment in manifest.segments for name in segment.files}
    there = names(index)
    assert {name for name in there if "/" not in name} == {*files, MANIFEST}
    assert {name.split("/")[0] for name in there if "/" in name} == set(manifest.folders.values())
    assert answers(SegmentedTable.open(index)) == answers(SegmentedTable.open(path))
    with contrada.Broker(index=index) as broker, contrada.Client(broker.url) as client:
        assert client.status()["index"]["path"].startswith("s3://bucket/")
        assert client.index_load(join(url, "index"), "0/2")["subscriptions"] < 600
        with pytest.raises(contrada.Refused, match="not an index"):
            client.index_load(join(url, "none"))


def test_a_build_replaces_an_index_at_once_and_sweeps_up(
    built: tuple[str, Path], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, _ = built
    first = read_manifest(index)
    opened = SegmentedTable.open(index)
    before = answers(opened)

    def fail(*_: object, **__: object) -> None:
        raise CorruptFile("killed")

    monkeypatch.setattr(places, "commit_stored", fail)
    with pytest.raises(CorruptFile, match="killed"):
        build_index(put_rows(url, ROWS[:300]), index)
    assert read_manifest(index) == first
    monkeypatch.setattr(places, "commit_stored", stored_index.commit_stored)
    build_index(put_rows(url, ROWS[300:]), index)
    second = read_manifest(index)
    assert second.subscriptions == 300
    kept = {name for each in (first, second) for segment in each.segments for name in segment.files}
    assert {name for name in names(index) if name.startswith("segment-")} == kept
    assert not any(name.startswith(".") for name in names(index))
    assert answers(opened) == before
    with pytest.raises(NotCommitted, match=r"s3://bucket/.*/refused"):
        build_index(put_rows(url, [{"id": "x", "interface": "I", "filter": "price >"}]), index)
    assert read_manifest(index) == second
    assert any(name.startswith("refused/") for name in names(index))
    with object_store.alone_in(index), pytest.raises(InvalidValue, match="another job is writing s3://bucket"):
        build_index(put_rows(url, ROWS), index)


def test_a_damaged_segment_is_not_opened(built: tuple[str, Path]) -> None:
    index, _ = built
    info = read_manifest(index).segments[0]
    content = bytearray(object_store.read(join(index, info.file), 1 << 30))
    content[len(content) // 2] ^= 1
    object_store.write(join(index, info.file), bytes(content))
    with pytest.raises(CorruptFile):
        SegmentedTable.open(index)
    object_store.delete([join(index, info.file)])
    with pytest.raises(CorruptFile, match="missing"):
        SegmentedTable.open(index)


def test_places_are_looked_at_before_anything_is_begun(url: str, tmp_path: Path) -> None:
    source = put_rows(url, ROWS)
    with pytest.raises(InvalidValue, match=r"OUT .* is inside SUBSCRIPTIONS|SUBSCRIPTIONS .* is inside OUT"):
        plan_build(source, url)
    with pytest.raises(InvalidValue, match="nothing is there"):
        plan_build(join(url, "none.jsonl"), join(url, "index"))
    with pytest.raises(InvalidValue, match="out of reach"):
        plan_build(source, "s3://bucket/x?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1")
    with pytest.raises(InvalidValue, match=r"--quarantine s3:.*: a URL"):
        plan_build(source, join(url, "index"), quarantine="s3://bucket/q")
    object_store.write(join(url, "other", "x.txt"), b"x")
    build_index(source, join(url, "index"))
    put_events(url, tmp_path)
    with pytest.raises(InvalidValue, match="something other"):
        plan_replay(Replay(join(url, "events"), join(url, "index"), join(url, "other")))
    with pytest.raises(InvalidValue, match="neither an index"):
        plan_replay(Replay(join(url, "events"), join(url, "none"), join(url, "out")))


def test_patterns_of_a_store(url: str) -> None:
    for name in ("a/x.jsonl", "a/y.jsonl", "b/x.jsonl", "b/c/x.jsonl", "b/_x/x.jsonl", "b/.x.jsonl"):
        object_store.write(join(url, *name.split("/")), b"")

    def found(pattern: str) -> list[str]:
        return [name_inside(url, file.address) for file in stored_files(join(url, *pattern.split("/")), "X")]

    assert found("a") == ["a/x.jsonl", "a/y.jsonl"]
    assert found("b") == ["b/c/x.jsonl", "b/x.jsonl"]
    assert found("*/x.jsonl") == ["a/x.jsonl", "b/x.jsonl"]
    assert found("**/x.jsonl") == ["a/x.jsonl", "b/c/x.jsonl", "b/x.jsonl"]
    assert found("{a,b}/[xy].jsonl") == ["a/x.jsonl", "a/y.jsonl", "b/x.jsonl"]
    assert found("a/x.jsonl") == ["a/x.jsonl"]


def test_a_replay_by_url_is_that_of_a_disk(
    built: tuple[str, Path], url: str, tmp_path: Path, spark: SparkSession
) -> None:
    index, path = built
    put_events(url, tmp_path)
    expected = replay(spark, Replay(tmp_path / "events.parquet", path, tmp_path / "out")).as_dict()
    here = pq.read_table(tmp_path / "out" / "deliveries").to_pylist()
    key = ("event_id", "interface", "filter_id")
    out = join(url, "out")
    for number, events in enumerate((join(url, "events"), join(url, "lines"), join(url, "events"))):
        memory = 20_000 if number == 2 else None
        told = replay(spark, Replay(events, index, out, worker_memory=memory)).as_dict()
        counts = ("events", "deliveries", "rejected", "subscriptions", "dead", "first_event", "last_event")
        assert {name: told[name] for name in counts} == {name: expected[name] for name in counts}
        pointer = json.loads(object_store.read(join(out, "summary.json"), 1 << 20))
        assert pointer["folder"] == told["folder"]
        run = join(out, pointer["folder"])
        found = [
            row
            for each in object_store.entries(join(run, "deliveries"))
            for row in pq.read_table(object_store.open_object(each.address)).to_pylist()
        ]
        assert sorted(tuple(row[k] for k in key) for row in found) == sorted(tuple(row[k] for k in key) for row in here)
        assert {name.split("/")[0] for name in names(run)} == {
            *("deliveries", "subscriptions", "quarantine", "report.html", "timeline.png"),
        }
    assert len({name.split("/")[0] for name in names(out) if name.startswith("run-")}) == 2  # this one, and the last
    compared = replay(
        spark, Replay(join(url, "events"), index, join(url, "compared"), compare=True, recorded=join(run, "deliveries"))
    )
    assert compared.compare is not None
    assert (compared.compare.missing, compared.compare.extra) == (0, 0)


def test_tables_are_built_and_matched_by_url(
    built: tuple[str, Path], url: str, tmp_path: Path, spark: SparkSession
) -> None:
    index, path = built
    put_events(url, tmp_path)
    events = spark.read.parquet(str(tmp_path / "events.parquet"))

    def deliveries(place: str | Path) -> list[tuple[str, str]]:
        return sorted((row.event_id, row.filter_id) for row in spark_jobs.match(events, place).collect())

    assert deliveries(index) == deliveries(path)
    rows = spark.createDataFrame(
        [(each["id"], each["interface"], each["filter"]) for each in ROWS], "id string, interface string, filter string"
    )
    assert spark_jobs.build_index(rows, join(url, "again"), segments=4).subscriptions == 600
    assert deliveries(join(url, "again")) == deliveries(path)
    assert spark_jobs.build_index(
        join(url, "rows.jsonl"), join(url, "third"), segments=4, session=spark
    ).segments == len(read_manifest(path).segments)
    assert read_manifest(join(url, "third")).segments == read_manifest(path).segments


def test_what_a_store_cannot_give_is_no_damage(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({name: [row[name] for row in ROWS] for name in ("id", "interface", "filter")}), file)
    source = join(url, "rows.parquet")
    object_store.upload(file, source)
    plan_build(source, join(url, "index"))
    object_store.write(source, file.read_bytes()[:-100])
    with pytest.raises(NotCommitted, match="no subscription was accepted"):
        build_index(source, join(url, "index"))
    object_store.upload(file, source)

    class Broken(object_store._Reading):
        def readinto(self, buffer: object) -> int:
            raise OSError(5, "the network is down")

    monkeypatch.setattr(object_store, "_Reading", Broken)
    with pytest.raises(OutOfReach, match="the network is down"):
        build_index(source, join(url, "index"))


def test_an_index_larger_than_the_cache(
    built: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, _ = built
    largest = max(each.bytes for each in read_manifest(index).segments)
    monkeypatch.setenv("CONTRADA_CACHE_BYTES", str(largest))
    with pytest.raises(InvalidValue, match="CONTRADA_CACHE_BYTES"):
        SegmentedTable.open(index)  # it would keep all of them mapped
    from contrada.spark_jobs.common.index_cache import IndexFiles, opened

    segments = opened(IndexFiles.of(index, budget=1))  # one at a time
    assert sum(segments[n].size for n in range(len(segments.infos))) == 600
    held = sum(file.stat().st_size for file in (tmp_path / "cache").glob("*/[!.]*"))
    assert 0 < held <= largest


def test_a_recording_by_url(url: str, tmp_path: Path, spark: SparkSession) -> None:
    record(tmp_path / "recording")
    object_store.upload_folder(tmp_path / "recording", join(url, "recording"))
    here = replay(spark, Replay(tmp_path / "recording", tmp_path / "recording", tmp_path / "out", compare=True))
    there = replay(spark, Replay(join(url, "recording"), join(url, "recording"), join(url, "out"), compare=True))
    assert there.compare is not None
    assert (there.compare.missing, there.compare.extra) == (0, 0)
    assert (there.events, there.deliveries, there.problems) == (here.events, here.deliveries, here.problems)
    assert there.deliveries > 100
    published = [each.id for each in stream(join(url, "recording"), Layout())]
    assert published == [each.id for each in stream(tmp_path / "recording", Layout())]
    build_index(put_rows(url, ROWS), join(url, "index"))
    assert replay(spark, Replay(join(url, "recording"), join(url, "index"), join(url, "other"))).events == 120
    with pytest.raises(InvalidValue, match="of one recording cannot be compared"):
        plan_replay(Replay(join(url, "recording"), tmp_path / "recording", join(url, "third"), compare=True))
