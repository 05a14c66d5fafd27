"""What the stages of a job cost: rows, bytes, seconds, tasks, skew, shuffled and spilled bytes.

    meter = Meter(session)
    with meter.stage("reading") as cost:
        ...                                 # Spark's jobs in here are this stage's
        cost.rows, cost.bytes = read, size

Rows and bytes are what the job has counted itself, since tasks read files by themselves; the rest is what Spark's own
accounts say of the tasks that were started meanwhile. `skew` is the longest task over the median one, of the Spark
stage where that is largest. Without a session there are seconds alone. The group of Spark's jobs, which a program may
have set, is put back afterwards.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_GROUP: Final = "spark.jobGroup.id"
_DESCRIPTION: Final = "spark.job.description"
_ENOUGH: Final = 3  # tasks of a stage from which on a median says something


@dataclass(slots=True)
class StageCost:
    """What a stage took."""

    stage: str
    seconds: float = 0.0
    rows: int = 0
    bytes: int = 0
    tasks: int = 0
    task_seconds: float = 0.0  # of all tasks together
    skew: float = 1.0
    shuffled_bytes: int = 0
    spilled_bytes: int = 0

    @property
    def rows_per_second(self) -> float:
        """How quick it was."""
        return round(self.rows / self.seconds, 1) if self.seconds else 0.0


@dataclass(slots=True)
class Meter:
    """The stages of a job, in their order."""

    session: SparkSession | None = None
    stages: list[StageCost] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[StageCost]:
        """Measure what is done meanwhile."""
        cost = StageCost(name)
        began = time.monotonic()
        if self.session is None:
            yield cost
        else:
            with _grouped(self.session, name) as group:
                yield cost
            _account(self.session, group, cost)
        cost.seconds = round(time.monotonic() - began, 3)
        self.stages.append(cost)

    def as_list(self) -> list[dict[str, Any]]:
        """As JSON has it."""
        return [asdict(each) | {"rows_per_second": each.rows_per_second} for each in self.stages]


@contextmanager
def _grouped(session: SparkSession, name: str) -> Iterator[str]:
    """Spark's jobs of this thread in a group of their own."""
    context = session.sparkContext
    before = [(key, context.getLocalProperty(key)) for key in (_GROUP, _DESCRIPTION)]
    group = f"contrada-{uuid4().hex}"
    context.setLocalProperty(_GROUP, group)
    context.setLocalProperty(_DESCRIPTION, f"contrada: {name}")
    try:
        yield group
    finally:
        for key, value in before:
            context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None takes it away


def _account(session: SparkSession, group: str, cost: StageCost) -> None:
    """Add what Spark says of the tasks of a group."""
    context = session.sparkContext
    tracker = context.statusTracker()
    store = context._jsc.sc().statusStore()
    quantiles = context._gateway.new_array(context._jvm.double, 2)  # type: ignore[union-attr]  # a session has both
    quantiles[0], quantiles[1] = 0.5, 1.0
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
    numbers = sorted({stage for job in jobs if job is not None for stage in job.stageIds})
    for number in numbers:
        data = _told_of(store, number)
        if data is None or not data.numCompleteTasks():
            continue  # Spark had its result already
        cost.tasks += int(data.numCompleteTasks())
        cost.task_seconds = round(cost.task_seconds + data.executorRunTime() / 1000, 3)
        cost.shuffled_bytes += int(data.shuffleWriteBytes())
        cost.spilled_bytes += int(data.diskBytesSpilled())
        summary = store.taskSummary(number, data.attemptId(), quantiles)
        if summary.isDefined() and data.numCompleteTasks() >= _ENOUGH:
            median, longest = (float(summary.get().executorRunTime().apply(n)) for n in (0, 1))
            cost.skew = max(cost.skew, round(longest / max(median, 1.0), 2))


def _told_of(store: Any, number: int) -> Any | None:
    """What Spark has on a stage; None where it has nothing: its accounts are late and bounded, and fail no job."""
    from py4j.protocol import Py4JJavaError

    try:
        return store.lastStageAttempt(number)
    except Py4JJavaError:
        return None
