"""Replays on a real local Spark session: the deliveries are those of matching every event by itself."""

from __future__ import annotations

import gzip
import json
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from contrada import spark_jobs
from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.codec.json import notification_to_json
from contrada.forwarding.codec.msgpack import encode_filter, encode_notification
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.recording.writer import RecordingWriter
from contrada.forwarding.segments.index_directory import write_index
from contrada.spark_jobs.common.index_cache import IndexFiles
from contrada.spark_jobs.replaying.logs.event_logs import Layout
from contrada.spark_jobs.replaying.replay import Replay, replay
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

START = datetime(2026, 11, 15, 22, tzinfo=UTC)
WORDS = ("ipad", "sale", "東京", "café", "hot")
TIME = pa.timestamp("us", tz="UTC")
POINT = pa.struct({"x": pa.float64(), "y": pa.float64()})
POST = pa.struct({"keywords": pa.list_(pa.string()), "x": pa.float64(), "y": pa.float64()})
SCHEMA = pa.schema(
    {"id": pa.string(), "time": TIME, "stock": pa.string(), "price": pa.float64(), "at": POINT, "post": POST}
)


def subscriptions(count: int, seed: int = 1) -> list[tuple[str, str, str]]:
    """Filters of every kind of segment, some with several filters, some that nothing satisfies."""
    rng = random.Random(seed)
    rows = []
    for n in range(count):
        x, y = rng.randint(-20, 16), rng.randint(-20, 16)
        low = rng.randint(0, 80)
        text = (
            f'stock = "S{rng.randint(0, 9)}" and price > {low} and price < {low + 30}',
            f"at inside BOX({x} {y}, {x + 6} {y + 6}) or price > 97",
            f'post matches {{"{rng.choice(WORDS)}"}} within BOX({x} {y}, {x + 12} {y + 12})',
            f'stock prefix "S" and price > {95 + low}' if n % 8 else "price > 5 and price < 1",
        )[n % 4]
        rows.append((f"s{n}-ö", f"client {n % 5}", text))
    return rows


def event(rng: random.Random, n: int) -> dict[str, Any]:
    def place() -> dict[str, float]:
        return {"x": rng.uniform(-20, 20), "y": rng.uniform(-20, 20)}

    return {
        "id": f"e{n}",
        "time": START + timedelta(minutes=n),
        "stock": rng.choice([None, f"S{rng.randint(0, 9)}"]),
        "price": rng.choice([None, float(rng.randint(0, 200))]),
        "at": rng.choice([None, place()]),
        "post": rng.choice([None, {"keywords": rng.sample(WORDS, 2), **place()}]),
    }


def notification(row: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in row.items() if value is not None and name not in ("id", "time")}
    if "at" in found:
        found["at"] = Point(found["at"]["x"], found["at"]["y"])
    if "post" in found:
        post = found["post"]
        found["post"] = GeoText(post["keywords"], at=(post["x"], post["y"]))
    return found


def expected(rows: list[dict[str, Any]], subs: list[tuple[str, str, str]]) -> set[tuple[Any, ...]]:
    parsed = [(id, interface, parse(text)) for id, interface, text in subs]
    return {
        (row["id"], row["time"], interface, id)
        for row in rows
        for id, interface, expression in parsed
        if expression.matches(notification(row))
    }


def deliveries(out: Path) -> set[tuple[Any, ...]]:
    table = ds.dataset(out / "deliveries", partitioning="hive").to_table()
    rows = table.select(["event_id", "time", "interface", "filter_id"]).to_pylist()
    found = {tuple(row.values()) for row in rows}
    assert len(found) == len(rows), "a delivery is there twice"
    return found


def told(out: Path) -> Any:
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replay")


@pytest.fixture(scope="module")
def subs() -> list[tuple[str, str, str]]:
    return subscriptions(200)


@pytest.fixture(scope="module")
def index(home: Path, subs: list[tuple[str, str, str]]) -> Path:
    write_index(home / "index", subs, segment_filters=20)
    return home / "index"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    rng = random.Random(7)
    return [event(rng, n) for n in range(400)]


@pytest.fixture(scope="module")
def events(home: Path, rows: list[dict[str, Any]]) -> Path:
    (home / "events").mkdir()
    for part in range(3):
        table = pa.Table.from_pylist(rows[part::3], SCHEMA)
        pq.write_table(table, home / "events" / f"{part}.parquet")
    return home / "events"


@pytest.fixture(scope="module")
def out(spark: SparkSession, home: Path, events: Path, index: Path) -> Path:
    """One plain replay, looked at by several tests."""
    replay(spark, Replay(events, index, home / "out"))
    return home / "out"


# ---------------------------------------------------------------------------------------------- what comes out


def test_deliveries_are_those_of_matching_one_by_one(out: Path, rows: Any, subs: Any) -> None:
    assert deliveries(out) == expected(rows, subs)
    assert not list(out.rglob(".*/*"))
    assert {each.name for each in out.iterdir()} == {
        "deliveries",
        "subscriptions",
        "quarantine",
        "report.html",
        "timeline.png",
        "heat_map.png",
        "summary.json",
    }


def test_days_are_days_in_utc(out: Path) -> None:
    days = {each.name for each in (out / "deliveries").iterdir()}
    assert days == {"day=2026-11-15", "day=2026-11-16"}
    for each in (out / "deliveries").rglob("*.parquet"):
        times = pq.ParquetFile(each).read(["time"]).column(0).to_pylist()
        assert {f"day={time.date().isoformat()}" for time in times} == {each.parent.name}


def test_the_summary_adds_up(out: Path, rows: Any, subs: Any) -> None:
    summary, wanted = told(out), expected(rows, subs)
    per = {id: 0 for id, _, _ in subs}
    for _, _, _, id in wanted:
        per[id] += 1
    assert summary["events"] == len(rows)
    assert summary["deliveries"] == len(wanted)
    assert summary["rejected"] == 0
    assert summary["subscriptions"] == len(subs)
    assert summary["dead"] == sum(count == 0 for count in per.values())
    assert [row["deliveries"] for row in summary["top_subscriptions"]] == sorted(per.values(), reverse=True)[:20]
    assert {row["filter_id"] for row in summary["dead_subscriptions"]} <= {id for id, n in per.items() if not n}
    table = pq.read_table(out / "subscriptions").to_pylist()
    assert {row["filter_id"]: row["deliveries"] for row in table} == per
    assert summary["first_event"] == "2026-11-15T22:00:00+00:00"


def test_events_that_travel_to_segments_give_the_same(
    spark: SparkSession, home: Path, events: Path, index: Path, out: Path
) -> None:
    replay(spark, Replay(events, index, home / "routed", worker_memory=200_000))
    assert deliveries(home / "routed") == deliveries(out)
    first, second = told(out), told(home / "routed")
    for each in (first, second):
        assert each.pop("seconds")
        assert [stage["rows"] for stage in each.pop("stages")] == [400]
    assert first == second


def test_as_dataframes(spark: SparkSession, home: Path, events: Path, index: Path, out: Path) -> None:
    table = spark.read.parquet(str(events))
    found = spark_jobs.match(table, index).collect()
    assert {(row["event_id"], row["filter_id"]) for row in found} == {(e, f) for e, _, _, f in deliveries(out)}
    for name, memory in (("table", None), ("routed-table", 200_000)):
        done = spark_jobs.replay(table, index, home / name, worker_memory=memory)
        assert done.events == 400
        assert deliveries(home / name) == deliveries(out)


def test_other_layouts_give_the_same(spark: SparkSession, home: Path, rows: Any, index: Path, out: Path) -> None:
    texts = [notification_to_json(notification(row)) for row in rows]
    times = [row["time"].isoformat() for row in rows]
    ids = [row["id"] for row in rows]
    path = home / "lines"
    path.mkdir()
    documents = [
        json.dumps({"id": id, "time": time, "attributes": json.loads(text)}, ensure_ascii=False)
        for id, time, text in zip(ids, times, texts, strict=True)
    ]
    (path / "a.jsonl").write_text("\n".join(documents[:100]), encoding="utf-8")
    (path / "b.jsonl").write_text("\n".join(["", *documents[100:], ""]), encoding="utf-8")
    replay(spark, Replay(path, index, home / "from lines"))
    assert deliveries(home / "from lines") == deliveries(out)
    table = pa.table({"key": ids, "when": times, "attributes": texts})
    pq.write_table(table, home / "texts.parquet")
    layout = Layout(id="key", time="when")
    replay(spark, Replay(home / "texts.parquet", index, home / "from texts", layout))
    assert deliveries(home / "from texts") == deliveries(out)


def test_running_it_again_replaces_the_output(spark: SparkSession, home: Path, index: Path) -> None:
    pq.write_table(pa.Table.from_pylist([], SCHEMA), home / "none.parquet")
    target = home / "again"
    target.mkdir()
    summary = replay(spark, Replay(home / "none.parquet", index, target)).as_dict()
    assert summary["events"] == summary["deliveries"] == 0
    assert summary["dead"] == summary["subscriptions"] == 200
    table = ds.dataset(target / "deliveries", partitioning="hive").to_table()
    assert table.num_rows == 0
    assert {"event_id", "time", "interface", "filter_id", "day"} == set(table.column_names)
    assert spark.read.parquet(str(target / "deliveries")).count() == 0
    (home / "no files").mkdir()
    replay(spark, Replay(home / "no files", index, target))
    assert told(target)["events"] == 0


# ---------------------------------------------------------------------------------------------- bad input


def test_bad_events_go_to_the_quarantine(spark: SparkSession, home: Path, index: Path) -> None:
    path = home / "bad.jsonl"
    fine = {"id": "é", "time": "2026-11-16T00:30:00+01:00", "attributes": {"price": 98}}
    lines = [json.dumps(fine), "{", json.dumps(fine | {"id": None}), json.dumps(fine | {"time": "noon"})]
    path.write_bytes("\n".join(lines).encode() + b'\n{"id": "caf\xe9"}\n')
    replay(spark, Replay(path, index, home / "bad"))
    bad = pq.read_table(home / "bad" / "quarantine").to_pylist()
    assert told(home / "bad")["rejected"] == len(bad) == 4
    assert sorted(row["reason"].split(":")[0] for row in bad) == [
        "'noon' is not a time in ISO 8601, such as 2026-11-16T09",
        "not JSON",
        "not JSON",
        "the event has no id",
    ]
    assert {row["event_id"] for row in bad} == {None}
    assert {(e, t) for e, t, _, _ in deliveries(home / "bad")} == {("é", datetime(2026, 11, 15, 23, 30, tzinfo=UTC))}


def test_files_may_disagree_about_their_schema(spark: SparkSession, home: Path) -> None:
    write_index(home / "drift index", [("n", "i", "code = 7"), ("s", "i", 'code = "7"'), ("c", "i", 'colour = "red"')])
    path = home / "drift"
    path.mkdir()
    times = [START, START]
    parts = {
        "2024": {"id": ["a", "b"], "time": times, "code": [7, 8]},
        "2025": {"id": ["c", "d"], "time": times, "code": ["7", None]},
        "2026": {"id": [5, 6], "time": times, "colour": ["red", "blue"], "code": [7.0, 7.5]},
    }
    for name, columns in parts.items():
        pq.write_table(pa.table(columns), path / f"{name}.parquet")
    replay(spark, Replay(path, home / "drift index", home / "drift out"))
    found = {(e, f) for e, _, _, f in deliveries(home / "drift out")}
    assert found == {("a", "n"), ("c", "s"), ("5", "n"), ("5", "c")}


def test_damaged_files(spark: SparkSession, home: Path, index: Path, events: Path) -> None:
    path = home / "damaged"
    path.mkdir()
    whole = (events / "0.parquet").read_bytes()
    (path / "a.parquet").write_bytes(whole)
    (path / "b.parquet").write_bytes(b"this is not Parquet")
    (path / "c.parquet").write_bytes(whole[: len(whole) // 2])
    summary = replay(spark, Replay(path, index, home / "damaged out")).as_dict()
    assert summary["rejected"] == 2
    assert summary["events"] == 134
    bad = pq.read_table(home / "damaged out" / "quarantine").to_pylist()
    assert {row["event"] for row in bad} == {str(path / "b.parquet"), str(path / "c.parquet")}
    broken = bytearray(whole)
    broken[8:2000] = bytes(1992)  # pages behind a footer that is whole
    (path / "d.parquet").write_bytes(broken)
    with pytest.raises(ContradaError, match=r"d\.parquet: damaged"):
        replay(spark, Replay(path, index, home / "damaged out"))
    assert told(home / "damaged out") == summary  # as it was


def test_a_packed_log_that_is_cut_is_set_aside_by_name(spark: SparkSession, tmp_path: Path) -> None:
    write_index(tmp_path / "index", [("s", "i", "price > 1"), ("t", "i", "price > 2")])
    lines = "\n".join(
        json.dumps({"id": n, "time": f"2026-11-16T12:00:{n:02}Z", "attributes": {"price": n}}) for n in range(9)
    )
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "a.jsonl").write_text(lines)
    (tmp_path / "log" / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "log" / "c.jsonl.gz").write_bytes(gzip.compress(lines.encode())[:-5])
    for memory in (None, 1):  # matched where they are, and routed
        job = Replay(tmp_path / "log", tmp_path / "index", tmp_path / "out", worker_memory=memory)
        summary = replay(spark, job).as_dict()
        assert (summary["events"], summary["deliveries"], summary["rejected"]) == (18, 2 * (7 + 6), 1)
        (bad,) = pq.read_table(tmp_path / "out" / "quarantine").to_pylist()
        assert bad["reason"].startswith(f"{tmp_path / 'log' / 'c.jsonl.gz'}: cut or damaged")


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"time": [START], "a": [1]}, "no column 'id'"),
        ({"id": ["e"], "a": [1]}, "no column 'time'"),
        ({"id": ["e"], "time": [START]}, "no column of attributes"),
        ({"id": ["e"], "time": [START.replace(tzinfo=None)], "a": [1]}, "--timezone"),
        ({"id": ["e"], "time": [17], "a": [1]}, "not timestamps"),
        ({"id": ["e"], "time": [START], "a": [[True]]}, "attribute 'a'"),
        ({"id": ["e"], "time": [START], "attributes": [5]}, "attributes are a struct"),
    ],
)
def test_schemas_that_are_no_events(
    spark: SparkSession, tmp_path: Path, index: Path, columns: dict[str, Any], why: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "events.parquet")
    with pytest.raises(InvalidValue, match=why):
        replay(spark, Replay(tmp_path / "events.parquet", index, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_paths_that_are_nothing(spark: SparkSession, tmp_path: Path, index: Path, events: Path) -> None:
    (tmp_path / "picture.png").touch()
    with pytest.raises(InvalidValue, match="no such file"):
        replay(spark, Replay(tmp_path / "gone", index, tmp_path / "out"))
    with pytest.raises(InvalidValue, match="expected files"):
        replay(spark, Replay(tmp_path / "picture.png", index, tmp_path / "out"))
    with pytest.raises(InvalidValue, match="neither an index"):
        replay(spark, Replay(events, tmp_path, tmp_path / "out"))
    with pytest.raises(InvalidValue, match="--recorded"):
        replay(spark, Replay(events, index, tmp_path / "out", compare=True))


def test_one_hot_keyword(spark: SparkSession, tmp_path: Path) -> None:
    """Every event matches every subscription: nothing is lost."""
    write_index(tmp_path / "index", [(f"s{n}", "i", f'post matches {{"hot"}} and n >= {-n}') for n in range(300)])
    table = pa.table(
        {
            "id": [f"e{n}" for n in range(400)],
            "time": pa.array([START] * 400, TIME),
            "n": list(range(400)),
            "post": pa.array([{"keywords": ["hot"], "x": 0.0, "y": 0.0}] * 400, POST),
        }
    )
    pq.write_table(table, tmp_path / "events.parquet")
    for number, memory in enumerate((None, 1)):
        job = Replay(tmp_path / "events.parquet", tmp_path / "index", tmp_path / f"out{number}", worker_memory=memory)
        summary = replay(spark, job).as_dict()
        assert summary["deliveries"] == 400 * 300
        assert pq.read_table(tmp_path / f"out{number}" / "deliveries").num_rows == 400 * 300
        assert {row["deliveries"] for row in summary["top_subscriptions"]} == {400}


def test_what_if(spark: SparkSession, home: Path, events: Path, index: Path, rows: Any, out: Path) -> None:
    tried = [("new", "me", "price > 50"), ("never", "me", "price < -1")]
    write_index(home / "tried", tried)
    summary = replay(spark, Replay(events, index, home / "what if out", what_if=home / "tried")).as_dict()
    assert deliveries(home / "what if out") == deliveries(out)
    assert deliveries(home / "what if out" / "what_if") == expected(rows, tried)
    assert summary["events"] == len(rows)
    assert summary["what_if"]["dead_subscriptions"] == [{"filter_id": "never", "interface": "me"}]
    assert summary["what_if"]["deliveries"] == len(expected(rows, tried))


# ---------------------------------------------------------------------------------------------- recordings


def record(path: Path, *, wrong: bool = False) -> None:
    """What a broker might write: clients come and go, it rolls files and starts anew."""
    filters = {
        n: encode_filter(parse(text)) for n, text in enumerate(("price > 10", "price < 50", "at inside BOX(0 0, 5 5)"))
    }
    holds = (lambda p: p > 10, lambda p: p < 50, lambda p: p % 2 == 0)
    rng = random.Random(3)
    number = 1
    for _ in range(2):
        with RecordingWriter(path, "b") as writer:
            alive: dict[int, int] = {}
            for step in range(60):
                which = step % 3
                if rng.random() < 0.3:
                    interface = 100 * which + step
                    alive[interface] = which
                    writer.subscribed(interface, f"client {which}", 1, step, [filters[which], filters[which]])
                elif alive and rng.random() < 0.3:
                    interface = rng.choice(list(alive))
                    writer.unsubscribed(interface)
                    del alive[interface]
                price = rng.randint(0, 60)
                body = {"price": price, "at": Point(1, 1) if price % 2 == 0 else Point(9, 9)}
                matched = {each for each, which in alive.items() if holds[which](price)}
                if wrong and step == 30:
                    matched = matched ^ set(list(alive)[:1])
                writer.accepted("b", number, "p", [encode_notification(body)], [matched])
                number += 1
                writer.commit()
                if step == 40:
                    writer.reopen()


def test_a_recording_replayed_shows_no_difference(spark: SparkSession, home: Path) -> None:
    path = home / "recording"
    record(path)
    assert len(list(path.glob("*.rec"))) == 4
    for number, memory in enumerate((None, 1)):
        target = home / f"recording out {number}"
        summary = replay(spark, Replay(path, path, target, compare=True, worker_memory=memory)).as_dict()
        assert summary["compare"] == {"missing": 0, "extra": 0, "differences": []}
        assert summary["events"] == 120
        assert summary["deliveries"] > 100
        assert pq.read_table(target / "differences").num_rows == 0


def test_injected_differences_are_found(spark: SparkSession, home: Path) -> None:
    path = home / "wrong recording"
    record(path, wrong=True)
    summary = replay(spark, Replay(path, path, home / "wrong out", compare=True)).as_dict()
    assert summary["compare"]["missing"] + summary["compare"]["extra"] == 2
    found = pq.read_table(home / "wrong out" / "differences").to_pylist()
    assert sorted(row["event_id"] for row in found) == ["b:31", "b:91"]
    assert {row["event_id"] for row in summary["compare"]["differences"]} == {"b:31", "b:91"}


def test_compared_with_an_earlier_replay(spark: SparkSession, home: Path, events: Path, subs: Any, out: Path) -> None:
    changed = [(id, i, "price > 1000" if id == "s1-ö" else text) for id, i, text in subs]
    write_index(home / "changed", changed)
    job = Replay(events, home / "changed", home / "changed out", compare=True, recorded=out / "deliveries")
    summary = replay(spark, job).as_dict()
    gone = {row for row in deliveries(out) if row[3] == "s1-ö"}
    assert summary["compare"]["missing"] == len(gone) > 0
    assert summary["compare"]["extra"] == 0


def test_a_broker_that_had_an_index(spark: SparkSession, home: Path) -> None:
    path, index = home / "standing recording", home / "standing index"
    write_index(index, [("s1", "north", "price > 10"), ("s2", "north", "price > 20"), ("s3", "south", "price < 5")])
    digest = IndexFiles.of(index).digest

    def publish(writer: RecordingWriter, number: int, price: int, to: set[int]) -> None:
        writer.accepted("b", number, "p", [encode_notification({"price": price})], [to])

    with RecordingWriter(path, "b") as writer:
        publish(writer, 1, 30, set())
        writer.indexed(str(index), "", digest, 3, 3)
        writer.standing(1, "north")
        publish(writer, 2, 30, {1})
        writer.removed("s1")
        publish(writer, 3, 15, set())
        publish(writer, 4, 25, {1})
        writer.standing(2, "south")
        writer.added("s4", "south", encode_filter(parse("price > 100")))
        publish(writer, 5, 101, {1, 2})
        writer.subscribed(3, "client", 1, 1, [encode_filter(parse("price = 101"))])
        publish(writer, 6, 101, {1, 2, 3})
        writer.removed("s4")
        publish(writer, 7, 1, {2})
    summary = replay(spark, Replay(path, path, home / "standing out", compare=True)).as_dict()
    assert summary["compare"] == {"missing": 0, "extra": 0, "differences": []}
    assert summary["events"] == 7
    summary = replay(spark, Replay(path, index, home / "standing out", compare=True)).as_dict()
    assert {(row["event_id"], row["interface"], row["difference"]) for row in summary["compare"]["differences"]} == {
        ("b:1", "north", "extra"),
        ("b:3", "north", "extra"),
        ("b:5", "south", "missing"),
        ("b:6", "south", "missing"),
    }
    write_index(index, [("s1", "north", "price > 10")])
    with pytest.raises(ContradaError, match="built anew"):
        replay(spark, Replay(path, path, home / "standing out", compare=True))


def test_boxes_and_text_from_a_recording(spark: SparkSession, tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "rec", "b") as writer:
        writer.subscribed(1, "c", 1, 1, [encode_filter(parse('area overlaps BOX(0 0, 2 2) or t = "東京"'))])
        for n, body in enumerate(({"area": Box(1, 1, 3, 3)}, {"t": "東京"}, {"t": "tokyo"})):
            writer.accepted("b", n + 1, "p", [encode_notification(body)], [{1} if n < 2 else set()])
    file = next((tmp_path / "rec").glob("*.rec"))
    whole = file.read_bytes()
    with file.open("ab") as stream:
        stream.write(b"torn")  # as a kill leaves it
    summary = replay(spark, Replay(tmp_path / "rec", tmp_path / "rec", tmp_path / "out", compare=True)).as_dict()
    assert summary["compare"] == {"missing": 0, "extra": 0, "differences": []}
    assert summary["deliveries"] == 2
    assert len(summary["problems"]) == 1
    assert "torn" in summary["problems"][0]
    file.write_bytes(whole[:30] + b"rot" + whole[33:])
    with RecordingWriter(tmp_path / "rec", "b") as writer:
        writer.accepted("b", 9, "p", [encode_notification({"t": "東京"})], [set()])
    write_index(tmp_path / "index", [("s", "i", 't = "東京"')])
    for memory in (None, 1):
        summary = replay(
            spark, Replay(tmp_path / "rec", tmp_path / "index", tmp_path / "out", worker_memory=memory)
        ).as_dict()
        assert summary["rejected"] == 1
        (bad,) = pq.read_table(tmp_path / "out" / "quarantine").to_pylist()
        assert "damaged" in bad["reason"]
        assert str(file) in bad["reason"]
