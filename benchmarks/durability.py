"""What it costs that nothing acknowledged is lost: syncs, rates, recovery.

    journal     entries appended by one thread with so many in flight, committed by another: rate, and syncs per 1,000
    recovery    a journal of a gigabyte is opened after a kill, by a process of its own: seconds, and memory at most

    rates, backlog, beside    a broker and its clients: see `durability_broker`
    jetstream                 the same of nats-server, and through the same kills: see `durability_peer`

    python -m benchmarks.durability [--part journal] [--quick] [--directory DIR]

A part is a function in `PARTS` that adds tables and figures to the report.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.durability_broker import backlog, beside, rates
from benchmarks.durability_peer import jetstream
from benchmarks.harness import Report
from contrada import Region
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.journal.disk import RealDisk
from contrada.forwarding.journal.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable

SPAWN = multiprocessing.get_context("spawn")
BODY = encode_notification(
    {
        "kind": "storm",
        "wind": 120,
        "city": "Siena",
        "source": "gauge-17",
        "area": Region([(11.0 + x, 43.0 + y) for x, y in ((0, 0), (1, 0), (1.5, 1), (1, 2), (0, 2), (-0.5, 1))]),
    }
)
IN_FLIGHT = (1, 64, 1024)


class CountingDisk(RealDisk):
    """Counts the syncs and how long they take."""

    def __init__(self) -> None:
        self.syncs = 0
        self.seconds = 0.0

    def sync(self, file: int) -> None:
        """Sync, and count it."""
        began = time.perf_counter()
        super().sync(file)
        self.seconds += time.perf_counter() - began
        self.syncs += 1


def commits(directory: Path, in_flight: int, seconds: float) -> dict[str, Any]:
    """Append for some seconds with so many entries not yet on disk, while another thread commits."""
    disk = CountingDisk()
    stop = threading.Event()
    journal = Journal.open(directory / f"in-flight-{in_flight}", disk=disk)
    room = threading.Semaphore(in_flight)
    work = threading.Event()

    def commit() -> None:
        told = 0
        while not stop.is_set():
            work.wait(0.1)
            work.clear()
            on_disk = journal.commit()
            if on_disk > told:
                room.release(on_disk - told)
                told = on_disk

    committer = threading.Thread(target=commit)
    committer.start()
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        if room.acquire(timeout=1.0):
            journal.append(1, BODY)
            work.set()
    while journal.on_disk < journal.last:
        work.set()
        time.sleep(0.001)
    took = time.perf_counter() - began
    stop.set()
    committer.join()
    count, syncs = journal.last, disk.syncs
    journal.close()
    return {
        "in flight": in_flight,
        "entries/s": count / took,
        "syncs per 1,000": 1000 * syncs / count,
        "ms per sync": 1e3 * disk.seconds / syncs,
        "MB/s": count * len(BODY) / took / 1e6,
    }


def journal(report: Report, directory: Path, quick: bool) -> None:
    """The journal alone, without a broker."""
    rows = [commits(directory, in_flight, 1.0 if quick else 4.0) for in_flight in IN_FLIGHT]
    report.table(f"Group commit, entries of {len(BODY)} bytes", rows)
    loaded = next(row for row in rows if row["in flight"] == 64)
    report.target("syncs per 1,000 entries, 64 in flight", loaded["syncs per 1,000"], 50, at_least=False, unit="syncs")


class HastyDisk(RealDisk):
    """Says at once that all is on disk: only to write much in a short time."""

    def sync(self, file: int) -> None:
        """Do nothing."""


def fill(directory: Path, size: int, group: int) -> None:
    """Write a journal of so many bytes in groups, and end as a killed process does."""
    made = Journal.open(directory, disk=HastyDisk())
    while made.size < size:
        for _ in range(1000):
            for _ in range(group):
                made.append(1, BODY)
            made.commit()
    os._exit(0)


def _open(pipe: Any, directory: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, worked = time.perf_counter(), time.process_time()
    opened = Journal.open(directory)
    took, work = time.perf_counter() - began, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    read = sum(entry.numbers for entry in opened.read())
    pipe.send((took, work, before / 1024, peak / 1024, read, time.perf_counter() - began, opened.last))


def recovery(report: Report, directory: Path, quick: bool) -> None:
    """Open a large journal in a process of its own."""
    size = 100_000_000 if quick else 1_000_000_000
    rows = []
    for group in (64, 1):
        path = directory / f"groups-of-{group}"
        filling = SPAWN.Process(target=fill, args=(path, size, group))
        filling.start()
        filling.join()
        here, there = SPAWN.Pipe()
        process = SPAWN.Process(target=_open, args=(there, path))
        process.start()
        there.close()
        took, work, before, peak, read, reading, last = here.recv()
        process.join()
        assert read == last, "everything that was written is there"
        rows.append(
            {
                "entries per group": group,
                "GB": size / 1e9,
                "entries": last,
                "opened, s": took,
                "of these computing, s": work,
                "memory at most, MB": peak,
                "of these before, MB": before,
                "all read, s": reading,
            }
        )
    report.table("Opening a journal after a kill", rows)
    loaded = rows[0]
    what = f"a journal of {loaded['GB']:g} GB in groups of {loaded['entries per group']}"
    report.target(f"opening {what}", loaded["opened, s"], 5, at_least=False, unit="s")
    report.target(f"memory for {what}", loaded["memory at most, MB"], 200, at_least=False, unit="MB")


PARTS: dict[str, Callable[[Report, Path, bool], None]] = {
    "journal": journal,
    "recovery": recovery,
    "rates": rates,
    "backlog": backlog,
    "beside": beside,
    "jetstream": jetstream,
}


def main() -> int:
    """Measure every part, or one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="where to write, on the disk to measure")
    arguments = parser.parse_args()
    report = Report("durability")
    with tempfile.TemporaryDirectory(dir=arguments.directory, prefix=".durability-") as directory:
        for name in [arguments.part] if arguments.part else PARTS:
            PARTS[name](report, Path(directory), arguments.quick)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
