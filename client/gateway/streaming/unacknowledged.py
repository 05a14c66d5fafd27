"""What a page was sent of a durable subscription and has not acknowledged, in the order in which it was sent.

sent ─▶ kept here, at most `most` ── acknowledged by its id, alone or with all before it ─▶ the broker is told
└─ the page leaves: the broker delivers it again to who asks for the name next
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contrada.client.notification import Notification


class Unacknowledged:
    """The notifications of one durable subscription that a page has and has not acknowledged."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sent: dict[str, Notification] = {}
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._sent)

    async def room(self) -> None:
        """Wait until more may be sent."""
        await self._room.wait()

    def add(self, batch: Iterable[Notification]) -> None:
        """These were sent."""
        self._sent.update({str(each.id): each for each in batch})
        self._look()

    def acknowledge(self, ids: Iterable[str]) -> int:
        """These need not be delivered again; how many of them were known."""
        known = 0
        for id in ids:
            if (found := self._sent.pop(id, None)) is not None:
                found.ack()
                known += 1
        self._look()
        return known

    def acknowledge_up_to(self, id: str) -> int:
        """Neither this nor what was sent before it need be delivered again; how many that were."""
        if id not in self._sent:
            return 0
        known = 0
        for each in list(self._sent):
            found = self._sent.pop(each)
            known += 1
            if each == id:
                found.ack(run=True)
                break
        self._look()
        return known

    def _look(self) -> None:
        if len(self._sent) < self._most:
            self._room.set()
        else:
            self._room.clear()
