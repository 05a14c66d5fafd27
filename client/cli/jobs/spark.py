"""What the commands that run on Spark share: the session, its options, and progress on the terminal."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.client.cli.common import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

Master = Annotated[
    str | None, typer.Option("--master", help="Spark's master; this machine (local[*]), or what spark-submit says.")
]
PyEnv = Annotated[
    Path | None,
    typer.Option("--py-env", help="What executors run: a packed environment (.tar.gz, by venv-pack) or a wheel."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]

_REFRESH = 0.5


@contextmanager
def spark_session(
    name: str, master: str | None, py_env: Path | None = None, *, quiet: bool = False
) -> Iterator[SparkSession]:
    """The session of a command. Without the extra or Java, and when Spark fails, a `ContradaError` says why.

    Look at paths and options before: it takes seconds to start Spark, and what is wrong should be told at once.
    """
    from contrada.spark_jobs.common.errors import told_in_one_line
    from contrada.spark_jobs.common.session import check_brought, open_session

    bring = None if py_env is None else check_brought(py_env)
    session = open_session(f"contrada {name}", master, bring=bring, quiet=quiet)
    try:
        with told_in_one_line():
            yield session
    finally:
        session.stop()


@contextmanager
def progress(session: SparkSession, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Tell steps on stderr: a line each and, on a terminal, how many of Spark's tasks are done."""
    if quiet:
        yield lambda step: None
        return
    if not sys.stderr.isatty():
        yield say
        return
    from rich.console import Console
    from rich.status import Status

    console = Console(stderr=True, highlight=False)
    status = Status("", console=console)
    done = threading.Event()
    current = [""]

    def watch() -> None:
        tracker = session.sparkContext.statusTracker()
        while not done.wait(_REFRESH):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            counts = [(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None]
            tasks = f" ({sum(d for d, _ in counts)} of {sum(n for _, n in counts)} tasks)" if counts else ""
            status.update(f"{current[0]}{tasks}")

    def tell(step: str) -> None:
        if current[0]:
            console.print(f"[green]✓[/] {current[0]}")
        current[0] = step
        status.update(step)

    watcher = threading.Thread(target=watch, daemon=True)
    with status:
        watcher.start()
        try:
            yield tell
            tell("")
        finally:
            done.set()
            watcher.join()
