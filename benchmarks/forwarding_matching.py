"""Where counting is quicker and where selective matching is: `make bench-forwarding_matching ARGS=--quick`.

The map: filters per interface, constraints per filter, how selective they are, thresholds or values, regions or none;
the three ways in one process, turn about, by processor time. Then SFF's workloads against what SFF's program took. The
answers of all ways are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.forwarding_workloads import Comparing, Zipf
from benchmarks.harness import Report
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.state.matching import MATCHING
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.forwarding_workloads import Notification

NAMES = 20
# Workload, interfaces, filters of each, and what SFF 2.0.1 took for a notification, in µs (docs/forwarding.md).
SFF = (
    (Zipf, 100, 100, 29.0),
    (Zipf, 10_000, 1, 19.0),
    (Zipf, 1_000, 100, 580.0),
    (Zipf, 100_000, 1, 650.0),
    (Comparing, 10, 25_000, 2100.0),
)


def fastest(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Processor seconds of each call, the best of some rounds in which all have their turn."""
    best = dict.fromkeys(calls, np.inf)
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in calls.items():
                start = time.process_time()
                call()
                best[name] = min(best[name], time.process_time() - start)
    finally:
        gc.enable()
    return best


def tables(pairs: Sequence[tuple[int, Filter]], notifications: list[Notification]) -> dict[str, ForwardingTable[int]]:
    """A table for each way to match, settled and asked; their answers are the same."""
    made: dict[str, ForwardingTable[int]] = {}
    answers = None
    for matching in MATCHING:
        made[matching] = table = ForwardingTable(matching=matching, simplify=False)
        table.add_many(pairs)
        for notification in (notifications * 3)[:900]:
            table.match(notification)
        found = table.match_many(notifications)
        assert answers is None or found == answers, "ways to match disagree"
        answers = found
    return made


def thresholds(rng: np.random.Generator, constraints: int, share: float) -> Iterator[Filter]:
    """Filters of `<` and `>` that so large a share of values satisfies, on average."""
    while True:
        made = []
        for name in rng.choice(NAMES, constraints, replace=False).tolist():
            reach = float(2 * share * rng.random())
            below = rng.random() < 0.5
            made.append(Constraint(f"n{name}", Operator.LT if below else Operator.GT, reach if below else 1 - reach))
        yield Filter(made)


def values(rng: np.random.Generator, constraints: int, share: float) -> Iterator[Filter]:
    """Filters of `=`, each of one of so many values."""
    while True:
        names = rng.choice(NAMES, constraints, replace=False).tolist()
        yield Filter([Constraint(f"n{n}", Operator.EQ, int(rng.integers(round(1 / share)))) for n in names])


def areas(rng: np.random.Generator, constraints: int, share: float) -> Iterator[Filter]:
    """Filters of a box that so large a share of points is in, the others thresholds."""
    rest = thresholds(rng, constraints - 1, share)
    side = 1000 * share**0.5
    while True:
        x, y = (rng.random(2) * (1000 - side)).tolist()
        yield Filter([Constraint("area", Operator.INTERSECTS, Box(x, y, x + side, y + side)), *next(rest).constraints])


WORKLOADS = {"thresholds": thresholds, "values": values, "a region and thresholds": areas}


def ask(rng: np.random.Generator, kind: str, share: float) -> Notification:
    """A notification with all names."""
    if kind == "values":
        return {f"n{i}": int(rng.integers(round(1 / share))) for i in range(NAMES)}
    found: Notification = {f"n{i}": float(rng.random()) for i in range(NAMES)}
    if kind != "thresholds":
        found["area"] = Point(*(rng.random(2) * 1000).tolist())
    return found


def the_map(report: Report, quick: bool) -> None:
    """All cells of the map."""
    filters = 5_000 if quick else 20_000
    rows = []
    for kind, source in WORKLOADS.items():
        for each in (1, 100):
            for constraints in (2, 3, 5):
                for share in (0.5, 0.1, 0.01):
                    rng = np.random.default_rng(7)
                    made = source(rng, constraints, share)
                    pairs = [(i // each, next(made)) for i in range(filters)]
                    notifications = [ask(rng, kind, share) for _ in range(200)]
                    known = tables(pairs, notifications)
                    calls = {name: lambda t=table: t.match_many(notifications) for name, table in known.items()}  # noqa: B023  # called at once
                    took = {name: 1e6 * t / len(notifications) for name, t in fastest(calls, 5).items()}
                    rows.append(
                        {
                            "of": kind,
                            "filters each": each,
                            "constraints": constraints,
                            "selectivity": share,
                            **{f"{name} µs": t for name, t in took.items()},
                            "counting over selective": took["selective"] / took["counting"],
                            "auto over the better": min(took["selective"], took["counting"]) / took["auto"],
                        }
                    )
    report.table(f"Ways to match {filters:,} filters", rows)
    report.target("auto over the better, the worst cell", min(row["auto over the better"] for row in rows), 0.9)


def against_sff(report: Report, quick: bool) -> None:
    """SFF's workloads."""
    rows = []
    for workload, interfaces, each, sff in SFF[:2] if quick else SFF:
        source = workload()
        pairs = [(i // each, f) for i, f in enumerate(source.filters(interfaces * each))]
        notifications = source.notifications(500)
        bodies = [encode_notification(notification) for notification in notifications]
        row: dict[str, Any] = {"workload": workload.__name__, "interfaces × filters": f"{interfaces:,} × {each:,}"}
        row["SFF µs"] = sff
        known = tables(pairs, notifications)
        took = fastest({name: lambda t=table: t.match_many(notifications) for name, table in known.items()}, 7)  # noqa: B023  # called at once
        read = fastest({name: lambda t=table: t.match_bodies(bodies) for name, table in known.items()}, 7)  # noqa: B023  # called at once
        for name in MATCHING:
            row[f"{name} µs"] = 1e6 * took[name] / len(bodies)
            row[f"{name}, of bytes µs"] = 1e6 * read[name] / len(bodies)
        row["counting over SFF"] = sff / min(row["counting µs"], row["counting, of bytes µs"])
        row["auto over the better"] = min(took["selective"], took["counting"]) / took["auto"]
        rows.append(row)
        report.target(
            f"counting over SFF, {row['workload']} {row['interfaces × filters']}", row["counting over SFF"], 2
        )
    report.table("SFF's workloads", rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller")
    arguments = parser.parse_args()
    report = Report("forwarding_matching")
    the_map(report, arguments.quick)
    against_sff(report, arguments.quick)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
