"""A receiver of notifications: its credit, its bounded queue, and what happens when the queue is full.

A client's subscription is one, and so is a neighbour.

    notification ──▶ credit and empty queue? ──yes──▶ the session's next DELIVER, credit − 1
                              │ no
                              ▼
                    queue (count ≤ limit, bytes ≤ limit_bytes) ── CREDIT arrives ──▶ the session's next DELIVER
                              │ over the limit
                              ▼
                    drop-oldest: shed from the left, count, report
                    block:       keep it, hold back the publisher's ACK until the queue is within its limits
                    disconnect:  end the session

Invariants (`_check`): `waiting_bytes` is the sum of the queue's sizes; only a blocking queue is ever over its limits,
and then and only then it holds publications back and has `full_since`; `dropped` never falls and `reported ≤ dropped`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from contrada.broker.protocol.wire import Policy

if TYPE_CHECKING:
    from contrada.broker.core.publication import Publication
    from contrada.broker.protocol.messages import NotificationId
    from contrada.broker.sessions.batch import Batch
    from contrada.broker.sessions.session import Session

_REMEMBERED_DROPS = 1024
# What most receivers have queued and lost, most of the time; an empty deque of one's own is 600 bytes.
_NOTHING: deque[Any] = deque(maxlen=0)


class Receiver:
    """Who gets what the forwarding table matches for one interface, by way of one session."""

    __slots__ = (
        "credit",
        "delivered",
        "dropped",
        "full_since",
        "id",
        "interface",
        "limit",
        "limit_bytes",
        "lost",
        "policy",
        "queue",
        "reported",
        "session",
        "shed",
        "since",
        "waiting_bytes",
        "withheld",
    )

    def __init__(
        self,
        session: Session,
        id: int,
        interface: int,
        policy: Policy,
        *,
        credit: int,
        limit: int,
        limit_bytes: int,
        since: int,
    ) -> None:
        self.session = session
        self.id = id
        self.interface = interface
        self.policy = policy
        self.credit = credit
        self.limit = limit
        self.limit_bytes = limit_bytes
        self.since = since  # the first of this broker's sequence numbers that it could see
        self.queue: deque[Batch] = _NOTHING  # of one notification each
        self.waiting_bytes = 0
        self.delivered = 0
        self.dropped = 0
        self.reported = 0
        self.lost: deque[NotificationId] = _NOTHING
        self.shed: list[NotificationId] = []  # what the latest notification pushed out
        self.withheld: list[Publication] = []  # whose ACK waits for this queue
        self.full_since: float | None = None

    @property
    def full(self) -> bool:
        """Whether the queue is over its limits."""
        return len(self.queue) > self.limit or self.waiting_bytes > self.limit_bytes

    def enqueue(self, batch: Batch) -> bool:
        """Queue what cannot be delivered now; whether that put the queue over its limits.

        A drop-oldest queue sheds until it is within them, so it never is.
        """
        if self.queue is _NOTHING:
            self.queue = deque()
        self.queue.append(batch)
        self.waiting_bytes += batch.size
        if len(self.queue) <= self.limit and self.waiting_bytes <= self.limit_bytes:
            return False
        if self.policy is not Policy.DROP_OLDEST:
            return True
        self.shed = []
        while self.full:
            oldest = self.queue.popleft()
            self.waiting_bytes -= oldest.size
            self.shed.append(oldest.id)
        self.dropped += len(self.shed)
        if self.lost is _NOTHING:
            self.lost = deque(maxlen=_REMEMBERED_DROPS)
        self.lost.extend(self.shed)
        return False

    def withhold(self, publication: Publication, now: float) -> None:
        """Withhold a PUBLISH's ACK until this queue is within its limits again."""
        if not self.withheld or self.withheld[-1] is not publication:
            self.withheld.append(publication)
            publication.waiting += 1
        if self.full_since is None:
            self.full_since = now

    def take(self) -> Batch:
        """Take the oldest from the queue, for one credit."""
        batch = self.queue.popleft()
        self.waiting_bytes -= batch.size
        self.credit -= 1
        self.delivered += 1
        return batch

    def release(self, now: float, *, ended: bool = False) -> list[Publication]:
        """After the queue moved: the publications that no queue holds back any more."""
        if not self.withheld:
            return []
        if self.full and not ended:
            self.full_since = now
            return []
        released, self.withheld = self.withheld, []
        self.full_since = None
        for publication in released:
            publication.waiting -= 1
        return [publication for publication in released if not publication.waiting]

    def _check(self) -> None:
        assert self.waiting_bytes == sum(batch.size for batch in self.queue)
        assert self.credit >= 0
        assert not _NOTHING
        assert 0 <= self.reported <= self.dropped
        assert self.full_since is None or self.policy is Policy.BLOCK
        assert bool(self.withheld) == (self.full_since is not None)
        if self.policy is not Policy.BLOCK:
            assert not self.full
        assert bool(self.withheld) >= (self.full and self.policy is Policy.BLOCK)
        assert all(publication.waiting > 0 for publication in self.withheld)
