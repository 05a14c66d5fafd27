"""Messages of connections without a session: a few are heard in each turn, the others wait for later ones.

ZeroMQ takes from all connections in turn, so that who comes by the hundred, only greets or sends what is no message
would make everybody else wait for as many answers. Putting a message aside costs next to nothing: those who have a
session are heard at once, and strangers in the order in which they came.

    hears_now ─▶ heard at once, `at_once` in a turn
        └─ no ─▶ put ─▶ … ─▶ take, in a later turn

What a connection says waits behind what it said before, also when that has made it a session meanwhile.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_BYTES: Final = 4 << 20  # that wait: beyond, the oldest are heard whatever the turn
_EACH: Final = 256  # bytes that a message takes beside its own


class Said(NamedTuple):
    """A message that waits; without frames, one of a connection that is to be turned away."""

    connection: bytes
    user: str | None
    frames: Sequence[bytes] | None


class Strangers:
    """What strangers have said and nobody has heard yet."""

    __slots__ = ("_bytes", "_left", "_waiting", "at_once", "connections")

    def __init__(self, at_once: int = sys.maxsize) -> None:
        self.at_once = at_once  # messages in a turn
        self.connections: Counter[bytes] = Counter()  # how many messages of each wait
        self._left = at_once
        self._waiting: deque[Said] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def overflow(self) -> bool:
        """Whether too much waits."""
        return self._bytes > _BYTES

    def hears_now(self) -> bool:
        """Whether a stranger's message may be heard at once; if so, it counts for this turn."""
        if self._waiting or self._left <= 0:
            return False
        self._left -= 1
        return True

    def put(self, said: Said) -> None:
        """Let a message wait."""
        self._waiting.append(said)
        self.connections[said.connection] += 1
        self._bytes += _size(said)

    def begin_turn(self) -> None:
        """A turn begins: some may be heard again."""
        self._left = self.at_once

    def next(self) -> Said | None:
        """The message that has waited longest, if it may be heard in this turn."""
        if not self._waiting or self._left <= 0:
            return None
        self._left -= 1
        return self.take()

    def take(self) -> Said:
        """The message that has waited longest."""
        said = self._waiting.popleft()
        self.connections[said.connection] -= 1
        if not self.connections[said.connection]:
            del self.connections[said.connection]
        self._bytes -= _size(said)
        return said

    def _check(self) -> None:
        assert self.connections == Counter(said.connection for said in self._waiting)
        assert self._bytes == sum(map(_size, self._waiting))


def _size(said: Said) -> int:
    return _EACH + sum(map(len, said.frames or ()))
