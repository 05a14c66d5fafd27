"""A million filters added and removed again, one pair at a time: what is freed must be used again.

A part of benchmarks/forwarding.py. `python -m benchmarks.forwarding_churn FILTERS PAIRS` is the process it measures.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.forwarding_workloads import three_constraints
from contrada.forwarding.table.table import ForwardingTable

if TYPE_CHECKING:
    from benchmarks.harness import Report

_SAMPLES = 10


def churn(report: Report, quick: bool) -> None:
    """Change a table in a process of its own, so that the memory is the table's."""
    held, pairs = (10_000, 50_000) if quick else (100_000, 1_000_000)
    command = [sys.executable, "-m", "benchmarks.forwarding_churn", str(held), str(pairs)]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    report.table(f"{pairs:,} filters replaced, one by one, in a table of {held:,}", rows)
    growth = rows[-1]["RSS MB"] / rows[1]["RSS MB"]
    report.target(f"memory after {pairs:,} pairs / after a tenth", growth, 1.05, at_least=False)


def main() -> None:
    """Print memory and time after each tenth of the changes as JSON."""
    held, pairs = int(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(3)
    table = ForwardingTable()
    first = ((f"I{i % 500}", each) for i, each in enumerate(three_constraints(held)))
    live = [id for ids in table.add_many(first) for id in ids]
    more = three_constraints(pairs, seed=6)
    rows = [{"pairs": 0, "RSS MB": _resident(), "table MB": table.stats().bytes / 1e6, "pairs/s": 0.0}]
    start = time.process_time()
    for done, each in enumerate(more, 1):
        at = rng.randrange(held)
        table.remove(live[at])
        live[at] = table.add(f"I{at % 500}", each)[0]
        if done % (pairs // _SAMPLES) == 0:
            rate = pairs // _SAMPLES / (time.process_time() - start)
            size = table.stats().bytes / 1e6
            rows.append({"pairs": done, "RSS MB": _resident(), "table MB": size, "pairs/s": rate})
            start = time.process_time()
    print(json.dumps(rows))


def _resident() -> float:
    """Megabytes of this process in memory now, not at its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1e3
    raise RuntimeError("this system does not say how much memory a process uses")


if __name__ == "__main__":
    main()
