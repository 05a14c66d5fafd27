"""Who is connected, who subscribes to what, and the way of a notification from its publisher to its receivers.

Publications of a turn are matched together by `match_many`, unless a subscription changes between them: the table
always sees the messages in order of arrival. A notification's envelope is packed once, and only if it has a receiver.

State, and who owns it:

    _sessions        connection → Session           by its transport address
    _numbers         session number → Session       the same sessions, by the name that operators use
    _subscriptions   handle → Subscription          the interfaces in the forwarding table
    _pending         publications accepted and not yet matched
    _dirty           sessions with something to send
    _backlog         sessions with more in their queues than a turn's worth, whose connections take it
    _congested       sessions whose connections take no more for now; tried again, the less often the more they are
    _farewells       last messages for connections without a session, and `_unsaid` those that were not taken yet
    _ended, _gone    handles of subscriptions that ended while a batch was handed out: since the journal was last told
                     of notifications, and before; kept only for the journal
    _unrecorded      handles that the journal is not told of: neighbours', and attachments to standing interfaces

The `journal`, if there is one, is told of every subscription, every accepted notification with its receivers, and every
drop, in the order in which the table sees them: replaying it gives the same receivers.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from contrada.broker.envelope import Envelope
from contrada.broker.frames import encode
from contrada.broker.messages import Error
from contrada.broker.recent import ENTRY_BYTES, Recent
from contrada.broker.session import Sent, Session
from contrada.broker.wire import Code, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contrada.broker.journal import Journal
    from contrada.broker.messages import Message
    from contrada.broker.overlay.messages import Run
    from contrada.broker.settings import Settings
    from contrada.broker.subscription import Publication, Subscription

log = logging.getLogger("contrada.broker")

_ENDED = "ended"  # why a queue was lost: its subscription ended first
_EXPLAINED = 100  # filters of one subscription, at most: it may have thousands
_UNREAD = 4096  # messages that a congested client may leave unread before its session is ended
_UNHEARD = 16  # answers that a connection without a session may leave unread before it gets no more
_RETRY = 0.002  # seconds before congested connections are tried again,
_RETRY_EACH = 0.00005  # and more for each of them: stuck clients must not take the time of the others


class Table(Protocol):
    """What the broker asks of a forwarding table: one interface per subscription, named by an integer."""

    def add(self, interface: int, expression: Any) -> list[int]:
        """Add the filters of an expression; their ids."""

    def remove(self, id: int) -> None:
        """Remove one filter."""

    def filter(self, id: int) -> Any:
        """Return the filter of an id."""

    def remove_interface(self, interface: int) -> None:
        """Remove all filters of an interface; KeyError when it has none."""

    def match_many(self, notifications: list[Any]) -> Sequence[set[int]]:
        """Find the matching interfaces of each notification."""

    def explain(self, notification: Any, filter_id: int) -> Any:
        """Constraint by constraint, why a filter matches or does not."""

    def stats(self) -> Any:
        """Sizes, for people."""


class Codec(NamedTuple):
    """How the bytes of notifications and filters are read. Both raise a `ContradaError` that says what is wrong."""

    notification: Callable[[bytes], Mapping[str, Any]]
    filter: Callable[[bytes], Any]


class Refusal(Exception):
    """A request that is refused while its session goes on."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Switchboard:
    """Sessions, subscriptions and deliveries of one broker. Knows nothing of what clients may ask for: `Core` does."""

    def __init__(
        self, settings: Settings, table: Table, codec: Codec, *, id: str, first_sequence: int, now: float
    ) -> None:
        self.settings = settings
        self.table = table
        self.codec = codec
        self.id = id
        self.recent = Recent()
        self.counters: Counter[str] = Counter()
        self.drops: Counter[str] = Counter()  # by policy
        self.journal: Journal | None = None
        self._sequence = first_sequence
        self._now = now
        self._sessions: dict[bytes, Session] = {}
        self._numbers: dict[int, Session] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._pending: list[Publication] = []
        self._pending_notifications: list[Mapping[str, Any]] = []
        self._dirty: list[Session] = []
        self._backlog: dict[Session, None] = {}
        self._congested: dict[Session, None] = {}
        self._farewells: list[tuple[bytes, Sequence[bytes]]] = []
        self._ended: set[int] = set()
        self._gone: set[int] = set()
        self._unrecorded: set[int] = set()
        self._unsaid: dict[bytes, tuple[float, deque[Sequence[bytes]]]] = {}  # until when to try
        self.retry_at = now

    @property
    def sessions(self) -> Mapping[int, Session]:
        """Open sessions by number."""
        return self._numbers

    @property
    def subscriptions(self) -> Mapping[int, Subscription]:
        """Subscriptions by their interface in the table."""
        return self._subscriptions

    @property
    def pending(self) -> int:
        """Notifications accepted in this turn so far."""
        return len(self._pending_notifications)

    @property
    def busy(self) -> bool:
        """Whether another turn would make progress even if nothing arrives."""
        return bool(self._dirty) or any(session.backlogged for session in self._backlog)

    @property
    def congested(self) -> bool:
        """Whether some connection's buffer is full, so that a flush should be tried again at `retry_at`."""
        return bool(self._congested or self._unsaid)

    def turn(self, now: float) -> None:
        """Match what was published and move what credit allows."""
        self._now = now
        self._match()
        for session in list(self._backlog):
            self._drain(session)

    def flush(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        """Hand over what is ready. A connection that is full keeps the rest; one that is gone loses its session."""
        if self._farewells:
            self._part(send)  # before the dirty: a connection may have said HELLO again
        dirty, self._dirty = self._dirty, []
        for session in dirty:
            session.dirty = False
            if session.open:
                self._flush(session, send)
        if self.congested and self._now >= self.retry_at:
            self._retry(send)

    def _part(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        """Send last messages; what a full connection does not take waits its turn, for as long as a silent client."""
        farewells, self._farewells = self._farewells, []
        for connection, frames in farewells:
            if connection in self._unsaid:
                self._unsaid[connection][1].append(frames)
            elif send(connection, frames) is Sent.FULL:
                self._unsaid[connection] = self._now + self.settings.timeout, deque((frames,))

    def _retry(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        for session in list(self._congested):
            self._flush(session, send)
        for connection, (deadline, waiting) in list(self._unsaid.items()):
            outcome = Sent.OK
            while waiting and outcome is Sent.OK:
                outcome = send(connection, waiting[0])
                if outcome is Sent.OK:
                    waiting.popleft()
            if not waiting or outcome is Sent.GONE or self._now >= deadline:
                del self._unsaid[connection]
        self.retry_at = self._now + _RETRY + _RETRY_EACH * (len(self._congested) + len(self._unsaid))

    # -- matching and delivery ---------------------------------------------------------------------------

    def _match(self) -> None:
        """Match and queue everything that is pending, then acknowledge what no queue holds back."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        notifications, self._pending_notifications = self._pending_notifications, []
        matches = self._find(notifications)
        journal = self.journal
        self._ended.clear()
        self._gone.clear()
        start = 0
        for publication in pending:
            bodies = publication.bodies
            matched = matches[start : start + len(bodies)]
            start += len(bodies)
            publisher = publication.session.publisher
            sequence = publication.sequence
            if publication.run is not None:
                self._relay(publication, publication.run, matched)
            else:
                sequences = range(sequence, sequence + len(bodies))
                size = publication.size + ENTRY_BYTES * sum(map(len, matched))
                self.recent.remember((self.id, sequences, publisher, bodies, matched, size))
                if journal is not None:
                    if self._unrecorded or self._ended or self._gone:
                        self._tell_journal(journal, self.id, sequence, publisher, bodies, matched)
                    else:
                        journal.accepted(self.id, sequence, publisher, bodies, matched)
                for body, handles in zip(bodies, matched, strict=True):
                    if handles:
                        self._offer(Envelope(self.id, sequence, publisher, body), handles, publication)
                    sequence += 1
            if not publication.waiting:
                self._acknowledge(publication)

    def _relay(self, publication: Publication, run: Run, matched: Sequence[set[int]]) -> None:
        """Give notifications that came from a neighbour to whom they matched, except to that neighbour."""
        link = publication.session.link
        came_from = link.outlet.handle if link is not None else None
        origin, publisher, hops, sequences, bodies = run
        size = publication.size + ENTRY_BYTES * sum(map(len, matched))
        self.recent.remember((origin, sequences, publisher, bodies, matched, size))
        for sequence, body, handles in zip(sequences, bodies, matched, strict=True):
            if self.journal is not None:
                self._tell_journal(self.journal, origin, sequence, publisher, (body,), (handles,))
            onward = handles - {came_from} if came_from in handles else handles
            if onward:
                self._offer(Envelope(origin, sequence, publisher, body, hops), onward, publication)

    def _find(self, notifications: list[Mapping[str, Any]]) -> Sequence[set[int]]:
        """Find the handles that each notification goes to."""
        return self.table.match_many(notifications)

    def _tell_journal(
        self,
        journal: Journal,
        broker: str,
        sequence: int,
        publisher: str,
        bodies: Sequence[bytes],
        matched: Sequence[set[int]],
    ) -> None:
        """Before they are handed out: notifications were accepted, and go to those of whom the journal speaks."""
        if self._ended:
            self._gone |= self._ended
            self._ended.clear()
        if self._unrecorded or self._gone:
            others = self._unrecorded | self._gone
            matched = [handles - others for handles in matched]
        journal.accepted(broker, sequence, publisher, bodies, matched)

    def _offer(self, envelope: Envelope, handles: set[int], publication: Publication) -> None:
        """Give a notification to every subscription that it matched."""
        subscriptions = self._subscriptions
        for handle in handles:
            subscription = subscriptions.get(handle)
            if subscription is None:
                if self.journal is not None and handle in self._ended:
                    self.journal.dropped(handle, _ENDED, [envelope.id])
                continue  # its session was ended by an earlier notification of this batch
            session = subscription.session
            if subscription.credit and not subscription.queue and not session.congested:
                subscription.credit -= 1
                subscription.delivered += 1
                if session.dropping:
                    session.report_drops(subscription)
                session.deliver(envelope, subscription)
                if not session.dirty:
                    self._soil(session)
                continue
            dropped = subscription.dropped
            full = subscription.enqueue(envelope)
            session.waiting[subscription] = None
            if full and subscription.policy is Policy.BLOCK:
                subscription.hold(publication, self._now)
            elif full:
                self._slow(subscription, "is full")
            elif subscription.dropped != dropped:
                session.dropping[subscription] = None
                self.drops[Policy.DROP_OLDEST] += subscription.dropped - dropped
                if self.journal is not None:
                    self.journal.dropped(handle, Policy.DROP_OLDEST, subscription.shed)
                if not subscription.queue:
                    del session.waiting[subscription]

    def _drain(self, session: Session) -> None:
        for subscription in session.drain():
            self._release(subscription)
        if session.entries or session.unsent:
            self._soil(session)
        if not session.backlogged:
            self._backlog.pop(session, None)

    def _release(self, subscription: Subscription, *, ended: bool = False) -> None:
        for publication in subscription.release(self._now, ended=ended):
            self._acknowledge(publication)

    def _acknowledge(self, publication: Publication) -> None:
        session = publication.session
        session.held -= len(publication.bodies)
        session.held_bytes -= publication.size
        if session.open:
            session.acks.append((publication.request, publication.sequence))
            if not session.dirty:
                self._soil(session)

    # -- ends of sessions --------------------------------------------------------------------------------

    def _flush(self, session: Session, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        delivered = session.delivered
        outcome = session.flush(send)
        self.counters["delivered" if session.link is None else "forwarded"] += delivered - session.counted
        session.counted = delivered
        if outcome is Sent.GONE:
            log.info("session lost", extra={"session": session.number, "reason": "the connection is gone"})
            self.counters["sessions_lost"] += 1
            self._remove(session)
            return
        if outcome is Sent.FULL:
            self._congested[session] = None
            self._backlog.pop(session, None)
            if len(session.unsent) > _UNREAD:
                self._end(session, Code.LIMIT, f"more than {_UNREAD} messages were left unread")
            return
        if self._congested:
            self._congested.pop(session, None)
        if session.waiting:
            self._backlog[session] = None

    def _slow(self, subscription: Subscription, what: str) -> None:
        waiting = f"{len(subscription.queue)} notifications ({subscription.waiting_bytes} bytes) waiting"
        self.drops[subscription.policy] += len(subscription.queue)
        reason = f"the queue of subscription {subscription.id} {what}: {waiting}"
        self._end(subscription.session, Code.SLOW_CONSUMER, reason)

    def _end(self, session: Session, code: Code, reason: str) -> None:
        """End a session for a fault of its own, and tell it."""
        log.warning("session ended", extra={"session": session.number, "code": code, "reason": reason})
        self.counters["sessions_ended"] += 1
        self._close(session, Error(0, code, reason, fatal=True))

    def _farewell(self, connection: bytes, message: Message) -> None:
        """Answer a connection without a session, unless it has left many answers unread."""
        if connection in self._unsaid and len(self._unsaid[connection][1]) >= _UNHEARD:
            return
        self._farewells.append((connection, encode(message)))

    def _remove(self, session: Session) -> None:
        """Forget a session and its subscriptions, and let go of the publishers that waited for them."""
        session.open = False
        del self._sessions[session.connection]
        del self._numbers[session.number]
        self._backlog.pop(session, None)
        self._congested.pop(session, None)
        for subscription in list(session.subscriptions.values()):
            self._drop_subscription(subscription)

    def _drop_subscription(self, subscription: Subscription) -> None:
        session = subscription.session
        if self.journal is not None:
            if subscription.queue:
                self.journal.dropped(subscription.handle, _ENDED, [envelope.id for envelope in subscription.queue])
            self.journal.unsubscribed(subscription.handle)
            self._ended.add(subscription.handle)
        del session.subscriptions[subscription.id]
        session.filter_bytes -= subscription.filter_bytes
        del self._subscriptions[subscription.handle]
        self._withdraw_filters(subscription)
        session.waiting.pop(subscription, None)
        session.dropping.pop(subscription, None)
        self._release(subscription, ended=True)

    def _withdraw_filters(self, subscription: Subscription) -> None:
        """Match nothing more for a subscription."""
        self.table.remove_interface(subscription.handle)

    def explained(self, subscription: Subscription, notification: Any) -> list[Any]:
        """Constraint by constraint, why each filter of a subscription matches or does not; of many, the first."""
        return [self.table.explain(notification, id) for id in subscription.filters[:_EXPLAINED]]

    def _close(self, session: Session, last: Message) -> None:
        """End a session with a last message, behind what is already on its way."""
        self._remove(session)
        self._farewells.extend((session.connection, frames) for frames in session.closing(last))

    def _answer(self, session: Session, message: Message) -> None:
        session.answer(message)
        self._soil(session)

    def _soil(self, session: Session) -> None:
        if not session.dirty:
            session.dirty = True
            self._dirty.append(session)

    def _check(self) -> None:
        assert set(self._sessions.values()) == set(self._numbers.values())
        assert set(self._subscriptions.values()) == {
            s
            for session in self._sessions.values()
            for s in session.subscriptions.values()
            if session.link is None or s.handle in self._subscriptions
        }
        for session in self._sessions.values():
            assert session.open
            session._check()
        assert all(session.open and not session.congested for session in self._backlog)
        assert set(self._congested) == {session for session in self._sessions.values() if session.congested}
        for handle, subscription in self._subscriptions.items():
            assert subscription.handle == handle
        self.recent._check()
