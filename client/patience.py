"""How long a call may still wait: its `timeout`, counted from when it was made, or for ever."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

_T = TypeVar("_T")


class Patience:
    """What is left of a timeout, however many waits it is spent on."""

    __slots__ = ("_end", "_timeout")

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    @property
    def left(self) -> float | None:
        """Seconds; None: for ever."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def error(self, url: str) -> TimeoutError:
        """Make the error that says that it is over."""
        return TimeoutError(f"{url}: no answer in {self._timeout or 0.0:g} s")


FOREVER: Final = Patience(None)


async def in_time(waiting: Awaitable[_T], timeout: float | None, url: str) -> _T:
    """Await in an event loop, no longer than `timeout`; what waits is cancelled when that is over."""
    if timeout is None:
        return await waiting
    try:
        async with asyncio.timeout(timeout):
            return await waiting
    except TimeoutError:
        raise Patience(timeout).error(url) from None
