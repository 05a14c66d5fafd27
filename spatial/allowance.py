"""How much work searches on this thread may do before they give up.

Whoever must not be kept waiting says how much is allowed, and is told when that is used up instead of being answered:

    with allowed(10 * MILLISECOND):
        found = tree.search(region)        # or Exhausted

Work is counted in units of about a nanosecond, by what is looked at and not by the clock, so that the same search
always ends in the same way. Kernels are given `left()`, one number in an array of the thread's own: they take off what
the next step costs, and return what they have as soon as it is below 0; whoever called them then calls `check`. Without
`allowed` there is as much as anybody could use.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Left = NDArray[np.int64]

MILLISECOND: Final = 1_000_000  # in units
_ENDLESS: Final = 1 << 62


class Exhausted(Exception):
    """The work that was allowed is used up. No error of Contrada's: whoever allowed it is the one to know."""


class _Allowance(threading.local):
    def __init__(self) -> None:
        self.left: Left = np.array([_ENDLESS])


_mine: Any = _Allowance()


def left() -> Left:
    """What is left of this thread's allowance, for kernels to take from."""
    units: Left = _mine.left
    return units


def check(units: Left) -> None:
    """Raise if kernels have used up what was left."""
    if units[0] < 0:
        raise Exhausted


def spend(cost: int) -> None:
    """Take off what the next step costs, and raise if that is not left."""
    units: Left = _mine.left
    units[0] -= cost
    if units[0] < 0:
        raise Exhausted


@contextmanager
def allowed(units: int) -> Iterator[None]:
    """Within the block, allow so much on this thread; what was allowed around it is as before afterwards."""
    before = _mine.left
    _mine.left = np.array([min(units, _ENDLESS)])
    try:
        yield
    finally:
        _mine.left = before
