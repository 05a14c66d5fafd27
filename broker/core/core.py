"""The broker without its sockets: messages in, messages out.

The shell around it (`node/node.py`, or a test) drives it in turns:

    receive(connection, user, frames, now)      for each message that has arrived
    turn(now)                                   match what was published, move what credit allows
    flush(send)                                 hand messages to the transport
    tick(now)                                   a few times per second: heartbeats, deadlines, reports

Time is whatever monotonic number the shell passes in. Here is what each message means; how a notification travels is
in `delivery.py`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.broker.core.admin import explain, status
from contrada.broker.core.ports import Codec, Mishap, Refusal, Table
from contrada.broker.core.standing_index import Indexing
from contrada.broker.core.subscription import Publication, Subscription
from contrada.broker.protocol import wire
from contrada.broker.protocol.frames import decode, request_of
from contrada.broker.protocol.messages import (
    Advertise,
    Attach,
    Bye,
    Credit,
    Dropped,
    Error,
    Explain,
    Hello,
    IndexAdd,
    IndexLoad,
    IndexRemove,
    Link,
    Ping,
    Pong,
    Publish,
    Reply,
    Status,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Welcome,
)
from contrada.broker.protocol.peer_frames import decode_peer
from contrada.broker.protocol.peer_messages import Change, Digest, Forward, LinkStates, Replace
from contrada.broker.protocol.wire import Code, Role
from contrada.errors import ProtocolError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.broker.core.session import Session
    from contrada.broker.node.settings import Settings

log = logging.getLogger("contrada.broker")


class Identity(NamedTuple):
    """Who a key belongs to, and what it may do."""

    name: str
    roles: frozenset[Role]


class Core(Indexing):
    """One broker: every message of the protocol has its method here."""

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
        super().__init__(settings, table, codec, id=id, first_sequence=first_sequence, now=now)
        self.started = now
        self.stopping = False
        self.rates: dict[str, float] = {"published": 0.0, "delivered": 0.0}
        self._measured = (now, 0, 0)
        self._ticked = now
        self._identify = identify
        self._hearing = ("", 0)  # the type of the message that is being heeded, and its session

    # -- events ------------------------------------------------------------------------------------------

    def receive(self, connection: bytes, user: str | None, frames: Sequence[bytes], now: float) -> None:
        """Take in one message. `user` is the key that the transport has verified, None without security."""
        self._now = now
        self.counters["received"] += 1
        self._hearing = "an unread message", 0
        self.turns.enter()
        try:
            self._heed(connection, user, frames, now)
        except Exception as error:
            self._fail(connection, frames, error)
        finally:
            self.turns.leave(*self._hearing)

    def _heed(self, connection: bytes, user: str | None, frames: Sequence[bytes], now: float) -> None:
        if self._offences.is_banned(connection, now):
            return
        session = self._sessions.get(connection)
        if session is not None:
            if session.user != user:
                self._end(session, Code.NO_SESSION, "the connection changed hands: say HELLO again")
                session = None
            else:
                session.heard = now
        try:
            # Without a session it may be what a neighbour said before it knew that the link is gone.
            read = decode if session is not None and session.link is None else decode_peer
            message = read(frames, self.settings.limits)
        except ProtocolError as error:
            self._bad_frame(connection, session, str(error), request_of(frames))
            return
        self._hearing = type(message).__name__.upper(), session.number if session is not None else 0
        if type(message) is Hello and not self.is_dialled(connection):
            self._hello(connection, user, message)
        elif session is None:
            if not self._greeted(connection, message) and type(message) is not Error:  # two brokers must not quarrel
                self._farewell(connection, Error(0, Code.NO_SESSION, "say HELLO first", fatal=True))
        elif (handler := (_HANDLERS if session.link is None else _LINK_HANDLERS).get(type(message))) is None:
            reason = f"{type(message).__name__.upper()} is for the broker to send"
            self._bad_frame(connection, session, reason, 0)
        else:
            try:
                handler(self, session, message)
            except Refusal as refusal:
                self._answer(session, Error(getattr(message, "request", 0), refusal.code, str(refusal)))
                self.counters["refused"] += 1

    def _fail(self, connection: bytes, frames: Sequence[bytes], error: Exception) -> None:
        """What a message led to raised what it should not have: refuse the message, and keep everybody else going.

        Of a link it is not known what the two ends now think of one another: it ends, and is made anew.
        """
        session = self._sessions.get(connection)
        self._mishap(self._hearing[0], session, error)
        reason = str(Mishap(error))
        if session is not None and session.link is not None:
            self._attempt("ending a link", None, self._end, session, Code.INTERNAL, reason)
        else:
            request = request_of(frames)
            self._attempt("refusing", session, self._strike, connection, session, Code.INTERNAL, reason, request)

    def refuse(self, connection: bytes, now: float) -> None:
        """Turn away a connection that chose its own name, which may be somebody else's."""
        self._now = now
        self.counters["received"] += 1
        if connection[:1] == b"\0":  # what only ZeroMQ and this broker may choose: do not even answer
            self.counters["bad_frames"] += 1
        elif not self._offences.is_banned(connection, now):
            self._bad_frame(connection, None, "the connection has a routing id of its own choice: leave it unset", 0)

    def tick(self, now: float) -> None:
        """Heartbeats, deadlines and reports. Call a few times per heartbeat."""
        self._now = now
        settings = self.settings
        if (stall := now - self._ticked - settings.heartbeat) > 0:
            for session in self._sessions.values():  # who was not listened to cannot be called silent
                session.heard += stall
        self._ticked = now
        self._tracebacks = 0
        self.turns.enter()
        for session in list(self._sessions.values()):
            self._attempt("tick", session, self._tick_session, session, now)
        self._attempt("tick of links", None, self._tick_links, now)
        self._offences.expire(now)
        self._measure(now)
        self.turns.leave("tick")

    def _tick_session(self, session: Session, now: float) -> None:
        settings = self.settings
        silence = now - session.heard
        if silence >= (settings.timeout if session.link is None else settings.link_timeout):
            self._end(session, Code.SILENT, f"nothing was heard for {silence:.1f} s")
            return
        if silence >= settings.heartbeat and now - session.pinged >= settings.heartbeat:
            session.pinged = now
            self._answer(session, Ping(0))
        if session.dropping and not session.congested:
            session.report_drops()
            self._soil(session)
        stuck = next((s for s in session.waiting if self._is_stuck(s)), None)
        if stuck is not None:
            self._slow(stuck, f"took nothing for {settings.block_timeout} s while publishers waited for it")

    def stop(self, now: float) -> None:
        """Begin to shut down: no new sessions, subscriptions or publications; what is queued still goes out."""
        self.turn(now)
        self.stopping = True

    def goodbye(self) -> None:
        """End every session with a BYE behind what is already on its way."""
        for session in list(self._sessions.values()):
            self._attempt("goodbye", session, self._leave, session)

    def _leave(self, session: Session) -> None:
        session.report_drops()
        self._close(session, Bye("the broker is shutting down"))

    # -- messages ----------------------------------------------------------------------------------------

    def _hello(self, connection: bytes, user: str | None, message: Hello) -> None:
        if (old := self._sessions.get(connection)) is not None:
            self._remove(old)
        self._unsaid.pop(connection, None)
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
        session = self._open(connection, message.name, identity.name or message.name, identity.roles, user)
        number, publisher = session.number, session.publisher
        log.info("session opened", extra={"session": number, "client": message.name, "publisher": publisher})
        timing = (self.settings.heartbeat, self.settings.timeout)
        welcome = Welcome(version, self.id, number, publisher, identity.roles, *timing, self.settings.limits)
        self._answer(session, welcome)

    def _subscribe(self, session: Session, message: Subscribe) -> None:
        self._require(session, Role.SUBSCRIBE)
        self._require_running()
        super()._subscribe(session, message)

    def _attach(self, session: Session, message: Attach) -> None:
        self._require(session, Role.SUBSCRIBE)
        self._require_running()
        super()._attach(session, message)

    def _change_index(self, session: Session, message: IndexLoad | IndexAdd | IndexRemove) -> None:
        self._require(session, Role.ADMIN)
        if isinstance(message, IndexLoad):
            self._index_load(session, message)
        elif isinstance(message, IndexAdd):
            self._index_add(session, message)
        else:
            self._index_remove(session, message)

    def _publish(self, session: Session, message: Publish) -> None:
        if not session.may_publish:
            self._require(session, Role.PUBLISH)
        if self.stopping:
            self._require_running()
        bodies = message.notifications
        size = sum(map(len, bodies))
        limits = self.settings.limits
        if session.held + len(bodies) > limits.window or session.held_bytes + size > limits.window_bytes:
            unacknowledged = f"{session.held + len(bodies)} notifications ({session.held_bytes + size} bytes)"
            allowed = f"the window is {limits.window} ({limits.window_bytes} bytes)"
            self._end(session, Code.FLOW, f"{unacknowledged} published without waiting for an ACK; {allowed}")
            return
        self._pending.append(Publication(session, message.request, bodies, size))
        self._pending_count += len(bodies)
        session.held += len(bodies)
        session.held_bytes += size

    def _advertise(self, session: Session, message: Advertise) -> None:
        self._require(session, Role.PUBLISH)
        self._require_running()
        super()._advertise(session, message)

    def _credit(self, session: Session, message: Credit) -> None:
        for id, credit in message.grants:
            subscription = session.subscriptions.get(id)
            if subscription is not None:  # a grant may cross an UNSUBSCRIBE on its way
                subscription.credit = min(subscription.credit + credit, wire.MAX_INTEGER)
        if session.waiting and not session.congested:
            self._backlog[session] = None

    def _ping(self, session: Session, message: Ping) -> None:
        self._answer(session, Pong(message.nonce))

    def _pong(self, session: Session, message: Pong) -> None:
        """Hearing it was all."""

    def _bye(self, session: Session, message: Bye) -> None:
        self._match()
        if session.open:
            self._close(session, Bye())
            log.info("session closed", extra={"session": session.number, "reason": message.reason or "bye"})

    def _status(self, session: Session, message: Status) -> None:
        self._require(session, Role.ADMIN)
        self._match()
        if session.open:
            self._answer(session, Reply(message.request, status(self, self._now)))

    def _explain(self, session: Session, message: Explain) -> None:
        if message.session not in (0, session.number):
            self._require(session, Role.ADMIN)
        self._match()
        owner = self._numbers.get(message.session or session.number)
        subscription = owner.subscriptions.get(message.subscription) if owner else None
        if owner is None or subscription is None:
            number = message.session or session.number
            whose = f"session {message.session}" if message.session else "this session"
            if (number, message.subscription) in self.ended:
                raise Refusal(Code.UNKNOWN, f"subscription {message.subscription} of {whose} has ended")
            if owner is None and number < self._next_session:
                raise Refusal(Code.UNKNOWN, f"{whose} has ended, and its subscriptions with it")
            raise Refusal(Code.UNKNOWN, f"{whose} has no subscription {message.subscription}")
        try:
            document = explain(self, subscription, message.notification)
        except Refused as error:
            raise Refusal(Code.UNKNOWN, str(error)) from error
        self._answer(session, Reply(message.request, document))

    # -- small things ------------------------------------------------------------------------------------

    def _bad_frame(self, connection: bytes, session: Session | None, reason: str, request: int) -> None:
        self.counters["bad_frames"] += 1
        log.warning("bad frame", extra={"session": session.number if session else None, "reason": reason})
        self._strike(connection, session, Code.BAD_FRAME, reason, request)

    def _is_stuck(self, subscription: Subscription) -> bool:
        since = subscription.full_since
        return since is not None and self._now - since >= self.settings.block_timeout

    def _require_running(self) -> None:
        if self.stopping:
            raise Refusal(Code.SHUTTING_DOWN, "the broker is shutting down")

    def _require(self, session: Session, role: Role) -> None:
        if role not in session.roles:
            log.warning("refused", extra={"session": session.number, "code": Code.UNAUTHORISED, "role": role})
            held = ", ".join(sorted(session.roles)) or "none"
            raise Refusal(Code.UNAUTHORISED, f"this needs the role {role}; {session.publisher} has {held}")

    def _measure(self, now: float) -> None:
        then, published, delivered = self._measured
        if now - then >= 1.0:
            counted = self.counters["published"], self.counters["delivered"]
            self.rates = {
                "published": (counted[0] - published) / (now - then),
                "delivered": (counted[1] - delivered) / (now - then),
            }
            self._measured = (now, *counted)


_HANDLERS: dict[type, Callable[[Core, Session, Any], None]] = {
    Subscribe: Core._subscribe,
    Unsubscribe: Core._unsubscribe,
    Publish: Core._publish,
    Advertise: Core._advertise,
    Unadvertise: Core._unadvertise,
    Attach: Core._attach,
    IndexLoad: Core._change_index,
    IndexAdd: Core._change_index,
    IndexRemove: Core._change_index,
    Credit: Core._credit,
    Ping: Core._ping,
    Pong: Core._pong,
    Bye: Core._bye,
    Status: Core._status,
    Explain: Core._explain,
    Link: Core._link,
}

_LINK_HANDLERS: dict[type, Callable[[Core, Session, Any], None]] = {
    LinkStates: Core._routing,
    Digest: Core._routing,
    Replace: Core._routing,
    Change: Core._routing,
    Forward: Core._forward,
    Link: Core._link,
    Credit: Core._credit,
    Dropped: Core._peer_dropped,
    Error: Core._peer_error,
    Ping: Core._ping,
    Pong: Core._pong,
    Bye: Core._bye,
}
