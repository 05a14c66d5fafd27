"""One pass over a log: all its events against one index, on Spark.

Source      an index, when it was in force, and whether events have to travel to its segments
Outcome     the files that the tasks of a pass have written, and what they have counted
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrada.errors import CorruptFile
from contrada.forwarding.segments.index_directory import read_manifest
from contrada.spark_jobs.common.failing import told_in_one_line
from contrada.spark_jobs.common.index_cache import IndexFiles
from contrada.spark_jobs.replay.matching import Match, replayed, replayed_pieces, route_events
from contrada.spark_jobs.replay.report.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from contrada.spark_jobs.replay.history import Period
    from contrada.spark_jobs.replay.logs.event_logs import Log


@dataclass(frozen=True, slots=True)
class Source:
    """An index to match against, and when it was in force."""

    index: IndexFiles
    routed: bool = False
    as_of: bool = False
    periods: tuple[tuple[int, int], ...] | None = None
    gone: tuple[tuple[str, int, int], ...] = ()

    @classmethod
    def of(cls, path: Path, memory: int | None = None, *, as_of: bool = False) -> Source:
        """The index in a directory, for workers that may hold so many bytes of it; None: all."""
        return cls(*_files(path, memory, ""), as_of=as_of)

    @classmethod
    def stood(cls, periods: Sequence[Period], memory: int | None = None) -> Source:
        """The index that a broker had loaded in some periods, all of the same one."""
        path, shard = Path(periods[0].path), periods[0].shard
        index, routed = _files(path, memory, shard)
        if index.digest != periods[0].digest:
            raise CorruptFile(f"{path}: built anew since the broker had it: no telling what it would have matched then")
        return cls(
            index,
            routed,
            periods=tuple((each.added, each.removed) for each in periods),
            gone=tuple((id, since, each.removed) for each in periods for id, since in each.gone.items()),
        )


def _files(path: Path, memory: int | None, shard: str) -> tuple[IndexFiles, bool]:
    """An index, and whether it is too large for a worker."""
    large = memory is not None and sum(each.bytes for each in read_manifest(path).segments) > memory
    return IndexFiles.of(path, memory if large else None, shard), large


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass has written."""

    source: Source
    tally: Tally
    deliveries: tuple[Path, ...]
    quarantine: tuple[Path, ...]
    counts: tuple[Path, ...]


def run_pass(spark: SparkSession, logs: Sequence[Log], source: Source, place: Path, *, first: bool = True) -> Outcome:
    """Match every event; only the `first` pass over a log counts events and keeps those it rejects."""
    context = spark.sparkContext
    if not str(context.master).startswith("local"):
        context.addFile(source.index.path, recursive=True)  # Spark brings the files to its machines
    tally = Tally()
    files: dict[str, list[Path]] = {"deliveries": [], "quarantine": [], "counts": []}
    arrow: list[DataFrame] = []
    plain: list[RDD[dict[str, Any]]] = []
    for log in logs:
        match = Match(source.index, log.format, source.as_of, source.periods, source.gone, first, log.pieces)
        if source.routed:
            rows = route_events(log.rows(), match, 4 * context.defaultParallelism)
            arrow.append(replayed(rows, match, str(place.resolve())))
        elif log.pieces:
            plain.append(replayed_pieces(context, match, str(place.resolve())))
        else:
            arrow.append(replayed(log.rows(), match, str(place.resolve())))
    with told_in_one_line():
        told = [row.asDict() for row in reduce(lambda a, b: a.unionAll(b), arrow).collect()] if arrow else []
        told += context.union(plain).collect() if plain else []
    for row in told:
        if row["kind"] == "tally":
            tally.merge(Tally.from_text(row["tally"]))
        else:
            files[row["kind"]].append(place / row["path"])
    return Outcome(source, tally, *(tuple(sorted(files[kind])) for kind in ("deliveries", "quarantine", "counts")))
