"""What one token may have of a gateway, so that something is left for the others. No I/O.

Who comes without a token, where there are none, is everybody, and is not counted.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from contrada.client.gateway.problems import Problem
from contrada.client.gateway.tokens import STRANGER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.client.gateway.tokens import Visitor


class Shares:
    """How many of something each token has, and how many it may have at most."""

    def __init__(self, what: str, most: int) -> None:
        self._what = what
        self.most = most
        self._taken: Counter[str] = Counter()
        self._lock = Lock()  # long messages are read by other threads

    def take(self, visitor: Visitor, before: int = 0) -> None:
        """Count one more; a `Problem` if the token has its share. `before` were counted by somebody else."""
        if not visitor.name:
            return
        with self._lock:
            if self._taken[visitor.name] + before >= self.most:
                raise Problem("limit", f"the token of {visitor.name} has its {self.most} {self._what}")
            self._taken[visitor.name] += 1

    def give_back(self, visitor: Visitor) -> None:
        """Count one less."""
        if not visitor.name:
            return
        with self._lock:
            self._taken[visitor.name] -= 1
            if not self._taken[visitor.name]:
                del self._taken[visitor.name]

    @contextmanager
    def one(self, visitor: Visitor, before: int = 0) -> Iterator[None]:
        """Count one for as long as the block lasts."""
        self.take(visitor, before)
        try:
            yield
        finally:
            self.give_back(visitor)


class Share:
    """What one connection counts for: nobody, until it says by a token whose it is."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._visitor = STRANGER

    def move(self, visitor: Visitor) -> Visitor:
        """Count for another visitor from now on; a `Problem` if that one has its share."""
        if visitor.name != self._visitor.name:
            self._shares.take(visitor)
            self._shares.give_back(self._visitor)
        self._visitor = visitor
        return visitor

    def end(self) -> None:
        """The connection is over."""
        self.move(STRANGER)
