"""Work left over for later turns: what takes long and nobody waits for, done a little at a time.

A client that leaves may have had a million filters. It gets nothing more from the moment it is gone; its filters leave
the table over as many turns as it takes, in the order in which they were put here.

    put(function, items)   function(item) for each of the items, some time
    go_through(steps)      each step of a generator, some time
    work()                 for some of them, now: at most `most`, and no new one after `seconds`, but always one

An item that raises is reported and passed over: the others get their turn.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST: Final = 256
_END: Final = object()


class _Task(NamedTuple):
    function: Callable[[Any], object]
    items: Iterator[Any]
    done: Callable[[], None] | None


class Leftovers:
    """A queue of tasks, worked off by pieces."""

    def __init__(
        self,
        report: Callable[[Exception], None],
        *,
        most: int = MOST,
        seconds: float = math.inf,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.most = most
        self.seconds = seconds
        self._report = report
        self._clock = clock
        self._tasks: deque[_Task] = deque()

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def put(
        self, function: Callable[[Any], object], items: Iterable[Any], done: Callable[[], None] | None = None
    ) -> None:
        """Have `function` called for each item, and `done` behind the last one."""
        self._tasks.append(_Task(function, iter(items), done))

    def go_through(self, steps: Iterable[None], done: Callable[[], None] | None = None) -> None:
        """Have every step of a generator done, and `done` behind the last one; steps that raise are over."""
        self.put(_step_done, steps, done)

    def work(self) -> None:
        """Do some of it."""
        if not self._tasks:
            return
        until = self._clock() + self.seconds
        left = self.most
        while self._tasks and left > 0:
            function, items, done = self._tasks[0]
            try:
                item = next(items, _END)
                if item is not _END:
                    function(item)
                    left -= 1
                else:
                    self._tasks.popleft()
                    if done is not None:
                        done()
            except Exception as error:
                self._report(error)
            if self._clock() >= until:
                return


def _step_done(_step: None) -> None:
    """It was done when the generator yielded."""
