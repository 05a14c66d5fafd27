"""What jobs cost in seconds of a core and in memory, by size: the curves behind the sizing of a cluster.

    python -m benchmarks.spark_sizing [--sizes 25000 50000 100000 200000] [--events N]

For geotext and for regions (benchmarks/spark.py), each size in a process of its own: an index is built by the local
engine, whose stages are those of Spark, and events are read, matched and written by the code that Spark's tasks run,
after two thousand that open the index.
Measured are the seconds that this process had a processor, and its largest memory. Both mean the same on a machine
with other work; what Spark adds, starting tasks and moving bytes, is not in them.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Report
from benchmarks.spark import _geotext, _regions, apart
from benchmarks.spark_replay import _events, _points, post_events

SEGMENT_KINDS = ("geotext", "regions")
SIZES = (25_000, 50_000, 100_000, 200_000)
EVENTS = 50_000


def write_rows(path: Path, kind: str, size: int) -> None:
    """A Parquet file of subscriptions, four to an interface."""
    rng = np.random.default_rng(size)
    texts = list(_geotext(size, size) if kind == "geotext" else _regions(size, rng))
    interfaces = rng.integers(0, max(1, size // 4), size).astype(str)
    columns = {"id": [f"s{n}" for n in range(size)], "interface": np.char.add("user-", interfaces), "filter": texts}
    pq.write_table(pa.table(columns), path)


def write_events(path: Path, kind: str, count: int) -> None:
    """Posts of five keywords, or points, all over the map."""
    rng = np.random.default_rng(count)
    table = post_events(count, 3) if kind == "geotext" else _events(rng, count, {"area": _points(rng, count, 0.0, 1.0)})
    pq.write_table(table, path)


def match(index: Path, events: Path, place: Path) -> int:
    """All events against an index, as a task of Spark does it; how many deliveries there were."""
    from contrada.spark_jobs.common.index_cache import IndexFiles
    from contrada.spark_jobs.common.splits import split_parquet
    from contrada.spark_jobs.replaying.logs.event_logs import Layout, find_log, parquet_format
    from contrada.spark_jobs.replaying.logs.reading import read_task
    from contrada.spark_jobs.replaying.matching import Match, MatchTask
    from contrada.spark_jobs.replaying.storing import TaskFiles

    (group,) = find_log(events, Layout()).groups
    format = parquet_format(group[0].path, group[0].types, Layout())
    task = MatchTask(Match(IndexFiles.of(index), format), TaskFiles(str(place)))
    splits = [split for task in split_parquet([(group[0].path, group[0].sizes)], 1) for split in task]
    return task.done(task.deliveries(read_task(splits, format))).tally.deliveries


def measure(kind: str, size: int, count: int) -> dict[str, Any]:
    """One point of the curves."""
    from contrada.spark_jobs.build.build_index import build_index

    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        write_rows(home / "few.parquet", kind, 2000)
        write_events(home / "events.parquet", kind, count)
        write_events(home / "some.parquet", kind, 2000)
        write_rows(home / "rows.parquet", kind, size)
        build_index(home / "few.parquet", home / "few")  # compiles, or loads what was compiled
        match(home / "few", home / "events.parquet", home / "first")
        began = time.process_time()
        built = build_index(home / "rows.parquet", home / "index")
        build_seconds = time.process_time() - began
        build_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        began = time.process_time()
        match(home / "index", home / "some.parquet", home / "some")
        open_seconds = time.process_time() - began
        began = time.process_time()
        deliveries = match(home / "index", home / "events.parquet", home / "out")
        match_seconds = time.process_time() - began
    return {
        "subscriptions": size,
        "built/core s": size / build_seconds,
        "index bytes each": built.bytes / size,
        "build MiB": build_memory,
        "open s": open_seconds,
        "events/core s": count / match_seconds,
        "deliveries each": deliveries / count,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--events", type=int, default=EVENTS)
    options = parser.parse_args()
    report = Report("spark_sizing")
    curves: dict[str, tuple[list[int], list[float]]] = {}
    for kind in SEGMENT_KINDS:
        points = [apart(measure, kind, size, options.events) for size in options.sizes]
        report.table(f"{kind}, one core", points)
        curves[kind] = list(options.sizes), [point["events/core s"] for point in points]
    report.plot("spark-sizing", curves, x="subscriptions", y="events per second of a core", log="xy")
    raise SystemExit(report.finish())


if __name__ == "__main__":
    main()
