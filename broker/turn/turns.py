"""How long the turns of a broker's loop take, and what the longest of them did.

A turn is made of steps: messages, matching, sending. Steps may lie within one another (a SUBSCRIBE first has matched
what was published before it): each is charged its own time only, so that the one that is blamed is the one that took
it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Step(NamedTuple):
    """A part of a turn: the message's type, or what the loop did; the session it was done for, or 0."""

    seconds: float
    what: str
    session: int


class Worst(NamedTuple):
    """The longest turn so far, when it ended, and its longest step."""

    seconds: float
    at: float
    step: Step


_NOTHING = Step(0.0, "nothing", 0)


class Turns:
    """A stopwatch for the loop."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.worst = Worst(0.0, 0.0, _NOTHING)
        self.count = 0
        self.observe: Callable[[float], None] | None = None  # told of every turn
        self._clock = clock
        self._began = clock()
        self._longest = _NOTHING
        self._open: list[list[float]] = []  # of each step under way: when it began, and the time of those within it

    def begin(self) -> None:
        """A turn begins."""
        self._began = self._clock()
        self._longest = _NOTHING
        self._open.clear()

    def enter(self) -> None:
        """A step begins."""
        self._open.append([self._clock(), 0.0])

    def leave(self, what: str, session: int = 0) -> None:
        """The step that began last is over."""
        began, within = self._open.pop()
        took = self._clock() - began
        if self._open:
            self._open[-1][1] += took
        if took - within > self._longest.seconds:
            self._longest = Step(took - within, what, session)

    def end(self, now: float) -> None:
        """The turn is over."""
        took = self._clock() - self._began
        self.count += 1
        if self.observe is not None:
            self.observe(took)
        if took > self.worst.seconds:
            self.worst = Worst(took, now, self._longest)

    def document(self, now: float) -> dict[str, Any]:
        """What STATUS says of it."""
        worst = self.worst
        return {
            "count": self.count,
            "worst": worst.seconds,
            "worst_ago": now - worst.at if self.count else 0.0,
            "worst_step": worst.step.what,
            "worst_step_seconds": worst.step.seconds,
            "worst_session": worst.step.session,
        }
