"""The bars of a job on a terminal: one for each step, with the tasks of Spark's stages."""

from __future__ import annotations

import io
from typing import NamedTuple

import pytest

pytest.importorskip("rich")
from rich.console import Console

from contrada.client.cli.jobs.spark import StageBars


class Stage(NamedTuple):
    numCompletedTasks: int  # noqa: N815  # as Spark has it
    numTasks: int  # noqa: N815  # as Spark has it


class Tracker:
    def __init__(self) -> None:
        self.stages: dict[int, Stage] = {}

    def getActiveStageIds(self) -> list[int]:  # noqa: N802  # as Spark has it
        return list(self.stages)

    def getStageInfo(self, number: int) -> Stage | None:  # noqa: N802  # as Spark has it
        return self.stages.get(number)


def test_a_step_counts_the_tasks_of_its_stages() -> None:
    tracker, text = Tracker(), io.StringIO()
    bars = StageBars(tracker, Console(file=text, force_terminal=True, width=120))
    with bars:
        bars.tell("reading")
        tracker.stages = {1: Stage(2, 8)}
        bars.look()
        tracker.stages = {2: Stage(1, 4)}  # the first is over
        bars.look()
        (reading,) = bars._progress.tasks
        assert (reading.description, reading.completed, reading.total) == ("reading", 9, 12)
        bars.tell("building")
        tracker.stages = {3: Stage(0, 5)}
        bars.look()
        building = bars._progress.tasks[1]
        assert (building.completed, building.total, reading.finished) == (0, 5, True)
    assert all(task.finished for task in bars._progress.tasks)
    assert "9 of 12 tasks" in text.getvalue()


def _fail(bars: StageBars) -> None:
    bars.tell("reading")
    raise ZeroDivisionError


def test_a_step_that_failed_is_not_done() -> None:
    bars = StageBars(Tracker(), Console(file=io.StringIO(), force_terminal=True, width=120))
    with pytest.raises(ZeroDivisionError), bars:
        _fail(bars)
    assert not bars._progress.tasks[0].finished
