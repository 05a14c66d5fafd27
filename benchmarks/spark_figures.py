"""The figures that jobs on Spark are held to, all in one run, in local mode and on a standalone cluster.

    python -m benchmarks.spark_figures [--share 1.0] [--only files replay memory build cluster stream] [--keep DIR]

    files     1,000 small Parquet files over one file of the same rows: built from, and replayed
    replay    1 M posts (geotext at points) against 1 M geotext and 0.1 M region subscriptions: events per second, from
              the call to the committed output, after a replay of a fiftieth that starts the workers
    memory    the same replay with workers that may hold a quarter of the index, over that without a bound
    build     an index of 2.2 M subscriptions: seconds, and the memory of the driver with its JVM
    cluster   the replay on a standalone master with two workers of one core each, over that on local[2]
    stream    1 M posts matched as a stream of four batches over the same as a table, rows counted and left

`--share 0.1` runs all of it with a tenth of subscriptions and events. Every row is measured in a process of its own,
with one session; ratios have their sides in turn, three times, and the medians are compared.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.harness import Report
from benchmarks.spark import apart, peak_memory, write_subscriptions
from benchmarks.spark_replay import post_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

EVENTS, GEOTEXT, BUILT = 1_000_000, 1_000_000, 2_000_000
SMALL_FILES, SMALL_ROWS = 1_000, 100_000
REPEAT = 3
_GROUP = 1 << 16


def opened(master: str, memory: str | None = None) -> SparkSession:
    """A session; executors of a cluster have as much memory as the local driver."""
    from contrada.spark_jobs.common.session import open_session

    return open_session("benchmark", master, {"spark.executor.memory": memory} if memory else None)


def in_turn(*calls: Callable[[], float]) -> list[float]:
    """The median of each call's seconds, called in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(REPEAT):
        for call, mine in zip(calls, times, strict=True):
            mine.append(call())
    return [statistics.median(each) for each in times]


def replayed(session: SparkSession, events: Path, home: Path, **options: Any) -> tuple[float, Any]:
    """Seconds of a whole replay, and what it tells."""
    from contrada.spark_jobs import replay

    with tempfile.TemporaryDirectory(dir=home) as scratch:
        began = time.perf_counter()
        told = replay(events, home / "index", Path(scratch) / "out", session=session, **options)
        return time.perf_counter() - began, told


def small_files(home: Path, master: str) -> dict[str, float]:
    """Building from many files and from one, and replaying both."""
    from contrada.spark_jobs import build_index, replay

    table = pq.read_table(home / "few.parquet")
    events = post_events(len(table), 7)
    for name, rows in (("rows", table), ("log", events)):
        (home / f"{name}-many").mkdir()
        (home / f"{name}-one").mkdir()
        pq.write_table(rows, home / f"{name}-one" / "all.parquet")
        step = len(rows) // SMALL_FILES
        for number in range(SMALL_FILES):
            pq.write_table(rows.slice(number * step, step), home / f"{name}-many" / f"{number:04}.parquet")
    session = opened(master)

    def build(name: str) -> float:
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            began = time.perf_counter()
            build_index(home / f"rows-{name}", Path(scratch) / "index", session=session)
            return time.perf_counter() - began

    def match(name: str) -> float:
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            began = time.perf_counter()
            replay(home / f"log-{name}", home / "few-index", Path(scratch) / "out", session=session)
            return time.perf_counter() - began

    build_index(home / "rows-one", home / "few-index", session=session)
    for name in ("one", "many"):
        match(name)
    many, one, log_many, log_one = in_turn(
        lambda: build("many"), lambda: build("one"), lambda: match("many"), lambda: match("one")
    )
    session.stop()
    return {"many files s": many, "one file s": one, "log of many s": log_many, "log of one s": log_one}


def replaying(home: Path, master: str, bound: bool) -> dict[str, float]:
    """The replay, and with `bound` that of workers which may not hold the index."""
    from contrada.forwarding.segments.manifest import read_manifest

    session = opened(master, None if master.startswith("local") else "1g")
    replayed(session, home / "warm.parquet", home)
    size = sum(each.bytes for each in read_manifest(home / "index").segments)
    whole, least = [], []
    deliveries = 0
    for _ in range(REPEAT if bound else 2):
        seconds, told = replayed(session, home / "events.parquet", home)
        whole.append(seconds)
        deliveries = told.deliveries
        if bound:
            least.append(replayed(session, home / "events.parquet", home, worker_memory=size // 4)[0])
    session.stop()
    found = {"seconds": statistics.median(whole), "deliveries": float(deliveries)}
    return found | ({"bound s": statistics.median(least)} if bound else {})


def building(source: Path, home: Path, master: str) -> dict[str, float]:
    """The build, and the largest memory of the driver and its JVM."""
    from contrada.spark_jobs import build_index

    session = opened(master)
    build_index(home / "few.parquet", home / "first", session=session)  # starts the workers
    built = build_index(source, home / "built", session=session)
    memory = peak_memory("self") + peak_memory(str(session._jvm.ProcessHandle.current().pid()))
    session.stop()
    return {"rows": float(built.rows), "seconds": built.seconds, "driver GiB": memory / 2**30}


def streaming(home: Path, master: str) -> dict[str, float]:
    """A stream in four batches and a table, matched against the index."""
    from contrada.spark_jobs import match

    session = opened(master)
    schema = session.read.parquet(str(home / "log")).schema

    def table(place: str = "log") -> float:
        began = time.perf_counter()
        match(session.read.parquet(str(home / place)), home / "index").write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began

    def stream() -> float:
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            began = time.perf_counter()
            events = session.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(home / "log"))
            sink = match(events, home / "index").writeStream.format("noop").option("checkpointLocation", scratch)
            sink.trigger(availableNow=True).start().awaitTermination()
            return time.perf_counter() - began

    table("warm.parquet")
    batch, streamed = in_turn(table, stream)
    session.stop()
    return {"table s": batch, "stream s": streamed}


def prepare(home: Path, share: float, chosen: list[str]) -> None:
    """Write what the chosen rows need, unless it is there."""
    from contrada.spark_jobs import build_index

    if not (home / "few.parquet").exists():
        write_subscriptions(home / "few.parquet", SMALL_ROWS * 10 // 11, seed=5)
    if {"replay", "memory", "cluster", "stream"} & set(chosen) and not (home / "index").exists():
        write_subscriptions(home / "subscriptions.parquet", int(GEOTEXT * share))
        build_index(home / "subscriptions.parquet", home / "index")
        events = post_events(int(EVENTS * share), 1)
        pq.write_table(events, home / "events.parquet", row_group_size=_GROUP)
        pq.write_table(events.slice(0, len(events) // 50), home / "warm.parquet", row_group_size=1024)
        (home / "log").mkdir()
        for part in range(8):
            rows = events.slice(part * len(events) // 8, len(events) // 8)
            pq.write_table(rows, home / "log" / f"{part}.parquet", row_group_size=_GROUP)
    if "build" in chosen and not (home / "many.parquet").exists():
        write_subscriptions(home / "many.parquet", int(BUILT * share), seed=2)


def run(report: Report, home: Path, share: float, chosen: list[str]) -> None:
    """Measure the chosen rows."""
    apart(prepare, home, share, chosen)
    events = EVENTS * share
    if "files" in chosen:
        told = apart(small_files, home, "local[2]")
        report.table("1,000 files of 100 rows, and one", [told])
        report.target("build of 1,000 files over one", told["many files s"] / told["one file s"], 2, at_least=False)
        report.target("replay of 1,000 files over one", told["log of many s"] / told["log of one s"], 2, at_least=False)
    local: dict[str, float] = {}
    if {"replay", "memory", "cluster"} & set(chosen):
        local = apart(replaying, home, "local[2]", "memory" in chosen)
        report.table(f"replay of {events:,.0f} posts, local[2]", [local | {"events/s": events / local["seconds"]}])
        report.target("replay of posts", events / local["seconds"], 60_000, unit="/s")
    if "memory" in chosen:
        report.target("index larger than worker memory", local["bound s"] / local["seconds"], 1.5, at_least=False)
    if "build" in chosen:
        told = apart(building, home / "many.parquet", home, "local[2]")
        report.table("build", [told])
        report.target(f"build of {told['rows']:,.0f}", told["seconds"], 25 * share, at_least=False, unit="s")
        report.target("memory of the driver", told["driver GiB"], 2, at_least=False, unit="GiB")
    if "cluster" in chosen:
        from tests.spark_jobs.cluster import spark_cluster

        (home / "cluster").mkdir(exist_ok=True)
        with ExitStack() as running:
            master = running.enter_context(spark_cluster(home / "cluster", memory="1200m"))
            told = apart(replaying, home, master, False)
        report.table("replay on a standalone cluster", [told])
        report.target("standalone cluster over local[2]", local["seconds"] / told["seconds"], 0.8)
    if "stream" in chosen:
        told = apart(streaming, home, "local[2]")
        report.table("matching a stream and a table", [told])
        report.target("stream over table", told["table s"] / told["stream s"], 0.7)


ROWS = ("files", "replay", "memory", "build", "cluster", "stream")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="of subscriptions and events")
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--keep", type=Path, help="a directory for inputs and index, used again when there")
    options = parser.parse_args()
    report = Report("spark_figures")
    with tempfile.TemporaryDirectory() as scratch:
        home = options.keep or Path(scratch)
        home.mkdir(parents=True, exist_ok=True)
        run(report, home.resolve(), options.share, options.only)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
