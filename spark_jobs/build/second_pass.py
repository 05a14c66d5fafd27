"""The second pass of a build: what stands is counted, so that segments can be planned.

task, of a part                                       part, of hashes of keywords
leave out ids that come again; count keywords,  ──►  add up the counts and write them
attributes and places; refuse ids that clash
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.forwarding.stores.addresses import join
from contrada.spark_jobs.build.cover.cover_groups import CoverGroups
from contrada.spark_jobs.build.cover.repeated_ids import CLASHING
from contrada.spark_jobs.build.first_pass import REF, write_quarantine
from contrada.spark_jobs.build.hashing import hash_texts, mix_all
from contrada.spark_jobs.build.messages import PartCounted, PartParsed, TokenCounts, TokensCounted
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
from contrada.spark_jobs.common.engine import scattered
from contrada.spark_jobs.stores.shared_files import reading, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.spark_jobs.common.engine import Engine

_CLASH = "the same id is given to different subscriptions"
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Placing:
    """How subscriptions are placed, the same in every task: the parts, who comes again, groups of covers, the grid."""

    parts: tuple[PartParsed, ...]
    repeated: str
    covers: str
    grid: Grid | None

    def read(self, number: int) -> tuple[pa.Table, Ints, pa.Table]:
        """The subscriptions of a part that stand, their refs, and those of clashing ids."""
        part = self.parts[number]
        table = read_part(part.path)
        refs = (part.number << REF) + np.arange(len(table))
        with reading(self.repeated) as file, np.load(file) as arrays:
            dead, faults = arrays["refs"], arrays["faults"]
        low, high = np.searchsorted(dead, [part.number << REF, (part.number + 1) << REF])
        if low == high:
            return table, refs, table.slice(0, 0)
        stands = np.ones(len(table), np.bool_)
        stands[dead[low:high] - (part.number << REF)] = False
        clashing = (dead[low:high] - (part.number << REF))[faults[low:high] == CLASHING]
        return table.filter(pa.array(stands)), refs[stands], table.take(pa.array(clashing))

    def place(self, rows: pa.Table, refs: Ints) -> tuple[Ints, np.ndarray, np.ndarray, Ints]:
        """Of subscriptions that stand: buckets, and a hash of what each is placed by.

        Which of them may cover others or be covered, and the ref of the one that seems to cover it; -1 for none.
        """
        covers = CoverGroups.load(self.covers)
        kinds = rows.column("kind").to_numpy().astype(np.int64)
        groups, places = groups_of(rows.column("name")), centres(rows)
        owners = hash_texts(text_of(rows.column("id").combine_chunks()))
        at, member = covers.find(refs)
        roots = np.full(len(refs), -1, np.int64)
        if member.any():
            led = member & (covers.roots[at] >= 0) if len(covers.refs) else member
            where = at[led]
            kinds[led], groups[led] = covers.kinds[where], covers.groups[where]
            places[led, 0], places[led, 1] = covers.x[where], covers.y[where]
            hashes = np.zeros(len(where), np.uint64)
            mix_all(hashes, covers.roots[where].view(np.uint64))
            owners[led] = hashes
            roots[led] = covers.roots[where]
        return buckets_of(kinds, groups, places, self.grid), owners, member, roots


def second_pass(engine: Engine, placing: Placing, directory: str, tokens: str) -> list[PartCounted | TokensCounted]:
    """What was counted; the counts of keywords are written to files in `tokens`."""
    parts = max(2, engine.parallelism)

    def count(number: int, _: PartParsed) -> Iterator[tuple[int, PartCounted | TokenCounts]]:
        return _count(placing, number, directory, parts)

    return engine.run(placing.parts, count, parts, lambda messages: _add_up(messages, tokens))


def _count(
    placing: Placing, number: int, directory: str, parts: int
) -> Iterator[tuple[int, PartCounted | TokenCounts]]:
    rows, refs, clashing = placing.read(number)
    buckets, counts = np.unique(placing.place(rows, refs)[0], return_counts=True)
    refused = pa.table([_refused(clashing, name) for name in QUARANTINE.names], schema=QUARANTINE)
    path = write_quarantine(directory, as_given(refused, unless_told=True))
    yield number % parts, PartCounted(buckets, counts, attribute_counts(rows), path)
    tokens = token_counts(rows)
    where = (hash_texts(text_of(tokens.column("token").combine_chunks())) % np.uint64(parts)).astype(np.int64)
    for part, table in scattered(tokens, where):
        yield part, TokenCounts(table)


def _refused(rows: pa.Table, name: str) -> pa.Array:
    if name == "reason":
        return pa.array([_CLASH] * len(rows), pa.string())
    if name == "raw":
        return pa.array([raw and raw.decode(errors="replace") for raw in rows.column("raw").to_pylist()], pa.string())
    return rows.column(name).combine_chunks()


def _add_up(messages: Iterable[PartCounted | TokenCounts], directory: str) -> Iterator[PartCounted | TokensCounted]:
    tables = []
    for message in messages:
        if isinstance(message, TokenCounts):
            tables.append(message.table)
        else:
            yield message
    if tables:
        merged = merge_counts(tables)
        path = join(directory, f"part-{uuid.uuid4().hex}.parquet")
        with writing(path) as file:
            pq.write_table(merged, file)
        yield TokensCounted(merged.slice(0, _SHOWN).to_pylist(), path)
