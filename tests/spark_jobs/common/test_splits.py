"""Splits of files: every row once, small files together, in the types that Spark would give."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.spark_jobs.common.errors import OutOfReach
from contrada.spark_jobs.common.splits import Split, plain_schema, split_parquet, split_text
from contrada.spark_jobs.common.text_lines import read_lines
from contrada.spark_jobs.replaying.logs.decoding import Form, Format, decode
from contrada.spark_jobs.replaying.logs.reading import read_split, read_task
from contrada.spark_jobs.stores.shared_files import SizedFile


def sized(path: Path) -> SizedFile:
    return SizedFile(str(path), path.stat().st_size)


WHEN = datetime(2026, 11, 16, 12, tzinfo=UTC)


@given(st.lists(st.lists(st.integers(0, 1 << 19), max_size=6), max_size=5), st.integers(1, 64))
def test_every_row_group_is_in_one_split(files: list[list[int]], tasks: int) -> None:
    found = split_parquet(((f"f{n}", sizes) for n, sizes in enumerate(files)), tasks)
    groups = [(split.path, n) for task in found for split in task for n in range(split.start, split.stop)]
    assert sorted(groups) == [(f"f{n}", group) for n, sizes in enumerate(files) for group in range(len(sizes))]


@given(st.lists(st.integers(1, 1 << 18), max_size=50), st.integers(1, 8))
def test_small_files_share_tasks(sizes: list[int], tasks: int) -> None:
    found = split_parquet(((f"f{n:02}", [size]) for n, size in enumerate(sizes)), tasks)
    assert len(found) <= tasks + 1 + sum(sizes) // (1 << 16)
    assert len(split_parquet(((f"f{n}", [1]) for n in range(200)), 8)) == 1


@given(st.lists(st.sampled_from([b"a", b"bcd", b"\n", b"\r\n", b"\r", b""]), max_size=40), st.integers(1, 9))
def test_every_line_is_in_one_range(words: list[bytes], step: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "f.jsonl"
        path.write_bytes(b"".join(words))
        size = path.stat().st_size
        edges = [*range(0, size, step), size]
        found = [
            line
            for start, stop in pairwise(edges)
            for lines in read_lines(str(path), start, stop)
            for line in lines.to_pylist()
        ]
    assert found == b"".join(words).splitlines()


def test_large_text_is_cut_and_small_is_joined(tmp_path: Path) -> None:
    (tmp_path / "large.jsonl").write_bytes(b"x" * 99 + b"\n" * 3_000_000)
    names = ["large.jsonl", *(f"small{n}.jsonl" for n in range(20)), "packed.jsonl.gz"]
    for name in names[1:]:
        (tmp_path / name).write_text("x")
    tasks = split_text([sized(tmp_path / name) for name in names], 2)
    assert [len(task) for task in tasks] == [1, 1, 21]
    assert tasks[0][0].stop == tasks[1][0].start
    assert tasks[1][0].stop == 3_000_099
    assert len(split_text([sized(tmp_path / "large.jsonl")], 2, whole=True)) == 1


def test_batches_are_of_many_small_files(tmp_path: Path) -> None:
    for n in range(30):
        pq.write_table(pa.table({"id": [f"{n}"], "time": [WHEN], "a": [n]}), tmp_path / f"{n}.parquet")
    task = [Split(str(tmp_path / f"{n}.parquet"), 0, 1) for n in range(30)]
    (batch,) = read_task(task, Format(Form.TYPED))
    assert batch.column("event_id").to_pylist() == [f"{n}" for n in range(30)]


def test_types_are_those_of_spark(tmp_path: Path) -> None:
    words = pa.struct({"keywords": pa.large_list(pa.large_string()), "x": pa.float64(), "y": pa.float64()})
    table = pa.table(
        {
            "id": pa.array(["e1", "e2"], pa.large_string()),
            "time": pa.array([WHEN, None], pa.timestamp("ns", tz="America/New_York")),
            "stock": pa.array(["a", None]).dictionary_encode(),
            "big": pa.array([2**63 - 1, 2**63], pa.uint64()),
            "post": pa.array([{"keywords": ["ipad"], "x": 1.0, "y": 2.0}, None], words),
            "when": pa.array([WHEN, None], pa.timestamp("ms", tz="UTC")),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    (batch,) = read_split(Split(str(tmp_path / "a.parquet"), 0, 1), Format(Form.TYPED))
    events = decode(batch, Format(Form.TYPED))
    assert events.times.tolist() == [int(WHEN.timestamp()) * 10**6]
    assert [each.reason for each in events.rejects] == ["the event has no time"]
    pq.write_table(table.drop_columns("time").append_column("time", pa.array([WHEN, WHEN])), tmp_path / "b.parquet")
    (batch,) = read_split(Split(str(tmp_path / "b.parquet"), 0, 1), Format(Form.TYPED))
    (reject,) = decode(batch, Format(Form.TYPED)).rejects
    assert reject.reason == "attribute 'big': 9223372036854775808 does not fit in 64 bits with a sign"


def test_old_timestamps_are_instants(tmp_path: Path) -> None:
    times = pa.array([WHEN.replace(tzinfo=None)], pa.timestamp("us"))
    table = pa.table({"id": ["e"], "time": times, "t": times, "s": pa.StructArray.from_arrays([times], ["t"])})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    with pq.ParquetFile(tmp_path / "a.parquet") as file:
        types = plain_schema(file)
    instant = pa.timestamp("us", tz="UTC")
    assert types == {"id": pa.string(), "time": instant, "t": instant, "s": pa.struct({"t": instant})}
    (batch,) = read_split(Split(str(tmp_path / "a.parquet"), 0, 1), Format(Form.TYPED))
    assert batch.column("time").to_pylist() == [WHEN]


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(OutOfReach, match="cannot be read on"):
        list(read_split(Split(str(tmp_path / "gone.parquet"), 0, 1), Format(Form.TYPED)))
