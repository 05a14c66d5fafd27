"""Many readers or one writer. Kernels run without the GIL, so the GIL does not keep them apart."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class ReadersWriter:
    """Readers share; a writer is alone, and a waiting writer goes before new readers. Not reentrant."""

    def __init__(self) -> None:
        self._turn = threading.Lock()  # held while entering, and by a writer until it is done
        self._counting = threading.Lock()
        self._quiet = threading.Condition(self._counting)
        self._entered = 0  # guarded by the turn
        self._left = 0  # guarded by the other lock: a reader takes one each way
        self._waits = False  # likewise: whether a writer waits for readers to leave
        self.writes = 0  # how often somebody has begun to write

    def enter(self) -> None:
        """Begin reading."""
        with self._turn:
            self._entered += 1

    def leave(self) -> None:
        """Stop reading."""
        with self._counting:
            self._left += 1
            if self._waits:
                self._quiet.notify()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read inside the block."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def try_write(self) -> bool:
        """Begin writing if nobody reads or writes, and end it by `written`; whether it has begun."""
        if not self._turn.acquire(blocking=False):
            return False
        with self._counting:
            if self._left == self._entered:
                self.writes += 1
                return True
        self._turn.release()
        return False

    def written(self) -> None:
        """Stop writing, after `try_write`."""
        self._turn.release()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write inside the block."""
        with self._turn:
            with self._counting:
                self._waits = True
                while self._left < self._entered:
                    self._quiet.wait()
                self._waits = False
            self.writes += 1
            yield
