"""A durable subscription as the client keeps it: what has arrived, what is acknowledged, and what came twice.

    DELIVER_DURABLE ─▶ seen before? ─ no ─▶ `buffer` ─ take ─▶ the application ─ ack ─▶ `acknowledged` ─▶ ACKNOWLEDGE
                             └ yes: acknowledged then? acknowledge it again; else the application has it

The broker sends again what was not acknowledged before the connection broke; positions are the same then, and so an
acknowledgement that was made meanwhile still counts. One inbox never hands out an id twice, within the last `WINDOW`.

With a window of one there is no sending ahead: the next comes when this one is acknowledged, so that a process that
fails on one notification again and again does not use up the attempts of the next.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from contrada.broker.protocol.messages import Acknowledge, Acknowledgement, Keep, SubscribeDurable
from contrada.broker.protocol.wire import LIST_LENGTH, Policy
from contrada.client.engine.inbox import Inbox
from contrada.client.engine.kept_requests import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contrada.broker.protocol.messages import Grant, NotificationId, Since
    from contrada.client.notification import DurableNotification, Notification

WINDOW: Final = 16_384  # ids that are remembered


class DurableInbox(Inbox):
    """The state of one durable subscription. `acknowledged` are ranges of positions that the broker must hear of."""

    __slots__ = (
        "_seen",
        "acknowledged",
        "acknowledger",
        "auto",
        "durable",
        "keep",
        "number",
        "since",
        "unacknowledged",
    )

    def __init__(
        self,
        id: int,
        wanted: tuple[bytes, ...] | str,
        window: int,
        durable: str,
        since: Since,
        keep: Keep,
        *,
        auto: bool,
    ) -> None:
        super().__init__(id, wanted, Policy.BLOCK, window, 0)
        self.durable = durable
        self.since = since
        self.keep = keep
        self.auto = auto
        self.acknowledger: Callable[[int, bool], None] = lambda position, run: self.acknowledge(position, run=run)
        self.number = 0  # of the latest request that made or restored it
        self.acknowledged: list[tuple[int, int]] = []
        self.unacknowledged: dict[int, None] = {}  # positions that the application has, or will get
        self._seen: OrderedDict[NotificationId, None] = OrderedDict()

    def request(self, number: int) -> SubscribeDurable:
        """Make the SUBSCRIBE_DURABLE, with what credit the buffer leaves free."""
        self.number = number
        self.credit = self.window - len(self.buffer)
        self.taken = 0
        return SubscribeDurable(
            number, self.id, self.durable, self.filters, self.name or "", self.credit, self.since, self.keep
        )

    def receive(self, notification: DurableNotification) -> bool:
        """Take in a delivery; False if it is one that came before."""
        if notification.id not in self._seen:
            self._seen[notification.id] = None
            if len(self._seen) > WINDOW:
                self._seen.popitem(last=False)
            self.unacknowledged[notification.position] = None
            self.deliver(notification)
            return True
        self.deliver(notification)
        self.buffer.pop()
        if self.stage not in (Stage.LEAVING, Stage.ENDED):
            self.taken += 1
        if notification.position not in self.unacknowledged:
            self.acknowledged.append((notification.position, notification.position))
        return False

    def grant(self) -> Grant | None:
        """Give back credit, as ever; with a window of one, once what was taken is acknowledged."""
        return None if self.window == 1 and self.unacknowledged else super().grant()

    def hand(self, notification: Notification) -> None:
        """The application gets a notification, which it has done with when it asks for the next."""
        if self.auto:
            self.handed = notification.position  # type: ignore[attr-defined]  # only durable ones are in this buffer

    def acknowledge(self, position: int, *, run: bool) -> None:
        """The application is done with a notification, or with all up to it."""
        if not run:
            if position in self.unacknowledged:
                del self.unacknowledged[position]
                self.acknowledged.append((position, position))
            return
        for each in [each for each in self.unacknowledged if each <= position]:
            del self.unacknowledged[each]
        if self.acknowledged and self.acknowledged[-1][0] == 0 and self.acknowledged[-1][1] <= position:
            self.acknowledged.pop()
        self.acknowledged.append((0, position))

    def messages(self) -> Iterator[Acknowledge]:
        """What the broker must hear of what is acknowledged."""
        ranges, self.acknowledged = self.acknowledged, []
        for start in range(0, len(ranges), LIST_LENGTH):
            some = ranges[start : start + LIST_LENGTH]
            yield Acknowledge(tuple(Acknowledgement(self.id, first, last) for first, last in some))
