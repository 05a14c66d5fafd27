"""One client's session: what it is allowed, what it subscribes to, and what is on its way to it.

Outgoing traffic keeps its order through three stages:

    entries   (parcel, [subscription id, …]) of the DELIVER that is being filled
    unsent    encoded messages, oldest first; not empty after a flush means that the connection is congested
    acks      answered PUBLISHes, sent together behind everything else of a turn

While the connection is congested nothing more is taken from subscription queues, so that what a client does not read
stays where its policies can see it. No sockets and no clock: `flush` is given the function that sends.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

from contrada.broker.core.batch import PARCEL_BYTES, deliver_frames
from contrada.broker.protocol.frames import ack_frames, encode
from contrada.broker.protocol.messages import Drop, Dropped
from contrada.broker.protocol.wire import LIST_LENGTH, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contrada.broker.core.batch import Parcel
    from contrada.broker.core.subscription import Subscription
    from contrada.broker.overlay.neighbour import Neighbour
    from contrada.broker.protocol.messages import Message
    from contrada.forwarding.language.filter import Filter

_DRAIN_BYTES = 1 << 20  # taken from queues per turn, so that one backlog does not delay the others


class Sent(Enum):
    """What became of a message handed to the transport."""

    OK = "ok"
    FULL = "full"  # the connection's buffer is full: try again later
    GONE = "gone"  # no such connection any more


class Session:
    """The state of one open session."""

    __slots__ = (
        "acks",
        "advertisements",
        "bad_frames",
        "congested",
        "connection",
        "counted",
        "delivered",
        "dirty",
        "dropping",
        "entries",
        "entries_bytes",
        "entries_count",
        "filter_bytes",
        "heard",
        "held",
        "held_bytes",
        "join",
        "link",
        "may_publish",
        "name",
        "number",
        "open",
        "pinged",
        "published",
        "publisher",
        "roles",
        "subscriptions",
        "unsent",
        "user",
        "waiting",
    )

    def __init__(
        self,
        connection: bytes,
        number: int,
        name: str,
        publisher: str,
        roles: frozenset[Role],
        user: str | None,
        now: float,
    ) -> None:
        self.connection = connection
        self.number = number
        self.name = name
        self.publisher = publisher
        self.roles = roles
        self.may_publish = Role.PUBLISH in roles  # asked for every PUBLISH, and hashing an enum is slow
        self.user = user
        self.open = True
        self.link: Neighbour | None = None  # the broker at the other end, if it is one
        self.join = deliver_frames
        self.heard = now
        self.pinged = now
        self.published = 0
        self.delivered = 0
        self.counted = 0  # of `delivered`, in the totals of the broker
        self.bad_frames = 0
        self.held = 0  # notifications whose ACK is withheld
        self.held_bytes = 0
        self.filter_bytes = 0  # encoded, of its subscriptions and advertisements
        self.subscriptions: dict[int, Subscription] = {}
        self.advertisements: dict[int, tuple[list[Filter], int]] = {}  # and their bytes
        self.waiting: dict[Subscription, None] = {}  # those with a queue, in the order they get their turn
        self.dropping: dict[Subscription, None] = {}  # those with drops to report
        self.entries: list[tuple[Parcel, list[int]]] = []
        self.entries_count = 0  # notifications in them
        self.entries_bytes = 0
        self.unsent: deque[Sequence[bytes]] = deque()
        self.acks: list[tuple[int, int]] = []  # request, sequence
        self.congested = False
        self.dirty = False

    def deliver(self, parcel: Parcel, subscription: Subscription) -> None:
        """Put notifications into the next DELIVER. The caller has taken the credit."""
        count = len(parcel.bodies)
        self.delivered += count
        entries = self.entries
        if entries:
            last, ids = entries[-1]
            if last is parcel and len(ids) < LIST_LENGTH:
                ids.append(subscription.id)
                return
            if self.entries_count + count > LIST_LENGTH or self.entries_bytes > PARCEL_BYTES:
                self._seal()
                entries = self.entries
        entries.append((parcel, [subscription.id]))
        self.entries_count += count
        self.entries_bytes += parcel.size

    def answer(self, message: Message) -> None:
        """Queue any other message, behind the deliveries so far."""
        self.push(encode(message))

    def push(self, frames: Sequence[bytes]) -> None:
        """Queue an encoded message, behind the deliveries so far."""
        self._seal()
        self.unsent.append(frames)

    def _seal(self) -> None:
        if self.entries:
            self.unsent.append(self.join(self.entries))
            self.entries = []
            self.entries_count = self.entries_bytes = 0

    def drain(self) -> list[Subscription]:
        """Move what credit allows from the queues into DELIVERs, a bounded amount; the subscriptions that moved."""
        if self.congested:
            return []
        moved = []
        budget = _DRAIN_BYTES
        for subscription in list(self.waiting):
            if not subscription.credit:
                continue
            self.report_drops(subscription)
            while subscription.queue and subscription.credit and budget > 0:
                parcel = subscription.take()
                budget -= parcel.size
                self.deliver(parcel, subscription)
            moved.append(subscription)
            del self.waiting[subscription]
            if subscription.queue:
                self.waiting[subscription] = None  # to the back: everybody's turn comes
            if budget <= 0:
                break
        return moved

    @property
    def backlogged(self) -> bool:
        """Whether there is something to send that waits for nothing but a turn."""
        return not self.congested and any(subscription.credit for subscription in self.waiting)

    def report_drops(self, *only: Subscription) -> None:
        """Queue a DROPPED for what was lost since the last one."""
        chosen = [s for s in only if s in self.dropping] if only else list(self.dropping)
        for start in range(0, len(chosen), LIST_LENGTH):
            rows = [Drop(s.id, s.dropped - s.reported, s.dropped) for s in chosen[start : start + LIST_LENGTH]]
            self.answer(Dropped(tuple(rows)))
        for subscription in chosen:
            subscription.reported = subscription.dropped
            del self.dropping[subscription]

    def closing(self, last: Message) -> Iterable[Sequence[bytes]]:
        """Everything that is on its way, and a last message behind it."""
        self._seal_acks()
        self.answer(last)
        return self.unsent

    def _seal_acks(self) -> None:
        self._seal()
        for start in range(0, len(self.acks), LIST_LENGTH):
            self.unsent.append(ack_frames(self.acks[start : start + LIST_LENGTH]))
        self.acks.clear()

    def flush(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> Sent:
        """Send as much as the connection takes."""
        self._seal_acks()
        outcome = Sent.OK
        while self.unsent:
            outcome = send(self.connection, self.unsent[0])
            if outcome is not Sent.OK:
                break
            self.unsent.popleft()
        self.congested = outcome is Sent.FULL
        return outcome

    def _check(self) -> None:
        for id, subscription in self.subscriptions.items():
            assert subscription.id == id
            assert subscription.session is self
            assert (subscription in self.waiting) == bool(subscription.queue)
            assert (subscription in self.dropping) == (subscription.dropped > subscription.reported)
            subscription._check()
        assert set(self.waiting) <= set(self.subscriptions.values())
        assert set(self.dropping) <= set(self.subscriptions.values())
        assert self.entries_bytes == sum(parcel.size for parcel, _ in self.entries)
        assert self.entries_count == sum(len(parcel) for parcel, _ in self.entries) <= LIST_LENGTH
        assert self.filter_bytes >= sum(subscription.filter_bytes for subscription in self.subscriptions.values())
        assert self.held >= 0
        assert self.held_bytes >= 0
        assert bool(self.held) >= bool(self.held_bytes)
