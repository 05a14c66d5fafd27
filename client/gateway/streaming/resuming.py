"""Durable streams over HTTP: what was written is acknowledged a little later, and `Last-Event-ID` says what arrived.

Server-Sent Events tell the sender nothing. So what is written stays unacknowledged at the broker for `LAG` seconds,
time enough for a connection to be found broken; a subscriber that comes back gets it again, and with the id of the last
event that it has (browsers send `Last-Event-ID` by themselves) only what is behind that. No I/O.

    arrived     what came from the broker → what to write: until the last event is found among what is delivered again,
                those are held back; if it is not among them, it was acknowledged long ago, and all of them are written
    written     what was written; those written `LAG` ago are acknowledged
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.client.notification import Notification

LAG: Final = 10.0
SEARCH: Final = 1.0  # seconds without news after which the last event is not looked for any more
_WITHHELD: Final = 10_000  # notifications that are held back at most


class Resuming:
    """The acknowledgements of one durable stream."""

    def __init__(self, last_event: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_event = last_event
        self._withheld: list[Notification] = []
        self._written: deque[tuple[float, Notification]] = deque()

    @property
    def searching(self) -> bool:
        """Whether the last event of the subscriber may still be among what comes."""
        return bool(self._last_event)

    def arrived(self, batch: Sequence[Notification]) -> list[Notification]:
        """What to write of what has come; an empty batch says that nothing came for a while."""
        if not self._last_event:
            return list(batch)
        if not batch:
            return self._give_up()
        for number, each in enumerate(batch):
            if str(each.id) == self._last_event:
                each.ack(run=True)
                self._withheld, self._last_event = [], ""
                return list(batch[number + 1 :])
            if not each.redelivered or len(self._withheld) >= _WITHHELD:
                return [*self._give_up(), *batch[number:]]
            self._withheld.append(each)
        return []

    def _give_up(self) -> list[Notification]:
        withheld, self._withheld, self._last_event = self._withheld, [], ""
        return withheld

    def written(self, batch: Sequence[Notification]) -> None:
        """Take note of what was written, and acknowledge what was written long enough ago."""
        now = self._clock()
        self._written.extend([(now, each) for each in batch])
        newest: Notification | None = None
        while self._written and self._written[0][0] <= now - LAG:
            newest = self._written.popleft()[1]
        if newest is not None:
            newest.ack(run=True)
