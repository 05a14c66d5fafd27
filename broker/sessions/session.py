"""One session: what it is allowed, who receives by way of it, and what is on its way to it.

The other end is a client or another broker: what differs is its `SessionKind`, given when it is opened or becomes one.

Outgoing traffic keeps its order through three stages:

    entries   (batch, [receiver's id, …]) of the DELIVER that is being filled
    unsent    encoded messages, oldest first; not empty after a flush means that the connection is congested
    acks      answered PUBLISHes, sent together behind everything else of a turn

While the connection is congested nothing more is taken from receivers' queues, so that what a client does not read
stays where its policies can see it. No sockets and no clock: `flush` is given the function that sends.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.broker.protocol.frames import ack_frames, encode
from contrada.broker.protocol.messages import Drop, Dropped
from contrada.broker.protocol.wire import LIST_LENGTH, OLDEST_VERSION
from contrada.broker.sessions.batch import BATCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contrada.broker.core.publication import Source
    from contrada.broker.core.receiver import Receiver
    from contrada.broker.protocol.messages import Limits, Message
    from contrada.broker.protocol.wire import Role
    from contrada.broker.sessions.batch import Batch
    from contrada.broker.turn.work import Steps

_DRAIN_BYTES = 1 << 20  # taken from queues per turn, so that one backlog does not delay the others


class Sent(Enum):
    """What became of a message handed to the transport."""

    OK = "ok"
    FULL = "full"  # the connection's buffer is full: try again later
    GONE = "gone"  # no such connection any more


class Order(IntEnum):
    """What a message waits for."""

    NONE = 0
    OWN = 1  # for the session's messages before it
    MATCHED = 2  # and until what the session published before is matched
    INDEX = 3  # and until no other thread reads the index, which it changes


class Handler(NamedTuple):
    """What is done with a type of message."""

    function: Callable[[Session, Any], Steps | None]  # returns the rest of its work, if it may take long
    order: Order = Order.MATCHED
    role: Role | None = None  # that the sender needs
    needs_running: bool = False  # refused once the broker shuts down


class SessionKind:
    """What the sessions of clients have in common, or those of neighbours."""

    def __init__(
        self,
        *,
        decode: Callable[[Sequence[bytes], Limits], Any],
        encode_batches: Callable[[Sequence[tuple[Batch, Sequence[int]]]], list[bytes]],
        handlers: Mapping[type, Handler],
        timeout: float,
        counter: str,
        fragile: bool = False,
    ) -> None:
        self.decode = decode  # frames to a message
        self.encode_batches = encode_batches  # batches, and whom they are for, to frames
        self.handlers = handlers
        self.timeout = timeout  # silence after which the other end is dead
        self.counter = counter  # what its deliveries count as
        self.fragile = fragile  # a mistake of ours ends the session: nobody knows what the other end thinks of us now
        self._allowed: dict[frozenset[Role], Mapping[type, Handler]] = {}

    def allowed(self, roles: frozenset[Role]) -> Mapping[type, Handler]:
        """The handlers for which these roles suffice: looked up once per session, not once per message."""
        if (found := self._allowed.get(roles)) is None:
            found = {each: handler for each, handler in self.handlers.items() if handler.role in (None, *roles)}
            self._allowed[roles] = found
        return found


class Session:
    """The state of one open session."""

    __slots__ = (
        "acks",
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
        "handlers",
        "heard",
        "kind",
        "name",
        "number",
        "open",
        "pinged",
        "published",
        "publisher",
        "receivers",
        "roles",
        "source",
        "unacknowledged",
        "unacknowledged_bytes",
        "unsent",
        "user",
        "version",
        "waiting",
    )

    def __init__(
        self,
        kind: SessionKind,
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
        self.user = user
        self.open = True
        self.version = OLDEST_VERSION  # of the protocol, as WELCOME says
        self.source: Source | None = None  # of what it publishes
        self.heard = now
        self.pinged = now
        self.published = 0
        self.delivered = 0
        self.counted = 0  # of `delivered`, in the totals of the broker
        self.bad_frames = 0
        self.unacknowledged = 0  # notifications whose ACK is withheld
        self.unacknowledged_bytes = 0
        self.filter_bytes = 0  # encoded, of its subscriptions and advertisements
        self.receivers: dict[int, Receiver] = {}
        self.waiting: dict[Receiver, None] = {}  # those with a queue, in the order they get their turn
        self.dropping: dict[Receiver, None] = {}  # those with drops to report
        self.entries: list[tuple[Batch, list[int]]] = []
        self.entries_count = 0  # notifications in them
        self.entries_bytes = 0
        self.unsent: deque[Sequence[bytes]] = deque()
        self.acks: list[tuple[int, int]] = []  # request, sequence
        self.congested = False
        self.dirty = False
        self.become(kind)

    def become(self, kind: SessionKind) -> None:
        """Be of this kind from here on."""
        self.kind = kind
        self.handlers = kind.allowed(self.roles)

    def deliver(self, batch: Batch, receiver: Receiver) -> None:
        """Put notifications into the next DELIVER. The caller has taken the credit."""
        count = len(batch.bodies)
        self.delivered += count
        entries = self.entries
        if entries:
            last, ids = entries[-1]
            if last is batch and len(ids) < LIST_LENGTH:
                ids.append(receiver.id)
                return
            if self.entries_count + count > LIST_LENGTH or self.entries_bytes > BATCH_BYTES:
                self._seal()
                entries = self.entries
        entries.append((batch, [receiver.id]))
        self.entries_count += count
        self.entries_bytes += batch.size

    def answer(self, message: Message) -> None:
        """Queue any other message, behind the deliveries so far."""
        self.push(encode(message))

    def push(self, frames: Sequence[bytes]) -> None:
        """Queue an encoded message, behind the deliveries so far."""
        self._seal()
        self.unsent.append(frames)

    def _seal(self) -> None:
        if self.entries:
            self.unsent.append(self.kind.encode_batches(self.entries))
            self.entries = []
            self.entries_count = self.entries_bytes = 0

    def drain(self) -> list[Receiver]:
        """Move what credit allows from the queues into DELIVERs, a bounded amount; the receivers that moved."""
        if self.congested:
            return []
        moved = []
        budget = _DRAIN_BYTES
        for receiver in list(self.waiting):
            if not receiver.credit:
                continue
            self.report_drops(receiver)
            while receiver.queue and receiver.credit and budget > 0:
                batch = receiver.take()
                budget -= batch.size
                self.deliver(batch, receiver)
            moved.append(receiver)
            del self.waiting[receiver]
            if receiver.queue:
                self.waiting[receiver] = None  # to the back: everybody's turn comes
            if budget <= 0:
                break
        return moved

    @property
    def backlogged(self) -> bool:
        """Whether there is something to send that waits for nothing but a turn."""
        return not self.congested and any(receiver.credit for receiver in self.waiting)

    def report_drops(self, *only: Receiver) -> None:
        """Queue a DROPPED for what was lost since the last one."""
        chosen = [s for s in only if s in self.dropping] if only else list(self.dropping)
        for start in range(0, len(chosen), LIST_LENGTH):
            rows = [Drop(s.id, s.dropped - s.reported, s.dropped) for s in chosen[start : start + LIST_LENGTH]]
            self.answer(Dropped(tuple(rows)))
        for receiver in chosen:
            receiver.reported = receiver.dropped
            del self.dropping[receiver]

    def closing(self, last: Message) -> Iterable[Sequence[bytes]]:
        """Everything that is on its way, and a last message behind it."""
        self._seal()
        self._seal_acks()
        self.answer(last)
        return self.unsent

    def _seal_acks(self) -> None:
        for start in range(0, len(self.acks), LIST_LENGTH):
            self.unsent.append(ack_frames(self.acks[start : start + LIST_LENGTH]))
        self.acks.clear()

    def flush(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> Sent:
        """Send as much as the connection takes."""
        if self.entries:
            self._seal()
        if self.acks:
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
        for id, receiver in self.receivers.items():
            assert receiver.id == id
            assert receiver.session is self
            assert (receiver in self.waiting) == bool(receiver.queue)
            assert (receiver in self.dropping) == (receiver.dropped > receiver.reported)
            receiver._check()
        assert set(self.waiting) <= set(self.receivers.values())
        assert set(self.dropping) <= set(self.receivers.values())
        assert self.entries_bytes == sum(batch.size for batch, _ in self.entries)
        assert self.entries_count == sum(len(batch) for batch, _ in self.entries) <= LIST_LENGTH
        assert self.unacknowledged >= 0
        assert self.unacknowledged_bytes >= 0
        assert bool(self.unacknowledged) >= bool(self.unacknowledged_bytes)
