"""Durability as clients of a broker see it: parts of `benchmarks.durability`, with the broker in a process of its own.

rates      publishes acknowledged, volatile and durable in turn: 64 in flight, and 64 batches of 32 in flight
backlog    a million notifications wait for one absent subscriber: the broker's memory, its restart, their delivery
beside     volatile latency, publisher to subscriber, while somebody else publishes durably as fast as it goes
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import contrada

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Report

SPAWN = multiprocessing.get_context("spawn")
NOTE = {"hazard": 5, "name": "a notification of about a hundred bytes, as a gauge might send one"}
IN_FLIGHT = 64
BATCH = 32


class Served:
    """A broker process."""

    def __init__(self, data: Path) -> None:
        listen = ("--listen", "tcp://127.0.0.1:*", "--metrics", "127.0.0.1:0")
        command = [sys.executable, "-m", "contrada", "broker", *listen, "--data", str(data)]
        self._log = (data.parent / "broker.log").open("w+")
        self.popen = subprocess.Popen(command, stderr=self._log)
        self.url = self._said(r" listens on (\S+);")
        self._metrics = self._said(r'"event": "metrics".*?"url": "(.*?)"')

    def _said(self, pattern: str) -> str:
        while self.popen.poll() is None:
            found = re.search(pattern, Path(self._log.name).read_text())
            if found is not None:
                return found[1]
            time.sleep(0.01)
        raise RuntimeError(Path(self._log.name).read_text())

    def metric(self, name: str) -> float:
        """One of the broker's figures."""
        text = urllib.request.urlopen(self._metrics).read().decode()
        return float(re.findall(rf"^contrada_{name} (\S+)$", text, re.MULTILINE)[0])

    def megabytes(self, kind: str = "VmRSS") -> float:
        """Its memory, of now or at most."""
        status = Path(f"/proc/{self.popen.pid}/status").read_text()
        return int(re.findall(rf"{kind}:\s+(\d+) kB", status)[0]) / 1000

    def kill(self) -> None:
        """End it at once."""
        self.popen.kill()
        self.popen.wait()
        self._log.close()


@contextmanager
def served(data: Path) -> Iterator[Served]:
    """A broker, killed at the end."""
    broker = Served(data)
    try:
        yield broker
    finally:
        broker.kill()


async def publish(client: contrada.AsyncClient, count: int, batch: int, durable: bool) -> float:
    """Notifications acknowledged in a second, with so many in flight."""
    left = iter(range(0, count, batch))

    async def publisher() -> None:
        for _ in left:
            if batch == 1:
                await client.publish(NOTE, durable=durable)
            else:
                await client.publish_many([NOTE] * batch, durable=durable)

    began = time.perf_counter()
    await asyncio.gather(*(publisher() for _ in range(IN_FLIGHT)))
    return count / (time.perf_counter() - began)


def rates(report: Report, directory: Path, quick: bool) -> None:
    """Durable over volatile, interleaved."""
    rows = []

    async def measure(broker: Served, batch: int, count: int) -> dict[str, Any]:
        found: dict[bool, list[float]] = {False: [], True: []}
        commits = stored = 0.0
        async with contrada.connect(broker.url) as client:
            for _ in range(3 if quick else 7):
                for durable in found:
                    before = broker.metric("journal_commit_seconds_count"), broker.metric("stored_total")
                    found[durable].append(await publish(client, count, batch, durable))
                    if durable:
                        commits += broker.metric("journal_commit_seconds_count") - before[0]
                        stored += broker.metric("stored_total") - before[1]
        volatile, kept = statistics.median(found[False]), statistics.median(found[True])
        return {
            "batch": batch,
            "volatile/s": volatile,
            "durable/s": kept,
            "durable / volatile": kept / volatile,
            "syncs per 1,000": 1000 * commits / stored,
        }

    with served(directory / "rates") as broker:
        for batch, count in ((1, 4000), (BATCH, 60_000)):
            rows.append(asyncio.run(measure(broker, batch, count // 4 if quick else count)))
    report.table(f"Publishes acknowledged, {IN_FLIGHT} calls in flight", rows)
    for row, least in zip(rows, (0.3, 0.5), strict=True):
        report.target(f"durable over volatile, batches of {row['batch']}", row["durable / volatile"], least)
    report.target("syncs per 1,000 durable notifications", rows[1]["syncs per 1,000"], 50, at_least=False, unit="syncs")


def backlog(report: Report, directory: Path, quick: bool) -> None:
    """Many notifications wait for somebody who is not there."""
    count = 100_000 if quick else 1_000_000
    data = directory / "backlog"
    with served(data) as broker, contrada.Client(broker.url, outstanding=8192) as client:
        client.subscribe("hazard > 3", durable="absent").close()
        before = broker.megabytes()
        began = time.perf_counter()
        client.publish_many((NOTE for _ in range(count)), durable=True)
        row: dict[str, Any] = {
            "waiting": count,
            "memory before, MB": before,
            "at most, MB": broker.megabytes("VmHWM"),
            "stored/s": count / (time.perf_counter() - began),
        }
    size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    began = time.perf_counter()
    with served(data) as broker, contrada.Client(broker.url, connect_timeout=60.0) as client:
        row |= {"journal, MB": size / 1e6, "back after a kill, s": time.perf_counter() - began}
        began = time.perf_counter()
        with client.subscribe("hazard > 3", durable="absent") as absent:
            for _ in range(count):
                absent.get(timeout=60.0)
        row |= {"delivered/s": count / (time.perf_counter() - began), "then, MB": broker.megabytes("VmHWM")}
    report.table("What waits for an absent subscriber", [row])
    report.target(f"memory with {count:,} waiting", row["at most, MB"], 300, at_least=False, unit="MB")


def _flood(url: str, durable: bool, stop: Any) -> None:
    async def flood() -> None:
        async with contrada.connect(url) as client:
            while not stop.is_set():
                await publish(client, 2048, BATCH, durable)

    asyncio.run(flood())


async def _latencies(url: str, seconds: float) -> list[float]:
    """Of notifications that are published every few milliseconds, from `publish` to `async for`."""
    found: list[float] = []
    async with contrada.connect(url) as client, client.subscribe("sent exists") as subscription:
        ends = time.perf_counter() + seconds

        async def publisher() -> None:
            while time.perf_counter() < ends:
                await client.publish({"sent": time.perf_counter()})
                await asyncio.sleep(0.003)

        publishing = asyncio.create_task(publisher())
        while not publishing.done() or subscription.pending:
            try:
                sent = (await subscription.get(timeout=0.1))["sent"]
            except TimeoutError:
                continue
            found.append(time.perf_counter() - sent)
        await publishing
    return found


def beside(report: Report, directory: Path, quick: bool) -> None:
    """Volatile traffic with and without durable traffic at the same broker."""
    rounds: dict[str, list[float]] = {"volatile": [], "durable": []}
    with served(directory / "beside") as broker:
        for _ in range(1 if quick else 3):
            for kind, kept in rounds.items():
                stop = SPAWN.Event()
                process = SPAWN.Process(target=_flood, args=(broker.url, kind == "durable", stop))
                process.start()
                kept += asyncio.run(_latencies(broker.url, 2.0 if quick else 5.0))
                stop.set()
                process.join()
    rows = []
    for kind, latencies in rounds.items():
        cuts = statistics.quantiles(latencies, n=100)
        rows.append({"beside a flood that is": kind, "p50, ms": 1e3 * cuts[49], "p99, ms": 1e3 * cuts[98]})
    report.table("Volatile notifications, publisher to subscriber", rows)
    ratio = rows[1]["p99, ms"] / rows[0]["p99, ms"]
    report.target("p99 beside durable traffic over that beside volatile", ratio, 2, at_least=False)
