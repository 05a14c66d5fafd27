"""Errors that should not have been raised: counted, logged with their traceback, and kept from everybody else."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

log = logging.getLogger("contrada.broker")

_TRACEBACKS: Final = 16  # logged between two ticks: more are only counted


class Mishap(ContradaError):
    """What the broker says of a message on which it failed: a mistake of the broker's, or of what it is built on."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"the broker failed on it ({type(error).__name__}): its log says how; please report it")


class Mishaps:
    """Counts them as `internal_errors`."""

    def __init__(self, counters: Counter[str]) -> None:
        self._counters = counters
        self._tracebacks = 0

    def note(self, doing: str, error: Exception, session: int | None = None) -> None:
        """Something raised while the broker was doing this, for the session of that number."""
        self._counters["internal_errors"] += 1
        self._tracebacks += 1
        if self._tracebacks <= _TRACEBACKS:
            log.error("internal error", extra={"doing": doing, "session": session}, exc_info=error)

    def attempt(self, doing: str, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function; what it raises is noted, and goes no further."""
        try:
            function(*arguments)
        except Exception as error:
            self.note(doing, error)

    def tick(self) -> None:
        """Tracebacks are logged again."""
        self._tracebacks = 0
