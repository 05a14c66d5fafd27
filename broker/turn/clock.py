"""The time of the turn, which all parts of a broker share."""

from __future__ import annotations


class Clock:
    """`now` is whatever monotonic number the loop passes in; only the core sets it."""

    __slots__ = ("now",)

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
