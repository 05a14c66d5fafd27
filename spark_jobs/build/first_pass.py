"""The first pass of a build: rows are read, parsed and staged; ids and filters are brought together to be compared.

    task, of splits of files                            part, of hashes of ids and of interfaces
    read, parse, write what is good (staging.py) ─────►  which ids come twice (build/cover/repeated_ids.py),
    and the rows for the quarantine              records  who covers whom (build/cover/coverers.py)

What the driver is told is small: where the parts are and what was counted in them, which subscriptions come again, who
is covered by whom, and a sample of the places' centres.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.forwarding.language.lonlat import PLANE
from contrada.forwarding.stores.addresses import join
from contrada.spark_jobs.build.cover.coverers import cover_records, find_coverers
from contrada.spark_jobs.build.cover.repeated_ids import find_repeated, id_records
from contrada.spark_jobs.build.messages import Covered, CoverRecords, IdRecords, PartParsed, RepeatedIds
from contrada.spark_jobs.build.rows.as_given import as_given
from contrada.spark_jobs.build.rows.parsing import parse_batch
from contrada.spark_jobs.build.rows.sources import read_rows
from contrada.spark_jobs.build.staging import QUARANTINE, write_part
from contrada.spark_jobs.build.statistics import groups_of, sample_of
from contrada.spark_jobs.common.engine import SparkEngine, scattered
from contrada.spark_jobs.common.errors import DamagedSplit
from contrada.spark_jobs.stores.shared_files import size_of, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from contrada.spark_jobs.build.rows.sources import Found
    from contrada.spark_jobs.common.engine import Engine
    from contrada.spark_jobs.common.splits import Task

    Sent = Iterator[tuple[int, PartParsed | IdRecords | CoverRecords]]
    Told = PartParsed | RepeatedIds | Covered

_ROWS: Final = 1 << 15  # at least so many are parsed at once, if there are
REF: Final = 32
"""Bits of a ref that are the row's."""


def first_pass(
    engine: Engine,
    found: Found,
    rows: DataFrame | None,
    directory: str,
    seed: int,
    *,
    roads: bool = False,
    crs: str = PLANE,
) -> list[Told]:
    """What the driver must know of the files that were found, or of the rows if some are given.

    With `roads`, the index has a road network, which `similar` needs.
    """
    parts = max(2, engine.parallelism)
    form, whole = found.form, found.whole

    def parse_splits(number: int, task: Task) -> Sent:
        damaged: list[DamagedSplit] = []
        rows = read_rows(task, form, damaged, whole=whole)
        return _parse(rows, damaged, form, number, directory, parts, seed, roads, crs)

    def parse_rows(number: int, batches: Iterable[pa.RecordBatch]) -> Sent:
        return _parse(batches, [], form, number, directory, parts, seed, roads, crs)

    if rows is not None:
        assert isinstance(engine, SparkEngine)
        return engine.run_rows(rows, parse_rows, parts, _compare)
    return engine.run(found.tasks(engine.parallelism), parse_splits, parts, _compare)


def _parse(
    batches: Iterable[pa.RecordBatch],
    damaged: list[DamagedSplit],
    form: str,
    number: int,
    directory: str,
    parts: int,
    seed: int,
    roads: bool,
    crs: str,
) -> Sent:
    """Parse and stage the rows of one task; where that is, and the records of all subscriptions."""
    staged: list[pa.RecordBatch] = []
    ids: list[pa.Table] = []
    covers: list[pa.Table] = []
    samples = [np.zeros((0, 2))]
    bad: list[pa.Table] = []
    count = unsatisfiable = redundant = 0
    try:
        for batch in _large(batches):
            parsed = parse_batch(batch, form, roads=roads, crs=crs)
            rows = parsed.rows
            refs = (number << REF) + count + np.arange(rows.num_rows)
            staged.append(rows)
            ids.append(id_records(rows, refs, seed))
            covers.append(cover_records(parsed, refs, groups_of(rows.column("name"))))
            samples.append(sample_of(rows))
            bad.append(parsed.bad)
            count += rows.num_rows
            unsatisfiable += parsed.unsatisfiable
            redundant += parsed.redundant
    except DamagedSplit as error:  # there is no other in this task, and none of its rows can be trusted
        damaged.append(error)
        staged, ids, covers, samples, bad = [], [], [], samples[:1], []
        count = unsatisfiable = redundant = 0
    bad += [
        pa.table([[value] for value in (each.path, None, None, str(each), None)], schema=QUARANTINE) for each in damaged
    ]
    if not staged and not bad:
        return
    refused = pa.concat_tables(bad)
    if form == "columns":
        refused = as_given(refused)
    path, rejects = write_part(directory, staged), write_quarantine(directory, refused)
    lost = sum(int(size_of(each.path) * each.share) for each in damaged)
    told = PartParsed(
        number,
        path,
        count + len(refused),
        count,
        unsatisfiable,
        redundant,
        rejects,
        lost,
        np.concatenate(samples),
    )
    yield number % parts, told
    for part, table in _by_hash(ids, "id", parts):
        yield part, IdRecords(table)
    for part, table in _by_hash(covers, "interface", parts):
        yield part, CoverRecords(table)


def _by_hash(tables: list[pa.Table], column: str, parts: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of tables by the part that a column of hashes says."""
    if not tables:
        return iter(())
    table = pa.concat_tables(tables).combine_chunks()
    return scattered(table, (table.column(column).to_numpy() % np.uint64(parts)).astype(np.int64))


def _large(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(batch)
        size += batch.num_rows
        if size >= _ROWS:
            yield pa.concat_batches(gathered) if len(gathered) > 1 else gathered[0]
            gathered, size = [], 0
    if size:
        yield pa.concat_batches(gathered)


def write_quarantine(directory: str, rows: pa.Table) -> str | None:
    """Write rows that were refused, if there are any; the file's address."""
    if not len(rows):
        return None
    path = join(directory, f"refused-{uuid.uuid4().hex}.parquet")
    with writing(path) as file:
        pq.write_table(rows.cast(QUARANTINE), file)
    return path


def _compare(messages: Iterable[PartParsed | IdRecords | CoverRecords]) -> Iterator[Told]:
    """Compare what is in one part; what is for the driver goes on to it."""
    ids: list[pa.Table] = []
    covers: list[pa.Table] = []
    for message in messages:
        if isinstance(message, IdRecords):
            ids.append(message.table)
        elif isinstance(message, CoverRecords):
            covers.append(message.table)
        else:
            yield message
    if ids:
        yield find_repeated(pa.concat_tables(ids))
    if covers:
        records = pa.concat_tables(covers)
        yield Covered(find_coverers(records), len(np.unique(records.column("interface").to_numpy())))
