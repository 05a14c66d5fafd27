"""What is wrong with paths and options is told before Spark is started and before anything is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from contrada.client.cli.main import app
from contrada.forwarding.segments.index_directory import write_index
from contrada.spark_jobs.common import session

if TYPE_CHECKING:
    from pathlib import Path

SUBSCRIPTION = '{"id": "s", "interface": "I", "filter": "x = 1"}'
EVENT = '{"id": 1, "time": "2026-11-16T12:00:00Z", "attributes": {"x": 1}}'


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*arguments: Any, **options: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "open_session", started)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a bit of everything, from which commands are run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.jsonl").write_text(SUBSCRIPTION)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "s.jsonl").write_text(SUBSCRIPTION)
    (tmp_path / "e.jsonl").write_text(EVENT)
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "e.jsonl").write_text(EVENT)
    (tmp_path / "file").touch()
    write_index(tmp_path / "index", [("s", "I", "x = 1")])
    (tmp_path / "mine").mkdir()
    pq.write_table(pa.table({"salary": [1]}), tmp_path / "mine" / "precious.parquet")
    names = ["id", "interface", "filter", "id"]
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 4, names), tmp_path / "twice.parquet")
    pq.write_table(pa.table({"id": ["a"], "filter": ["x = 1"]}), tmp_path / "few.parquet")
    times = pa.array([0], pa.timestamp("us", tz="UTC"))
    pq.write_table(
        pa.Table.from_arrays([pa.array(["a"]), times, times, times], ["id", "time", "x", "x"]), tmp_path / "e2.parquet"
    )
    pq.write_table(pa.table({"id": ["a"], "x": [1]}), tmp_path / "e3.parquet")
    return tmp_path


def check(home: Path, arguments: list[str], why: str) -> None:
    before = sorted(str(each) for each in home.rglob("*"))
    result = CliRunner().invoke(app, arguments)
    told = f"{result.exception} {result.output}"
    assert why in " ".join(told.split()), told
    assert result.exit_code != 0
    assert sorted(str(each) for each in home.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nowhere.parquet", "out"], "no such file"),
        (["s.jsonl", "file"], "a file, and it must be a directory"),
        (["s.jsonl", "file/out"], "is a file"),
        (["s.jsonl", "ftp://host/index"], "a URL begins with one of s3"),
        (["s.jsonl", "out", "--quarantine", "hdfs://host/bad"], "a URL, and this must be a path"),
        (["s.jsonl", "out", "--quarantine", "file"], "a file, and it must be a directory"),
        (["s.jsonl", "out", "--quarantine", "mine"], "something other than an earlier quarantine"),
        (["s.jsonl", "out", "--quarantine", "in"], "something other than an earlier table"),
        (["in", "in/index"], "is inside SUBSCRIPTIONS"),
        (["in", "in"], "is inside SUBSCRIPTIONS"),
        (["in", "out", "--quarantine", "in/bad"], "is inside SUBSCRIPTIONS"),
        (["in/*.jsonl", "in"], "which this run replaces"),
        (["s.jsonl", "out", "--quarantine", "out"], "is inside --quarantine"),
        (["twice.parquet", "out"], "two columns are called id"),
        (["few.parquet", "out"], "no column interface; there are id, filter"),
        (["s.jsonl", "out", "--format", "csv"], "no format is called 'csv'"),
        (["s.jsonl", "out", "--geotext-index", "best"], "no geotext index is called 'best'"),
        (["s.jsonl", "out", "--max-quarantined", "101"], "--max-quarantined"),
        (["s.jsonl", "out", "--engine", "local", "--master", "local[2]"], "--master and --py-env are of Spark"),
        (["s.jsonl", "out", "--engine", "local", "--py-env", "s.whl"], "--master and --py-env are of Spark"),
        (["s.jsonl", "out", "--quarantine", "s3://bucket/bad"], "--quarantine s3://bucket/bad: a URL"),
    ],
)
def test_builds_that_cannot_begin(home: Path, arguments: list[str], why: str) -> None:
    check(home, ["build-index", *arguments], why)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nowhere", "index", "out"], "no such file"),
        (["e.jsonl", "in", "out"], "neither an index"),
        (["e.jsonl", "index", "mine"], "no earlier output"),
        (["e.jsonl", "index", "file/out"], "a file, and it must be a directory"),
        (["e.jsonl", "index", "s3://bucket"], "a URL has a bucket and a path"),
        (["http://host/log", "index", "out"], "a URL begins with one of s3"),
        (["log", "index", "log/out"], "is inside EVENTS"),
        (["e.jsonl", "index", "out", "--worker-memory", "lots"], "is not a size"),
        (["e.jsonl", "index", "out", "--timezone", "Mars/Olympus"], "Mars/Olympus"),
        (["e.jsonl", "index", "out", "--what-if", "few.parquet"], "no column interface"),
        (["e.jsonl", "index", "out", "--recorded", "mine"], "not deliveries as replay writes them"),
        (["e.jsonl", "index", "out", "--compare"], "--recorded"),
        (["e2.parquet", "index", "out"], "two columns are called x"),
        (["e3.parquet", "index", "out"], "no column 'time'"),
    ],
)
def test_replays_that_cannot_begin(home: Path, arguments: list[str], why: str) -> None:
    check(home, ["replay", *arguments], why)


def test_quiet_is_quiet(tmp_path: Path) -> None:
    """Neither we nor the JVM say anything on stderr; the summary is on stdout."""
    (tmp_path / "s.jsonl").write_text(SUBSCRIPTION)
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)  # noqa: PTH100  # a link stays a link
    arguments = ["build-index", "s.jsonl", "index", "--quiet", "--json", "--master", "local[1]"]
    done = subprocess.run(
        [sys.executable, "-m", "contrada", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["subscriptions"] == 1
