"""The job behind `contrada build-index`: subscriptions in, an index directory out.

    read      rows/sources.py    rows of Parquet, JSON lines or GeoJSON
    parse     first_pass.py      once, into staged parts; bad rows to the quarantine, with the reason; which ids come
                                 twice, and who is covered by whom
    count     second_pass.py     keywords, attributes, places
    plan      partitioning.py    segments of equal size, compact on the map
    build     building.py        segments, each by one executor
    commit    stores/places.py   the manifest, last, and statistics and quarantine (side_tables.py) with it

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
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.errors import InvalidValue
from contrada.errors import shown as told
from contrada.forwarding.language.lonlat import PLANE
from contrada.forwarding.segments.manifest import FOLDERS, ROADS
from contrada.forwarding.state.matching import DEFAULT_MATCHING
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import is_url, join, shown
from contrada.forwarding.table.options import TableOptions
from contrada.spark_jobs.build.building import build_segments
from contrada.spark_jobs.build.cover.cover_groups import CoverGroups
from contrada.spark_jobs.build.first_pass import first_pass
from contrada.spark_jobs.build.partitioning import plan_segments, share_of
from contrada.spark_jobs.build.plan import MOST_QUARANTINED, Build, plan_build
from contrada.spark_jobs.build.rows.sources import read_table, read_url
from contrada.spark_jobs.build.second_pass import Placing, second_pass
from contrada.spark_jobs.build.side_tables import attribute_shares, gather_quarantine, write_statistics
from contrada.spark_jobs.build.statistics import Grid
from contrada.spark_jobs.build.totals import AllCounted, AllParsed
from contrada.spark_jobs.common.engine import LocalEngine, SparkEngine
from contrada.spark_jobs.common.errors import NotCommitted, SparkMissing, told_in_one_line
from contrada.spark_jobs.metrics import Meter
from contrada.spark_jobs.stores.commit import replacing
from contrada.spark_jobs.stores.places import commit_build, index_staging, keep_refused
from contrada.spark_jobs.stores.shared_files import writing
from contrada.spatial.relations.discretization import EXACT, Discretization
from contrada.spatial.textual.registry import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from contrada.forwarding.segments.manifest import Manifest
    from contrada.spark_jobs.build.messages import SegmentWritten
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
    if table is not None and not hasattr(table, "sparkSession"):
        raise InvalidValue(f"subscriptions are a path, a URL or a DataFrame, not {told(subscriptions)}")
    plan = plan_build(
        None if table is not None else str(subscriptions),
        out,
        TableOptions(geotext_index, matching, discretization, simplify, crs),
        format=format,
        segments=segments,
        quarantine=quarantine,
        roads=roads,
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
    if rows is None and build.found.remote:
        if not isinstance(engine, SparkEngine):
            raise SparkMissing(f"{build.found.path}: a URL, which Spark reads; start it with --engine spark")
        with told_in_one_line():
            rows = read_url(engine.session, build.found)
    with index_staging(build.out) as stage:
        run = _Run(build, engine, stage, tell)
        run.check()
        parsed = run.parse(rows)
        placing = _placing(parsed, stage, share_of(parsed.total("good"), build.segments) // 2)
        counted = run.count(parsed, placing)
        quarantined = run.set_aside(parsed, counted)
        written = run.build_segments(placing, counted, quarantined)
        manifest, quarantine = run.commit(parsed, counted, placing.grid, quarantined, written)
    tell(f"committed {shown(build.out)}")
    read = parsed.total("rows") + len(build.found.unread)
    return Built(
        index=shown(build.out),
        rows=read,
        subscriptions=manifest.subscriptions,
        filters=manifest.filters,
        quarantined=quarantined,
        duplicates=read - quarantined - counted.subscriptions,
        unsatisfiable=parsed.total("unsatisfiable"),
        redundant_constraints=parsed.total("redundant"),
        covered=sum(each.covered for each in written),
        interfaces=parsed.interfaces,
        segments=len(manifest.segments),
        bytes=sum(each.bytes for each in manifest.segments),
        quarantine=quarantine,
        seconds=round(time.monotonic() - began, 3),
        stages=run.meter.as_list(),
    )


class _Run:
    """A build that is under way: its steps, in their order."""

    def __init__(self, build: Build, engine: Engine, stage: Staging, tell: Callable[[str], None]) -> None:
        self.plan, self.engine, self.stage, self.tell = build, engine, stage, tell
        self.meter = Meter(engine.session if isinstance(engine, SparkEngine) else None)
        self.parts = join(stage.shared, "parts")
        self.roads = _write_roads(build.roads, stage)

    def check(self) -> None:
        """See whether tasks can do this build where they run."""
        needed = {"OUT": self.stage.sign}
        if self.plan.found.files:
            needed["SUBSCRIPTIONS"] = self.plan.found.files[0].address
        self.engine.check(needed, self.tell)

    def parse(self, rows: DataFrame | None) -> AllParsed:
        """Read, parse and stage all rows; find ids that come again, and who covers whom."""
        found = self.plan.found
        self.tell(f"reading {shown(found.path)}")
        with self.meter.stage("parse") as cost:
            told = first_pass(
                self.engine,
                found,
                rows,
                self.parts,
                secrets.randbits(63),
                roads=self.roads is not None,
                crs=self.plan.options.crs,
            )
            parsed = AllParsed.of(told)
            cost.rows, cost.bytes = parsed.total("rows"), found.bytes
        self.tell(f"{parsed.total('rows'):,} rows; looking for subscriptions that others cover")
        return parsed

    def count(self, parsed: AllParsed, placing: Placing) -> AllCounted:
        """Count what stands."""
        self.tell("counting keywords, attributes and places")
        with self.meter.stage("count") as cost:
            counted = AllCounted.of(second_pass(self.engine, placing, self.parts, join(self.stage.shared, "tokens")))
            cost.rows = parsed.total("good")
        return counted

    def set_aside(self, parsed: AllParsed, counted: AllCounted) -> int:
        """Put the quarantine together; how many rows it has. `NotCommitted` if it has more than it may."""
        found, quarantine = self.plan.found, self.stage.here / "quarantine"
        quarantined = gather_quarantine(found.unread, [*parsed.quarantine, *counted.refused], quarantine)
        rows, lost = parsed.total("rows") + len(found.unread), parsed.total("lost") + found.unread_bytes
        refusal = self.plan.refusal(rows, counted.subscriptions, quarantined, lost)
        if refusal is not None:
            raise NotCommitted(refusal, _keep_refused(self.plan, quarantine))
        return quarantined

    def build_segments(self, placing: Placing, counted: AllCounted, quarantined: int) -> list[SegmentWritten]:
        """Plan the segments, and build them."""
        plan = plan_segments(counted.places, self.plan.segments)
        told = f"{counted.subscriptions:,} subscriptions, {quarantined:,} rows refused"
        self.tell(f"building {len(plan.kinds)} segments of {told}")
        with self.meter.stage("build") as cost:
            written = build_segments(self.engine, placing, plan, self.stage.segments, self.plan.options, self.roads)
            cost.rows, cost.bytes = counted.subscriptions, sum(each.info.bytes for each in written)
        return written

    def commit(
        self,
        parsed: AllParsed,
        counted: AllCounted,
        grid: Grid | None,
        quarantined: int,
        written: Sequence[SegmentWritten],
    ) -> tuple[Manifest, str]:
        """Make it the index, with all that belongs to it; also where the quarantine is."""
        here, out = self.stage.here, self.plan.out
        attributes = attribute_shares(counted.uses, counted.subscriptions)
        write_statistics(counted.files, attributes, counted.places, here / "statistics")
        statistics: dict[str, Any] = {
            "subscriptions": counted.subscriptions,
            "quarantined": quarantined,
            "covered": sum(each.covered for each in written),
            "unsatisfiable": parsed.total("unsatisfiable"),
            "grid": grid,
            "tokens": counted.tokens[:_SHOWN],
            "attributes": attributes.slice(0, _SHOWN).to_pylist(),
        }
        with self.meter.stage("commit"), _copied(here / "quarantine", self.plan.quarantine):
            manifest = commit_build(
                out,
                self.stage,
                [each.info for each in written],
                self.plan.options,
                statistics=statistics,
                folders={name: here / name for name in FOLDERS if (here / name).exists()},
            )
        return manifest, str(self.plan.quarantine or shown(join(out, manifest.folders["quarantine"])))


@contextmanager
def _copied(quarantine: Path, place: Path | None) -> Iterator[None]:
    """Have a copy of the quarantine in a place, if there is one, when the block ends well."""
    if place is None:
        yield
        return
    with replacing(place) as copy:
        shutil.copytree(quarantine, copy, dirs_exist_ok=True)
        yield


def _keep_refused(build: Build, quarantine: Path) -> str:
    """Keep the quarantine of a build that is not committed; where it is."""
    if build.quarantine is None:
        return keep_refused(build.out, quarantine)
    with _copied(quarantine, build.quarantine):
        return str(build.quarantine)


def _placing(parsed: AllParsed, stage: Staging, most: int) -> Placing:
    """How subscriptions are placed, written where all tasks see it; no group of covers has more than `most`."""
    covers = CoverGroups.of(parsed.coverers, parsed.repeated["refs"], most)
    repeated = join(stage.shared, "repeated.npz")
    with writing(repeated) as file:
        np.savez(file, refs=parsed.repeated["refs"], faults=parsed.repeated["faults"])
    saved = covers.save(join(stage.shared, "covers.npz"))
    return Placing(parsed.parts, repeated, saved, Grid.of(parsed.centres))


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
