"""Who would have been notified? Events of the past against an index, and a report.

    OUT/deliveries/day=YYYY-MM-DD/   Parquet: event_id, time, interface, filter_id
    OUT/subscriptions/               Parquet: interface, filter_id, deliveries; 0 for those that had none
    OUT/quarantine/                  Parquet: event_id, reason, event: what could not be read
    OUT/differences/                 Parquet, with a comparison: what is missing and what is extra
    OUT/what_if/                     deliveries and subscriptions of filters that are tried out
    OUT/report.html, timeline.png, heat_map.png, summary.json

One pass over the events (passes.py) gives deliveries, rejected events, counts and tallies; the rest is made of those,
and OUT appears when all is there (stores/commit.py).

EVENTS, INDEX and OUT are paths or URLs, and EVENTS may be a DataFrame; in a store, OUT/summary.json names the folder of
all else (stores/places.py). INDEX is what `contrada build-index` wrote, or a recording: then subscriptions are taken as
of each moment.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import InvalidValue
from contrada.forwarding.language.values import from_microseconds
from contrada.forwarding.segments.manifest import MANIFEST, read_manifest
from contrada.forwarding.segments.stored_index import roads_of
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import address_of, folder_of, is_url, join, name_of, shown
from contrada.spark_jobs.build.build_index import run_build
from contrada.spark_jobs.build.plan import plan_build
from contrada.spark_jobs.build.rows.sources import find_subscriptions
from contrada.spark_jobs.common.engine import SparkEngine
from contrada.spark_jobs.common.index_cache import opened
from contrada.spark_jobs.common.paths import check_apart
from contrada.spark_jobs.common.preflight import check_executors
from contrada.spark_jobs.metrics import Meter
from contrada.spark_jobs.replaying import comparing
from contrada.spark_jobs.replaying.comparing import read_deliveries
from contrada.spark_jobs.replaying.history import History, Period, read_history, write_history
from contrada.spark_jobs.replaying.logs.event_logs import (
    FoundLog,
    Kinds,
    Layout,
    files_of,
    find_log,
    find_table,
    is_recording,
    read_log,
)
from contrada.spark_jobs.replaying.passes import Outcome, ReplayedIndex, run_pass
from contrada.spark_jobs.replaying.report.counting import add_up, write_counts
from contrada.spark_jobs.replaying.report.outlines import outlines_of
from contrada.spark_jobs.replaying.report.report import write_report
from contrada.spark_jobs.replaying.report.tally import Tally
from contrada.spark_jobs.replaying.results import Replayed, TriedOut
from contrada.spark_jobs.replaying.storing import DELIVERIES, LOCATED, QUARANTINE
from contrada.spark_jobs.stores.places import Staging, check_output_place, move_all, output_staging
from contrada.spark_jobs.stores.shared_files import parquet_at, writing_into

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.spark_jobs.common.index_cache import OpenIndex
    from contrada.spark_jobs.replaying.logs.event_logs import Log
    from contrada.spark_jobs.replaying.results import Differences

    Place = str | os.PathLike[str]
    Counted = Sequence[tuple[OpenIndex, Mapping[int, Ints]]]

SUMMARY: Final = "summary.json"
TOP: Final = 20


@dataclass(frozen=True, slots=True)
class Replay:
    """What to replay, against what, and where to."""

    events: Place | DataFrame
    index: Place
    out: Place
    layout: Layout = field(default_factory=Layout)
    compare: bool = False
    recorded: Place | None = None  # deliveries to compare with, where the events are no recording
    what_if: Place | None = None  # filters to try out: an index, or subscriptions as build-index takes them
    worker_memory: int | None = None  # bytes of the index that a worker may hold; None: all of it
    geoparquet: bool = False  # whether deliveries and subscriptions have a geometry beside them


@dataclass(frozen=True, slots=True)
class Planned:
    """A replay that can begin: what is asked, by addresses, and the log as it was found."""

    job: Replay
    events: str | None  # None: a table
    index: str
    out: str
    recorded: str | None
    what_if: str | None
    log: FoundLog


def plan_replay(job: Replay) -> Planned:
    """Look at the paths and options of a replay; a `ContradaError` says what is wrong, and nothing was begun."""
    table = None if isinstance(job.events, str | os.PathLike) else job.events
    given = {"INDEX": job.index, "--recorded": job.recorded, "--what-if": job.what_if}
    if table is None:
        given["EVENTS"] = cast("Place", job.events)
    read = {name: address_of(path, name) for name, path in given.items() if path is not None}
    out = address_of(job.out, "OUT")
    recorded, what_if = read.get("--recorded"), read.get("--what-if")
    _check(job, read.get("EVENTS"), read["INDEX"])
    log = find_log(read["EVENTS"], job.layout) if table is None else find_table(table, job.layout)
    if recorded is not None:
        _recorded_files(recorded)
    if what_if is not None and not is_index(what_if):
        find_subscriptions(what_if)
    check_apart(read, {"OUT": out})
    check_output_place(out, SUMMARY)
    return Planned(job, read.get("EVENTS"), read["INDEX"], out, recorded, what_if, log)


def replay(spark: SparkSession, job: Replay, say: Callable[[str], None] = lambda stage: None) -> Replayed:
    """Run a replay; the summary, which is also written to OUT. `say` is told what is being done."""
    return run_replay(spark, plan_replay(job), say)


def run_replay(spark: SparkSession, planned: Planned, say: Callable[[str], None] = lambda stage: None) -> Replayed:
    """Do what was planned."""
    began = time.monotonic()
    job, unread = planned.job, planned.log.unread
    meter = Meter(spark)
    with output_staging(planned.out, SUMMARY) as stage:
        staging = stage.here
        planned = _see(spark, planned, stage, say)
        say("reading")
        logs = read_log(spark, planned.log)
        history = read_history(planned.index) if is_recording(planned.index) else None
        say("matching")
        with meter.stage("match") as cost:
            outcomes = [
                run_pass(
                    spark,
                    logs,
                    index,
                    join(stage.shared, f".pass-{number}"),
                    first=number == 0,
                    geometry=job.geoparquet,
                )
                for number, index in enumerate(_replayed_indexes(planned, history, stage))
            ]
            cost.rows = sum(each.tally.events for each in outcomes)
            cost.bytes = sum(file.size for file in planned.log.files)
        tally = Tally()
        for outcome in outcomes:
            tally.merge(outcome.tally)
        counted = _counted(outcomes)
        compared = tried = None
        if job.compare:
            say("comparing")
            with meter.stage("compare"):
                compared = _compare(spark, planned, history, outcomes, stage)
        _write_quarantine(stage, outcomes, unread)
        _gather_deliveries(stage, "deliveries", outcomes, geometry=job.geoparquet)
        if planned.what_if is not None:
            say("trying out the new filters")
            with meter.stage("try out"):
                tried = _try_out(spark, logs, planned, outcomes[0].replayed.index.path, stage)
        say("drawing")
        counts = write_counts(staging / "subscriptions", counted, TOP, geometry=job.geoparquet)
        first, last = (from_microseconds(each).isoformat() for each in tally.ends) if tally.ends else (None, None)
        told = Replayed(
            **asdict(counts),
            events=tally.events,
            deliveries=tally.deliveries,
            rejected=tally.rejected + len(unread),
            first_event=first,
            last_event=last,
            problems=_problems(unread, history),
            seconds=round(time.monotonic() - began, 3),
            stages=meter.as_list(),
            folder=name_of(stage.shared) if is_url(stage.shared) else None,
            compare=compared,
            what_if=tried,
        )
        summary = told.as_dict()
        write_report(staging, summary, tally, outlines_of(counted))
        for scratch in staging.glob(".*"):
            shutil.rmtree(scratch)
        (staging / SUMMARY).write_text(json.dumps(summary, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return told


def is_index(address: str) -> bool:
    """Whether there is an index, be it damaged."""
    file = join(address, MANIFEST)
    return object_store.size_of(file) is not None if is_url(file) else Path(file).exists()


def _check(job: Replay, events: str | None, index: str) -> None:
    """Refuse what cannot be done before anything is begun."""
    what = "the DataFrame" if events is None else shown(events)
    try:
        of_moments, built = is_recording(index), is_index(index)
        moments = events is not None and is_recording(events)
    except OSError as error:
        raise InvalidValue(f"INDEX or EVENTS: out of reach: {error}") from error
    if not of_moments and not built:
        raise InvalidValue(f"{shown(index)}: neither an index (contrada build-index) nor a recording (broker --record)")
    if not of_moments:
        read_manifest(index)
    if job.compare and job.recorded is None:
        if not moments:
            raise InvalidValue(f"{what} is no recording: say with what to compare, with --recorded DELIVERIES")
        if of_moments and os.path.realpath(index) != os.path.realpath(events or ""):
            raise InvalidValue("deliveries of one recording cannot be compared with the subscriptions of another")
    if of_moments and not moments:
        raise InvalidValue(f"{what} is no recording: subscriptions as of each moment need the moments of one")


def _see(spark: SparkSession, planned: Planned, stage: Staging, say: Callable[[str], None]) -> Planned:
    """See to it that all executors can do the job; an index that some do not see is brought to where they do."""
    needed = dict(zip(("OUT", "EVENTS"), (stage.sign, *(each.address for each in planned.log.files[:1])), strict=False))
    stored = is_url(planned.index)
    if stored:
        needed["INDEX"] = join(planned.index, MANIFEST)
    unseen = check_executors(spark, needed, [] if stored else [planned.index], tell=say)
    if not unseen or is_recording(planned.index):
        return planned
    say("bringing the index to the executors, which see OUT")
    target = join(stage.shared, ".index")
    with writing_into(target) as place:
        shutil.copytree(planned.index, place, dirs_exist_ok=True)
    return replace(planned, index=target)


def _replayed_indexes(planned: Planned, history: History | None, stage: Staging) -> list[ReplayedIndex]:
    memory = planned.job.worker_memory
    if history is None:
        return [ReplayedIndex.of(planned.index, memory)]
    lived = join(stage.shared, ".history")
    with writing_into(lived) as scratch:
        write_history(scratch, history)
    found = [ReplayedIndex.of(lived, memory, as_of=True)]
    same: dict[tuple[str, str, str], list[Period]] = {}
    for period in history.periods:
        same.setdefault((period.path, period.shard, period.digest), []).append(period)
    return found + [ReplayedIndex.stood(periods, memory) for periods in same.values()]


# -- what is written -------------------------------------------------------------------------------------------


def _gather_deliveries(stage: Staging, name: str, outcomes: Sequence[Outcome], *, geometry: bool) -> None:
    """Put the deliveries of all passes where they are looked for."""
    files = [file for outcome in outcomes for file in outcome.deliveries]
    home = join(stage.shared, *name.split("/"))
    move_all((file, join(home, name_of(folder_of(file)), name_of(file))) for file in files)
    (stage.here / name).mkdir(parents=True, exist_ok=True)
    if not files:  # so that readers find the columns
        none = (LOCATED if geometry else DELIVERIES).append(pa.field("day", pa.date32())).empty_table()
        pq.write_table(none, stage.here / name / "none.parquet")


def _write_quarantine(stage: Staging, outcomes: Sequence[Outcome], unread: Sequence[tuple[str, str]]) -> None:
    files = [file for outcome in outcomes for file in outcome.quarantine]
    move_all((file, join(stage.shared, "quarantine", name_of(file))) for file in files)
    (stage.here / "quarantine").mkdir(exist_ok=True)
    if unread or not files:
        columns = [[None] * len(unread), [reason for _, reason in unread], [shown(file) for file, _ in unread]]
        pq.write_table(pa.table(columns, schema=QUARANTINE), stage.here / "quarantine" / "files.parquet")


def _counted(outcomes: Sequence[Outcome]) -> Counted:
    return [(opened(outcome.replayed.index), add_up(outcome.counts)) for outcome in outcomes]


def _problems(unread: Sequence[tuple[str, str]], history: History | None) -> list[str]:
    found = [f"{shown(file)}: {reason}" for file, reason in unread]
    return found + [str(problem) for problem in (history.problems if history is not None else ())]


def _try_out(spark: SparkSession, logs: Sequence[Log], planned: Planned, replayed: str, stage: Staging) -> TriedOut:
    """Replay the same events against filters that nobody has subscribed to yet, as the replayed index has its own."""
    home = stage.here / "what_if"
    assert planned.what_if is not None
    index, rejected = planned.what_if, 0
    if not is_index(index):
        like = read_manifest(replayed)
        index = join(stage.shared, ".what-if-index")
        build = plan_build(
            planned.what_if,
            index,
            like.options,
            roads=roads_of(replayed, like),
            quarantine=home / "quarantine",
            max_quarantined=1,
            allow_empty=True,
        )
        rejected = run_build(build, SparkEngine(spark)).quarantined
    tried = ReplayedIndex.of(index, planned.job.worker_memory)
    outcome = run_pass(spark, logs, tried, join(stage.shared, ".what-if"), first=False, geometry=planned.job.geoparquet)
    counts = write_counts(home / "subscriptions", _counted([outcome]), TOP, geometry=planned.job.geoparquet)
    _gather_deliveries(stage, "what_if/deliveries", [outcome], geometry=planned.job.geoparquet)
    return TriedOut(**asdict(counts), deliveries=outcome.tally.deliveries, rejected_filters=rejected)


# -- comparing -------------------------------------------------------------------------------------------------


def _compare(
    spark: SparkSession, planned: Planned, history: History | None, outcomes: Sequence[Outcome], stage: Staging
) -> Differences:
    """Write the differences to what was recorded; how many, and the first of them."""
    from pyspark.sql import functions as f

    replayed = read_deliveries(spark, [file for outcome in outcomes for file in outcome.deliveries])
    if history is not None:
        own = read_deliveries(spark, outcomes[0].deliveries).where(~f.col("filter_id").startswith("+"))
        added = read_deliveries(spark, outcomes[0].deliveries).where(f.col("filter_id").startswith("+"))
        others = read_deliveries(spark, [file for outcome in outcomes[1:] for file in outcome.deliveries])
        replayed = own.unionByName(comparing.by_interface(added.unionByName(others)))
    elif planned.recorded is None:
        replayed = comparing.by_interface(replayed)
    found = comparing.differences(_recorded(spark, planned, history), replayed)
    files = comparing.write_differences(found, join(stage.shared, ".differences"))
    told = comparing.summary_of(files, TOP)
    move_all((file, join(stage.shared, "differences", name_of(file))) for file in files)
    if not files:
        (stage.here / "differences").mkdir()
        pq.write_table(comparing.DIFFERENCES.empty_table(), stage.here / "differences" / "none.parquet")
    return told


def _recorded(spark: SparkSession, planned: Planned, history: History | None) -> DataFrame:
    """The deliveries to compare with."""
    if planned.recorded is None:
        files = [file.address for file in planned.log.files]
        if history is not None:
            return comparing.recorded_by_broker(spark, files, history)
        assert planned.events is not None  # a recording
        return comparing.recorded_by_broker(spark, files, read_history(planned.events), standing_only=True)
    return read_deliveries(spark, _recorded_files(planned.recorded))


def _recorded_files(address: str) -> list[str]:
    """The files of deliveries; `InvalidValue` when they are none."""
    kind, files = files_of(address, "--recorded")
    names: set[str] = set()
    for file in files if kind == Kinds.PARQUET else ():
        with parquet_at(file.address) as opened:
            names.update(opened.schema_arrow.names)
    if missing := [name for name in comparing.COLUMNS if name not in names]:
        raise InvalidValue(f"{shown(address)}: not deliveries as replay writes them: no column {', '.join(missing)}")
    return [file.address for file in files]
