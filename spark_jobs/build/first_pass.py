"""The first pass of a build: rows are read, parsed and staged; ids and filters that must meet are brought together.

    task, of a piece of the source                      task, of a partition of hashes
    read, parse, write the part (staging.py)   ──────►  which ids come twice, who covers whom (build/cover/meeting.py)
    and the rows for the quarantine             records

What the driver is told is small: where the parts are and what was counted in them, which subscriptions come again, who
is covered by whom, and a sample of the places' centres.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.spark_jobs.build.cover.meeting import cover_records, find_coverers, find_doubles, id_records
from contrada.spark_jobs.build.packets import PACKETS, Packet, columns, mapped, packed, reduced, scattered
from contrada.spark_jobs.build.rows.as_given import as_given
from contrada.spark_jobs.build.rows.parsing import parse_batch
from contrada.spark_jobs.build.rows.sources import DamagedPiece, read_rows
from contrada.spark_jobs.build.staging import QUARANTINE, write_part
from contrada.spark_jobs.build.statistics import groups_of, sample_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from contrada.spark_jobs.build.rows.sources import Source

_ROWS: Final = 1 << 15  # at least so many are parsed at once, if there are
REF: Final = 32
"""Bits of a ref that are the row's."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a task has staged."""

    number: int
    path: str
    rows: int  # that were parsed, good and bad
    good: int
    unsatisfiable: int
    redundant: int
    quarantine: str | None
    lost: int = 0  # bytes of input that could not be read


def first_pass(session: SparkSession, source: Source, directory: str, seed: int) -> DataFrame:
    """Packets of what the driver must know."""
    parts = max(2, session.sparkContext.defaultParallelism)
    form, pieces = source.form, source._replace(rows=None)  # a DataFrame stays at the driver

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
        from pyspark import TaskContext

        context = TaskContext.get()
        return _parse(batches, form, context.partitionId() if context else 0, directory, parts, seed)

    def parse_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
        return parse(read_rows(batches, pieces))

    given = [] if source.rows is None else [mapped(source.rows, parse)]
    if source.pieces:
        numbers = session.range(0, len(source.pieces), 1, len(source.pieces)).toDF("piece")
        given.append(mapped(numbers, parse_pieces))
    if not given:
        return session.createDataFrame([], PACKETS)
    return reduced(reduce(lambda a, b: a.unionAll(b), given), parts, _meet)  # tasks of a union are numbered through


def _parse(
    batches: Iterable[pa.RecordBatch], form: str, number: int, directory: str, parts: int, seed: int
) -> Iterator[Packet]:
    """Parse and stage the rows of one task; where that is, and the records of all subscriptions."""
    staged: list[pa.RecordBatch] = []
    records: dict[str, list[pa.Table]] = {"id": [], "interface": []}
    samples: list[np.ndarray] = []
    bad: list[pa.Table] = []
    count = unsatisfiable = redundant = lost = 0
    try:
        for batch in _large(batches):
            parsed = parse_batch(batch, form)
            rows = parsed.rows
            refs = (number << REF) + count + np.arange(rows.num_rows)
            staged.append(rows)
            records["id"].append(id_records(rows, refs, seed))
            records["interface"].append(cover_records(parsed, refs, groups_of(rows.column("name"))))
            samples.append(sample_of(rows))
            bad.append(parsed.bad)
            count += rows.num_rows
            unsatisfiable += parsed.unsatisfiable
            redundant += parsed.redundant
    except DamagedPiece as error:  # none of its rows can be trusted
        bad = [pa.table([[value] for value in (error.path, None, None, str(error), None)], schema=QUARANTINE)]
        staged = samples = []
        records = {}
        count = unsatisfiable = redundant = 0
        lost = error.bytes
    if not staged and not bad:
        return
    refused = pa.concat_tables(bad)
    if form == "columns":
        refused = as_given(refused)
    path, rejects = write_part(directory, staged), write_quarantine(directory, refused)
    part = Part(number, path, count + len(refused), count, unsatisfiable, redundant, rejects, lost)
    yield Packet(number % parts, "part", number, json.dumps(asdict(part)).encode())
    sampled = np.concatenate([np.zeros((0, 2)), *samples])
    yield packed(number % parts, "sample", number, columns(x=sampled[:, 0], y=sampled[:, 1]))
    for key, tables in records.items():
        table = pa.concat_tables(tables).combine_chunks()
        where = (table.column(key).to_numpy() % np.uint64(parts)).astype(np.int64)
        yield from scattered(table, where, key, number)


def _large(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.num_rows
        if size >= _ROWS:
            yield pa.concat_batches(held) if len(held) > 1 else held[0]
            held, size = [], 0
    if size:
        yield pa.concat_batches(held)


def write_quarantine(directory: str, rows: pa.Table) -> str | None:
    """Write rows that were refused, if there are any; the file's path."""
    if not len(rows):
        return None
    path = Path(directory) / f"refused-{uuid.uuid4().hex}.parquet"
    pq.write_table(rows.cast(QUARANTINE), path)
    return str(path)


def _meet(packets: Iterator[Packet]) -> Iterator[Packet]:
    """What meets in one partition; what is for the driver goes on to it."""
    tables: dict[str, list[pa.Table]] = {"id": [], "interface": []}
    for packet in packets:
        if packet.what in tables:
            tables[packet.what].append(packet.table())
        else:
            yield packet
    if tables["id"]:
        doubles = find_doubles(pa.concat_tables(tables.pop("id")))
        yield packed(0, "doubles", 0, columns(ref=doubles.refs, fault=doubles.faults))
    if tables["interface"]:
        records = pa.concat_tables(tables.pop("interface"))
        interfaces = len(np.unique(records.column("interface").to_numpy()))
        yield packed(0, "coverers", interfaces, find_coverers(records))
