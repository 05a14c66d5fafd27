"""What every benchmark shares: timing, a table on the terminal, and JSON beside it.

A benchmark is a script with a `main()` that builds seeded workloads, measures rivals in the same run, and adds
rows to a `Report`. Figures to reach are ratios, given as `target` rows; the report says for each whether the run
reached it, and the process exits 1 when one was missed.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

RESULTS = Path(__file__).parent / "results"


def data_directory(argument: str | None) -> Path | None:
    """Where the real data sets are: the argument, or $CONTRADA_DATA, or nowhere."""
    chosen = argument or os.environ.get("CONTRADA_DATA")
    return Path(chosen) if chosen else None


def seconds(
    call: Callable[[], Any],
    *,
    repeat: int = 5,
    budget: float = 2.0,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Median seconds of `call`, run once to warm up, then `repeat` times or until `budget` is spent.

    By the wall clock, unless `clock` is another: `time.process_time` gives what a machine with nothing else to do would
    show, for work in one thread.
    """
    call()
    times: list[float] = []
    gc.collect()
    gc.disable()
    try:
        while len(times) < repeat and (len(times) < 2 or sum(times) < budget):
            start = clock()
            call()
            times.append(clock() - start)
    finally:
        gc.enable()
    return statistics.median(times)


@dataclass
class Target:
    """A figure to reach, and what this run measured."""

    what: str
    measured: float
    bound: float
    at_least: bool = True
    unit: str = "×"

    @property
    def reached(self) -> bool:
        """Whether the measured figure is on the right side of the bound."""
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound


@dataclass
class Report:
    """Tables and targets of one benchmark run, printed as they come and saved as JSON at the end."""

    name: str
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)
    console: Console = field(default_factory=lambda: Console(width=120))

    def table(self, title: str, rows: list[dict[str, Any]]) -> None:
        """Print and keep a table; its columns are the keys of the first row."""
        self.tables[title] = rows
        shown = Table(title=title, title_justify="left")
        for column in rows[0]:
            shown.add_column(column, justify="left" if isinstance(rows[0][column], str) else "right")
        for row in rows:
            shown.add_row(*(f"{v:,.4g}" if isinstance(v, float) else str(v) for v in row.values()))
        self.console.print(shown)

    def target(self, what: str, measured: float, bound: float, *, at_least: bool = True, unit: str = "×") -> None:
        """Record a figure to reach."""
        self.targets.append(Target(what, float(measured), float(bound), at_least, unit))

    def plot(
        self,
        name: str,
        lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
        *,
        x: str,
        y: str,
        log: str = "",
    ) -> None:
        """Save lines, each (xs, ys), as benchmarks/results/NAME.png; `log` names the logarithmic axes, as in "xy"."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot()
        for label, (xs, ys) in lines.items():
            axes.plot(xs, ys, marker="o", label=label)
        axes.set(title=name, xlabel=x, ylabel=y)
        if "x" in log:
            axes.set_xscale("log")
        if "y" in log:
            axes.set_yscale("log")
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
        RESULTS.mkdir(exist_ok=True)
        figure.savefig(RESULTS / f"{name}.png", dpi=120)

    def finish(self) -> int:
        """Print the targets, save everything under benchmarks/results, and return the exit code."""
        if self.targets:
            shown = Table(title="Figures to reach", title_justify="left")
            for column in ("what", "measured", "bound", "reached"):
                shown.add_column(column)
            for t in self.targets:
                sign = "≥" if t.at_least else "≤"
                shown.add_row(
                    t.what,
                    f"{t.measured:,.4g} {t.unit}",
                    f"{sign} {t.bound:,.4g} {t.unit}",
                    "yes" if t.reached else "[red]NO[/red]",
                )
            self.console.print(shown)
        RESULTS.mkdir(exist_ok=True)
        document = {
            "name": self.name,
            "machine": {
                "cpus": os.cpu_count(),
                "processor": platform.processor(),
                "python": platform.python_version(),
            },
            "tables": self.tables,
            "targets": [{**asdict(t), "reached": t.reached} for t in self.targets],
        }
        (RESULTS / f"{self.name}.json").write_text(json.dumps(document, indent=1, default=float))
        return 0 if all(t.reached for t in self.targets) else 1
