"""Jobs on Spark, in local mode on two cores: building an index and opening it.

    python -m benchmarks.spark [--size N] [--one-by-one N] [--master local[2]] [--keep DIR]

The workload is N geotext subscriptions (benchmarks/geotext_workloads.py, as text) and a tenth as many of regions of
eight vertices, four to an interface, in one Parquet file. The rival reads the same file and adds one by one to a
ForwardingTable, as a broker does; what it takes for the whole is reckoned from the time for a part (`--one-by-one`),
although each addition to a larger table takes a little longer. Opening is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.geotext_workloads import Synthetic
from benchmarks.harness import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZE = 2_000_000
_OPEN = """
import sys, time
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.spatial.textual.geotext import GeoText
event = {"post": GeoText(["w0", "w1", "w2", "w3"], at=(0.5, 0.5))}
warm = SegmentedTable()  # kernels are loaded before a broker listens
warm.add("I1", 'post matches {"w0"} within BOX(0 0, 1 1)')
warm.match(event)
began = time.perf_counter()
table = SegmentedTable.open(sys.argv[1])
opened = time.perf_counter()
table.match(event)
print(len(table), opened - began, time.perf_counter() - opened)
"""


def write_subscriptions(path: Path, size: int, seed: int = 1) -> None:
    """Geotext and regions in one shuffled Parquet file of id, interface and filter as text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    total = size + size // 10
    interfaces = rng.integers(0, max(1, total // 4), total).tolist()
    is_region = rng.permutation(total) < size // 10
    texts = _geotext(size, seed), _regions(size // 10, rng)
    schema = pa.schema([("id", pa.string()), ("interface", pa.string()), ("filter", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, total, 100_000):
            numbers = range(start, min(total, start + 100_000))
            columns: dict[str, list[str]] = {
                "id": [f"s{n}" for n in numbers],
                "interface": [f"user-{interfaces[n]}" for n in numbers],
                "filter": [next(texts[int(is_region[n])]) for n in numbers],
            }
            writer.write_table(pa.table(columns, schema=schema))


def _geotext(size: int, seed: int) -> Iterator[str]:
    subscriptions = Synthetic().subscriptions(size, seed=seed)
    words, offsets = subscriptions.vocabulary, subscriptions.offsets.tolist()
    for i, (x1, y1, x2, y2) in enumerate(subscriptions.boxes.tolist()):
        chosen = {words[k] for k in subscriptions.keywords[offsets[i] : offsets[i + 1]].tolist()}
        keywords = ", ".join(f'"{word}"' for word in sorted(chosen))
        yield f"post matches {{{keywords}}} within BOX({x1} {y1}, {x2} {y2})"


def _regions(count: int, rng: np.random.Generator) -> Iterator[str]:
    for _ in range(count):
        x, y, size = rng.random(), rng.random(), rng.uniform(0.001, 0.01)
        angles = np.arange(8) * np.pi / 4 + rng.uniform(0, 0.7, 8)
        radii = size * rng.uniform(0.4, 1.0, 8)
        ring = zip((x + radii * np.cos(angles)).tolist(), (y + radii * np.sin(angles)).tolist(), strict=True)
        yield f"area intersects POLYGON(({', '.join(f'{a} {b}' for a, b in ring)}))"


def one_by_one(path: Path, count: int) -> tuple[int, float]:
    """Add the first so many subscriptions of a file to a table, one after another: how many, and seconds."""
    import pyarrow.parquet as pq

    from contrada.forwarding.table.table import ForwardingTable

    table = ForwardingTable()
    table.add("warm", 'post matches {"a"} within BOX(0 0, 1 1)')
    table.add("warm", "area intersects BOX(0 0, 1 1)")
    done = 0
    began = time.perf_counter()
    for batch in pq.ParquetFile(path).iter_batches(10_000):
        for interface, text in zip(batch["interface"].to_pylist(), batch["filter"].to_pylist(), strict=True):
            table.add(interface, text)
        done += len(batch)
        if done >= count:
            break
    return done, time.perf_counter() - began


def build(report: Report, source: Path, index: Path, sample: int, master: str) -> None:
    """The build against one process."""
    from contrada.spark_jobs.build.build_index import build_index
    from contrada.spark_jobs.common.session import open_session

    done, seconds = apart(one_by_one, source, sample)
    session = open_session("benchmark", master)
    try:
        steps: list[dict[str, Any]] = []
        began = time.perf_counter()

        def tell(step: str) -> None:
            steps.append({"step": step, "began at s": time.perf_counter() - began})

        built = build_index(source, index, session=session, tell=tell)
        memory = peak_memory("self") + peak_memory(str(session._jvm.ProcessHandle.current().pid()))
    finally:
        session.stop()
    report.table("Steps of the build", steps)
    alone = seconds / done * built.rows
    rows = [
        {"what": f"one process, one by one (reckoned from {done:,})", "seconds": alone, "per second": done / seconds},
        {"what": f"build-index, {master}", "seconds": built.seconds, "per second": built.rows / built.seconds},
    ]
    report.table(f"Building an index of {built.rows:,} subscriptions", rows)
    report.target("build over one process, one by one", alone / built.seconds, 5.0)
    report.target("driver memory (this process and its JVM)", memory / 2**30, 2.0, at_least=False, unit="GiB")


def apart(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call in a process of its own, so that its memory is not counted as the driver's."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(call, *arguments).result()


def peak_memory(pid: str) -> int:
    """The most bytes of memory that a process has had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no peak memory of process {pid}")


def load(report: Report, index: Path) -> None:
    """Opening the index, as a broker does at start."""
    said = subprocess.run([sys.executable, "-c", _OPEN, str(index)], capture_output=True, text=True, check=True).stdout
    filters, opening, first = (float(number) for number in said.split())
    report.table("Opening the index", [{"filters": int(filters), "seconds": opening, "first match ms": 1000 * first}])
    report.target(f"segments of {int(filters):,} filters load", opening, 2.0, at_least=False, unit="s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=SIZE, help="geotext subscriptions; a tenth as many regions")
    parser.add_argument("--one-by-one", type=int, default=200_000, help="how many of them the rival adds")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--keep", type=Path, help="a directory for the input and the index, used again when there")
    arguments = parser.parse_args()
    report = Report("spark")
    with tempfile.TemporaryDirectory() as scratch:
        place = arguments.keep or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        source = place / f"subscriptions-{arguments.size}.parquet"
        if not source.exists():
            apart(write_subscriptions, source, arguments.size)
        build(report, source, place / "index", arguments.one_by_one, arguments.master)
        load(report, place / "index")
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
