"""The second pass of a build: what stands is counted, so that segments can be planned.

task, of a part                                       task, of a partition of keywords
leave out ids that come again; count keywords,  ──►  add up the counts and write them
attributes and places; refuse ids that clash
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.spark_jobs.build.cover.families import Families
from contrada.spark_jobs.build.cover.meeting import CLASHING
from contrada.spark_jobs.build.first_pass import REF, Part, write_quarantine
from contrada.spark_jobs.build.packets import Packet, columns, mapped, packed, reduced, scattered
from contrada.spark_jobs.build.rows.as_given import as_given
from contrada.spark_jobs.build.staging import QUARANTINE, read_part
from contrada.spark_jobs.build.statistics import (
    Grid,
    attribute_counts,
    buckets_of,
    centres,
    groups_of,
    merge_counts,
    token_counts,
)
from contrada.spark_jobs.common.arrow import text_of
from contrada.spark_jobs.common.hashing import hash_texts, mix_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from contrada.forwarding.kernels.memory.layout import Ints

_CLASH = "the same id is given to different subscriptions"
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Placing:
    """How subscriptions are placed, the same in every task: the parts, who comes again, the families and the grid."""

    parts: tuple[Part, ...]
    doubles: str
    families: str
    grid: Grid | None

    def read(self, number: int) -> tuple[pa.Table, Ints, pa.Table]:
        """The subscriptions of a part that stand, their refs, and those of clashing ids."""
        part = self.parts[number]
        table = read_part(part.path)
        refs = (part.number << REF) + np.arange(len(table))
        with np.load(self.doubles) as arrays:
            dead, faults = arrays["refs"], arrays["faults"]
        low, high = np.searchsorted(dead, [part.number << REF, (part.number + 1) << REF])
        if low == high:
            return table, refs, table.slice(0, 0)
        stands = np.ones(len(table), np.bool_)
        stands[dead[low:high] - (part.number << REF)] = False
        clashing = (dead[low:high] - (part.number << REF))[faults[low:high] == CLASHING]
        return table.filter(pa.array(stands)), refs[stands], table.take(pa.array(clashing))

    def place(self, rows: pa.Table, refs: Ints) -> tuple[Ints, np.ndarray, np.ndarray]:
        """Of subscriptions that stand: buckets, a hash of what each is placed by, and which may cover or be covered."""
        families = Families.load(self.families)
        kinds = rows.column("kind").to_numpy().astype(np.int64)
        groups, places = groups_of(rows.column("name")), centres(rows)
        owners = hash_texts(text_of(rows.column("id").combine_chunks()))
        at, member = families.find(refs)
        if member.any():
            led = member & (families.roots[at] >= 0) if len(families.refs) else member
            where = at[led]
            kinds[led], groups[led] = families.kinds[where], families.groups[where]
            places[led, 0], places[led, 1] = families.x[where], families.y[where]
            hashes = np.zeros(len(where), np.uint64)
            mix_all(hashes, families.roots[where].view(np.uint64))
            owners[led] = hashes
        return buckets_of(kinds, groups, places, self.grid), owners, member


def of_parts(session: SparkSession, placing: Placing, run: Callable[[int], Iterator[Packet]]) -> DataFrame:
    """Packets that tasks make, one of each part."""

    def each(batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from run(number)

    return mapped(session.range(0, len(placing.parts), 1, max(1, len(placing.parts))), each)


def second_pass(session: SparkSession, placing: Placing, directory: str, tokens: str) -> DataFrame:
    """Packets of counts; those of keywords are written to files in `tokens`."""
    parts = max(2, session.sparkContext.defaultParallelism)
    counted = of_parts(session, placing, lambda number: _count(placing, number, directory, parts))
    return reduced(counted, parts, lambda packets: _add_up(packets, tokens))


def _count(placing: Placing, number: int, directory: str, parts: int) -> Iterator[Packet]:
    rows, refs, clashing = placing.read(number)
    home = number % parts
    buckets, counts = np.unique(placing.place(rows, refs)[0], return_counts=True)
    yield packed(home, "places", number, columns(bucket=buckets, count=counts))
    uses = [[*use, count] for use, count in attribute_counts(rows).items()]
    yield Packet(home, "uses", number, json.dumps(uses).encode())
    refused = pa.table([_refused(clashing, name) for name in QUARANTINE.names], schema=QUARANTINE)
    path = write_quarantine(directory, as_given(refused, unless_told=True))
    if path is not None:
        yield Packet(home, "refused", len(refused), path.encode())
    tokens = token_counts(rows)
    where = (hash_texts(text_of(tokens.column("token").combine_chunks())) % np.uint64(parts)).astype(np.int64)
    yield from scattered(tokens, where, "tokens", number)


def _refused(rows: pa.Table, name: str) -> pa.Array:
    if name == "reason":
        return pa.array([_CLASH] * len(rows), pa.string())
    if name == "raw":
        return pa.array([raw and raw.decode(errors="replace") for raw in rows.column("raw").to_pylist()], pa.string())
    return rows.column(name).combine_chunks()


def _add_up(packets: Iterator[Packet], directory: str) -> Iterator[Packet]:
    tables = []
    for packet in packets:
        if packet.what == "tokens":
            tables.append(packet.table())
        else:
            yield packet
    if tables:
        merged = merge_counts(tables)
        path = Path(directory) / f"part-{uuid.uuid4().hex}.parquet"
        pq.write_table(merged, path)
        yield packed(0, str(path), len(merged), merged.slice(0, _SHOWN))
