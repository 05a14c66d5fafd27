"""What the commands that run on Spark share: the session, its options, and progress on the terminal."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.client.commands.common import say
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

Master = Annotated[
    str | None, typer.Option("--master", help="Spark's master; this machine (local[*]), or what spark-submit says.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]

_REFRESH = 0.5


class JobFailed(ContradaError):
    """Spark gave up on a job. The message is its reason, in a few lines."""


@contextmanager
def spark_session(name: str, master: str | None) -> Iterator[SparkSession]:
    """The session of a command. Without the extra or Java, and when Spark fails, a `ContradaError` says why."""
    from contrada.spark_jobs.session import open_session

    session = open_session(f"contrada {name}", master)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield session
    except (PySparkException, Py4JError) as error:
        raise JobFailed(f"{name} failed on Spark, and nothing was changed: {_reason(error)}") from error
    finally:
        session.stop()


def _reason(error: Exception) -> str:
    """What went wrong, without the JVM's stack: the first line, and that of the Python error inside if there is one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("contrada.errors.")]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return "; ".join(dict.fromkeys([*(lines[:1] or [type(error).__name__]), *causes[-1:], *ours[-1:]]))[:1000]


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
