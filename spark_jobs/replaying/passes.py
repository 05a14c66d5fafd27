"""One pass over a log: all its events against one index, on Spark.

ReplayedIndex      an index, when it was in force, and whether events have to travel to its segments
Outcome     the files that the tasks of a pass have written, and what they have counted
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contrada.errors import CorruptFile
from contrada.forwarding.segments.manifest import read_manifest
from contrada.forwarding.stores.addresses import join
from contrada.spark_jobs.common.errors import told_in_one_line
from contrada.spark_jobs.common.index_cache import IndexFiles
from contrada.spark_jobs.replaying.matching import Match, TaskDone, replay_rows, replay_tasks
from contrada.spark_jobs.replaying.report.tally import Tally
from contrada.spark_jobs.replaying.routing import replay_routed
from contrada.spark_jobs.replaying.storing import Written

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pyspark import RDD
    from pyspark.sql import SparkSession

    from contrada.spark_jobs.replaying.history import Period
    from contrada.spark_jobs.replaying.logs.event_logs import Log


@dataclass(frozen=True, slots=True)
class ReplayedIndex:
    """An index to match against, and when it was in force."""

    index: IndexFiles
    routed: bool = False
    as_of: bool = False
    periods: tuple[tuple[int, int], ...] | None = None
    gone: tuple[tuple[str, int, int], ...] = ()

    @classmethod
    def of(cls, path: str | os.PathLike[str], memory: int | None = None, *, as_of: bool = False) -> ReplayedIndex:
        """The index in a directory, for workers that may hold so many bytes of it; None: all."""
        return cls(*_files(path, memory, ""), as_of=as_of)

    @classmethod
    def stood(cls, periods: Sequence[Period], memory: int | None = None) -> ReplayedIndex:
        """The index that a broker had loaded in some periods, all of the same one."""
        path, shard = periods[0].path, periods[0].shard
        index, routed = _files(path, memory, shard)
        if index.digest != periods[0].digest:
            raise CorruptFile(f"{path}: built anew since the broker had it: no telling what it would have matched then")
        return cls(
            index,
            routed,
            periods=tuple((each.added, each.removed) for each in periods),
            gone=tuple((id, since, each.removed) for each in periods for id, since in each.gone.items()),
        )


def _files(path: str | os.PathLike[str], memory: int | None, shard: str) -> tuple[IndexFiles, bool]:
    """An index, and whether it is too large for a worker."""
    large = memory is not None and sum(each.bytes for each in read_manifest(path).segments) > memory
    return IndexFiles.of(path, memory if large else None, shard), large


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass has written."""

    replayed: ReplayedIndex
    tally: Tally
    deliveries: tuple[str, ...]
    quarantine: tuple[str, ...]
    counts: tuple[str, ...]


def run_pass(
    spark: SparkSession,
    logs: Sequence[Log],
    replayed: ReplayedIndex,
    place: str,
    *,
    first: bool = True,
    geometry: bool = False,
) -> Outcome:
    """Match every event, and write under an address that all see.

    Only the `first` pass over a log counts events and keeps those it rejects.
    """
    context = spark.sparkContext
    plain: list[RDD[TaskDone]] = []
    done: list[TaskDone] = []
    for log in logs:
        match = Match(replayed.index, log.format, replayed.as_of, replayed.periods, replayed.gone, first, geometry)
        if replayed.routed:
            done += replay_routed(spark, log, match, place)
        elif log.rows is not None:
            done += replay_rows(log.rows, match, place)
        else:
            plain.append(replay_tasks(context, log.tasks, match, place))
    if plain:
        with told_in_one_line():
            done += context.union(plain).collect()
    tally = Tally()
    for each in done:
        tally.merge(each.tally)
    files = (
        sorted(join(place, *path.split("/")) for each in done for path in each.written[kind])
        for kind in range(len(Written._fields))
    )
    return Outcome(replayed, tally, *map(tuple, files))
