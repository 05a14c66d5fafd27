"""`contrada replay`: a real broker's recording replayed, on Spark and into a broker; exit codes; a killed job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import contrada
from contrada.client.cli.event_publisher import paced
from contrada.client.cli.jobs import replay as command
from contrada.client.cli.jobs.replay import bytes_of, rate_of
from contrada.client.cli.main import app
from contrada.errors import InvalidValue
from contrada.forwarding.segments.index_directory import write_index
from contrada.spark_jobs.replaying.logs.decoding import Reject
from contrada.spark_jobs.replaying.logs.event_logs import Layout
from contrada.spark_jobs.replaying.logs.event_stream import Event, stream
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["replay", *map(str, arguments), "--quiet"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture
def shared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command use the session of all tests."""
    monkeypatch.setattr(command, "spark_session", lambda name, master, py_env, quiet: nullcontext(spark))


NOTES: list[dict[str, Any]] = [
    {"price": n % 7, "stock": f"S{n % 3}", "at": Point(n % 5, 1), "post": GeoText("ipad 東京", at=(n % 4, 2)), "n": n}
    for n in range(60)
]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a real broker recorded: a standing index, clients that come and go, a restart."""
    home = tmp_path_factory.mktemp("recorded")
    write_index(
        home / "index", [("s1", "desk", "price > 4"), ("s2", "desk", "price > 5"), ("s3", "other", "price = 0")]
    )
    for life in range(2):
        with contrada.Broker(listen="tcp://127.0.0.1:*", record=home / "rec", index=home / "index") as broker:
            with (
                contrada.Client(broker.url, name="pub") as publisher,
                contrada.Client(broker.url, name="sub") as client,
            ):
                kept = client.subscribe("price > 3 or at inside BOX(0.5 0.5, 2.5 2.5)")
                for start in range(0, 60, 20):
                    with client.subscribe('post matches {"ipad"} within BOX(0 0, 1 9) or n >= 20'):
                        publisher.publish_many(NOTES[start : start + 10])
                    publisher.publish_many(NOTES[start + 10 : start + 20])
                assert kept.get(timeout=30)["n"] >= 0
            assert life in (0, 1)
    return home


def test_a_brokers_own_recording_shows_no_difference(recording: Path, tmp_path: Path, shared: None) -> None:
    told = json.loads(run(recording / "rec", recording / "rec", tmp_path / "out", "--compare", "--json"))
    assert told["compare"] == {"missing": 0, "extra": 0, "differences": []}
    assert told["events"] == 120
    assert told["deliveries"] > 120
    assert told["problems"] == []
    told = run(recording / "rec", recording / "index", tmp_path / "other", "--compare")
    assert "compared: 0 missing, 0 extra" in told


def test_differences_and_rejected_events_have_their_exit_codes(tmp_path: Path, shared: None) -> None:
    write_index(tmp_path / "index", [("s", "i", "price > 1")])
    lines = [{"id": n, "time": f"2026-11-16T0{n}:00:00Z", "attributes": {"price": n}} for n in range(4)]
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "filters.jsonl").write_text('{"id": "new", "interface": "me", "filter": "price = 0"}\n{"id": "bad"}\n')
    events, index, out = tmp_path / "events.jsonl", tmp_path / "index", tmp_path / "out"
    told = run(events, index, out, "--what-if", tmp_path / "filters.jsonl")
    assert "4 events, 2 deliveries to 1 of 1 subscriptions" in told
    assert "what if: 1 deliveries to 1 of 1 new filters" in told
    assert pq.read_table(out / "what_if" / "quarantine").num_rows == 1
    write_index(tmp_path / "changed", [("s", "i", "price > 2")])
    told = run(events, tmp_path / "changed", tmp_path / "out2", "--recorded", out / "deliveries", code=6)
    assert "compared: 1 missing, 0 extra" in told
    assert "missing 2 to i s" in told
    (tmp_path / "events.jsonl").write_text("nonsense")
    assert "1 could not be read" in run(events, index, out, code=5)  # nothing was accepted
    (tmp_path / "events.jsonl").write_text("nonsense\n" + json.dumps(lines[0]))
    assert "1 could not be read" in run(events, index, out)
    run(events, index, out, "--strict", code=5)


def test_usage() -> None:
    for arguments in (["events"], ["events", "index"], ["events", "index", "out", "--to", "tcp://127.0.0.1:1"]):
        assert CliRunner().invoke(app, ["replay", *arguments]).exit_code == 2
    assert [bytes_of(text) for text in ("17", "2k", "3M", "1gb")] == [17, 2048, 3 << 20, 1 << 30]
    for text in ("", "g", "-1", "1.5g", "lots"):
        with pytest.raises(InvalidValue, match="not a size"):
            bytes_of(text)
    assert (rate_of("10"), rate_of("0.5"), rate_of("max")) == (10.0, 0.5, None)
    for text in ("0", "-1", "nan", "inf", "fast"):
        with pytest.raises(InvalidValue, match="not a speed"):
            rate_of(text)


# ---------------------------------------------------------------------------------------------- into a broker


def test_a_recording_goes_into_another_broker(recording: Path) -> None:
    with contrada.Broker(listen="tcp://127.0.0.1:*") as broker, contrada.Client(broker.url) as client:
        everything = client.subscribe("n >= 0", window=1000, queue=1000)
        told = json.loads(run(recording / "rec", "--to", broker.url, "--speed", "max", "--json"))
        got = [dict(everything.get(timeout=30)) for _ in range(120)]
    assert told["events"] == 120
    assert got == NOTES + NOTES


def test_every_layout_streams(tmp_path: Path) -> None:
    when = datetime(2026, 11, 16, 12, tzinfo=UTC)
    types = pa.schema(
        {
            "id": pa.large_string(),
            "time": pa.timestamp("us", tz="UTC"),
            "stock": pa.dictionary(pa.int32(), pa.string()),
            "ok": pa.bool_(),
            "price": pa.float64(),
            "size": pa.int16(),
            "due": pa.timestamp("us", tz="UTC"),
            "at": pa.struct({"x": pa.float64(), "y": pa.float64()}),
            "area": pa.struct(dict.fromkeys(("x1", "y1", "x2", "y2"), pa.float64())),
        }
    )
    row = {
        "id": "e1",
        "time": when,
        "stock": "é",
        "ok": True,
        "price": 0.5,
        "size": 3,
        "due": when,
        "at": {"x": 1.0, "y": 2.0},
        "area": {"x1": 0.0, "y1": 0.0, "x2": 1.0, "y2": 1.0},
    }
    bad = {"id": None, "time": when, "size": 4}
    pq.write_table(pa.Table.from_pylist([row, bad], types), tmp_path / "a.parquet")
    reject, event = stream(tmp_path / "a.parquet", Layout())
    assert isinstance(reject, Reject)
    assert event == Event(
        "e1",
        int(when.timestamp()) * 10**6,
        {"stock": "é", "ok": True, "price": 0.5, "size": 3, "due": when, "at": Point(1, 2), "area": Box(0, 0, 1, 1)},
    )
    import gzip

    lines = b'{"id": 1, "time": "2026-11-16T12:00:00Z", "attributes": {"a": 1}}\n\n{\n' * 2000
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines))
    found = list(stream(tmp_path / "b.jsonl.gz", Layout()))
    assert sum(isinstance(each, Event) for each in found) == 2000
    assert len(found) == 4000


def test_the_pace_is_that_of_the_log() -> None:
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    times = [0, 0, 5, 4, 10, 30]
    sent = [
        (round(now[0] - 100, 6), [int(each.id) for each in parcel])
        for parcel in paced(
            (Event(str(n), time * 10**6, {}) for n, time in enumerate(times)), 2.0, lambda: now[0], sleep
        )
    ]
    assert sent == [(0.0, [0, 1]), (2.5, [2, 3]), (5.0, [4]), (15.0, [5])]
    many = (Event(str(n), n * 10**6, {}) for n in range(600))
    assert [len(each) for each in paced(many, None)] == [256, 256, 88]
    assert list(paced([], 1.0)) == []


# ---------------------------------------------------------------------------------------------- a killed job


def test_a_killed_job_leaves_the_old_output(tmp_path: Path, shared: None) -> None:
    write_index(tmp_path / "index", [("s", "i", "price > 1")])
    (tmp_path / "events.jsonl").write_text('{"id": 1, "time": "2026-11-16T12:00:00Z", "attributes": {"price": 2}}')
    arguments = [tmp_path / "events.jsonl", tmp_path / "index", tmp_path / "out"]
    run(*arguments)
    before = sorted(str(each) for each in (tmp_path / "out").rglob("*"))
    path = os.pathsep.join(each for each in sys.path if each)
    program = """
import os, signal, sys
from contrada.__main__ import main
from contrada.spark_jobs.replaying import replay

replay.write_report = lambda *given: os.killpg(os.getpgid(0), signal.SIGKILL)
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "replay", *map(str, arguments), "--master", "local[1]"],
        start_new_session=True,  # the JVM is killed with it
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, "it was killed when all events were matched"
    assert (tmp_path / ".out.writing").exists()
    assert sorted(str(each) for each in (tmp_path / "out").rglob("*")) == before
    assert "1 events, 1 deliveries" in run(*arguments)
    assert not (tmp_path / ".out.writing").exists()
