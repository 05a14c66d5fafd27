"""The broker without its sockets: messages in, messages out.

The shell around it (`node.py`, or a test) drives it in turns:

    receive(connection, user, frames, now)      for each message that has arrived
    turn(now)                                   match what was published, move what credit allows
    flush(send)                                 hand messages to the transport
    tick(now)                                   a few times per second: heartbeats, deadlines, reports

Publications of a turn are matched together by `match_many`, unless a subscription changes between them: the table
always sees the messages in order of arrival. A notification's envelope is packed once, and only if it has a receiver.

State, and who owns it:

    _sessions        connection → Session           by its transport address
    _numbers         session number → Session       the same sessions, by the name that operators use
    _subscriptions   handle → Subscription          the interfaces in the forwarding table
    _pending         publications accepted and not yet matched
    _dirty           sessions with something to send;  _backlog: those with more than one turn's worth, or congested

Time is whatever monotonic number the shell passes in.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from contrada.broker import wire
from contrada.broker.admin import explain, status
from contrada.broker.frames import Envelope, decode, encode, request_of
from contrada.broker.messages import (
    Ack,
    Acked,
    Bye,
    Credit,
    Error,
    Explain,
    Hello,
    NotificationId,
    Ping,
    Pong,
    Publish,
    Reply,
    Status,
    Subscribe,
    Unsubscribe,
    Welcome,
)
from contrada.broker.recent import Batch, Recent
from contrada.broker.session import Sent, Session
from contrada.broker.subscription import Hold, Subscription
from contrada.broker.wire import Code, Policy, Role
from contrada.errors import ContradaError, ProtocolError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contrada.broker.messages import Message
    from contrada.broker.settings import Settings

log = logging.getLogger("contrada.broker")

_UNREAD = 4096  # messages that a congested client may leave unread before its session is ended
_CREDIT_CEILING = wire.MAX_INTEGER


class Table(Protocol):
    """What the broker asks of a forwarding table: one interface per subscription, named by an integer."""

    def add(self, interface: int, expression: Any) -> list[int]:
        """Add the filters of an expression; their ids."""

    def remove_interface(self, interface: int) -> None:
        """Remove all filters of an interface."""

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


class Identity(NamedTuple):
    """Who a key belongs to, and what it may do."""

    name: str
    roles: frozenset[Role]


class Publication(NamedTuple):
    """One accepted PUBLISH, waiting to be matched."""

    hold: Hold
    bodies: tuple[bytes, ...]
    notifications: list[Mapping[str, Any]]


class Core:
    """All sessions of one broker and the table that matches for them."""

    def __init__(
        self,
        settings: Settings,
        table: Table,
        codec: Codec,
        identify: Callable[[str | None], Identity | None],
        *,
        id: str,
        first_sequence: int = 1,
        now: float = 0.0,
    ) -> None:
        self.settings = settings
        self.table = table
        self.codec = codec
        self.id = id
        self.started = now
        self.stopping = False
        self.recent = Recent()
        self.counters: Counter[str] = Counter()
        self.drops: Counter[str] = Counter()  # by policy
        self.rates: dict[str, float] = {"published": 0.0, "delivered": 0.0}
        self._identify = identify
        self._sequence = first_sequence
        self._next_session = 1
        self._next_handle = 1
        self._now = now
        self._measured = (now, 0, 0)
        self._sessions: dict[bytes, Session] = {}
        self._numbers: dict[int, Session] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._pending: list[Publication] = []
        self._dirty: list[Session] = []
        self._backlog: dict[Session, None] = {}
        self._farewells: list[tuple[bytes, Sequence[bytes]]] = []
        self._strikes: dict[bytes, int] = {}
        self._banned: dict[bytes, float] = {}

    # -- what the shell and the operator may ask ---------------------------------------------------------

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
        return sum(len(publication.bodies) for publication in self._pending)

    @property
    def busy(self) -> bool:
        """Whether another turn would make progress even if nothing arrives."""
        return any(session.backlogged for session in self._backlog)

    @property
    def congested(self) -> bool:
        """Whether some connection's buffer is full, so that a flush should soon be tried again."""
        return any(session.congested for session in self._backlog)

    # -- events ------------------------------------------------------------------------------------------

    def receive(self, connection: bytes, user: str | None, frames: Sequence[bytes], now: float) -> None:
        """Take in one message. `user` is the key that the transport has verified, None without security."""
        self._now = now
        self.counters["received"] += 1
        if self._banned and self._is_banned(connection):
            return
        session = self._sessions.get(connection)
        if session is not None:
            if session.user != user:
                self._end(session, Code.NO_SESSION, "the connection changed hands: say HELLO again")
                session = None
            else:
                session.heard = now
        try:
            message = decode(frames, self.settings.limits)
        except ProtocolError as error:
            self._bad_frame(connection, session, str(error), request_of(frames))
            return
        if type(message) is Hello:
            self._hello(connection, user, message)
        elif session is None:
            self._farewell(connection, Error(0, Code.NO_SESSION, "say HELLO first", fatal=True))
        elif (handler := _HANDLERS.get(type(message))) is None:
            reason = f"{type(message).__name__.upper()} is for the broker to send"
            self._bad_frame(connection, session, reason, 0)
        else:
            try:
                handler(self, session, message)
            except _Refusal as refusal:
                self._answer(session, Error(getattr(message, "request", 0), refusal.code, str(refusal)))
                self.counters["refused"] += 1

    def turn(self, now: float) -> None:
        """Match what was published and move what credit allows."""
        self._now = now
        self._match()
        for session in list(self._backlog):
            self._drain(session)

    def flush(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        """Hand over what is ready. A connection that is full keeps the rest; one that is gone loses its session."""
        dirty, self._dirty = self._dirty, []
        for session in dirty:
            session.dirty = False
            if session.open:
                self._flush(session, send)
        for session in [s for s in self._backlog if s.congested]:
            self._flush(session, send)
        farewells, self._farewells = self._farewells, []
        for connection, frames in farewells:
            send(connection, frames)

    def tick(self, now: float) -> None:
        """Heartbeats, deadlines and reports. Call a few times per heartbeat."""
        self._now = now
        settings = self.settings
        for session in list(self._sessions.values()):
            silence = now - session.heard
            if silence >= settings.timeout:
                self._end(session, Code.SILENT, f"nothing was heard for {silence:.1f} s")
                continue
            if silence >= settings.heartbeat and now - session.pinged >= settings.heartbeat:
                session.pinged = now
                self._answer(session, Ping(0))
            if session.dropping and not session.congested:
                session.report_drops()
                self._soil(session)
            stuck = next((s for s in session.waiting if self._is_stuck(s)), None)
            if stuck is not None:
                self._slow(stuck, f"took nothing for {settings.block_timeout} s while publishers waited for it")
        for connection in [c for c, until in self._banned.items() if until <= now]:
            del self._banned[connection]
        self._measure(now)

    def stop(self, now: float) -> None:
        """Begin to shut down: no new sessions, subscriptions or publications; what is queued still goes out."""
        self.turn(now)
        self.stopping = True

    def goodbye(self) -> None:
        """End every session with a BYE behind what is already on its way."""
        for session in list(self._sessions.values()):
            session.report_drops()
            self._remove(session)
            session.answer(Bye("the broker is shutting down"))
            self._farewells.extend((session.connection, frames) for frames in session.unsent)

    # -- messages ----------------------------------------------------------------------------------------

    def _hello(self, connection: bytes, user: str | None, message: Hello) -> None:
        if (old := self._sessions.get(connection)) is not None:
            self._remove(old)
        refusal: tuple[Code, str] | None = None
        identity = self._identify(user)
        version = min(message.newest, wire.VERSION)
        if version < max(message.oldest, wire.OLDEST_VERSION):
            offered = f"{message.oldest} to {message.newest}"
            spoken = f"{wire.OLDEST_VERSION} to {wire.VERSION}"
            refusal = Code.VERSION, f"this broker speaks versions {spoken} of the protocol, the client {offered}"
        elif identity is None:
            refusal = Code.UNAUTHORISED, f"the key {user} is not in this broker's key directory: ask its operator"
        elif self.stopping:
            refusal = Code.SHUTTING_DOWN, "the broker is shutting down"
        elif len(self._sessions) >= self.settings.sessions:
            refusal = Code.LIMIT, f"the broker has its {self.settings.sessions} sessions"
        if refusal is not None or identity is None:
            code, reason = refusal or (Code.UNAUTHORISED, "")
            self.counters["refused"] += 1
            log.warning("refused", extra={"code": code, "reason": reason, "client": message.name, "key": user})
            self._farewell(connection, Error(0, code, reason, fatal=True))
            return
        number = self._next_session
        self._next_session += 1
        publisher = identity.name or message.name or f"client-{number}"
        session = Session(connection, number, message.name, publisher, identity.roles, user, self._now)
        self._sessions[connection] = self._numbers[number] = session
        self.counters["sessions_opened"] += 1
        log.info("session opened", extra={"session": number, "client": message.name, "publisher": publisher})
        timing = (self.settings.heartbeat, self.settings.timeout)
        welcome = Welcome(version, self.id, number, publisher, identity.roles, *timing, self.settings.limits)
        self._answer(session, welcome)

    def _subscribe(self, session: Session, message: Subscribe) -> None:
        limits = self.settings.limits
        self._require(session, Role.SUBSCRIBE)
        if message.subscription in session.subscriptions:
            raise _Refusal(Code.DUPLICATE, f"subscription {message.subscription} exists already in this session")
        if len(session.subscriptions) >= limits.subscriptions:
            raise _Refusal(Code.LIMIT, f"a session may have at most {limits.subscriptions} subscriptions")
        if message.queue > limits.queue:
            raise _Refusal(Code.LIMIT, f"a queue may be at most {limits.queue} long")
        self._match()  # what was published before must not be matched against it
        handle = self._next_handle
        try:
            filters = [self.codec.filter(encoded) for encoded in message.filters]
            ids = [id for expression in filters for id in self.table.add(handle, expression)]
        except ContradaError as error:
            self.table.remove_interface(handle)
            raise _Refusal(Code.BAD_FILTER, str(error)) from error
        self._next_handle += 1
        subscription = Subscription(
            session,
            message.subscription,
            handle,
            message.policy,
            credit=message.credit,
            limit=message.queue or min(self.settings.queue, limits.queue),
            limit_bytes=limits.queue_bytes,
            since=self._sequence,
        )
        subscription.filters = ids
        session.subscriptions[message.subscription] = self._subscriptions[handle] = subscription
        self._answer(session, Ack((Acked(message.request),)))

    def _unsubscribe(self, session: Session, message: Unsubscribe) -> None:
        subscription = session.subscriptions.get(message.subscription)
        if subscription is None:
            raise _Refusal(Code.UNKNOWN, f"this session has no subscription {message.subscription}")
        self._match()
        if subscription.session.open:  # matching may have ended the session, for a full queue
            session.report_drops(subscription)
            self._drop_subscription(subscription)
            self._answer(session, Ack((Acked(message.request),)))

    def _publish(self, session: Session, message: Publish) -> None:
        self._require(session, Role.PUBLISH)
        if self.stopping:
            raise _Refusal(Code.SHUTTING_DOWN, "the broker is shutting down")
        bodies = message.notifications
        size = sum(map(len, bodies))
        limits = self.settings.limits
        if session.held + len(bodies) > limits.window or session.held_bytes + size > limits.window_bytes:
            unacknowledged = f"{session.held + len(bodies)} notifications ({session.held_bytes + size} bytes)"
            allowed = f"the window is {limits.window} ({limits.window_bytes} bytes)"
            self._end(session, Code.FLOW, f"{unacknowledged} published without waiting for an ACK; {allowed}")
            return
        read = self.codec.notification
        notifications: list[Mapping[str, Any]] = []
        try:
            for body in bodies:
                notifications.append(read(body))  # noqa: PERF401 (the index of the bad one is wanted)
        except ContradaError as error:
            which = f"notification {len(notifications)} of {len(bodies)}: " if len(bodies) > 1 else ""
            raise _Refusal(Code.BAD_NOTIFICATION, f"{which}{error}") from error
        hold = Hold(session, message.request, self._sequence, len(bodies), size)
        self._sequence += len(bodies)
        session.published += len(bodies)
        session.held += hold.count
        session.held_bytes += hold.bytes
        self.counters["published"] += len(bodies)
        self._pending.append(Publication(hold, bodies, notifications))

    def _credit(self, session: Session, message: Credit) -> None:
        for id, credit in message.grants:
            subscription = session.subscriptions.get(id)
            if subscription is not None:  # a grant may cross an UNSUBSCRIBE on its way
                subscription.credit = min(subscription.credit + credit, _CREDIT_CEILING)
        if session.waiting:
            self._backlog[session] = None

    def _ping(self, session: Session, message: Ping) -> None:
        self._answer(session, Pong(message.nonce))

    def _pong(self, session: Session, message: Pong) -> None:
        """Hearing it was all."""

    def _bye(self, session: Session, message: Bye) -> None:
        self._match()
        if session.open:
            self._remove(session)
            session.answer(Bye())
            self._farewells.extend((session.connection, frames) for frames in session.unsent)
            log.info("session closed", extra={"session": session.number, "reason": message.reason or "bye"})

    def _status(self, session: Session, message: Status) -> None:
        self._require(session, Role.ADMIN)
        self._answer(session, Reply(message.request, status(self, self._now)))

    def _explain(self, session: Session, message: Explain) -> None:
        if message.session not in (0, session.number):
            self._require(session, Role.ADMIN)
        self._match()
        owner = self._numbers.get(message.session or session.number)
        subscription = owner.subscriptions.get(message.subscription) if owner else None
        if owner is None or subscription is None:
            whose = f"session {message.session}" if message.session else "this session"
            raise _Refusal(Code.UNKNOWN, f"{whose} has no subscription {message.subscription}")
        try:
            document = explain(self, subscription, message.notification)
        except Refused as error:
            raise _Refusal(Code.UNKNOWN, str(error)) from error
        self._answer(session, Reply(message.request, document))

    # -- matching and delivery ---------------------------------------------------------------------------

    def _match(self) -> None:
        """Match and queue everything that is pending, then acknowledge what no queue holds back."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        if len(pending) == 1:
            notifications = pending[0].notifications
        else:
            notifications = [n for publication in pending for n in publication.notifications]
        matches = self.table.match_many(notifications)
        self.counters["matched_batches"] += 1
        start = 0
        for hold, bodies, _ in pending:
            matched = matches[start : start + len(bodies)]
            start += len(bodies)
            publisher = hold.publisher.publisher
            self.recent.remember(Batch(self.id, hold.sequence, publisher, bodies, matched, hold.bytes))
            for offset, handles in enumerate(matched):
                if handles:
                    id = NotificationId(self.id, hold.sequence + offset)
                    self._offer(Envelope(id, publisher, bodies[offset]), handles, hold)
            if not hold.waiting:
                self._acknowledge(hold)

    def _offer(self, envelope: Envelope, handles: set[int], hold: Hold) -> None:
        """Give a notification to every subscription that it matched."""
        subscriptions = self._subscriptions
        for handle in handles:
            subscription = subscriptions.get(handle)
            if subscription is None:
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
                subscription.hold(hold, self._now)
            elif full:
                self._slow(subscription, "is full")
            elif subscription.dropped != dropped:
                session.dropping[subscription] = None
                self.drops[Policy.DROP_OLDEST] += subscription.dropped - dropped
                if not subscription.queue:
                    del session.waiting[subscription]

    def _drain(self, session: Session) -> None:
        for subscription in session.drain():
            self._release(subscription)
        if session.entries or session.unsent:
            self._soil(session)
        if not session.congested and not session.backlogged:
            self._backlog.pop(session, None)

    def _release(self, subscription: Subscription, *, ended: bool = False) -> None:
        for hold in subscription.release(self._now, ended=ended):
            self._acknowledge(hold)

    def _acknowledge(self, hold: Hold) -> None:
        session = hold.publisher
        session.held -= hold.count
        session.held_bytes -= hold.bytes
        if session.open:
            session.acks.append(Acked(hold.request, hold.sequence))
            self._soil(session)

    # -- ends of sessions --------------------------------------------------------------------------------

    def _flush(self, session: Session, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        delivered = session.delivered
        outcome = session.flush(send)
        self.counters["delivered"] += delivered - session.counted
        session.counted = delivered
        if outcome is Sent.GONE:
            log.info("session lost", extra={"session": session.number, "reason": "the connection is gone"})
            self.counters["sessions_lost"] += 1
            self._remove(session)
        elif outcome is Sent.FULL:
            self._backlog[session] = None
            if len(session.unsent) > _UNREAD:
                self._end(session, Code.LIMIT, f"more than {_UNREAD} messages were left unread")
        elif session.waiting:
            self._backlog[session] = None

    def _slow(self, subscription: Subscription, what: str) -> None:
        waiting = f"{len(subscription.queue)} notifications ({subscription.waiting_bytes} bytes) waiting"
        self.drops[subscription.policy] += len(subscription.queue)
        reason = f"the queue of subscription {subscription.id} {what}: {waiting}"
        self._end(subscription.session, Code.SLOW_CONSUMER, reason)

    def _is_stuck(self, subscription: Subscription) -> bool:
        since = subscription.full_since
        return since is not None and self._now - since >= self.settings.block_timeout

    def _end(self, session: Session, code: Code, reason: str) -> None:
        """End a session for a fault of its own, and tell it."""
        log.warning("session ended", extra={"session": session.number, "code": code, "reason": reason})
        self.counters["sessions_ended"] += 1
        self._remove(session)
        self._farewell(session.connection, Error(0, code, reason, fatal=True))

    def _farewell(self, connection: bytes, message: Message) -> None:
        self._farewells.append((connection, encode(message)))

    def _remove(self, session: Session) -> None:
        """Forget a session and its subscriptions, and let go of the publishers that waited for them."""
        session.open = False
        del self._sessions[session.connection]
        del self._numbers[session.number]
        self._backlog.pop(session, None)
        for subscription in list(session.subscriptions.values()):
            self._drop_subscription(subscription)

    def _drop_subscription(self, subscription: Subscription) -> None:
        session = subscription.session
        del session.subscriptions[subscription.id]
        del self._subscriptions[subscription.handle]
        self.table.remove_interface(subscription.handle)
        session.waiting.pop(subscription, None)
        session.dropping.pop(subscription, None)
        self._release(subscription, ended=True)

    def _bad_frame(self, connection: bytes, session: Session | None, reason: str, request: int) -> None:
        self.counters["bad_frames"] += 1
        strikes = self._strikes.pop(connection, 0) + 1
        log.warning("bad frame", extra={"session": session.number if session else None, "reason": reason})
        if strikes < self.settings.bad_frames:
            self._strikes[connection] = strikes
            while len(self._strikes) > self.settings.sessions:
                del self._strikes[next(iter(self._strikes))]
            error = Error(request, Code.BAD_FRAME, reason)
            if session is not None:
                session.bad_frames += 1
                self._answer(session, error)
            else:
                self._farewell(connection, error)
            return
        self._banned[connection] = self._now + self.settings.ban
        while len(self._banned) > self.settings.sessions:
            del self._banned[next(iter(self._banned))]
        self.counters["banned"] += 1
        reason = f"{strikes} bad frames, the last: {reason}"
        if session is not None:
            self._end(session, Code.BANNED, reason)
        else:
            self._farewell(connection, Error(0, Code.BANNED, reason, fatal=True))

    def _is_banned(self, connection: bytes) -> bool:
        until = self._banned.get(connection)
        return until is not None and self._now < until

    # -- small things ------------------------------------------------------------------------------------

    def _require(self, session: Session, role: Role) -> None:
        if role not in session.roles:
            log.warning("refused", extra={"session": session.number, "code": Code.UNAUTHORISED, "role": role})
            held = ", ".join(sorted(session.roles)) or "none"
            raise _Refusal(Code.UNAUTHORISED, f"this needs the role {role}; {session.publisher} has {held}")

    def _answer(self, session: Session, message: Message) -> None:
        session.answer(message)
        self._soil(session)

    def _soil(self, session: Session) -> None:
        if not session.dirty:
            session.dirty = True
            self._dirty.append(session)

    def _measure(self, now: float) -> None:
        then, published, delivered = self._measured
        if now - then >= 1.0:
            counted = self.counters["published"], self.counters["delivered"]
            self.rates = {
                "published": (counted[0] - published) / (now - then),
                "delivered": (counted[1] - delivered) / (now - then),
            }
            self._measured = (now, *counted)

    def _check(self) -> None:
        assert set(self._sessions.values()) == set(self._numbers.values())
        assert set(self._subscriptions.values()) == {
            s for session in self._sessions.values() for s in session.subscriptions.values()
        }
        for session in self._sessions.values():
            assert session.open
            session._check()
        assert all(session.open for session in self._backlog)
        for handle, subscription in self._subscriptions.items():
            assert subscription.handle == handle
        self.recent._check()


class _Refusal(Exception):
    """A request that is refused while its session goes on."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


_HANDLERS: dict[type, Callable[[Core, Session, Any], None]] = {
    Subscribe: Core._subscribe,
    Unsubscribe: Core._unsubscribe,
    Publish: Core._publish,
    Credit: Core._credit,
    Ping: Core._ping,
    Pong: Core._pong,
    Bye: Core._bye,
    Status: Core._status,
    Explain: Core._explain,
}
