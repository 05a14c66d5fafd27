"""The job behind `contrada build-index`: subscriptions in, an index directory out.

    read      rows/sources.py    rows of Parquet, JSON lines or GeoJSON
    parse     first_pass.py      once, into staged parts; bad rows to the quarantine, with the reason; which ids come
                                 twice, and who is covered by whom
    count     second_pass.py     keywords, attributes, places
    plan      partitioning.py    segments of equal size, compact on the map
    build     building.py        segments, each by one executor
    commit    forwarding/segments/index_directory.py: the manifest, last, and statistics and quarantine with it

Stages run on Spark or in this process (common/engine.py), and tell each other what messages.py lists. Paths and options
are looked at before anything is begun (plan.py). A build that would commit nothing,
or has set aside more than it may, changes nothing but the directory of the rows that it refused.

Everything is staged in a hidden folder inside OUT and put into place at the end (stores/places.py), so a job that is
killed leaves the index as it was. OUT is a directory that the driver and all executors see, or a URL.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.forwarding.language.lonlat import PLANE
from contrada.forwarding.segments.manifest import FOLDERS, ROADS, SEGMENT_KINDS
from contrada.forwarding.state.matching import DEFAULT_MATCHING
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import is_url, join, shown
from contrada.spark_jobs.build.building import build_segments
from contrada.spark_jobs.build.cover.cover_groups import COVERER_COLUMNS, CoverGroups
from contrada.spark_jobs.build.first_pass import first_pass
from contrada.spark_jobs.build.messages import Covered, PartCounted, PartParsed, RepeatedIds, TokensCounted
from contrada.spark_jobs.build.partitioning import plan_segments, share_of
from contrada.spark_jobs.build.plan import MOST_QUARANTINED, Build, plan_build
from contrada.spark_jobs.build.rows.sources import read_table, read_url
from contrada.spark_jobs.build.second_pass import Placing, second_pass
from contrada.spark_jobs.build.staging import QUARANTINE
from contrada.spark_jobs.build.statistics import Grid, bucket_parts
from contrada.spark_jobs.common.engine import LocalEngine, SparkEngine
from contrada.spark_jobs.common.errors import NotCommitted, SparkMissing
from contrada.spark_jobs.metrics import Meter
from contrada.spark_jobs.stores.commit import replace_directory
from contrada.spark_jobs.stores.places import commit_build, index_staging, keep_refused
from contrada.spark_jobs.stores.shared_files import take, writing
from contrada.spatial.relations.discretization import EXACT, Discretization
from contrada.spatial.textual.registry import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.spark_jobs.common.engine import Engine
    from contrada.spark_jobs.stores.places import Staging
    from contrada.spatial.road.network import RoadNetwork

_SHOWN: Final = 100  # most frequent keywords and attributes that the manifest names


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
    covered: int  # filters that another of their interface covers (rule 3)
    interfaces: int  # about
    segments: int
    bytes: int
    quarantine: str
    seconds: float
    stages: list[dict[str, Any]]  # what each cost (metrics.py)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def build_index(
    subscriptions: str | os.PathLike[str] | DataFrame,
    out: str | os.PathLike[str],
    *,
    session: SparkSession | None = None,
    format: str | None = None,
    segments: int | None = None,
    quarantine: str | os.PathLike[str] | None = None,
    geotext_index: str = DEFAULT,
    matching: str = DEFAULT_MATCHING,
    discretization: Discretization = EXACT,
    simplify: bool = True,
    roads: str | os.PathLike[str] | RoadNetwork | None = None,
    crs: str = PLANE,
    max_quarantined: float = MOST_QUARANTINED,
    allow_empty: bool = False,
    tell: Callable[[str], None] = lambda step: None,
) -> Built:
    """Build an index of subscriptions: files, or a DataFrame with the columns id, interface and filter.

    Without a session files are read and built in this process, which for some hundred thousand is quicker than to
    start Spark. The files are the same. With `roads`, a road network or its file, `similar` is taken, too, and the
    index has the network. With `crs="lonlat"` coordinates are degrees. Without `simplify` no filter is set aside for
    another that covers it. Bad rows go to the index's quarantine, and to `quarantine`.

    `NotCommitted` when nothing was accepted, unless `allow_empty`, or more than `max_quarantined`, a share, refused.
    """
    table = None if isinstance(subscriptions, str | os.PathLike) else subscriptions
    plan = plan_build(
        None if table is not None else str(subscriptions),
        out,
        format=format,
        segments=segments,
        quarantine=quarantine,
        geotext_index=geotext_index,
        matching=matching,
        discretization=discretization,
        simplify=simplify,
        roads=roads,
        crs=crs,
        max_quarantined=max_quarantined,
        allow_empty=allow_empty,
    )
    if table is not None:
        return run_build(plan, SparkEngine(session or table.sparkSession), read_table(table), tell=tell)
    return run_build(plan, LocalEngine() if session is None else SparkEngine(session), tell=tell)


def run_build(
    build: Build, engine: Engine, rows: DataFrame | None = None, *, tell: Callable[[str], None] = lambda step: None
) -> Built:
    """Do what was planned, with the files of the plan or the rows of a table."""
    began = time.monotonic()
    meter = Meter(engine.session if isinstance(engine, SparkEngine) else None)
    place, segments = build.out, build.segments
    if rows is None and build.source.remote:
        if not isinstance(engine, SparkEngine):
            raise SparkMissing(f"{build.source.path}: a URL, which Spark reads; start it with --engine spark")
        rows = read_url(engine.session, build.source)
    with index_staging(place) as stage:
        staging = stage.here
        sources = (file.address for file in build.source.files[:1])
        engine.check(dict(zip(("OUT", "SUBSCRIPTIONS"), (stage.sign, *sources), strict=False)), tell)
        tell(f"reading {shown(build.source.path)}")
        parts = join(stage.shared, "parts")
        roads = _write_roads(build.roads, stage)
        with meter.stage("parse") as cost:
            told = first_pass(
                engine, build.source, rows, parts, secrets.randbits(63), roads=roads is not None, crs=build.crs
            )
            first = _First.of(told)
            read = first.total("rows")
            cost.rows, cost.bytes = read, build.source.bytes
        tell(f"{read:,} rows; looking for subscriptions that others cover")
        placing = _placing(first, stage, share_of(first.total("good"), segments) // 2)
        tell("counting keywords, attributes and places")
        with meter.stage("count") as cost:
            counts = _Counts.of(second_pass(engine, placing, parts, join(stage.shared, "tokens")))
            cost.rows = first.total("good")
        _take_all(counts.files, staging / "statistics" / "tokens")
        unread = build.source.unread
        refused = [part.quarantine for part in first.parts if part.quarantine is not None]
        quarantined = _write_quarantine(unread, [*refused, *counts.refused], staging / "quarantine")
        subscriptions = sum(counts.places.values())
        refusal = build.refusal(
            read + len(unread), subscriptions, quarantined, first.total("lost") + build.source.unread_bytes
        )
        if refusal is not None:
            raise NotCommitted(refusal, _keep_refused(build, staging / "quarantine"))
        plan = plan_segments(counts.places, segments)
        attributes = _attributes(counts.uses, subscriptions)
        _write_table(attributes, staging / "statistics" / "attributes")
        _write_places(counts.places, staging / "statistics" / "places")
        tell(f"building {len(plan.kinds)} segments of {subscriptions:,} subscriptions, {quarantined:,} rows refused")
        with meter.stage("build") as cost:
            written = build_segments(
                engine,
                placing,
                plan,
                stage.segments,
                build.geotext_index,
                build.matching,
                build.discretization,
                build.simplify,
                build.crs,
                roads,
            )
            cost.rows, cost.bytes = subscriptions, sum(each.info.bytes for each in written)
        covered = sum(each.covered for each in written)
        statistics: dict[str, Any] = {"subscriptions": subscriptions, "quarantined": quarantined, "covered": covered}
        statistics |= {"unsatisfiable": first.total("unsatisfiable"), "grid": placing.grid}
        statistics |= {"tokens": counts.tokens[:_SHOWN], "attributes": attributes.slice(0, _SHOWN).to_pylist()}
        if build.quarantine is not None:
            shutil.copytree(staging / "quarantine", staging / "copy")
        with meter.stage("commit"):
            manifest = commit_build(
                place,
                stage,
                [each.info for each in written],
                geotext_index=build.geotext_index,
                matching=build.matching,
                discretization=build.discretization,
                simplify=build.simplify,
                crs=build.crs,
                statistics=statistics,
                folders={name: staging / name for name in FOLDERS if (staging / name).exists()},
            )
        rejected = shown(join(place, manifest.folders["quarantine"]))
        if build.quarantine is not None:
            rejected = str(build.quarantine)
            replace_directory(staging / "copy", build.quarantine)
    tell(f"committed {shown(place)}")
    return Built(
        index=shown(place),
        rows=read,
        subscriptions=manifest.subscriptions,
        filters=manifest.filters,
        quarantined=quarantined,
        duplicates=read + len(unread) - quarantined - subscriptions,
        unsatisfiable=first.total("unsatisfiable"),
        redundant_constraints=first.total("redundant"),
        covered=covered,
        interfaces=first.interfaces,
        segments=len(manifest.segments),
        bytes=sum(each.bytes for each in manifest.segments),
        quarantine=rejected,
        seconds=round(time.monotonic() - began, 3),
        stages=meter.as_list(),
    )


def _keep_refused(build: Build, quarantine: Path) -> str:
    """Keep the quarantine of a build that is not committed; where it is."""
    if build.quarantine is None:
        return keep_refused(build.out, quarantine)
    replace_directory(quarantine, build.quarantine)
    return str(build.quarantine)


class _First(NamedTuple):
    """What the first pass tells."""

    parts: tuple[PartParsed, ...]
    repeated: dict[str, Ints]  # refs, ascending, and faults
    coverers: pa.Table
    interfaces: int

    @classmethod
    def of(cls, told: Sequence[PartParsed | RepeatedIds | Covered]) -> _First:
        """Put together what tasks told, in an order that does not depend on theirs."""
        parts = sorted((each for each in told if isinstance(each, PartParsed)), key=lambda part: part.number)
        repeated = [each for each in told if isinstance(each, RepeatedIds)]
        covered = [each for each in told if isinstance(each, Covered)]
        none = pa.table({name: pa.array([], pa.int64()) for name in COVERER_COLUMNS})
        coverers = pa.concat_tables([each.pairs for each in covered]) if covered else none
        refs, faults = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(each, name) for each in repeated)])
            for name in ("refs", "faults")
        )
        order = np.argsort(refs)
        return cls(
            tuple(parts),
            {"refs": refs[order], "faults": faults[order]},
            coverers.sort_by("ref"),
            sum(each.interfaces for each in covered),
        )

    def total(self, name: str) -> int:
        """The sum of one of the parts' counts."""
        return sum(getattr(part, name) for part in self.parts)

    @property
    def centres(self) -> Floats:
        """Of some of the places."""
        return np.concatenate([np.zeros((0, 2)), *(part.centres for part in self.parts)])


class _Counts(NamedTuple):
    """What the second pass tells."""

    places: dict[int, int]
    uses: Counter[tuple[str, str]]
    tokens: list[dict[str, Any]]
    refused: list[str]
    files: list[str]  # of the keywords

    @classmethod
    def of(cls, told: Sequence[PartCounted | TokensCounted]) -> _Counts:
        """Add up what tasks told."""
        places: Counter[int] = Counter()
        uses: Counter[tuple[str, str]] = Counter()
        tokens: list[dict[str, Any]] = []
        refused, files = [], []
        for each in told:
            if isinstance(each, TokensCounted):
                tokens += each.most
                files.append(each.path)
                continue
            places.update(dict(zip(each.buckets.tolist(), each.counts.tolist(), strict=True)))
            uses.update(each.uses)
            if each.quarantine is not None:
                refused.append(each.quarantine)
        tokens.sort(key=lambda row: (-row["documents"], row["token"]))
        return cls(dict(places), uses, tokens, sorted(refused), sorted(files))


def _write_quarantine(unread: Sequence[tuple[str, str]], files: Sequence[str], path: Path) -> int:
    """Put the quarantine together, a table also when it is empty; how many rows it has."""
    whole = [(file, None, None, reason, None) for file, reason in unread]
    columns = list(zip(*whole, strict=True)) if whole else [()] * len(QUARANTINE)
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, QUARANTINE, strict=True)], schema=QUARANTINE)
    path.mkdir()
    if whole or not files:
        pq.write_table(table, path / "part-unread.parquet")
    _take_all(files, path)
    rows: int = sum(pq.read_metadata(file).num_rows for file in path.glob("*.parquet"))
    return rows


def _placing(first: _First, stage: Staging, most: int) -> Placing:
    """How subscriptions are placed, written where all tasks see it; no group of covers has more than `most`."""
    covers = CoverGroups.of(first.coverers, first.repeated["refs"], most)
    repeated = join(stage.shared, "repeated.npz")
    with writing(repeated) as file:
        np.savez(file, refs=first.repeated["refs"], faults=first.repeated["faults"])
    saved = covers.save(join(stage.shared, "covers.npz"))
    return Placing(first.parts, repeated, saved, Grid.of(first.centres))


def _write_roads(network: RoadNetwork | None, stage: Staging) -> str | None:
    """Put the road network where it becomes part of the index, and where tasks see it: that address."""
    if network is None:
        return None
    (stage.here / "roads").mkdir()
    network.save(stage.here / "roads" / ROADS)
    address = join(stage.shared, "roads", ROADS)
    if is_url(address):
        object_store.upload(stage.here / "roads" / ROADS, address)
    return address


def _take_all(files: Sequence[str], path: Path) -> None:
    """Have the Parquet files of tasks in a directory of the driver."""
    path.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files):
        take(file, path / f"part-{number:05}.parquet")


def _attributes(uses: Counter[tuple[str, str]], subscriptions: int) -> pa.Table:
    """(attribute, operator, subscriptions, share of all), the most frequent first."""
    rows = sorted(uses.items(), key=lambda item: (-item[1], item[0]))
    return pa.table(
        {
            "attribute": pa.array([name for (name, _), _ in rows], pa.string()),
            "operator": pa.array([operator for (_, operator), _ in rows], pa.string()),
            "subscriptions": pa.array([n for _, n in rows], pa.int64()),
            "share": pa.array([n / max(1, subscriptions) for _, n in rows], pa.float64()),
        }
    )


def _write_places(counted: Mapping[int, int], path: Path) -> None:
    """Write the spatial histogram: how many places, or their coverers, have their centre in each cell of the grid."""
    codes = np.array(sorted(counted), np.int64)
    kinds, _, x, y = bucket_parts(codes)
    placed = kinds != SEGMENT_KINDS.index("hash")
    columns = {
        "kind": pa.array(np.array(SEGMENT_KINDS, object)[kinds[placed]], pa.string()),
        "x": pa.array(x[placed].astype(np.int32)),
        "y": pa.array(y[placed].astype(np.int32)),
        "subscriptions": pa.array([counted[code] for code in codes[placed].tolist()], pa.int64()),
    }
    _write_table(pa.table(columns), path)


def _write_table(table: pa.Table, path: Path) -> None:
    path.mkdir()
    pq.write_table(table, path / "part-0.parquet")
