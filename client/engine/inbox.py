"""One subscription as the client keeps it: what has arrived and not been taken, and the credit that bounds it.

The subscriber grants the broker `window` credits. Each is in one of three places, and comes round again:

    at the broker ──DELIVER──▶ in `buffer` ──take──▶ `taken` ──CREDIT, in halves of the window──▶ at the broker

So `credit + len(buffer) + taken == window` while the subscription is live (`_check`), and the buffer never grows beyond
the window however slow the application is: the rest waits at the broker under the subscription's policy.

A broken connection takes the broker's credits with it. Restoring grants what the buffer leaves free; what was published
in between did not reach this subscription, and `interruptions` counts these gaps.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from contrada.broker.protocol.messages import Attach, Grant, NotificationId, Subscribe, Unsubscribe
from contrada.client.engine.kept_requests import KeptRequest, Stage
from contrada.errors import ProtocolError

if TYPE_CHECKING:
    from contrada.broker.protocol.messages import SubscribeDurable
    from contrada.broker.protocol.wire import Policy
    from contrada.client.notification import Notification
    from contrada.errors import ContradaError


class Inbox(KeptRequest):
    """The state of one subscription. Changed by the core only; the application reads and takes."""

    __slots__ = (
        "buffer",
        "credit",
        "dropped",
        "first",
        "handed",
        "interruptions",
        "known",
        "name",
        "policy",
        "queue",
        "taken",
        "window",
    )

    def __init__(self, id: int, wanted: tuple[bytes, ...] | str, policy: Policy, window: int, queue: int) -> None:
        super().__init__(id, () if isinstance(wanted, str) else wanted)
        self.name = wanted if isinstance(wanted, str) else None  # of the standing interface that it is attached to
        self.known = True  # whether the broker's index has that name, or had it when it was attached
        self.first = NotificationId("", 0)  # the broker's next when it took this up: what is before it is a last value
        self.policy = policy
        self.window = window
        self.queue = queue
        self.buffer: deque[Notification] = deque()
        self.credit = 0
        self.taken = 0
        self.dropped = 0  # lost to `drop-oldest`, as the broker reported
        self.interruptions = 0
        self.handed = 0  # the position of what the application has, if it is acknowledged when it asks for more

    def request(self, number: int) -> Subscribe | Attach | SubscribeDurable:
        """Make the SUBSCRIBE or ATTACH that makes or restores it, with what credit the buffer leaves free."""
        self.credit = self.window - len(self.buffer)
        self.taken = 0
        if self.name is not None:
            return Attach(number, self.id, self.name, self.policy, self.credit, self.queue)
        return Subscribe(number, self.id, self.filters, self.policy, self.credit, self.queue)

    def withdrawal(self, number: int) -> Unsubscribe:
        """Make the UNSUBSCRIBE. Deliveries may still arrive before its answer."""
        return Unsubscribe(number, self.id)

    def deliver(self, notification: Notification) -> None:
        """Take in a delivery."""
        if self.credit < 1:
            raise ProtocolError(f"the broker sent more notifications to subscription {self.id} than it had credit for")
        self.credit -= 1
        self.buffer.append(notification)

    def take(self) -> tuple[Notification, Grant | None]:
        """Take the oldest notification, and the credit to send back if half a window has been taken."""
        notification = self.buffer.popleft()
        if self.stage in (Stage.LEAVING, Stage.ENDED):
            return notification, None
        self.taken += 1
        return notification, self.grant()

    def grant(self) -> Grant | None:
        """Give back credit for what was taken since the last grant, once half a window, and the broker knows us."""
        if self.stage is not Stage.LIVE or 2 * self.taken < self.window:
            return None
        grant = Grant(self.id, self.taken)
        self.credit += self.taken
        self.taken = 0
        return grant

    def interrupt(self) -> None:
        """Note that the connection is gone, and with it the broker's side of this."""
        if self.stage is Stage.LIVE:
            self.interruptions += 1
        super().interrupt()
        self.credit = self.taken = 0

    def end(self, error: ContradaError | None) -> None:
        """Note that nothing more will arrive. What is buffered can still be taken."""
        super().end(error)
        self.credit = self.taken = 0

    def _check(self) -> None:
        assert len(self.buffer) <= self.window
        if self.stage is Stage.LIVE:
            assert self.credit + len(self.buffer) + self.taken == self.window
            assert 2 * self.taken < self.window
        if self.stage is Stage.ENDED:
            assert self.credit == self.taken == 0
