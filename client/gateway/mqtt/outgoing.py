"""Messages of quality 1 on their way to one client: a number each, until it is acknowledged.

    room for another ─▶ numbered ─▶ written ── PUBACK ─▶ the broker is told, the number is free, there is room again
                                        └── the connection ends: the number is kept, for when it is delivered again

At most `most` are written and not acknowledged. What was sent over an earlier connection and comes again has the number
that it had, as the standard asks; that was on its way belongs to its topic filter until something new comes for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contrada.broker.protocol.messages import NotificationId
    from contrada.client.notification import Notification

_NUMBERS: Final = 65_535
Sent = dict[tuple[str, "NotificationId"], int]
"""Numbers of what was sent and not acknowledged, by topic filter and notification."""


class Outgoing:
    """The numbers of one connection."""

    def __init__(self, before: Sent, most: int) -> None:
        self._before = dict(before)
        self._taken = set(self._before.values())
        self._waiting: dict[int, tuple[str, Notification]] = {}
        self._room = asyncio.Semaphore(most)
        self._last = 0

    async def number(self, pattern: str, notification: Notification) -> int:
        """Wait until one more may be sent; its number."""
        await self._room.acquire()
        number = self._before.pop((pattern, notification.id), 0)
        if not number:
            if not notification.redelivered:
                self._forget_before(pattern)
            number = self._free()
        self._waiting[number] = pattern, notification
        return number

    def acknowledge(self, number: int) -> None:
        """The client has what was sent under a number. A number that stands for nothing is passed over."""
        _, notification = self._waiting.pop(number, (None, None))
        if notification is not None:
            self._taken.discard(number)
            self._room.release()
            notification.ack()

    def interrupt(self, pattern: str) -> None:
        """A subscription is closed, for now or for good: what was sent for it will be delivered again, or never."""
        for number in [number for number, (of, _) in self._waiting.items() if of == pattern]:
            _, notification = self._waiting.pop(number)
            self._before[pattern, notification.id] = number
            self._room.release()

    def forget(self, pattern: str) -> None:
        """A subscription is over: nothing of it is waited for."""
        self.interrupt(pattern)
        self._forget_before(pattern)

    def sent(self) -> Sent:
        """What was sent and not acknowledged."""
        return self._before | {(pattern, each.id): number for number, (pattern, each) in self._waiting.items()}

    def _forget_before(self, pattern: str) -> None:
        for key in [key for key in self._before if key[0] == pattern]:
            self._taken.discard(self._before.pop(key))

    def _free(self) -> int:
        while True:
            self._last = self._last % _NUMBERS + 1
            if self._last not in self._taken:
                self._taken.add(self._last)
                return self._last

    def _check(self) -> None:
        waiting, before = set(self._waiting), set(self._before.values())
        assert not waiting & before
        assert waiting | before == self._taken
