"""The events of a log as tasks read them: row groups of Parquet, files of a recording, or lines.

Rows come in batches of some thousands, whatever the sizes of the files: those of small ones are put together, and of
long rows there are fewer.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from contrada.errors import CorruptFile
from contrada.forwarding.recording.reader import Accepted, Fault, Recording
from contrada.forwarding.stores.addresses import is_url, name_of
from contrada.spark_jobs.common.errors import damage_as
from contrada.spark_jobs.common.instants import TIME_TYPE
from contrada.spark_jobs.common.splits import plain_schema
from contrada.spark_jobs.common.text_lines import read_lines
from contrada.spark_jobs.replaying.logs.decoding import Form
from contrada.spark_jobs.stores.shared_files import fetched, parquet_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow.parquet as pq

    from contrada.spark_jobs.common.splits import Split
    from contrada.spark_jobs.replaying.logs.decoding import Format

_BATCH: Final = 1 << 13  # rows, of which objects are made
_TYPED: Final = 1 << 15  # rows that stay columns, if they are
_BYTES: Final = 1 << 26  # at most, about


def read_task(task: Sequence[Split], format: Format) -> Iterator[pa.RecordBatch]:
    """The rows of some splits, laid out as `format` says."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    enough = _TYPED if format.form is Form.TYPED else _BATCH
    for split in task:
        for batch in read_split(split, format):
            held.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= enough or size >= _BYTES:
                yield pa.concat_batches(held) if len(held) > 1 else batch
                held, rows, size = [], 0, 0
    if held:
        yield pa.concat_batches(held)


def read_split(split: Split, format: Format) -> Iterator[pa.RecordBatch]:
    """The rows of one split."""
    with damage_as(split.path, lambda error: CorruptFile(f"{split.path}: damaged: {error}")):
        if format.form is Form.BODIES:
            yield from _recorded(split.path)
        elif format.form is Form.LINES:
            yield from _lines(split)
        else:
            yield from _parquet(split, format)


def attribute_names(names: Iterable[str], format: Format) -> list[str]:
    """The columns that are attributes: one that holds them all, or all that are nothing else."""
    others = [name for name in names if name not in (format.id, format.time)]
    return ["attributes"] if "attributes" in others else others


def _parquet(split: Split, format: Format) -> Iterator[pa.RecordBatch]:
    with parquet_at(split.path) as file:
        types = plain_schema(file)
        attributes = attribute_names(types, format)
        wanted = [format.id, format.time, *attributes]
        groups = range(split.start, split.stop)
        for batch in file.iter_batches(_rows_at_once(file, groups), row_groups=groups, columns=wanted):
            columns = {name: _cast(batch.column(name), types[name]) for name in wanted}
            if attributes == ["attributes"]:
                held = columns["attributes"]
            else:
                held = pa.StructArray.from_arrays([columns[name] for name in attributes], attributes)
            arrays = [columns[format.id].cast(pa.string()), columns[format.time], held]
            yield pa.RecordBatch.from_arrays(arrays, ["event_id", "time", "attributes"])


def _rows_at_once(file: pq.ParquetFile, groups: range) -> int:
    """How many rows of some row groups make a batch."""
    kept = [file.metadata.row_group(number) for number in groups]
    rows, size = sum(each.num_rows for each in kept), sum(each.total_byte_size for each in kept)
    return int(max(1, min(_TYPED, _BYTES * rows // max(size, 1))))


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind, safe=False)


def _lines(split: Split) -> Iterator[pa.RecordBatch]:
    """The lines of a file; of a damaged one, a row that tells so in place of all."""
    try:
        for lines in read_lines(*split):
            yield pa.RecordBatch.from_arrays([lines, pa.nulls(len(lines), pa.string())], ["line", "damage"])
    except CorruptFile as error:
        columns = [pa.nulls(1, pa.binary()), pa.array([f"{split.path}: {error}"])]
        yield pa.RecordBatch.from_arrays(columns, ["line", "damage"])


def _recorded(path: str) -> Iterator[pa.RecordBatch]:
    """The notifications of a recording's file; behind them, a row without an id for each part that is damaged."""
    with recorded(path) as recording:
        yield from _notifications(recording)


@contextmanager
def recorded(address: str) -> Iterator[Recording]:
    """A file of a recording."""
    if not is_url(address):
        yield Recording(address, strict=False)
        return
    with fetched([address]) as home:
        yield Recording(home / name_of(address), strict=False)


def _notifications(recording: Recording) -> Iterator[pa.RecordBatch]:
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
