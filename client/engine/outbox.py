"""Publications on their way out: queued, sent in batches within the broker's window, acknowledged or failed.

    put ─▶ `queue` ──messages──▶ `unanswered` ──acknowledge──▶ done
                                   │
                                   └── refuse, lose ──▶ failed

A `Submission` is what one call of the application handed over; it leaves in one or more PUBLISH messages. Streamed
notifications share a submission until it is sent, so that a loop of single publications becomes batches.

What was sent and not acknowledged when the connection broke may or may not have been accepted: sending it again could
publish it twice, so it fails with `Disconnected`, and the application decides. What was not sent stays queued, and what
has an idempotency key goes back there: the broker accepts it once.

Invariants (`_check`): `queued` counts the notifications of `queue` not yet sent; `sent_count` and `sent_bytes` are the
sums over `unanswered`, never above the broker's window; a submission is finished exactly once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from contrada.broker.protocol.messages import Limits, NotificationId, Publish, Store
from contrada.broker.protocol.wire import DURABLE_VERSION, VERSION, Code
from contrada.client.engine.tickets import Ticket
from contrada.errors import ContradaError, Disconnected, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_HEAD_BYTES = 64  # of a PUBLISH besides its notifications
_ITEM_BYTES = 8  # of msgpack around each notification
COALESCE = 256  # streamed notifications that share a submission


class Submission(Ticket):
    """Notifications that were handed over together. The result is the list of their ids."""

    __slots__ = ("acknowledged", "bodies", "durable", "ids", "key", "retain", "sent", "streamed")

    def __init__(
        self, bodies: Sequence[bytes], *, streamed: bool, durable: bool = False, key: str = "", retain: str = ""
    ) -> None:
        super().__init__()
        self.bodies = list(bodies)
        self.durable = durable  # acknowledged when it is on the broker's disk
        self.key = key  # of one notification: accepted once, and
        self.retain = retain  # the last value of this key
        self.sent = 0
        self.acknowledged = 0
        self.ids: list[NotificationId | None] = [None] * len(self.bodies)
        self.streamed = streamed


class SentPublish(NamedTuple):
    """One PUBLISH that has not been answered."""

    submission: Submission
    start: int
    number: int
    size: int


class Outbox:
    """Everything published and not yet acknowledged."""

    __slots__ = ("capacity", "failed_count", "failure", "queue", "queued", "sent_bytes", "sent_count", "unanswered")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.queue: deque[Submission] = deque()
        self.unanswered: dict[int, SentPublish] = {}
        self.queued = 0
        self.sent_count = 0
        self.sent_bytes = 0
        self.failed_count = 0  # streamed notifications that failed since the last `take_failure`
        self.failure: ContradaError | None = None

    @property
    def has_room(self) -> bool:
        """Whether the application may hand over more now."""
        return self.queued + self.sent_count < self.capacity

    @property
    def empty(self) -> bool:
        """Whether everything handed over has been answered."""
        return not self.queue and not self.unanswered

    def put(
        self, bodies: Sequence[bytes], *, streamed: bool, durable: bool = False, key: str = "", retain: str = ""
    ) -> Submission:
        """Hand over notifications. A streamed one may join the submission before it."""
        self.queued += len(bodies)
        last = self.queue[-1] if self.queue else None
        if (
            streamed
            and last is not None
            and last.streamed
            and last.durable == durable
            and not (key or retain or last.key or last.retain)
            and last.sent == 0
            and len(last.bodies) < COALESCE
        ):
            last.bodies.extend(bodies)
            last.ids.extend([None] * len(bodies))
            return last
        submission = Submission(bodies, streamed=streamed, durable=durable, key=key, retain=retain)
        if bodies:
            self.queue.append(submission)
        else:
            submission.finish([])
        return submission

    def messages(
        self, limits: Limits, number: Callable[[], int], failed: list[Submission], version: int = VERSION
    ) -> Iterator[Publish | Store]:
        """Yield the messages that the window allows now. What no window or broker could take goes to `failed`."""
        while self.queue:
            submission = self.queue[0]
            if submission.durable and version < DURABLE_VERSION:
                reason = f"the broker speaks version {version} of the protocol, which has nothing durable"
                self._fail(submission, Refused(reason, code=Code.VERSION), failed)
                continue
            room = min(limits.batch, limits.window - self.sent_count, len(submission.bodies) - submission.sent)
            room_bytes = min(limits.window_bytes - self.sent_bytes, limits.message_bytes - _HEAD_BYTES)
            count, size, reason = _fitting(submission.bodies, submission.sent, max(room, 0), room_bytes, limits)
            if reason:
                self._fail(submission, Refused(reason, code="limit"), failed)
                continue
            if not count:
                return
            publish = SentPublish(submission, submission.sent, count, size)
            submission.sent += count
            if submission.sent == len(submission.bodies):
                self.queue.popleft()
            request = number()
            self.unanswered[request] = publish
            self.queued -= count
            self.sent_count += count
            self.sent_bytes += size
            bodies = tuple(submission.bodies[publish.start : publish.start + count])
            if submission.durable:
                yield Store(request, bodies, submission.key, submission.retain)
            else:
                yield Publish(request, bodies)

    def acknowledge(self, request: int, broker: str, sequence: int) -> Submission | None:
        """Note that the broker acknowledged a PUBLISH. Return its submission, if that was the last part of it."""
        publish = self._take_sent(request)
        if publish is None or publish.submission.done:
            return None
        submission, start, count, _ = publish
        submission.ids[start : start + count] = [NotificationId(broker, sequence + i) for i in range(count)]
        submission.acknowledged += count
        if submission.acknowledged < len(submission.bodies) or submission.sent < len(submission.bodies):
            return None
        submission.finish(submission.ids)
        return submission

    def refuse(self, request: int, error: ContradaError) -> list[Submission]:
        """Note that the broker refused a PUBLISH: its submission fails with what is left of it."""
        publish = self._take_sent(request)
        failed: list[Submission] = []
        if publish is not None and not publish.submission.done:
            self._fail(publish.submission, error, failed)
        return failed

    def lose(self, reason: str, *, again: bool = True) -> list[Submission]:
        """Note that the connection broke: whatever was on its way fails, with what is left of its submission.

        What has a key is to be sent `again` instead, if there will be another connection.
        """
        failed: list[Submission] = []
        unanswered, self.unanswered = self.unanswered, {}
        self.sent_count = self.sent_bytes = 0
        for submission, _, count, _ in reversed(unanswered.values()):
            if submission.key and again and not submission.done:
                submission.sent = 0
                self.queue.appendleft(submission)
                self.queued += count
        for submission, _, _, _ in unanswered.values():
            if not submission.done and not (submission.key and again):
                count = len(submission.bodies)
                accepted = f"{submission.acknowledged} of {count} were; " if count > 1 else ""
                text = f"{reason}, before the broker acknowledged the publication"
                self._fail(submission, Disconnected(f"{text} ({accepted}the rest may or may not be accepted)"), failed)
        return failed

    def abandon(self, error: ContradaError) -> list[Submission]:
        """Fail everything that is left."""
        failed = self.lose(str(error), again=False)
        while self.queue:
            self._fail(self.queue[0], error, failed)
        return failed

    def disown(self, submission: Submission) -> None:
        """Nobody waits for a submission any more: should it fail, `take_failure` tells."""
        if submission.streamed:
            return
        submission.streamed = True
        if submission.error is not None:
            self.failure = self.failure or submission.error
            self.failed_count += len(submission.bodies) - submission.acknowledged

    def take_failure(self) -> ContradaError | None:
        """Take the error of what failed since the last call and nobody waited for, with the number of notifications."""
        if self.failure is None:
            return None
        text = f"{self.failed_count} streamed notification(s) failed: {self.failure}"
        error = Refused(text, code=self.failure.code) if isinstance(self.failure, Refused) else Disconnected(text)
        self.failure, self.failed_count = None, 0
        return error

    def _take_sent(self, request: int) -> SentPublish | None:
        publish = self.unanswered.pop(request, None)
        if publish is not None:
            self.sent_count -= publish.number
            self.sent_bytes -= publish.size
        return publish

    def _fail(self, submission: Submission, error: ContradaError, failed: list[Submission]) -> None:
        if submission.sent < len(submission.bodies):
            self.queue.remove(submission)
            self.queued -= len(submission.bodies) - submission.sent
        if submission.streamed:
            self.failure = self.failure or error
            self.failed_count += len(submission.bodies) - submission.acknowledged
        submission.finish(submission.ids, error)
        failed.append(submission)

    def _check(self) -> None:
        assert self.queued == sum(len(p.bodies) - p.sent for p in self.queue)
        assert self.sent_count == sum(f.number for f in self.unanswered.values())
        assert self.sent_bytes == sum(f.size for f in self.unanswered.values())
        assert all(not p.done and p.sent < len(p.bodies) for p in self.queue)
        assert (self.failure is None) == (self.failed_count == 0)


def _fitting(bodies: Sequence[bytes], start: int, most: int, room: int, limits: Limits) -> tuple[int, int, str]:
    """How many bodies from `start` on fit into a message, and their bytes; why the first fits into none at all."""
    some = bodies[start : start + most]
    size = sum(map(len, some))
    largest = min(
        limits.notification_bytes, limits.window_bytes - _ITEM_BYTES, limits.message_bytes - _HEAD_BYTES - _ITEM_BYTES
    )
    if size + _ITEM_BYTES * len(some) <= room and (size <= largest or max(map(len, some), default=0) <= largest):
        return len(some), size, ""  # the usual case, without a loop
    count = size = 0
    for body in some:
        if len(body) > largest:
            reason = f"a notification of {len(body):,} bytes; the broker takes at most {largest:,}"
            return count, size, "" if count else reason
        if size + len(body) + _ITEM_BYTES * (count + 1) > room:
            return count, size, ""
        count, size = count + 1, size + len(body)
    return count, size, ""
