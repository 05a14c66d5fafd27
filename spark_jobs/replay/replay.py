"""Who would have been notified? Events of the past against an index, and a report.

    OUT/deliveries/day=YYYY-MM-DD/   Parquet: event_id, time, interface, filter_id
    OUT/subscriptions/               Parquet: interface, filter_id, deliveries; 0 for those that had none
    OUT/quarantine/                  Parquet: event_id, reason, event: what could not be read
    OUT/differences/                 Parquet, with a comparison: what is missing and what is extra
    OUT/what_if/                     deliveries and subscriptions of filters that are tried out
    OUT/report.html, timeline.png, heat_map.png, summary.json

One pass over the events (passes.py) gives deliveries, rejected events, counts and tallies; the rest is made of those,
and OUT appears when all is there (common/commit.py).

INDEX is a directory that `contrada build-index` wrote, or a recording: then subscriptions are taken as of each moment.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import InvalidValue
from contrada.forwarding.language.values import from_microseconds
from contrada.forwarding.segments.index_directory import MANIFEST, read_manifest
from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.build.rows.sources import find_subscriptions
from contrada.spark_jobs.common.commit import check_output, output
from contrada.spark_jobs.common.errors import told_in_one_line
from contrada.spark_jobs.common.index_cache import opened
from contrada.spark_jobs.common.paths import absolute, check_apart
from contrada.spark_jobs.common.preflight import check_executors
from contrada.spark_jobs.replay import comparing
from contrada.spark_jobs.replay.history import History, Period, read_history, write_history
from contrada.spark_jobs.replay.logs.event_logs import (
    FoundLog,
    Kinds,
    Layout,
    files_of,
    find_log,
    is_recording,
    read_log,
)
from contrada.spark_jobs.replay.passes import Outcome, Source, run_pass
from contrada.spark_jobs.replay.report.counting import add_up, write_counts
from contrada.spark_jobs.replay.report.outlines import outlines_of
from contrada.spark_jobs.replay.report.report import write_report
from contrada.spark_jobs.replay.report.tally import Tally
from contrada.spark_jobs.replay.results import Replayed, TriedOut
from contrada.spark_jobs.replay.storing import DELIVERIES, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.spark_jobs.common.index_cache import OpenIndex
    from contrada.spark_jobs.replay.logs.event_logs import Log
    from contrada.spark_jobs.replay.results import Differences

    Counted = Sequence[tuple[OpenIndex, Mapping[int, Ints]]]

SUMMARY: Final = "summary.json"
TOP: Final = 20


@dataclass(frozen=True, slots=True)
class Replay:
    """What to replay, against what, and where to."""

    events: Path
    index: Path
    out: Path
    layout: Layout = field(default_factory=Layout)
    compare: bool = False
    recorded: Path | None = None  # deliveries to compare with, where the events are no recording
    what_if: Path | None = None  # filters to try out: an index, or subscriptions as build-index takes them
    worker_memory: int | None = None  # bytes of the index that a worker may hold; None: all of it


class Planned(NamedTuple):
    """A replay that can begin: what is asked, with absolute paths, and the log as it was found."""

    job: Replay
    log: FoundLog


def plan_replay(job: Replay) -> Planned:
    """Look at the paths and options of a replay; a `ContradaError` says what is wrong, and nothing was begun."""
    given = {"EVENTS": job.events, "INDEX": job.index, "--recorded": job.recorded, "--what-if": job.what_if}
    read = {name: absolute(path, name) for name, path in given.items() if path is not None}
    out = absolute(job.out, "OUT")
    job = replace(
        job,
        events=read["EVENTS"],
        index=read["INDEX"],
        out=out,
        recorded=read.get("--recorded"),
        what_if=read.get("--what-if"),
    )
    _check(job)
    log = find_log(job.events, job.layout)
    if job.recorded is not None:
        _recorded_files(job.recorded)
    if job.what_if is not None and not (job.what_if / MANIFEST).exists():
        find_subscriptions(str(job.what_if))
    check_apart(read, {"OUT": out})
    check_output(out, SUMMARY)
    return Planned(job, log)


def replay(spark: SparkSession, job: Replay, say: Callable[[str], None] = lambda stage: None) -> Replayed:
    """Run a replay; the summary, which is also written to OUT. `say` is told what is being done."""
    return run_replay(spark, plan_replay(job), say)


def run_replay(spark: SparkSession, planned: Planned, say: Callable[[str], None] = lambda stage: None) -> Replayed:
    """Do what was planned."""
    began = time.monotonic()
    job, unread = planned.job, planned.log.unread
    with output(job.out, SUMMARY) as staging:
        needed = dict(zip(("OUT", "EVENTS"), (staging, *planned.log.files[:1]), strict=False))
        unseen = check_executors(spark, needed, [job.index], tell=say)
        if unseen and not is_recording(job.index):
            say("bringing the index to the executors, which see OUT")
            job = replace(job, index=Path(shutil.copytree(job.index, staging / ".index")))
        say("reading")
        logs = read_log(spark, planned.log)
        history = read_history(job.index) if is_recording(job.index) else None
        say("matching")
        outcomes = [
            run_pass(spark, logs, source, staging / f".pass-{number}", first=number == 0)
            for number, source in enumerate(_sources(job, history, staging / ".history"))
        ]
        tally = Tally()
        for outcome in outcomes:
            tally.merge(outcome.tally)
        counted = _counted(outcomes)
        compared = tried = None
        if job.compare:
            say("comparing")
            compared = _compare(spark, job, history, outcomes, staging / "differences")
        _write_quarantine(staging / "quarantine", outcomes, unread)
        _gather_deliveries(staging / "deliveries", outcomes)
        if job.what_if is not None:
            say("trying out the new filters")
            tried = _try_out(spark, logs, job, staging)
        say("drawing")
        counts = write_counts(staging / "subscriptions", counted, TOP)
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
            compare=compared,
            what_if=tried,
        )
        summary = told.as_dict()
        write_report(staging, summary, tally, outlines_of(counted))
        for scratch in staging.glob(".*"):
            shutil.rmtree(scratch)
        (staging / SUMMARY).write_text(json.dumps(summary, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return told


def _check(job: Replay) -> None:
    """Refuse what cannot be done before anything is begun."""
    if not is_recording(job.index) and not (job.index / MANIFEST).exists():
        raise InvalidValue(f"{job.index}: neither an index (contrada build-index) nor a recording (broker --record)")
    if not is_recording(job.index):
        read_manifest(job.index)
    if job.compare and job.recorded is None:
        if not is_recording(job.events):
            raise InvalidValue(f"{job.events} is no recording: say with what to compare, with --recorded DELIVERIES")
        if is_recording(job.index) and job.index.resolve() != job.events.resolve():
            raise InvalidValue("deliveries of one recording cannot be compared with the subscriptions of another")
    if is_recording(job.index) and not is_recording(job.events):
        raise InvalidValue(f"{job.events} is no recording: subscriptions as of each moment need the moments of one")


def _sources(job: Replay, history: History | None, scratch: Path) -> list[Source]:
    if history is None:
        return [Source.of(job.index, job.worker_memory)]
    write_history(scratch, history)
    found = [Source.of(scratch, job.worker_memory, as_of=True)]
    same: dict[tuple[str, str, str], list[Period]] = {}
    for period in history.periods:
        same.setdefault((period.path, period.shard, period.digest), []).append(period)
    return found + [Source.stood(periods, job.worker_memory) for periods in same.values()]


# -- what is written -------------------------------------------------------------------------------------------


def _gather_deliveries(home: Path, outcomes: Sequence[Outcome]) -> None:
    """Move the deliveries of all passes to where they are looked for."""
    home.mkdir(parents=True)
    for outcome in outcomes:
        for file in outcome.deliveries:
            day = home / file.parent.name
            day.mkdir(exist_ok=True)
            file.rename(day / file.name)
    if not any(home.iterdir()):  # so that readers find the columns
        pq.write_table(DELIVERIES.append(pa.field("day", pa.date32())).empty_table(), home / "none.parquet")


def _write_quarantine(home: Path, outcomes: Sequence[Outcome], unread: Sequence[tuple[Path, str]]) -> None:
    home.mkdir()
    for outcome in outcomes:
        for file in outcome.quarantine:
            file.rename(home / file.name)
    if unread or not any(home.iterdir()):
        columns = [[None] * len(unread), [reason for _, reason in unread], [str(file) for file, _ in unread]]
        pq.write_table(pa.table(columns, schema=QUARANTINE), home / "files.parquet")


def _counted(outcomes: Sequence[Outcome]) -> Counted:
    return [(opened(outcome.source.index), add_up(outcome.counts)) for outcome in outcomes]


def _problems(unread: Sequence[tuple[Path, str]], history: History | None) -> list[str]:
    found = [f"{file}: {reason}" for file, reason in unread]
    return found + [str(problem) for problem in (history.problems if history is not None else ())]


def _try_out(spark: SparkSession, logs: Sequence[Log], job: Replay, staging: Path) -> TriedOut:
    """Replay the same events against filters that nobody has subscribed to yet."""
    assert job.what_if is not None
    home = staging / "what_if"
    index, rejected = job.what_if, 0
    if not (index / MANIFEST).exists():
        index = staging / ".what-if-index"
        built = build_index(
            job.what_if,
            index,
            session=spark,
            quarantine=home / "quarantine",
            max_quarantined=1,
            allow_empty=True,
        )
        rejected = built.quarantined
    outcome = run_pass(spark, logs, Source.of(index, job.worker_memory), staging / ".what-if", first=False)
    counts = write_counts(home / "subscriptions", _counted([outcome]), TOP)
    _gather_deliveries(home / "deliveries", [outcome])
    return TriedOut(**asdict(counts), deliveries=outcome.tally.deliveries, rejected_filters=rejected)


# -- comparing -------------------------------------------------------------------------------------------------


def _compare(
    spark: SparkSession, job: Replay, history: History | None, outcomes: Sequence[Outcome], home: Path
) -> Differences:
    """Write the differences to what was recorded; how many, and the first of them."""
    from pyspark.sql import functions as f

    replayed = _read_deliveries(spark, [file for outcome in outcomes for file in outcome.deliveries])
    if history is not None:
        own = _read_deliveries(spark, outcomes[0].deliveries).where(~f.col("filter_id").startswith("+"))
        added = _read_deliveries(spark, outcomes[0].deliveries).where(f.col("filter_id").startswith("+"))
        others = _read_deliveries(spark, [file for outcome in outcomes[1:] for file in outcome.deliveries])
        replayed = own.unionByName(comparing.by_interface(added.unionByName(others)))
    elif job.recorded is None:
        replayed = comparing.by_interface(replayed)
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")  # not those of old
    with told_in_one_line():
        comparing.differences(_recorded(spark, job, history), replayed).write.parquet(str(home))
    return comparing.summary_of(home, TOP)


def _read_deliveries(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    if not files:
        return spark.createDataFrame([], comparing.DELIVERED)
    return spark.read.schema(comparing.DELIVERED).parquet(*map(str, files))


def _recorded(spark: SparkSession, job: Replay, history: History | None) -> DataFrame:
    """The deliveries to compare with."""
    if job.recorded is None:
        files = files_of(job.events)[1]
        if history is not None:
            return comparing.recorded_by_broker(spark, files, history)
        return comparing.recorded_by_broker(spark, files, read_history(job.events), standing_only=True)
    return _read_deliveries(spark, _recorded_files(job.recorded))


def _recorded_files(path: Path) -> list[Path]:
    """The files of deliveries; `InvalidValue` when they are none."""
    kind, files = files_of(path)
    names = {name for file in files for name in pq.read_schema(file).names} if kind == Kinds.PARQUET else set()
    if missing := [name for name in comparing.COLUMNS if name not in names]:
        raise InvalidValue(f"{path}: not deliveries as replay writes them: no column {', '.join(missing)}")
    return files
