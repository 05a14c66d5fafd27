"""What the commands that run on Spark share: the session, its options, and progress on the terminal."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from contrada.client.cli.common import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark import StatusTracker
    from pyspark.sql import SparkSession
    from rich.console import Console
    from rich.progress import TaskID

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
    """Tell steps on stderr: a line each and, on a terminal, a bar of the tasks that Spark has done of it."""
    if quiet:
        yield lambda step: None
        return
    if not sys.stderr.isatty():
        yield say
        return
    from rich.console import Console

    bars = StageBars(session.sparkContext.statusTracker(), Console(stderr=True, highlight=False))
    with bars:
        yield bars.tell


class StageBars:
    """A bar for each step: how many tasks of the Spark stages that began in it are done.

    Stages that Spark no longer tells of are over. A step without tasks is done when the next begins.
    """

    def __init__(self, tracker: StatusTracker, console: Console) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        counts = TextColumn("{task.fields[counts]}")
        columns = (SpinnerColumn(finished_text="✓"), TextColumn("{task.description}"), BarColumn(), counts)
        self._progress = Progress(*columns, TimeElapsedColumn(), console=console)
        self._tracker = tracker
        self._current: TaskID | None = None
        self._seen: dict[int, tuple[int, int]] = {}  # tasks that are done, and all, by Spark's stage
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def tell(self, step: str) -> None:
        """A step begins; the one before is over."""
        with self._lock:
            self._finish()
            self._seen = {}
            self._current = self._progress.add_task(step, total=None, counts="")

    def look(self) -> None:
        """Take in what Spark says now."""
        active = {stage: self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()}
        with self._lock:
            for stage, (_, tasks) in self._seen.items():
                self._seen[stage] = tasks, tasks
            known = {stage: info for stage, info in active.items() if info is not None}
            self._seen |= {stage: (info.numCompletedTasks, info.numTasks) for stage, info in known.items()}
            if self._current is not None and self._seen:
                done, tasks = (sum(each) for each in zip(*self._seen.values(), strict=True))
                self._progress.update(self._current, completed=done, total=tasks, counts=f"{done} of {tasks} tasks")

    def _finish(self) -> None:
        if self._current is not None:
            tasks = max(1, sum(tasks for _, tasks in self._seen.values()))
            self._progress.update(self._current, completed=tasks, total=tasks)
            self._progress.stop_task(self._current)

    def _watch(self) -> None:
        while not self._done.wait(_REFRESH):
            self.look()

    def __enter__(self) -> Self:
        self._progress.start()
        self._watcher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._done.set()
        self._watcher.join()
        if kind is None:
            self._finish()
        self._progress.stop()
