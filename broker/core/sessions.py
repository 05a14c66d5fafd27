"""Who is connected and who subscribes to what: sessions, what is on its way to them, and how they end.

State, and who owns it:

    _sessions        connection → Session           by its transport address
    _numbers         session number → Session       the same sessions, by the name that operators use
    _subscriptions   handle → Subscription          the interfaces in the forwarding table
    _pending         publications received and not yet matched
    _dirty           sessions with something to send
    _backlog         sessions with more in their queues than a turn's worth, whose connections take it
    _congested       sessions whose connections take no more for now; tried again, the less often the more they are
    _farewells       last messages for connections without a session, and `_unsaid` those that were not taken yet
    _ended, _gone    handles of subscriptions that ended while a batch was handed out: since the journal was last told
                     of notifications, and before; kept only for the journal
    _unrecorded      handles that the journal is not told of: neighbours', and attachments to standing interfaces
    _leaving         handles whose filters are still in the table while `leftovers` takes them out: they match nothing

The `journal`, if there is one, is told of every subscription, every accepted notification with its receivers, and every
drop, in the order in which the table sees them: replaying it gives the same receivers.

Whatever raises here or in what is called, that is not a refusal, is a mishap: logged with its traceback, counted, and
paid for by the session it happened to, never by the others.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from contrada.broker.core.leftovers import Leftovers
from contrada.broker.core.offences import Offences
from contrada.broker.core.ports import Mishap
from contrada.broker.core.recent import Recent
from contrada.broker.core.session import Sent, Session
from contrada.broker.core.turns import Turns
from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.messages import Error
from contrada.broker.protocol.wire import Code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contrada.broker.core.journal import Journal
    from contrada.broker.core.ports import Codec, Table
    from contrada.broker.core.subscription import Publication, Subscription
    from contrada.broker.node.settings import Settings
    from contrada.broker.protocol.messages import Message

log = logging.getLogger("contrada.broker")

ENDED: Final = "ended"  # why a queue was lost: its subscription ended first
_EXPLAINED = 100  # filters of one subscription, at most: it may have thousands
_UNREAD = 4096  # messages that a congested client may leave unread before its session is ended
_UNHEARD = 16  # answers that a connection without a session may leave unread before it gets no more
_REMEMBERED = 10_000  # subscriptions that have ended, for EXPLAIN
_TRACEBACKS = 16  # logged between two ticks: more are only counted
_RETRY = 0.002  # seconds before congested connections are tried again,
_RETRY_EACH = 0.00005  # and more for each of them: stuck clients must not take the time of the others


class Sessions:
    """Sessions and subscriptions of one broker, what is sent to them, and how they end."""

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
        self._pending_count = 0  # notifications in them
        self._dirty: list[Session] = []
        self._backlog: dict[Session, None] = {}
        self._congested: dict[Session, None] = {}
        self._farewells: list[tuple[bytes, Sequence[bytes]]] = []
        self._ended: set[int] = set()
        self._gone: set[int] = set()
        self._unrecorded: set[int] = set()
        self.ended: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)  # session and id of subscriptions, latest last
        self._unsaid: dict[bytes, tuple[float, deque[Sequence[bytes]]]] = {}  # until when to try
        self.retry_at = now
        self.turns = Turns()
        self.leftovers = Leftovers(lambda error: self._mishap("leftovers", None, error))
        self._leaving: set[int] = set()
        self._offences = Offences(settings.bad_frames, settings.ban, settings.sessions)
        self._tracebacks = 0

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
        """Notifications received in this turn and not yet matched."""
        return self._pending_count

    @property
    def busy(self) -> bool:
        """Whether another turn would make progress even if nothing arrives."""
        return bool(self._dirty or self.leftovers) or any(session.backlogged for session in self._backlog)

    @property
    def congested(self) -> bool:
        """Whether some connection's buffer is full, so that a flush should be tried again at `retry_at`."""
        return bool(self._congested or self._unsaid)

    def flush(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        """Hand over what is ready. A connection that is full keeps the rest; one that is gone loses its session."""
        self.turns.enter()
        if self._farewells:
            self._part(send)  # before the dirty: a connection may have said HELLO again
        dirty, self._dirty = self._dirty, []
        for session in dirty:
            session.dirty = False
            if session.open:
                self._attempt("sending", session, self._flush, session, send)
        if self.congested and self._now >= self.retry_at:
            self._retry(send)
        self.turns.leave("sending")

    def _part(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        """Send last messages; what a full connection does not take waits its turn, for as long as a silent client."""
        farewells, self._farewells = self._farewells, []
        for connection, frames in farewells:
            if connection in self._unsaid:
                self._unsaid[connection][1].append(frames)
            elif self._say(send, connection, frames) is Sent.FULL:
                self._unsaid[connection] = self._now + self.settings.timeout, deque((frames,))

    def _say(self, send: Callable[[bytes, Sequence[bytes]], Sent], connection: bytes, frames: Sequence[bytes]) -> Sent:
        """Send to a connection without a session."""
        try:
            return send(connection, frames)
        except Exception as error:
            self._mishap("sending", None, error)
            return Sent.GONE

    def _retry(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        for session in list(self._congested):
            self._attempt("sending", session, self._flush, session, send)
        for connection, (deadline, waiting) in list(self._unsaid.items()):
            outcome = Sent.OK
            while waiting and outcome is Sent.OK:
                outcome = self._say(send, connection, waiting[0])
                if outcome is Sent.OK:
                    waiting.popleft()
            if not waiting or outcome is Sent.GONE or self._now >= deadline:
                del self._unsaid[connection]
        self.retry_at = self._now + _RETRY + _RETRY_EACH * (len(self._congested) + len(self._unsaid))

    def _release(self, subscription: Subscription, *, ended: bool = False) -> None:
        for publication in subscription.release(self._now, ended=ended):
            self._acknowledge(publication)

    def _acknowledge(self, publication: Publication) -> None:
        session = publication.session
        publication.settled = True
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
        gone = list(session.subscriptions.values())
        session.subscriptions.clear()
        self._leaving.update([subscription.handle for subscription in gone])
        forget = self._forget_filter()
        self.leftovers.put(lambda subscription: self._withdraw_filters(subscription, forget), gone)
        for subscription in gone:
            self._subscriptions.pop(subscription.handle, None)
        for subscription in gone:
            if subscription.held or self.journal is not None:
                self._attempt("ending a subscription", session, self._settle, subscription)
        self.ended.extend([(session.number, subscription.id) for subscription in gone[-_REMEMBERED:]])

    def _drop_subscription(self, subscription: Subscription) -> None:
        """End a subscription: it is gone when this returns. Its filters follow when there is time for them."""
        session = subscription.session
        del session.subscriptions[subscription.id]
        self.ended.append((session.number, subscription.id))
        session.filter_bytes -= subscription.filter_bytes
        self._subscriptions.pop(subscription.handle, None)
        self._leaving.add(subscription.handle)
        self._withdraw_filters(subscription, self._forget_filter())
        session.waiting.pop(subscription, None)
        session.dropping.pop(subscription, None)
        self._settle(subscription)

    def _settle(self, subscription: Subscription) -> None:
        """Let go of the publishers that waited for a subscription that has ended, and tell the journal."""
        self._release(subscription, ended=True)
        if self.journal is not None:
            if subscription.queue:
                self.journal.dropped(subscription.handle, ENDED, [parcel.id for parcel in subscription.queue])
            self.journal.unsubscribed(subscription.handle)
            self._ended.add(subscription.handle)

    def _withdraw_filters(self, subscription: Subscription, forget: Callable[[int], None]) -> None:
        """Have the filters of a subscription that is leaving taken out, each by `forget`."""
        self._withdraw_later(subscription.handle, subscription.filters, forget)

    def _withdraw_later(self, handle: int, filters: Sequence[int], forget: Callable[[int], None]) -> None:
        """Let an interface match nothing from here on, and take its filters out when there is time for it."""

        def done() -> None:
            self._leaving.discard(handle)
            with suppress(KeyError):  # none is left; unless adding failed half-way
                self.table.remove_interface(handle)

        self._leaving.add(handle)
        self.leftovers.put(forget, filters, done)

    def _forget_filter(self) -> Callable[[int], None]:
        """What is to be done with each filter of a subscription that ends now."""
        return self.table.remove

    def explained(self, subscription: Subscription, notification: Any) -> list[Any]:
        """Constraint by constraint, why each filter of a subscription matches or does not; of many, the first."""
        return [self.table.explain(notification, id) for id in subscription.filters[:_EXPLAINED]]

    # -- mishaps -----------------------------------------------------------------------------------------

    def mishap(self, doing: str, error: Exception) -> None:
        """Something around the core raised what it should not have."""
        self._mishap(doing, None, error)

    def _mishap(self, doing: str, session: Session | None, error: Exception) -> None:
        """Count what should not have been raised, and log where it was."""
        self.counters["internal_errors"] += 1
        self._tracebacks += 1
        if self._tracebacks <= _TRACEBACKS:
            number = session.number if session is not None else None
            log.error("internal error", extra={"doing": doing, "session": number}, exc_info=error)

    def _attempt(self, doing: str, session: Session | None, function: Callable[..., object], *arguments: Any) -> None:
        """Do something for a session, which ends if that raises; nobody else is to feel it."""
        try:
            function(*arguments)
        except Exception as error:
            self._mishap(doing, session, error)
            if session is not None and session.open:
                try:
                    self._end(session, Code.INTERNAL, str(Mishap(error)))
                except Exception as again:
                    self._mishap("ending a session", session, again)

    def _strike(self, connection: bytes, session: Session | None, code: Code, reason: str, request: int) -> None:
        """Answer what a connection did; too many of that end its session, and it is ignored for a while."""
        strikes = self._offences.strike(connection, self._now)
        if strikes:
            self.counters["banned"] += 1
            reason = f"{strikes} bad frames, the last: {reason}"
            if session is not None:
                self._end(session, Code.BANNED, reason)
            else:
                self._farewell(connection, Error(0, Code.BANNED, reason, fatal=True))
        elif session is not None:
            session.bad_frames += 1
            self._answer(session, Error(request, code, reason))
        else:
            self._farewell(connection, Error(request, code, reason))

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
