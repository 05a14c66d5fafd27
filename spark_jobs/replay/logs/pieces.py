"""Pieces of a log that workers read by themselves: row groups of Parquet, a file of a recording, or of packed lines.

A Python worker that reads Arrow batches straight from a file spares the JVM from making rows of them and Arrow batches
again of the rows, which costs more than matching them. Spark hands out the numbers of pieces, one to a task.

Columns come as Spark would give them: without dictionaries, large or viewed strings, in microseconds. Timestamps of the
old type INT96 are instants, as for Spark, which writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import CorruptFile
from contrada.forwarding.recording.reader import Accepted, Fault, Recording
from contrada.spark_jobs.build.rows.packed_text import read_packed
from contrada.spark_jobs.common.failing import OutOfReach, is_damage
from contrada.spark_jobs.common.instants import TIME_TYPE
from contrada.spark_jobs.replay.logs.decoding import Form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contrada.spark_jobs.replay.logs.decoding import Format

_BATCH: Final = 8192
_LEAST: Final = 1 << 16  # rows of a piece, unless a file has fewer
_MOST: Final = 1 << 20


class Piece(NamedTuple):
    """A file, and which of its row groups; of what is not Parquet all of it."""

    path: str
    start: int = 0
    stop: int = 0


def cut(files: Iterable[tuple[str, Sequence[int]]], tasks: int) -> list[Piece]:
    """Pieces of Parquet files, each given with the sizes of its row groups: of equal size as far as those allow."""
    listed = list(files)
    total = sum(sum(sizes) for _, sizes in listed)
    enough = min(max(total // max(tasks, 1), _LEAST), _MOST)
    pieces: list[Piece] = []
    for path, sizes in listed:
        start = held = 0
        for number, size in enumerate(sizes):
            held += size
            if held >= enough or number == len(sizes) - 1:
                pieces.append(Piece(path, start, number + 1))
                start, held = number + 1, 0
    return pieces


def read_piece(piece: Piece, format: Format) -> Iterator[pa.RecordBatch]:
    """The rows of a piece, laid out as `format` says."""
    try:
        if format.form is Form.BODIES:
            yield from _recorded(piece.path)
        elif format.form is Form.LINES:
            yield from _packed_lines(piece.path)
        else:
            yield from _parquet(piece, format)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and not is_damage(error):
            raise OutOfReach(piece.path, error) from error
        raise CorruptFile(f"{piece.path}: damaged: {error}") from error


def plain_type(kind: pa.DataType, *, instants: bool = False) -> pa.DataType:
    """The type that Spark would make of one; with `instants`, of times that are in UTC without saying so."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type, instants=instants))
    if pa.types.is_timestamp(kind):
        return TIME_TYPE if kind.tz is not None or instants else pa.timestamp("us")
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, plain_type(each.type, instants=instants)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type, instants=instants))
    return kind


def plain_schema(file: pq.ParquetFile) -> dict[str, pa.DataType]:
    """The columns of a Parquet file and their plain types."""
    leaves = [file.schema.column(n) for n in range(len(file.schema.names))]
    old = {leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96"}
    return {each.name: plain_type(each.type, instants=each.name in old) for each in file.schema_arrow}


def attribute_names(names: Iterable[str], format: Format) -> list[str]:
    """The columns that are attributes: one that holds them all, or all that are nothing else."""
    others = [name for name in names if name not in (format.id, format.time)]
    return ["attributes"] if "attributes" in others else others


def _parquet(piece: Piece, format: Format) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(piece.path) as file:
        types = plain_schema(file)
        attributes = attribute_names(types, format)
        wanted = [format.id, format.time, *attributes]
        groups = range(piece.start, piece.stop)
        for batch in file.iter_batches(_BATCH, row_groups=groups, columns=wanted):
            columns = {name: _cast(batch.column(name), types[name]) for name in wanted}
            if attributes == ["attributes"]:
                held = columns["attributes"]
            else:
                held = pa.StructArray.from_arrays([columns[name] for name in attributes], attributes)
            arrays = [columns[format.id].cast(pa.string()), columns[format.time], held]
            yield pa.RecordBatch.from_arrays(arrays, ["event_id", "time", "attributes"])


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind, safe=False)


def _packed_lines(path: str) -> Iterator[pa.RecordBatch]:
    """The lines of a packed file; of a damaged one, a row that tells so in place of all."""
    try:
        for lines in read_packed(path):
            yield pa.RecordBatch.from_arrays([lines, pa.nulls(len(lines), pa.string())], ["line", "damage"])
    except CorruptFile as error:
        columns = [pa.nulls(1, pa.binary()), pa.array([f"{path}: {error}"])]
        yield pa.RecordBatch.from_arrays(columns, ["line", "damage"])


def _recorded(path: str) -> Iterator[pa.RecordBatch]:
    """The notifications of a recording's file; behind them, a row without an id for each part that is damaged."""
    recording = Recording(path, strict=False)
    for part in _parts(each for each in recording if type(each) is Accepted):
        yield _rows([(each.id, each.time, each.sequence, each.body) for each in part])
    damaged = [str(each).encode() for each in recording.problems if each.fault is Fault.DAMAGED]
    if damaged:
        yield _rows([(None, None, 0, text) for text in damaged])


def _rows(rows: list[tuple[str | None, int | None, int, bytes]]) -> pa.RecordBatch:
    ids, times, sequences, bodies = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict(
        {
            "event_id": pa.array(ids, pa.string()),
            "time": pa.array(times, pa.int64()).cast(TIME_TYPE),
            "sequence": pa.array(sequences, pa.int64()),
            "body": pa.array(bodies, pa.binary()),
        }
    )


def _parts(items: Iterator[Any]) -> Iterator[list[Any]]:
    part: list[Any] = []
    for item in items:
        part.append(item)
        if len(part) == _BATCH:
            yield part
            part = []
    if part:
        yield part
