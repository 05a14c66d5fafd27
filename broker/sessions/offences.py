"""Bad frames and what they cost: an answer each, and after too many of them a while without answers.

`_strikes` and `_banned` remember connections, oldest first, and never more than `most`.
"""

from __future__ import annotations


class Offences:
    """Counts the bad frames of each connection, and bans those with too many."""

    def __init__(self, allowed: int, ban: float, most: int) -> None:
        self._allowed = allowed
        self._ban = ban
        self._most = most
        self._strikes: dict[bytes, int] = {}
        self._banned: dict[bytes, float] = {}

    def strike(self, connection: bytes, now: float) -> int:
        """Note a bad frame; how many it makes when that is too many, so that the connection is now banned, else 0."""
        strikes = self._strikes.pop(connection, 0) + 1
        if strikes < self._allowed:
            self._strikes[connection] = strikes
            _forget_oldest(self._strikes, self._most)
            return 0
        self._banned[connection] = now + self._ban
        _forget_oldest(self._banned, self._most)
        return strikes

    def is_banned(self, connection: bytes, now: float) -> bool:
        """Whether a connection's messages are to be ignored."""
        return bool(self._banned) and now < self._banned.get(connection, now)

    def expire(self, now: float) -> None:
        """Let go of those whose time is over."""
        for connection in [c for c, until in self._banned.items() if until <= now]:
            del self._banned[connection]


def _forget_oldest(table: dict[bytes, int] | dict[bytes, float], most: int) -> None:
    while len(table) > most:
        del table[next(iter(table))]
