"""`make bench-peers`: fences by many engines and brokers end to end, in one table, with the same answers.

    python -m benchmarks.peers [--data DIR] [--only fences|batch|large|scalars|brokers] [--sff PROGRAM] [--quick]

A peer that is not installed is named with what it needs. `pip install '.[peers]'` has those that are Python packages.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import Report, data_directory
from benchmarks.peers import node, postgis
from benchmarks.peers.end_to_end import rate
from benchmarks.peers.fences import S2, ContradaEngine, Fences, SedonaJoin, StrTree
from benchmarks.peers.large import large_answers
from benchmarks.peers.sff import WORKLOADS, run_beside
from contrada import ForwardingTable
from contrada.forwarding.warm import compile_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.peers.fences import Engine

SLOW = 40  # events for engines that look at every fence
ASKED = {"koncorde": 20.0, "shapely STRtree": 10.0, "PostGIS, GiST": 50.0}


def main() -> int:
    """Measure everything, or a part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="real polygons; else $CONTRADA_DATA, else made ones only")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--sff", metavar="PROGRAM", help="SFF's own matcher, to be run beside (peers/sff.py)")
    parser.add_argument("--quick", action="store_true", help="fewer fences, events and notifications")
    arguments = parser.parse_args()
    compile_kernels()
    report = Report("peers")
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            options = {"program": arguments.sff} if name == "scalars" else {}
            part(report, data_directory(arguments.data), arguments.quick, **options)
    return report.finish()


def fences(report: Report, data: Path | None, quick: bool) -> None:
    """10,000 filters of a kind and a polygon; points as notifications, one at a time."""
    count = 1_000 if quick else 10_000
    _fences(report, "crowded", Fences.crowded(count, 2_000), asked=True)
    if data is not None:
        _fences(report, "census blocks", Fences.blocks(count, 2_000, data), asked=False)


def _fences(report: Report, name: str, work: Fences, *, asked: bool) -> None:
    ours, *built = _built(lambda: ContradaEngine(work))
    events = zip(work.points.tolist(), work.point_kinds, strict=True)
    truth = [ours.match(x, y, kind) for (x, y), kind in events]
    rows = [_row(ours, *built, work, truth)]
    rows.append(_row(*_built(lambda: StrTree(work)), work, truth))
    if find_spec("s2geometry"):
        # Its edges are geodesics: some answers near an edge are others.
        rows.append(_row(*_built(lambda: S2(work)), work.first(500), truth[:500], alike=0.95))
    else:
        report.console.print("s2geometry was not measured: pip install '.[peers]'")
    rows += _postgis(report, work, truth)
    for package in node.ENGINES:
        few = work.first(SLOW)
        measured = node.measure(package, few)
        if isinstance(measured, str):
            report.console.print(f"{package} was not measured: {measured}")
        else:
            # Koncorde's points near an edge are on the other side of it now and then.
            alike = _check(package, measured.answers, truth[:SLOW], 0.95 if package == "koncorde" else 1.0)
            rows.append(_shown(package, alike, measured.built, measured.times, measured.replaced, measured.memory))
    _report(report, f"{len(work.rings):,} fences ({name}) of a kind and a polygon, a point at a time", rows, asked)


def _postgis(report: Report, work: Fences, truth: list[set[int]]) -> list[dict[str, Any]]:
    bin = postgis.programs()
    if isinstance(bin, str) or not find_spec("psycopg"):
        report.console.print(f"PostGIS was not measured: {bin if isinstance(bin, str) else 'pip install psycopg'}")
        return []
    with postgis.cluster(bin) as url:
        engine, built, _ = _built(lambda: postgis.PostGis(url, work))
        try:
            return [_row(engine, built, engine.memory, work.first(500), truth[:500])]
        finally:
            engine.close()


def batch(report: Report, data: Path | None, quick: bool) -> None:
    """Points in 100,000 polygons and nothing else, all at once."""
    count, events = 5_000 if quick else 100_000, 20_000
    work = (Fences.crowded(count, events) if data is None else Fences.blocks(count, events, data)).without_kinds()
    ours, *built = _built(lambda: ContradaEngine(work))
    truth = ours.match_all(work)
    rows = [
        _batch_row("Contrada, match_pairs of columns", *built, lambda: ours.match_columns(work), work, truth),
        _batch_row("Contrada, match_many of objects", *built, lambda: ours.match_all(work), work, truth),
    ]
    tree, *built = _built(lambda: StrTree(work))
    rows.append(_batch_row(tree.name, *built, lambda: tree.match_all(work), work, truth))
    if find_spec("sedonadb"):
        sedona, *built = _built(lambda: SedonaJoin(work))
        rows.append(_batch_row(sedona.name, *built, lambda: sedona.match_all(work), work, truth))
        report.target("points in polygons over sedonadb, batch", rows[-1]["µs a point"] / rows[0]["µs a point"], 1.0)
    else:
        report.console.print("sedonadb was not measured: pip install '.[peers]'")
    for row in rows:
        row["ahead"] = "" if row["engine"].startswith("Contrada") else _ahead(row["µs a point"], rows[0], row["engine"])
    report.table(f"{len(work.points):,} points in {len(work.rings):,} polygons at once", rows)


def large(report: Report, data: Path | None, quick: bool) -> None:
    """A region that thousands of filters match."""
    count = 10_000 if quick else 85_550
    large_answers(report, Fences.crowded(count, 1) if data is None else Fences.blocks(count, 1, data))


def _ahead(theirs: float, ours: dict[str, Any], engine: str) -> str:
    return "Contrada" if theirs > ours["µs a point"] else engine


def scalars(report: Report, _data: Path | None, quick: bool, program: str | None = None) -> None:
    """SFF's workloads, by its binary if there is one."""
    rows = []
    for workload in WORKLOADS[:2] if quick else WORKLOADS:
        source = workload.source()
        filters = source.filters(workload.interfaces * workload.each)
        pairs = [(i // workload.each, each) for i, each in enumerate(filters)]
        notifications = source.notifications(300)
        table: ForwardingTable[int] = ForwardingTable()
        table.add_many(pairs)
        answers = table.match_many(notifications)
        for _ in range(3):
            if [table.match(each) for each in notifications] != answers:
                raise SystemExit("a single match answers otherwise")
        single = [min(_seconds(partial(table.match, each)) for _ in range(3)) for each in notifications]
        many = min(_seconds(partial(table.match_many, notifications)) for _ in range(7)) / len(notifications)
        beside: float | str = "no binary was given"
        if program is not None:
            beside = run_beside(program, pairs, notifications, sum(map(len, answers)))
        if program is not None and isinstance(beside, str):
            report.console.print(f"SFF was not measured: {beside}")
        sff = workload.known if isinstance(beside, str) else beside
        row: dict[str, Any] = {"workload": workload.name, "single match, µs": 1e6 * float(np.mean(single))}
        row |= {"p99, µs": 1e6 * float(np.quantile(single, 0.99)), "match_many, µs": 1e6 * many, "SFF, µs": sff}
        row["SFF measured"] = "known" if isinstance(beside, str) else "beside"
        for what, column in (("single match", "single match, µs"), ("match_many", "match_many, µs")):
            report.target(f"{what} over SFF, {workload.name}", sff / row[column], workload.asked)
        rows.append(row)
    report.table("SFF's workloads, a notification", rows)


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def brokers(report: Report, _data: Path | None, quick: bool) -> None:
    """One publisher and one subscriber in asyncio, one equality."""
    count = 20_000 if quick else 200_000
    rates: dict[str, list[float]] = {}
    for _ in range(1 if quick else 3):  # in turn, so that all have the same weather
        for name in ("contrada", "nats-server", "mosquitto"):
            measured = rate(name, count if name != "mosquitto" else count // 10)
            if isinstance(measured, str):
                report.console.print(f"{name} was not measured: {measured}")
            else:
                rates.setdefault(name, []).append(measured)
    rows = [{"broker": name, "notifications a second": statistics.median(each)} for name, each in rates.items()]
    report.table("A publisher and a subscriber in asyncio, one equality, the median run", rows)
    if "nats-server" in rates:
        ratio = statistics.median(rates["contrada"]) / statistics.median(rates["nats-server"])
        report.target("end to end over nats-server and nats-py", ratio, 1.0)


PARTS: dict[str, Callable[..., None]] = {
    "fences": fences,
    "batch": batch,
    "large": large,
    "scalars": scalars,
    "brokers": brokers,
}


def _timed(make: Callable[[], Any]) -> tuple[Any, float]:
    gc.collect()
    began = time.perf_counter()
    made = make()
    return made, time.perf_counter() - began


def _built(make: Callable[[], Any]) -> tuple[Any, float, float]:
    """What is made, the seconds that takes, and by how many bytes this process grows."""
    gc.collect()
    before = _resident()
    made, took = _timed(make)
    gc.collect()
    return made, took, max(_resident() - before, 0.0)


def _resident() -> float:
    return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _row(
    engine: Engine, built: float, memory: float, work: Fences, truth: list[set[int]], alike: float = 1.0
) -> dict[str, Any]:
    """Ask an engine event by event, hold its answers to ours, and replace some of its fences."""
    events = [(x, y, kind) for (x, y), kind in zip(work.points.tolist(), work.point_kinds, strict=True)]
    for event in events[:20]:
        engine.match(*event)
    times, answers = [], []
    for event in events:
        began = time.perf_counter()
        found = engine.match(*event)
        times.append(time.perf_counter() - began)
        answers.append(found)
    alike = _check(engine.name, answers, truth, alike)
    replaced = [_seconds(partial(engine.replace, n)) for n in range(20)]
    _check(engine.name, [engine.match(*event) for event in events[:50]], answers[:50])
    return _shown(engine.name, alike, built, times, replaced, memory)


def _check(name: str, answers: list[set[int]], truth: list[set[int]], alike: float = 1.0) -> float:
    """How many of the answers are the same, which must be so large a share at least."""
    same = np.mean([mine == theirs for mine, theirs in zip(answers, truth, strict=True)])
    if same < alike:
        raise SystemExit(f"{name} answers as Contrada does for {same:.1%} of the events only")
    return float(same)


def _shown(
    name: str, alike: float, built: float, times: Sequence[float], replaced: Sequence[float], memory: float
) -> dict[str, Any]:
    return {
        "engine": name,
        "same answers": f"{alike:.1%}",
        "built, s": built,
        "median, µs": float(np.median(times)) * 1e6,
        "p99, µs": float(np.quantile(times, 0.99)) * 1e6,
        "a fence replaced, µs": float(np.median(replaced)) * 1e6,
        "memory, MB": memory / 1e6,
    }


def _batch_row(
    name: str, built: float, memory: float, match: Callable[[], list[set[int]]], work: Fences, truth: list[set[int]]
) -> dict[str, Any]:
    times = []
    for _ in range(5):
        answers, took = _timed(match)
        times.append(took)
    _check(name, answers, truth)
    per_point = [took / len(work.points) * 1e6 for took in times]
    return {
        "engine": name,
        "built, s": built,
        "µs a point": min(per_point),
        "the slowest run": max(per_point),
        "memory, MB": memory / 1e6,
    }


def _report(report: Report, title: str, rows: list[dict[str, Any]], asked: bool) -> None:
    ours = rows[0]["median, µs"]
    for row in rows:
        row["times ours"] = row["median, µs"] / ours
        row["ahead"] = "" if row is rows[0] else "Contrada" if row["times ours"] > 1 else row["engine"]
        if asked and row["engine"] in ASKED:
            report.target(f"fences over {row['engine']}", row["times ours"], ASKED[row["engine"]])
    report.table(title, rows)


if __name__ == "__main__":
    sys.exit(main())
