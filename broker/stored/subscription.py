"""One durable subscription: what it asks for, what waits for it, and the session that it is delivered to, if any.

Its filters stay in the table, under an interface of its own, whether or not its client is there. What matches goes to
the journal first and from there into the queue (`disk_queue`); `arriving` is on its way to the disk.

    matched ─▶ arriving ── on disk ─▶ queue ── credit ─▶ sent ── acknowledged ─▶ forgotten
                                        ▲                  │ its client has come back, or the broker
                                        └──────────────────┘ `attempts` too often: a dead letter
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contrada.broker.core.receiver import Receiver
from contrada.broker.protocol.wire import Full, Policy
from contrada.broker.stored.disk_queue import DiskQueue
from contrada.broker.stored.rows import Row

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence

    from contrada.broker.protocol.messages import Keep, NotificationId, SubscribeDurable
    from contrada.broker.sessions.session import Session
    from contrada.broker.stored.rows import RowOf

RESTATED: Final = 65_536  # positions in one row of a checkpoint
EVERYTHING: Final = 2**62
_UNACKNOWLEDGED: Final = 65_536


class DeadLetter(NamedTuple):
    """What a durable subscription has given up, and why."""

    position: int
    reason: str
    id: NotificationId
    publisher: str
    body: bytes
    time: int


class DurableReceiver(Receiver):
    """A session's end of a durable subscription: its id there and its credit. Its queue is on disk."""

    __slots__ = ("request", "subscription")

    def __init__(self, session: Session, id: int, subscription: DurableSubscription, credit: int, request: int) -> None:
        limits = {"limit": EVERYTHING, "limit_bytes": EVERYTHING, "since": 0}
        super().__init__(session, id, subscription.interface, Policy.BLOCK, credit=credit, **limits)
        self.subscription = subscription
        self.request = request


class DurableSubscription:
    """The state of one durable subscription."""

    def __init__(
        self, number: int, name: str, owner: str, filters: Sequence[bytes], interface_name: str, keep: Keep
    ) -> None:
        self.number = number
        self.name = name
        self.owner = owner
        self.filters = tuple(filters)
        self.interface_name = interface_name  # of the index; empty if it has filters
        self.keep = keep
        self.interface = 0  # its number in the table of now
        self.first = 1  # when it was made, the number of the next notification: those before it are last values
        self.filter_ids: list[int] = []
        self.interest_keys: list[bytes] = []
        self.queue = DiskQueue()
        self.window = _UNACKNOWLEDGED  # that may be sent and not acknowledged
        self.later: list[tuple[int, int, int]] | None = None  # what came while it is being made, behind the replay
        self.known = False  # to all linked brokers, and on disk: it is made
        self.arriving = 0
        self.arriving_bytes = 0
        self.attempts: dict[int, int] = {}  # of positions that were sent more than once, or to the client of now
        self.delivered = 0  # the last position that was ever sent
        self.dropped = 0
        self.dropping = False  # whether the oldest are on their way out
        self.redelivered = 0
        self.dead: OrderedDict[int, DeadLetter] = OrderedDict()
        self.left: float | None = 0.0  # when its client left, seconds since 1970; None while it is there
        self.receiver: DurableReceiver | None = None
        self.newcomers: list[tuple[Session, SubscribeDurable]] = []  # who asked for it while it is being made
        self.fetching = False
        self.paused = False  # nothing is sent, for a while

    @property
    def title(self) -> str:
        """What it is called in reasons."""
        return f"the durable subscription {self.name!r}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits for it, nor is on its way."""
        return not self.arriving and not len(self.queue)

    def over_limit(self, size: int, before: int = 0) -> str:
        """Which limit one more notification, and some before it, of this size together, would break; or nothing.

        Only a limit that refuses; others drop.
        """
        keep = self.keep
        if keep.when_notifications is Full.REFUSE and len(self.queue) + self.arriving + before >= keep.notifications:
            return f"{keep.notifications} notifications"
        if keep.when_bytes is Full.REFUSE and self.queue.bytes + self.arriving_bytes + size > keep.bytes:
            return f"{keep.bytes} bytes"
        return ""

    def overflow(self, count: int, size: int) -> Full | None:
        """What is to be done with the oldest but `count` of `size` bytes, because too many wait or too much."""
        keep, left = self.keep, len(self.queue) - count
        if left > keep.notifications and keep.when_notifications is not Full.REFUSE:
            return keep.when_notifications
        if self.queue.bytes - size > keep.bytes and keep.when_bytes is not Full.REFUSE and left > 1:
            return keep.when_bytes
        return None

    def arrive(self, position: int, size: int, time: int) -> None:
        """A notification for it is on disk."""
        if self.later is not None:
            self.later.append((position, size, time))
        else:
            self.queue.append(position, size, time)

    def arrive_together(self, positions: array[int], sizes: array[int], time: int) -> None:
        """Notifications for it are on disk, all of one time."""
        if self.later is not None:
            self.later += [(position, size, time) for position, size in zip(positions, sizes, strict=True)]
        else:
            self.queue.extend(positions, sizes, time)

    def confirm(self) -> None:
        """It is made: what came meanwhile waits behind what was replayed."""
        later, self.later = self.later or (), None
        for each in later:
            self.queue.append(*each)

    def acknowledge(self, first: int, last: int) -> int:
        """Forget positions; how many that were."""
        count = self.queue.acknowledge(first, last)
        if self.attempts:
            if last - first < len(self.attempts):
                for position in range(first, last + 1):
                    self.attempts.pop(position, None)
            else:
                for position in [each for each in self.attempts if first <= each <= last]:
                    del self.attempts[position]
        return count

    def attempt(self, position: int) -> int:
        """How often a position will have been sent if it is sent now."""
        before = self.attempts.get(position)
        return (int(position <= self.delivered) if before is None else before) + 1

    def bury(self, letter: DeadLetter, most: int) -> None:
        """Give up a notification; of too many dead letters the oldest is forgotten."""
        self.acknowledge(letter.position, letter.position)
        self.dead[letter.position] = letter
        while len(self.dead) > most:
            self.dead.popitem(last=False)

    # -- rows --------------------------------------------------------------------------------------------

    @property
    def subscribed(self) -> RowOf:
        """The row that makes it."""
        wanted = (self.filters, self.interface_name, tuple(self.keep))
        return (Row.SUBSCRIBED, self.number, self.name, self.owner, *wanted, self.later is not None)

    def restated(self) -> Iterator[RowOf]:
        """Rows that say everything about it."""
        wanted = (self.filters, self.interface_name, tuple(self.keep))
        tried = tuple((position, count) for position, count in self.attempts.items() if count > 1)
        facts = (self.delivered, self.dropped, self.left if self.left is not None else -1.0)
        yield (Row.STATE, self.number, self.name, self.owner, *wanted, *facts, tried)
        for packed in self.queue.snapshot(RESTATED):
            yield (Row.WAITING, self.number, *packed)
        for letter in self.dead.values():
            yield dead_row(self.number, letter)

    def document(self, now: float) -> dict[str, Any]:
        """What operators see of it."""
        oldest = self.queue.oldest_time
        return {
            "name": self.name,
            "owner": self.owner,
            "interface": self.interface_name,
            "filters": len(self.filters),
            "attached": self.receiver is not None,
            "session": self.receiver.session.number if self.receiver is not None else 0,
            "waiting": len(self.queue),
            "waiting_bytes": self.queue.bytes,
            "oldest": max(0.0, now - oldest) if oldest is not None else 0.0,
            "dropped": self.dropped,
            "redelivered": self.redelivered,
            "dead": len(self.dead),
        }

    def _check(self) -> None:
        self.queue._check()
        assert self.arriving >= 0
        assert self.arriving_bytes >= 0
        assert self.receiver is None or self.left is None


def dead_row(number: int, letter: DeadLetter) -> RowOf:
    """The row of a dead letter."""
    return (Row.DEAD, number, letter.position, letter.reason, *letter.id, letter.publisher, letter.body, letter.time)
