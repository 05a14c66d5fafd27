"""Pieces of a log: every row once, in the types that Spark would give."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.spark_jobs.common.failing import OutOfReach
from contrada.spark_jobs.replay.logs.decoding import Form, Format, decode
from contrada.spark_jobs.replay.logs.pieces import Piece, cut, plain_schema, read_piece

if TYPE_CHECKING:
    from pathlib import Path

WHEN = datetime(2026, 11, 16, 12, tzinfo=UTC)


@given(st.lists(st.lists(st.integers(0, 1 << 19), max_size=6), max_size=5), st.integers(1, 64))
def test_every_row_group_is_in_one_piece(files: list[list[int]], tasks: int) -> None:
    pieces = cut(((f"f{n}", sizes) for n, sizes in enumerate(files)), tasks)
    found = [(piece.path, n) for piece in pieces for n in range(piece.start, piece.stop)]
    assert found == [(f"f{n}", group) for n, sizes in enumerate(files) for group in range(len(sizes))]


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
    (batch,) = read_piece(Piece(str(tmp_path / "a.parquet"), 0, 1), Format(Form.TYPED))
    events = decode(batch, Format(Form.TYPED))
    assert events.times.tolist() == [int(WHEN.timestamp()) * 10**6]
    assert [each.reason for each in events.rejects] == ["the event has no time"]
    pq.write_table(table.drop_columns("time").append_column("time", pa.array([WHEN, WHEN])), tmp_path / "b.parquet")
    (batch,) = read_piece(Piece(str(tmp_path / "b.parquet"), 0, 1), Format(Form.TYPED))
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
    (batch,) = read_piece(Piece(str(tmp_path / "a.parquet"), 0, 1), Format(Form.TYPED))
    assert batch.column("time").to_pylist() == [WHEN]


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(OutOfReach, match="cannot be read on"):
        list(read_piece(Piece(str(tmp_path / "gone.parquet"), 0, 1), Format(Form.TYPED)))
