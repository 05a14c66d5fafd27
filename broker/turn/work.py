"""Work for one client that takes longer than a turn should: a step at a time, and in order for each client.

A handler of a message that may take long returns its steps, a generator:

    yield                 others may have their turn; go on when there is time
    yield LATER           go on in the next turn
    yield function        have it computed by another thread, and go on with what it returns or raises

Whatever its client says meanwhile waits (`postpone`) and is heard in order afterwards, a message at each step. Clients
take turns: one that has much to do delays its own messages, and nobody else's. Steps that are not taken any more,
because the client has gone, are closed.

Work knows neither sessions nor messages: it is given a key for each client, and functions that do the rest.
"""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable
    from contextlib import AbstractContextManager

    Steps = Generator[Any, Any, None]

LATER: Final = object()
"""What steps yield that wait for something that only another turn brings."""


class Task:
    """What is under way for one client: steps, and messages that wait behind them."""

    __slots__ = ("error", "message", "postponed", "result", "size", "steps", "waits")

    def __init__(self) -> None:
        self.steps: Steps | None = None
        self.message: Any = None  # that the steps are of
        self.postponed: deque[tuple[Any, int]] = deque()
        self.size = 0  # of the postponed messages
        self.waits = False  # for another thread
        self.result: Any = None
        self.error: Exception | None = None


class Work:
    """The work under way, by client.

    `hear(key, message)` hears a postponed message, and returns steps or None. `fail(key, message, error)` is told of
    what steps raise. `step(key, message)` is around every step of `work`. `beside(job, done)`, if there is one, has a
    job done by another thread; else it is done at once.
    """

    def __init__(
        self,
        hear: Callable[[Any, Any], Steps | None],
        fail: Callable[[Any, Any, Exception], None],
        *,
        step: Callable[[Any, Any], AbstractContextManager[None]] = lambda _key, _message: nullcontext(),
        seconds: float = math.inf,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.seconds = seconds  # of one call of `work`
        self.beside: Callable[[Callable[[], None], Callable[[], None]], None] | None = None
        self._hear = hear
        self._fail = fail
        self._around = step
        self._clock = clock
        self.tasks: dict[Hashable, Task] = {}
        self._current: Task | None = None  # whose step is being taken
        self._ready: deque[Hashable] = deque()  # those that wait for nothing but time

    def __bool__(self) -> bool:
        """Whether a step could be taken now."""
        return bool(self._ready)

    def start(self, key: Hashable, message: Any, steps: Steps) -> None:
        """Take the first step of a client's work, and the others when there is time. The client has none under way."""
        task = self.tasks.setdefault(key, Task())
        task.steps, task.message = steps, message
        self._ready.append(key)
        self._step(key, task)

    def postpone(self, key: Hashable, message: Any, size: int) -> int:
        """Let a message wait for the work that is under way; the bytes that wait now."""
        task = self.tasks[key]
        task.postponed.append((message, size))
        task.size += size
        return task.size

    def cancel(self, key: Hashable) -> None:
        """The client is gone: close its steps and forget its messages."""
        task = self.tasks.pop(key, None)
        if task is not None:
            if key in self._ready:
                self._ready.remove(key)
            if task.steps is not None and task is not self._current:  # else it is closed when it has taken its step
                task.steps.close()

    def work(self) -> None:
        """Take steps, each client's in turn, until there is none to take or the time is over; but always one."""
        if not self._ready:
            return
        until = self._clock() + self.seconds
        later: list[Hashable] = []
        while self._ready:
            key = self._ready[0]
            self._ready.rotate(-1)
            task = self.tasks[key]
            with self._around(key, task.message if task.steps is not None else task.postponed[0][0]):
                asked = self._step(key, task)
            if asked is LATER and key in self.tasks:
                self._ready.remove(key)
                later.append(key)
            if self._clock() >= until:
                break
        self._ready.extend(key for key in later if key in self.tasks)

    def _step(self, key: Hashable, task: Task) -> Any:
        """Go on with a client's work, or hear the next message that it waits with; what the steps asked for."""
        asked = None
        self._current = task
        try:
            if task.steps is None:
                task.message, size = task.postponed.popleft()
                task.size -= size
                task.steps = self._hear(key, task.message)
            elif task.error is not None:
                error, task.error = task.error, None
                asked = task.steps.throw(error)
            else:
                result, task.result = task.result, None
                asked = task.steps.send(result)
        except StopIteration:
            task.steps = None
        except Exception as error:
            task.steps = None
            self._fail(key, task.message, error)
        finally:
            self._current = None
        if self.tasks.get(key) is not task:  # it ended the client
            if task.steps is not None:
                task.steps.close()
            return None
        if task.steps is None and not task.postponed:
            del self.tasks[key]
            self._ready.remove(key)
        elif callable(asked):
            self._compute(key, task, asked)
        return asked

    def _compute(self, key: Hashable, task: Task, function: Callable[[], Any]) -> None:
        """Have something computed for a client."""

        def job() -> None:
            try:
                task.result = function()
            except Exception as error:
                task.error = error

        if self.beside is None:
            job()
            return
        task.waits = True
        self._ready.remove(key)
        self.beside(job, partial(self._computed, key, task))

    def _computed(self, key: Hashable, task: Task) -> None:
        task.waits = False
        if self.tasks.get(key) is task:
            self._ready.append(key)

    def _check(self) -> None:
        assert set(self._ready) == {key for key, task in self.tasks.items() if not task.waits}
        for task in self.tasks.values():
            assert task.steps is not None or task.postponed
            assert task.size == sum(size for _, size in task.postponed)
