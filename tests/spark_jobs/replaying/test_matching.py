"""Tasks without Spark: pieces that shrink, segments that come and go, an index that was built anew."""

from __future__ import annotations

import gc
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contrada.errors import CorruptFile
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.segments.manifest import read_manifest
from contrada.spark_jobs.common import index_cache
from contrada.spark_jobs.common.errors import TaskFailed
from contrada.spark_jobs.common.index_cache import IndexFiles, opened
from contrada.spark_jobs.replaying import matching
from contrada.spark_jobs.replaying.logs.decoding import Form, Format
from contrada.spark_jobs.replaying.matching import Match, MatchTask
from contrada.spark_jobs.replaying.routing import match_routed, read_routed, route, write_routed
from contrada.spark_jobs.replaying.storing import TaskFiles

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = Format(Form.TYPED)
SIZE = 50


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Several segments; every event matches everything but the last."""
    rows = [(f"s{n}", "i", f"n >= {-n} or n < {n + SIZE}") for n in range(30)]
    write_index(tmp_path / "index", [*rows, ("far", "i", "at inside BOX(500 500, 501 501)")], segment_filters=8)
    return tmp_path / "index"


@pytest.fixture
def batches() -> list[pa.RecordBatch]:
    at = pa.array([{"x": 1.0, "y": 1.0}] * SIZE, pa.struct({"x": pa.float64(), "y": pa.float64()}))
    columns = {
        "event_id": pa.array([f"e{n}" for n in range(SIZE)]),
        "time": pa.array([datetime(2026, 11, 16, tzinfo=UTC)] * SIZE, pa.timestamp("us", tz="UTC")),
        "attributes": pa.StructArray.from_arrays([pa.array(range(SIZE)), at], ["n", "at"]),
    }
    whole = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    return [whole.slice(0, 20), whole.slice(20, 0), whole.slice(20)]


def pairs(found: Any) -> list[tuple[str, str]]:
    rows = [row for batch in found for row in batch.to_pylist()]
    return sorted((row["event_id"], row["filter_id"]) for row in rows)


def test_what_a_worker_has_open_is_out_of_the_collectors_sight(index: Path) -> None:
    opened(IndexFiles.of(index))
    assert gc.get_freeze_count() > len(gc.get_objects())


EVERYTHING = sorted((f"e{n}", f"s{s}") for n in range(SIZE) for s in range(30))


@pytest.mark.parametrize(("some", "hoped"), [(1, 1), (7, 10), (4096, 1), (4096, 1 << 19)])
def test_fewer_are_matched_at_once_and_nothing_is_lost(
    index: Path, batches: Any, monkeypatch: pytest.MonkeyPatch, some: int, hoped: int
) -> None:
    monkeypatch.setattr(matching, "_EVENTS", some)
    monkeypatch.setattr(matching, "_PAIRS", hoped)
    monkeypatch.setattr(matching, "_ROWS", 64)
    assert pairs(MatchTask(Match(IndexFiles.of(index), FORMAT)).deliveries(batches)) == EVERYTHING


def test_routed_through_a_worker_that_holds_one_segment(index: Path, batches: Any, tmp_path: Path) -> None:
    match = Match(IndexFiles.of(index, budget=1), FORMAT)
    routed = sorted(route(match, batches), key=lambda message: message.segment)
    assert [message.segment for message in routed] == [1, 2, 3, 4]  # nothing is near the far one
    (file,) = write_routed(iter(routed), str(tmp_path / "files"))
    assert list(write_routed(iter(()), str(tmp_path / "files"))) == []
    again = [
        each for segment, numbers in file.batches.items() for each in read_routed(segment, [(file.address, numbers)])
    ]
    assert [(each.segment, each.rows, each.home.tolist()) for each in again] == [
        (each.segment, each.rows, each.home.tolist()) for each in routed
    ]
    done = match_routed(again, match, str(tmp_path / "files"))
    assert len(opened(match.index)._segments) == 1
    assert [len(paths) for paths in done.written] == [1, 0, 1]
    (path,) = done.written.deliveries
    assert path.startswith("deliveries/day=2026-11-16/")
    assert pairs(pq.ParquetFile(tmp_path / "files" / path).iter_batches()) == EVERYTHING
    assert (done.tally.events, done.tally.deliveries) == (SIZE, len(EVERYTHING))
    done.tally._check()


def test_an_index_is_opened_once_and_noticed_when_built_anew(index: Path) -> None:
    files = IndexFiles.of(index)
    assert opened(files) is opened(IndexFiles.of(index))
    write_index(index, [("other", "i", "n = 1")])
    assert IndexFiles.of(index) != files
    with pytest.raises(CorruptFile, match="built anew meanwhile"):
        files.manifest()


def test_an_index_is_opened_by_the_manifest_that_was_checked(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is committed right after the check is not opened in the name of the one before."""
    files = IndexFiles.of(index)
    expected = [each.file for each in read_manifest(index).segments]
    real = index_cache.manifest_bytes

    def replaced_then(path: str) -> bytes:
        content = real(path)
        write_index(index, [("other", "i", "n = 1")])
        return content

    monkeypatch.setattr(index_cache, "manifest_bytes", replaced_then)
    assert [each.file for each in opened(files).infos] == expected


def test_a_task_that_fails_tells_of_no_files(index: Path, batches: Any, tmp_path: Path) -> None:
    def broken() -> Any:
        yield batches[0]
        raise RuntimeError

    files = TaskFiles(tmp_path / "files")
    task = MatchTask(Match(IndexFiles.of(index), FORMAT), files)
    with pytest.raises(TaskFailed, match="RuntimeError"):
        task.done(task.deliveries(broken()))
