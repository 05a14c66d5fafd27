"""The job behind `contrada build-index`: subscriptions in, an index directory out.

    read      sources.py         rows of Parquet, JSON lines or GeoJSON
    parse     parsing.py         once, into a staged table; bad rows to the quarantine, with the reason
    count     statistics.py      keywords, attributes, places
    simplify  simplifying.py     who is covered by whom
    assign    partitioning.py    segments of equal size, compact on the map
    build     building.py        segments, each by one executor
    commit    forwarding/index_directory.py: the manifest, last

Everything is staged in a hidden directory inside OUT and moved into place at the end, so a job that is killed leaves
the index as it was. A lock keeps two builds of one index apart and ends with the process that holds it; whoever has
it sweeps away what killed jobs left. OUT must be a directory that the driver and all executors see.
"""

from __future__ import annotations

import fcntl
import shutil
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contrada.errors import InvalidValue
from contrada.forwarding.index_directory import commit_index
from contrada.spark_jobs.building import build_segments
from contrada.spark_jobs.parsing import PARSED, parse_subscriptions
from contrada.spark_jobs.partitioning import assign_segments, plan_segments, share_of
from contrada.spark_jobs.simplifying import beside_coverers, find_covered, find_meetings
from contrada.spark_jobs.sources import read_subscriptions
from contrada.spark_jobs.statistics import (
    GRID,
    attribute_frequencies,
    histogram,
    token_frequencies,
    totals,
    with_bucket,
)
from contrada.spatial.textual.registry import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

_STAGING: Final = ".staging-"
_LOCK: Final = ".lock"
_BROADCAST: Final = 1_000_000  # buckets, of eight bytes each, that every executor may have a copy of
_SHOWN: Final = 100  # most frequent keywords and attributes that the manifest names
_QUARANTINE: Final = "source string, row long, id string, reason string, raw string"
_BAD: Final = tuple(part.split()[0] for part in _QUARANTINE.split(", "))


@dataclass(frozen=True, slots=True)
class Built:
    """What a build did: the summary that `contrada build-index --json` prints."""

    index: str
    rows: int
    subscriptions: int
    filters: int
    quarantined: int
    duplicates: int  # rows that repeat another word for word; one of them stands
    unsatisfiable: int  # subscriptions that nothing matches (rule 1)
    redundant_constraints: int  # (rule 2)
    covered: int  # subscriptions that another of their interface covers (rule 3)
    interfaces: int  # about
    segments: int
    bytes: int
    quarantine: str
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def build_index(
    session: SparkSession,
    source: str,
    out: str,
    *,
    format: str | None = None,
    segments: int | None = None,
    quarantine: str | None = None,
    geotext_index: str = DEFAULT,
    tell: Callable[[str], None] = lambda step: None,
) -> Built:
    """Build an index of the subscriptions in `source`; bad rows go to `quarantine`, OUT/quarantine by default."""
    began = time.monotonic()
    place = Path(out)
    place.mkdir(parents=True, exist_ok=True)
    rejected = Path(quarantine) if quarantine else place / "quarantine"
    with _alone(place) as staging:
        tell(f"reading {source}")
        given = read_subscriptions(session, source, format)
        staged = str(staging / "parsed")
        parse_subscriptions(given.rows, given.form).write.parquet(staged, compression="lz4")
        parsed = session.read.schema(PARSED).parquet(staged)
        found = totals(parsed)
        good, clashing = _each_id_once(parsed)
        bad = _bad_rows(session, parsed, found.bad, clashing, given.unread)
        quarantined = _write_quarantine(bad, staging / "quarantine")
        tell(f"{found.rows:,} rows, {quarantined:,} to the quarantine; counting keywords")
        tokens, attributes = staging / "statistics" / "tokens", staging / "statistics" / "attributes"
        token_frequencies(good).write.parquet(str(tokens))
        frequent = _first_rows(tokens)
        tell("looking for subscriptions that others cover")
        bucketed = with_bucket(good, found.grid)
        roots, covered = _covers(session, bucketed, [row["token"] for row in frequent], staging)
        placed = beside_coverers(bucketed, roots, share_of(found.rows - found.bad, segments) // 2)
        counted = histogram(placed)
        subscriptions = sum(counted.values())
        attribute_frequencies(good, subscriptions).write.parquet(str(attributes))
        _write_places(counted, staging / "statistics" / "places")
        plan = plan_segments(counted, segments)
        tell(f"building {len(plan.kinds)} segments of {subscriptions:,} subscriptions")
        assigned = assign_segments(session, placed, plan)
        (staging / "segments").mkdir()
        infos = build_segments(assigned, plan.kinds, str((staging / "segments").resolve()), geotext_index)
        statistics = {
            "subscriptions": subscriptions,
            "quarantined": quarantined,
            "covered": covered,
            "unsatisfiable": found.unsatisfiable,
            "grid": found.grid,
            "tokens": frequent,
            "attributes": _first_rows(attributes),
        }
        _move(staging / "quarantine", rejected)
        _move(staging / "statistics", place / "statistics")
        manifest = commit_index(
            place, infos, staged=staging / "segments", geotext_index=geotext_index, statistics=statistics
        )
    tell(f"committed {place}")
    return Built(
        index=str(place),
        rows=found.rows,
        subscriptions=manifest.subscriptions,
        filters=manifest.filters,
        quarantined=quarantined,
        duplicates=found.rows + len(given.unread) - quarantined - subscriptions,
        unsatisfiable=found.unsatisfiable,
        redundant_constraints=found.redundant_constraints,
        covered=covered,
        interfaces=found.interfaces,
        segments=len(manifest.segments),
        bytes=sum(each.bytes for each in manifest.segments),
        quarantine=str(rejected),
        seconds=round(time.monotonic() - began, 3),
    )


def _covers(
    session: SparkSession, bucketed: DataFrame, frequent: list[str], staging: Path
) -> tuple[DataFrame | None, int]:
    """Who is covered by whom, if anyone is, and how many; each step is written, so that the next knows its size."""
    find_meetings(bucketed, frequent).write.parquet(str(staging / "meetings"))
    met = _count_rows(staging / "meetings")
    if not met:
        return None, 0
    meetings = session.read.parquet(str(staging / "meetings"))
    known = F.broadcast(meetings) if met < _BROADCAST else meetings
    find_covered(bucketed, frequent, known).write.parquet(str(staging / "covered"))
    covered = _count_rows(staging / "covered")
    return (session.read.parquet(str(staging / "covered")), covered) if covered else (None, 0)


def _each_id_once(parsed: DataFrame) -> tuple[DataFrame, DataFrame | None]:
    """The good rows, each id once; and if ids are given to different subscriptions, all rows of those.

    An id that is given twice for the same subscription stands once. Given for different ones, it is nobody's: which
    one was meant cannot be told.
    """
    sound = parsed.where("reason is null")
    repeated = sound.groupBy("id").agg(F.count("*").alias("n")).where("n > 1").select("id")
    if repeated.isEmpty():
        return sound, None
    content = F.xxhash64("interface", "filter", "name", "x1", "y1", "x2", "y2", "tokens")
    again = sound.join(repeated, "id").withColumn("content", content)
    unlike = again.groupBy("id").agg(F.countDistinct("content").alias("n")).where("n > 1").select("id")
    alike = again.join(unlike, "id", "leftanti").dropDuplicates(["id"]).select(*parsed.columns)
    once = sound.join(repeated, "id", "leftanti").select(*parsed.columns)
    return once.union(alike), again.join(unlike, "id", "leftsemi")


def _bad_rows(
    session: SparkSession,
    parsed: DataFrame,
    count: int,
    clashing: DataFrame | None,
    unread: tuple[tuple[str, str], ...],
) -> list[DataFrame]:
    """What goes to the quarantine: rows that are wrong, ids that clash, files that could not be read."""
    bad = [parsed.where("reason is not null").select(*_BAD)] if count else []
    if clashing is not None:
        reason = F.lit("the same id is given to different subscriptions")
        raw = F.to_json(F.struct("id", "interface", "name", "tokens", "attributes"))
        bad.append(clashing.withColumn("reason", reason).withColumn("raw", raw).select(*_BAD))
    if unread:
        rows = [(file, None, None, reason, None) for file, reason in unread]
        bad.append(session.createDataFrame(rows, _QUARANTINE))
    return bad


def _write_quarantine(bad: list[DataFrame], path: Path) -> int:
    """Write the quarantine, a table also when it is empty; how many rows it has."""
    if not bad:
        path.mkdir()
        columns = {"string": pa.string(), "long": pa.int64()}
        schema = pa.schema([(name, columns[kind]) for name, kind in (part.split() for part in _QUARANTINE.split(", "))])
        pq.write_table(schema.empty_table(), path / "part-0.parquet")
        return 0
    reduce(DataFrame.union, bad).coalesce(1).write.parquet(str(path))
    return _count_rows(path)


def _write_places(counted: Mapping[str, int], path: Path) -> None:
    """Write the spatial histogram: how many places, or their coverers, have their centre in each cell of the grid."""
    path.mkdir()
    cells = sorted((kind, divmod(int(cell), GRID), n) for (kind, _, cell), n in _parts(counted) if kind != "hash")
    columns = {
        "kind": pa.array([kind for kind, _, _ in cells], pa.string()),
        "x": pa.array([x for _, (x, _), _ in cells], pa.int32()),
        "y": pa.array([y for _, (_, y), _ in cells], pa.int32()),
        "subscriptions": pa.array([n for _, _, n in cells], pa.int64()),
    }
    pq.write_table(pa.table(columns), path / "part-0.parquet")


def _parts(counted: Mapping[str, int]) -> Iterator[tuple[list[str], int]]:
    return ((bucket.split(":"), n) for bucket, n in counted.items())


def _count_rows(path: Path) -> int:
    """How many rows a written table has, by the footers of its files."""
    return sum(pq.read_metadata(file).num_rows for file in path.glob("*.parquet"))


def _first_rows(path: Path) -> list[dict[str, Any]]:
    """The first rows of a table in one file."""
    for file in path.glob("*.parquet"):
        for batch in pq.ParquetFile(file).iter_batches(_SHOWN):
            rows: list[dict[str, Any]] = batch.to_pylist()
            return rows
    return []


@contextmanager
def _alone(place: Path) -> Iterator[Path]:
    """A staging directory, while no one else builds this index."""
    with (place / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidValue(f"{place}: another build is under way; wait for it, or choose another OUT") from None
        for left in place.glob(f"{_STAGING}*"):
            shutil.rmtree(left)
        staging = place / f"{_STAGING}{uuid4().hex}"
        staging.mkdir()
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def _move(source: Path, target: Path) -> None:
    """Put a directory in the place of another."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        if any(file.suffix not in (".parquet", ".crc") and file.name != "_SUCCESS" for file in _leaves(target)):
            raise InvalidValue(f"{target}: there is something other than an earlier table; choose another place")
        shutil.rmtree(target)
    shutil.move(source, target)


def _leaves(directory: Path) -> Iterator[Path]:
    return (file for file in directory.rglob("*") if file.is_file())
