"""What waits until a neighbour has it on its own disk: a durable subscription whose client is another broker.

Its filters are what the neighbour wants durably (the router's durable flow). They change while it lives, and stay in
the table while the link is down. What is published durably here, or carried here by another neighbour, and matches, is
in the queue until the neighbour says CARRIED. It is sent in rounds: one that the neighbour declines is begun again from
the oldest that is not carried, after a pause, so that order is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.broker.protocol.messages import Keep
from contrada.broker.protocol.wire import Full
from contrada.broker.stored.rows import Row
from contrada.broker.stored.subscription import RESTATED, DurableSubscription

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.broker.stored.limits import DurableLimits
    from contrada.broker.stored.rows import RowOf

WINDOW: Final = 4096  # notifications that are carried and not yet on the neighbour's disk
_FIRST_PAUSE: Final = 0.25  # seconds after a round was declined, doubled each time
_LONGEST_PAUSE: Final = 8.0


class LinkCursor(DurableSubscription):
    """The state of one neighbour's custody. `name` is the neighbour's id."""

    def __init__(self, number: int, neighbour: str, limits: DurableLimits) -> None:
        keep = Keep(limits.notifications, Full.REFUSE, limits.bytes, Full.REFUSE, limits.abandoned, Full.DROP_OLDEST, 1)
        super().__init__(number, neighbour, "", (), "", keep)
        self.window = WINDOW
        self.wanted: dict[bytes, bytes] = {}  # its filters, by their keys
        self.wanted_ids: dict[bytes, list[int]] = {}  # the table's ids of each
        self.plain_interface = 0  # of what is forwarded to the neighbour without custody
        self.round = 1
        self.resumes_at = 0.0  # when the next round may begin
        self._pause = _FIRST_PAUSE

    @property
    def title(self) -> str:
        """What it is called in reasons."""
        return f"the link to {self.name!r}"

    def declined(self, now: float) -> None:
        """The neighbour takes nothing more of this round."""
        self.round += 1
        self.resumes_at = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self.queue.rewind()

    def carried(self, first: int, last: int) -> int:
        """The neighbour has these; how many that were."""
        self._pause = _FIRST_PAUSE
        return self.acknowledge(first, last)

    @property
    def subscribed(self) -> RowOf:
        """The row that makes it, or restates it."""
        left = self.left if self.left is not None else -1.0
        return (Row.LINKED, self.number, self.name, tuple(self.wanted.values()), self.dropped, left)

    def restated(self) -> Iterator[RowOf]:
        """Rows that say everything about it."""
        yield self.subscribed
        for packed in self.queue.snapshot(RESTATED):
            yield (Row.WAITING, self.number, *packed)

    def _check(self) -> None:
        super()._check()
        assert self.wanted.keys() == self.wanted_ids.keys() or not self.interface
