"""Replay on Spark, in local mode on two cores, beside a `match_many` loop in one process.

    python -m benchmarks.spark_replay [--events N] [--times K] [--master local[2]] [--only quotes posts tasks scale]

    quotes   20,000 subscriptions on two scalars; events of three scalars and a point
    posts    100,000 geotext subscriptions (benchmarks/geotext_workloads.py); events of five keywords at a point
    tasks    what a task costs beyond its events: as many row groups, in one task and in a task each
    scale    K times as many quotes take how many times as long

Events are Parquet files of typed columns. Two loops are measured on the same events, 8,192 at a time: over
notifications that are in memory already, as Python objects; and over the file, reading included. A replay reads the
file, matches, writes every delivery as Parquet and counts; it is the pass over the events that is timed, after one that
starts workers and compiles, and not the drawing of the report.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.geotext_workloads import Synthetic
from benchmarks.harness import Report
from benchmarks.spark import _geotext
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.textual.geotext import GeoText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

PIECE = 8192
QUOTES = 20_000
POSTS = 100_000
_DAYS = 3 * 86_400_000_000


def quote_filters(count: int, seed: int = 1) -> list[tuple[str, str, str]]:
    rng = np.random.default_rng(seed)
    stocks, lows = rng.integers(0, 1000, count).tolist(), rng.integers(0, 950, count).tolist()
    return [
        (f"s{n}", f"user-{n % (count // 4)}", f'stock = "S{stock}" and price > {low} and price < {low + 50}')
        for n, (stock, low) in enumerate(zip(stocks, lows, strict=True))
    ]


def quote_events(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {
        "stock": pa.array(np.char.add("S", rng.integers(0, 1000, count).astype(str)).tolist()),
        "price": pa.array(rng.uniform(0, 1000, count)),
        "size": pa.array(rng.integers(1, 100, count)),
        "at": _points(rng, count),
    }
    return _events(rng, count, columns)


def post_filters(count: int, seed: int = 1) -> list[tuple[str, str, str]]:
    return [(f"s{n}", f"user-{n % (count // 4)}", text) for n, text in enumerate(_geotext(count, seed))]


def post_events(count: int, seed: int) -> pa.Table:
    """Keywords as often as subscriptions have them, anywhere."""
    rng = np.random.default_rng(seed)
    drawn = Synthetic().subscriptions(count, seed=seed + 100)
    picks = rng.integers(0, len(drawn.keywords), (count, 5))
    words = np.array(drawn.vocabulary, object)[drawn.keywords[picks]]
    point = _points(rng, count, 0.0, 1.0)
    keywords = pa.array(words.tolist(), pa.list_(pa.string()))
    post = pa.StructArray.from_arrays([keywords, point.field("x"), point.field("y")], ["keywords", "x", "y"])
    return _events(rng, count, {"post": post})


def _points(rng: np.random.Generator, count: int, low: float = -90.0, high: float = 90.0) -> pa.StructArray:
    axes = [pa.array(rng.uniform(low, high, count)) for _ in "xy"]
    return pa.StructArray.from_arrays(axes, ["x", "y"])


def _events(rng: np.random.Generator, count: int, columns: dict[str, pa.Array]) -> pa.Table:
    times = pa.array(1_790_000_000_000_000 + np.sort(rng.integers(0, _DAYS, count))).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"id": [f"e{n}" for n in range(count)], "time": times, **columns})


def notifications(table: pa.Table) -> list[dict[str, Any]]:
    """The same events as a publisher would have them."""
    found = table.drop_columns(["id", "time"]).to_pylist()
    for each in found:
        if "at" in each:
            each["at"] = Point(each["at"]["x"], each["at"]["y"])
        else:
            post = each["post"]
            each["post"] = GeoText(post["keywords"], at=(post["x"], post["y"]))
    return found


def loops(filters: Iterable[tuple[str, str, str]], file: Path) -> tuple[float, float, int]:
    """Seconds of the loop over objects, of the loop over the file, and how many interfaces were found."""
    table = ForwardingTable()
    table.add_many((interface, text) for _, interface, text in filters)
    ready = notifications(pq.read_table(file))
    table.match_many(ready[:PIECE])
    began = time.perf_counter()
    found = sum(len(each) for at in range(0, len(ready), PIECE) for each in table.match_many(ready[at : at + PIECE]))
    objects = time.perf_counter() - began
    began = time.perf_counter()
    for batch in pq.ParquetFile(file).iter_batches(PIECE):
        table.match_many(notifications(pa.Table.from_batches([batch])))
    return objects, time.perf_counter() - began, found


class Bench:
    """A session, and a place for files."""

    def __init__(self, session: SparkSession, place: Path) -> None:
        self.session = session
        self.place = place
        self.slots = session.sparkContext.defaultParallelism

    def pass_over(self, events: Path, index: Path, tasks: Any = None, repeat: int = 1) -> tuple[float, Any]:
        """Median seconds of a pass over a log, and its tally."""
        from dataclasses import replace

        from contrada.spark_jobs.replaying.logs.event_logs import Layout, find_log, read_log
        from contrada.spark_jobs.replaying.passes import ReplayedIndex, run_pass

        times = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory(dir=self.place) as scratch:
                began = time.perf_counter()
                logs = read_log(self.session, find_log(events, Layout()))
                if tasks is not None:
                    logs = [replace(log, tasks=tuple(tasks)) for log in logs]
                outcome = run_pass(self.session, logs, ReplayedIndex.of(index), scratch)
                times.append(time.perf_counter() - began)
        return statistics.median(times), outcome.tally

    def throughput(
        self,
        report: Report,
        name: str,
        filters: list[tuple[str, str, str]],
        make: Callable[[int, int], pa.Table],
        count: int,
    ) -> None:
        """The replay of a workload beside the loops."""
        index, events = self.place / f"{name}-index", self.place / f"{name}.parquet"
        write_index(index, filters)
        pq.write_table(make(count, 1), events, row_group_size=PIECE * 8)
        warm = self.place / f"{name}-warm.parquet"
        pq.write_table(make(20_000, 2), warm, row_group_size=1000)
        self.pass_over(warm, index)
        objects, reading, _ = loops(filters, events)
        seconds, tally = self.pass_over(events, index, repeat=3)
        rows = [
            {"what": "match_many over objects in memory", "seconds": objects, "events/s": count / objects},
            {"what": "match_many over the file", "seconds": reading, "events/s": count / reading},
            {"what": f"replay, {self.slots} cores", "seconds": seconds, "events/s": count / seconds},
        ]
        title = f"{name}: {count:,} events, {len(filters):,} subscriptions, {tally.deliveries:,} deliveries"
        report.table(title, rows)
        report.target(f"{name}: replay over match_many of objects in memory", objects / seconds, 1.4)
        report.target(f"{name}: replay over match_many of the same file", reading / seconds, 1.4)

    def tasks(self, report: Report, count: int = 200) -> None:
        """What a task costs beyond its events."""
        from contrada.spark_jobs.common.splits import Split

        index, events = self.place / "quotes-index", self.place / "tasks.parquet"
        if not index.exists():
            write_index(index, quote_filters(QUOTES))
        pq.write_table(quote_events(10 * count, 3), events, row_group_size=10)
        each = [(Split(str(events), n, n + 1),) for n in range(count)]
        self.pass_over(events, index, each[: 2 * self.slots])
        together, _ = self.pass_over(events, index, [(Split(str(events), 0, count),)], repeat=3)
        apart, _ = self.pass_over(events, index, each, repeat=3)
        overhead = 1000 * (apart - together) / (count - 1) * self.slots
        report.table("tasks", [{"tasks": count, "seconds": apart, "in one task": together, "ms per task": overhead}])
        report.target("overhead per task", overhead, 50.0, at_least=False, unit="ms")

    def scale(self, report: Report, count: int, times: int) -> None:
        """Time against the number of events."""
        index = self.place / "quotes-index"
        if not index.exists():
            write_index(index, quote_filters(QUOTES))
        one, many = self.place / "one", self.place / "many"
        for home, parts in ((one, 1), (many, times)):
            home.mkdir()
            for part in range(parts):
                pq.write_table(quote_events(count, 10 + part), home / f"{part}.parquet", row_group_size=PIECE * 8)
        self.pass_over(one, index)
        single, _ = self.pass_over(one, index, repeat=3)
        several, _ = self.pass_over(many, index)
        rows = [
            {"events": count, "seconds": single, "µs per event": 1e6 * single / count},
            {"events": count * times, "seconds": several, "µs per event": 1e6 * several / count / times},
        ]
        report.table("scale", rows)
        report.target(f"time for {times} times as many events", several / single / times, 1.15, at_least=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--only", nargs="*", choices=("quotes", "posts", "tasks", "scale"))
    arguments = parser.parse_args()
    chosen = arguments.only or ["quotes", "posts", "tasks", "scale"]
    from contrada.spark_jobs.common.session import open_session

    report = Report("spark_replay")
    session = open_session("benchmark", arguments.master)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            bench = Bench(session, scratch)
            if "quotes" in chosen:
                bench.throughput(report, "quotes", quote_filters(QUOTES), quote_events, arguments.events)
            if "posts" in chosen:
                bench.throughput(report, "posts", post_filters(POSTS), post_events, arguments.events // 5)
            if "tasks" in chosen:
                bench.tasks(report)
            if "scale" in chosen:
                bench.scale(report, arguments.events, arguments.times)
    finally:
        session.stop()
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
