"""Routing between brokers: correctness in the simulator, what covering saves, and real brokers in lines and rings.

    python -m benchmarks.routing [--quick] [--only scenarios covering line ring propagation scaling]

`--only scenarios` runs the 10,000 scenarios without faults and the 2,000 with faults: a quarter of an hour of processor
time, in as many processes as there are cores. `--quick` runs 200 and 50 of them.

The simulator drives the real `Router` at every broker with a virtual clock, so its figures do not depend on the
machine. Lines (`routing_line.py`) and rings are processes over loopback; `routing_scaling.py` draws the curves of
docs/scaling.md.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from itertools import pairwise
from pathlib import Path

from benchmarks.harness import Report
from benchmarks.routing_line import line
from benchmarks.routing_scaling import covering, scaling
from contrada import Broker, Client
from tests.broker.overlay.clusters import await_overlay, cluster, holds_filters, reaches
from tests.broker.routing.scenarios import MOST_BROKERS, calm, check, faulty

CALM, FAULTY = "no fault", "after faults healed"


# -- scenarios ---------------------------------------------------------------------------------------------


def run_scenario(job: tuple[str, int]) -> tuple[str, int, Counter[str], str]:
    """One scenario; what was wrong with it, if anything."""
    kind, seed = job
    try:
        tally = (calm if kind == CALM else faulty)(seed)
        check(tally)
    except AssertionError:
        return kind, seed, Counter(), traceback.format_exc(limit=-2)
    return kind, seed, tally, ""


def collect_seldom() -> None:
    """Spare a worker the garbage collector's visits: what a scenario leaves is gone with it."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def scenarios(report: Report, arguments: argparse.Namespace) -> None:
    """Seeds from --first on; a failing one is named, and runs alone with --first SEED --calm 1 --faulty 0."""
    totals: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    counts = {CALM: arguments.calm, FAULTY: arguments.faulty}
    jobs = [(kind, seed) for kind, n in counts.items() for seed in range(arguments.first, arguments.first + n)]
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(arguments.processes, collect_seldom) as pool:
        for number, (kind, seed, tally, fault) in enumerate(pool.imap_unordered(run_scenario, jobs, chunksize=20), 1):
            total = totals.setdefault(kind, Counter())
            total += tally
            total["scenarios"] += 1
            if fault:
                wrong.append(f"{kind}, seed {seed}")
                report.console.print(f"[red]{wrong[-1]}[/red]: {fault}")
            if number % 1000 == 0:
                report.console.print(f"{number:,} of {len(jobs):,} scenarios, {len(wrong)} wrong")
    took = time.perf_counter() - start
    columns = ("scenarios", "published", "wanted", "missed", "unwanted", "twice", "crossings", "fewest")
    report.table(
        f"Random overlays of 2 to {MOST_BROKERS} brokers, seeds from {arguments.first}",
        [{"kind": kind, **{column: total[column] for column in columns}} for kind, total in totals.items()],
    )
    for kind, total in totals.items():
        right = 1.0 - (total["missed"] + total["unwanted"] + total["twice"]) / max(1, total["wanted"])
        what = f"deliveries equal a central matcher, {kind}, {total['scenarios']:,} scenarios"
        report.target(what, 0.0 if wrong else right, 1.0, unit="of all")
        ratio = total["crossings"] / max(1, total["fewest"])
        report.target(f"links crossed over the fewest, {kind}", ratio, 1.0, at_least=False)
    during = totals.get(FAULTY)
    if during:
        columns = ("published during", "wanted during", "lost during", "twice during")
        report.table("While links and brokers fail", [{column: during[column] for column in columns}])
        report.target("deliveries made twice during faults", during["twice during"], 0.0, at_least=False, unit="")
    report.table("Cost", [{"s": took, "processes": arguments.processes, "scenarios": len(jobs)}])


# -- processes ---------------------------------------------------------------------------------------------


def ring(report: Report) -> None:
    """Kill the broker between publisher and subscriber; how long nothing arrives."""
    names = "abcde"
    rows = []
    for silent in (False, True):
        with tempfile.TemporaryDirectory() as directory, cluster(Path(directory)) as start:
            brokers = {"a": start("a", heartbeat=1.0)}
            for before, name in pairwise(names):
                peers = [brokers[before].url] + ([brokers["a"].url] if name == "e" else [])
                brokers[name] = start(name, peers=peers, heartbeat=1.0)
            with Client(brokers["a"].url) as at_a, Client(brokers["c"].url) as at_c:
                await_overlay(at_a, reaches(*names))
                got = at_c.subscribe("t exists")
                await_overlay(at_a, holds_filters(1))
                killed = time.perf_counter()
                if silent:
                    brokers["b"].popen.send_signal(signal.SIGSTOP)  # the connections stay, nobody answers
                else:
                    brokers["b"].kill()
                while True:
                    at_a.publish({"t": 0})
                    try:
                        got.get(timeout=0.01)
                        break
                    except TimeoutError:
                        continue
                took = time.perf_counter() - killed
                if silent:
                    brokers["b"].popen.send_signal(signal.SIGCONT)
        rows.append({"broker between": "stopped, connections open" if silent else "killed", "s": took})
        report.target(
            f"re-route in a ring of 5, heartbeat 1 s, {rows[-1]['broker between']}", took, 4.0, at_least=False, unit="s"
        )
    report.table("Ring of five", rows)


def propagation(report: Report) -> None:
    """Subscribe at one end of ten brokers in a line; when the other end forwards what it asks for."""
    brokers: list[Broker] = []
    try:
        for number in range(10):
            peers = [brokers[-1].url] if brokers else []
            brokers.append(Broker(id=f"b{number}", peers=peers, heartbeat=5.0, timeout=30.0).start())
        with Client(brokers[0].url) as near, Client(brokers[-1].url) as far:
            await_overlay(near, reaches(*(broker.id for broker in brokers)))
            await_overlay(far, reaches(*(broker.id for broker in brokers)))
            times = []
            for round in range(20):
                start = time.perf_counter()
                subscription = far.subscribe(f"n > 0 and round = {round}")
                sent: list[float] = []
                while True:
                    sent.append(time.perf_counter())
                    near.publish({"n": len(sent), "round": round})
                    try:
                        first = subscription.get(timeout=0.001)["n"]
                        break
                    except TimeoutError:
                        continue
                times.append(sent[int(str(first)) - 1] - start)
                subscription.close()
    finally:
        for broker in reversed(brokers):
            broker.stop()
    times.sort()
    report.table("Ten brokers in a line", [{"median ms": 1e3 * times[10], "worst of 20, ms": 1e3 * times[-1]}])
    report.target(
        "subscription propagation across 10 brokers, worst of 20", 1e3 * times[-1], 100.0, at_least=False, unit="ms"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calm", type=int, default=10_000, help="scenarios without faults")
    parser.add_argument("--faulty", type=int, default=2000, help="scenarios with faults")
    parser.add_argument("--first", type=int, default=0, help="seed of the first scenario of each kind")
    parser.add_argument("--quick", action="store_true", help="200 and 50 scenarios")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="for the scenarios")
    experiments = {
        "covering": covering,
        "line": line,
        "ring": ring,
        "propagation": propagation,
        "scaling": scaling,
    }
    parser.add_argument("--only", nargs="+", choices=["scenarios", *experiments])
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.calm, arguments.faulty = 200, 50
    report = Report("routing" if not arguments.only else f"routing_{'_'.join(arguments.only)}")
    if not arguments.only or "scenarios" in arguments.only:
        scenarios(report, arguments)
    for name, experiment in experiments.items():
        if not arguments.only or name in arguments.only:
            experiment(report)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
