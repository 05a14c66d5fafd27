"""A saved forwarding table in a fresh process: how soon it answers, and how soon it changes.

A part of benchmarks/forwarding.py. `python -m benchmarks.forwarding_loading PATH` is the fresh process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.forwarding_workloads import geotexts, three_constraints
from contrada.forwarding.table.table import ForwardingTable
from contrada.forwarding.warm import compile_kernels
from contrada.spatial.textual.geotext import GeoText

if TYPE_CHECKING:
    from benchmarks.harness import Report


def loading(report: Report, quick: bool) -> None:
    """Save tables, of scalars and of geotext, and load each in a process of its own."""
    rows = []
    sizes = {"three constraints": 100_000 if quick else 2_000_000, "geotext": 20_000 if quick else 500_000}
    with TemporaryDirectory() as directory:
        for what, count in sizes.items():
            path = Path(directory) / what
            source = geotexts(count) if what == "geotext" else three_constraints(count)
            table = ForwardingTable()
            table.add_many((f"I{i % 1000}", each) for i, each in enumerate(source))
            start = time.perf_counter()
            table.save(path)
            saving = time.perf_counter() - start
            row = {"filters": f"{count:,}, {what}", "MB": path.stat().st_size / 1e6, "save s": saving}
            del table
            command = [sys.executable, "-m", "benchmarks.forwarding_loading", str(path)]
            measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            rows.append(row | measured)
            whole = measured["load s"] + measured["first match s"]
            report.target(f"load {count:,}, {what}, and match once", whole, 2, at_least=False, unit="s")
    report.table("A saved table in a fresh process", rows)


def main() -> None:
    """Load a table and use it once; print how long that took as JSON."""
    compile_kernels()  # or loading their machine code, or even compiling it, would be measured
    notification = {"price": 10, "post": GeoText(["w1", "w2"], at=(5.0, 5.0))}
    start = time.perf_counter()
    table = ForwardingTable.load(sys.argv[1])
    loaded = time.perf_counter()
    table.match(notification)
    matched = time.perf_counter()
    table.add("new", "price = 3")
    changed = time.perf_counter()
    table.add("new", "price = 4")
    measured = {
        "load s": loaded - start,
        "first match s": matched - loaded,
        "first add s": changed - matched,
        "second add s": time.perf_counter() - changed,
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
