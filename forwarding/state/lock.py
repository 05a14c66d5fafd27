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
        self._quiet = threading.Condition(threading.Lock())
        self._entered = 0  # guarded by the turn
        self._left = 0  # guarded by the condition: a reader takes one lock each way

    def enter(self) -> None:
        """Begin reading."""
        with self._turn:
            self._entered += 1

    def leave(self) -> None:
        """Stop reading."""
        with self._quiet:
            self._left += 1
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
        with self._quiet:
            if self._left == self._entered:
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
            with self._quiet:
                while self._left < self._entered:
                    self._quiet.wait()
            yield
