"""SFF's own workloads: filters of scalars, in tables of many interfaces; beside a binary of SFF, if one is given.

`--sff PROGRAM` is the command that SFF 2.0.1 builds (`sff`, configured with timers): it reads statements, `ifconfig`
for the predicate of an interface and `select` for a notification, and prints what it has counted. Without one, what SFF
took on a like machine stands beside (docs/forwarding.md), and is said to.
"""

from __future__ import annotations

import subprocess
import tempfile
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.forwarding_workloads import Comparing, Zipf
from contrada.forwarding.language.constraint import Operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.forwarding_workloads import Notification
    from contrada.forwarding.language.filter import Filter

_PATIENCE = 900  # seconds
_REPEATED = 20  # times that the notifications are matched
_OPERATORS = {
    Operator.EQ: "=",
    Operator.NE: "!=",
    Operator.LT: "<",
    Operator.GT: ">",
    Operator.PREFIX: "=*",
    Operator.SUFFIX: "*=",
    Operator.CONTAINS: "**",
}


class Workload(NamedTuple):
    """A workload, and what SFF took for a notification of it, in µs, compiled with -O3 for a like machine."""

    name: str
    source: type[Zipf] | type[Comparing]
    interfaces: int
    each: int
    known: float
    asked: float  # times that we are to be ahead


WORKLOADS = (
    Workload("Z 100 × 100", Zipf, 100, 100, 22.0, 1.0),
    Workload("Z 10,000 × 1", Zipf, 10_000, 1, 20.0, 1.0),
    Workload("Z 1,000 × 100", Zipf, 1_000, 100, 340.0, 8.0),
    Workload("Z 100,000 × 1", Zipf, 100_000, 1, 300.0, 8.0),
    Workload("C 10 × 25,000", Comparing, 10, 25_000, 2170.0, 8.0),
)


def run_beside(
    program: str, pairs: Sequence[tuple[int, Filter]], notifications: Sequence[Notification], matches: int
) -> float | str:
    """Microseconds that SFF takes for a notification; or why it could not be measured. Its matches must be ours."""
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "statements"
        script.write_text("\n".join(_statements(pairs, notifications)))
        try:
            done = subprocess.run(
                [program, str(script)], capture_output=True, text=True, check=False, timeout=_PATIENCE
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    said = done.stdout.split()
    try:
        count, milliseconds = int(said[-2]), float(said[-1])
    except (IndexError, ValueError):
        return f"it printed neither matches nor a time: {(done.stdout + done.stderr).strip()[-200:]!r}"
    if count != _REPEATED * matches:
        raise SystemExit(f"SFF finds {count} matches, and Contrada {_REPEATED * matches}")
    return 1000 * milliseconds / (_REPEATED * len(notifications))


def _statements(pairs: Sequence[tuple[int, Filter]], notifications: Sequence[Notification]) -> Iterable[str]:
    yield "output off;"
    for interface, filters in groupby(pairs, key=lambda pair: pair[0]):
        yield f"ifconfig {interface + 1} {' | '.join(_filter(each) for _, each in filters)};"
    yield "consolidate;"
    for _ in range(_REPEATED):
        for notification in notifications:
            yield f"select {' '.join(f'{name} = {_value(value)}' for name, value in notification.items())};"
    yield r'statistics "%M %Tm\n";'


def _filter(filter: Filter) -> str:
    return ", ".join(f"{c.name} {_OPERATORS[c.op]} {_value(c.value)}" for c in filter.constraints)


def _value(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
