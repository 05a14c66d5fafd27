"""Threads beside the broker's loop, for what takes so long that nobody should wait for it.

A job runs on a thread; what is to be done with its result waits until the loop collects it, so that only the loop's
thread ever touches the broker.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    Job = Callable[[], None]

log = logging.getLogger("contrada.broker")

_GRACE: Final = 0.2  # seconds for the threads to end, if they are idle


class Worker:
    """Threads that do what they are asked to, in order. What a job raises is logged, and `done` not called."""

    def __init__(self, name: str, wake: Callable[[], None], threads: int = 1) -> None:
        self._name = name
        self._wake = wake  # the loop: something is to be collected
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._wanted: queue.SimpleQueue[tuple[Job, Job] | None] = queue.SimpleQueue()
        self._done: deque[Job] = deque()

    def ask(self, job: Job, done: Job) -> None:
        """Have a job done by a thread, and `done` called by `collect` afterwards."""
        if len(self._threads) < self._most:
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._wanted.put((job, done))

    def collect(self) -> None:
        """Go on with what is done; on the loop's thread."""
        while self._done:
            self._done.popleft()()

    def close(self) -> None:
        """Do nothing more. What is being done comes too late, and is not waited for."""
        for _ in self._threads:
            self._wanted.put(None)
        for thread in self._threads:
            thread.join(_GRACE)
        self._threads.clear()

    def finish(self) -> None:
        """Do what was asked for, to its end, and nothing more."""
        for _ in self._threads:
            self._wanted.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _work(self) -> None:
        while (asked := self._wanted.get()) is not None:
            job, done = asked
            try:
                job()
            except Exception as error:
                log.error("internal error", extra={"doing": self._name, "session": None}, exc_info=error)
                continue
            self._done.append(done)
            self._wake()
