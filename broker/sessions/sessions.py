"""Who is connected: greeting, roles, heartbeats, offences, what waits to be sent, and how a session ends.

Owns the sessions and everything that is on its way to a connection. Tells everybody in `ended` that a session has
ended, whatever the reason, after it is gone from here. Knows neither what sessions subscribe to nor what is at their
other end.

    by_connection    connection → Session           by its transport address
    by_number        session number → Session       the same sessions, by the name that operators use
    backlog          sessions with notifications waiting, whose connections take them
    _dirty           sessions with something to send
    _congested       sessions whose connections take no more for now; tried again, the less often the more they are
    _farewells       messages for connections without a session, and `_unsaid` those that were not taken yet
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contrada.broker.core.ports import Refusal
from contrada.broker.protocol import wire
from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.messages import Bye, Error, Hello, Ping, Pong, Welcome
from contrada.broker.protocol.wire import Code
from contrada.broker.sessions.offences import Offences
from contrada.broker.sessions.session import Sent, Session
from contrada.broker.turn.mishaps import Mishap

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from contrada.broker.node.settings import Settings
    from contrada.broker.protocol.messages import Message
    from contrada.broker.protocol.wire import Role
    from contrada.broker.sessions.session import SessionKind
    from contrada.broker.turn.clock import Clock
    from contrada.broker.turn.mishaps import Mishaps

    Send = Callable[[bytes, Sequence[bytes]], Sent]

log = logging.getLogger("contrada.broker")

_UNREAD: Final = 4096  # messages that a congested client may leave unread before its session is ended
_UNHEARD: Final = 16  # answers that a connection without a session may leave unread before it gets no more
_LOGGED: Final = 64  # bad frames between two ticks: more are only counted, since a line takes longer than the frame
_RETRY: Final = 0.002  # seconds before congested connections are tried again,
_RETRY_EACH: Final = 0.00005  # and more for each of them: stuck clients must not take the time of the others


class Identity(NamedTuple):
    """Who a key belongs to, and what it may do."""

    name: str
    roles: frozenset[Role]


class Sessions:
    """The sessions of one broker."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        counters: Counter[str],
        mishaps: Mishaps,
        *,
        id: str = "",
        identify: Callable[[str | None], Identity | None] = lambda _user: None,
    ) -> None:
        self.counters = counters
        self.by_connection: dict[bytes, Session] = {}
        self.by_number: dict[int, Session] = {}
        self.backlog: dict[Session, None] = {}
        self.ended: list[Callable[[Session], None]] = []
        self.accepting = True
        self.next_number = 1
        self.retry_at = clock.now
        self._settings = settings
        self._clock = clock
        self._mishaps = mishaps
        self._id = id
        self._identify = identify
        self.offences = Offences(settings.bad_frames, settings.ban, settings.sessions)
        self._dirty: list[Session] = []
        self._congested: dict[Session, None] = {}
        self._farewells: list[tuple[bytes, Sequence[bytes]]] = []
        self._unsaid: dict[bytes, tuple[float, deque[Sequence[bytes]]]] = {}  # until when to try
        self._ticked = clock.now
        self._bad_frames = 0  # since then

    @property
    def busy(self) -> bool:
        """Whether another turn would make progress even if nothing arrives."""
        return bool(self._dirty) or any(session.backlogged for session in self.backlog)

    @property
    def congested(self) -> bool:
        """Whether some connection's buffer is full, so that a flush should be tried again at `retry_at`."""
        return bool(self._congested or self._unsaid)

    # -- how a session begins ----------------------------------------------------------------------------

    def greet(self, connection: bytes, user: str | None, message: Hello, kind: SessionKind) -> Session | None:
        """HELLO: begin a session, in place of any before, or say why not."""
        if (old := self.by_connection.get(connection)) is not None:
            self.remove(old)
        self._unsaid.pop(connection, None)
        identity = self._identify(user)
        version = min(message.newest, wire.VERSION)
        refusal: tuple[Code, str]
        if version < max(message.oldest, wire.OLDEST_VERSION):
            offered = f"{message.oldest} to {message.newest}"
            spoken = f"{wire.OLDEST_VERSION} to {wire.VERSION}"
            refusal = Code.VERSION, f"this broker speaks versions {spoken} of the protocol, the client {offered}"
        elif identity is None:
            refusal = Code.UNAUTHORISED, f"the key {user} is not in this broker's key directory: ask its operator"
        elif not self.accepting:
            refusal = Code.SHUTTING_DOWN, "the broker is shutting down"
        elif len(self.by_connection) >= self._settings.sessions:
            refusal = Code.LIMIT, f"the broker has its {self._settings.sessions} sessions"
        else:
            session = self.open(connection, message.name, identity.name or message.name, identity.roles, user, kind)
            session.version = version
            number, publisher = session.number, session.publisher
            log.info("session opened", extra={"session": number, "client": message.name, "publisher": publisher})
            timing = (self._settings.heartbeat, self._settings.timeout)
            roles, limits = identity.roles, self._settings.limits
            self.answer(session, Welcome(version, self._id, number, publisher, roles, *timing, limits))
            return session
        code, reason = refusal
        self.counters["refused"] += 1
        log.warning("refused", extra={"code": code, "reason": reason, "client": message.name, "key": user})
        self.say(connection, Error(0, code, reason, fatal=True))
        return None

    def open(
        self,
        connection: bytes,
        name: str,
        publisher: str,
        roles: frozenset[Role],
        user: str | None,
        kind: SessionKind,
    ) -> Session:
        """Register a new session."""
        number = self.next_number
        self.next_number += 1
        session = Session(kind, connection, number, name, publisher or f"client-{number}", roles, user, self._clock.now)
        self.by_connection[connection] = self.by_number[number] = session
        self.counters["sessions_opened"] += 1
        return session

    def require(self, session: Session, role: Role) -> None:
        """Refuse what a session may not do."""
        if role not in session.roles:
            log.warning("refused", extra={"session": session.number, "code": Code.UNAUTHORISED, "role": role})
            roles = ", ".join(sorted(session.roles)) or "none"
            raise Refusal(Code.UNAUTHORISED, f"this needs the role {role}; {session.publisher} has {roles}")

    def afford(self, session: Session, filters: Sequence[bytes]) -> int:
        """Count the bytes of more filters, if a session may still have them."""
        size = sum(map(len, filters))
        most = self._settings.filter_bytes
        if session.filter_bytes + size > most:
            raise Refusal(Code.LIMIT, f"the filters of a session may have at most {most} bytes together")
        return size

    # -- what is sent ------------------------------------------------------------------------------------

    def answer(self, session: Session, message: Message) -> None:
        """Send a message, behind the deliveries so far."""
        session.answer(message)
        self.mark(session)

    def mark(self, session: Session) -> None:
        """There is something to send to a session."""
        if not session.dirty:
            session.dirty = True
            self._dirty.append(session)

    def say(self, connection: bytes, message: Message) -> None:
        """Send to a connection without a session, unless it has left many answers unread."""
        if connection in self._unsaid and len(self._unsaid[connection][1]) >= _UNHEARD:
            return
        self._farewells.append((connection, encode(message)))

    def flush(self, send: Send) -> None:
        """Hand over what is ready. A connection that is full keeps the rest; one that is gone loses its session."""
        if self._farewells:
            self._flush_farewells(send)  # before the dirty: a connection may have said HELLO again
        dirty, self._dirty = self._dirty, []
        for session in dirty:
            session.dirty = False
            if session.open:
                try:
                    self._flush(session, send)
                except Exception as error:
                    self._failed("sending", session, error)
        if self.congested and self._clock.now >= self.retry_at:
            self._retry(send)

    def _flush(self, session: Session, send: Send) -> None:
        delivered = session.delivered
        outcome = session.flush(send)
        self.counters[session.kind.counter] += delivered - session.counted
        session.counted = delivered
        if outcome is Sent.GONE:
            log.info("session lost", extra={"session": session.number, "reason": "the connection is gone"})
            self.counters["sessions_lost"] += 1
            self.remove(session)
            return
        if outcome is Sent.FULL:
            self._congested[session] = None
            self.backlog.pop(session, None)
            if len(session.unsent) > _UNREAD:
                self.end(session, Code.LIMIT, f"more than {_UNREAD} messages were left unread")
            return
        if self._congested:
            self._congested.pop(session, None)
        if session.waiting:
            self.backlog[session] = None

    def _flush_farewells(self, send: Send) -> None:
        """What a full connection does not take waits its turn, for as long as a silent client."""
        farewells, self._farewells = self._farewells, []
        for connection, frames in farewells:
            if connection in self._unsaid:
                self._unsaid[connection][1].append(frames)
            elif self._send_farewell(send, connection, frames) is Sent.FULL:
                self._unsaid[connection] = self._clock.now + self._settings.timeout, deque((frames,))

    def _send_farewell(self, send: Send, connection: bytes, frames: Sequence[bytes]) -> Sent:
        try:
            return send(connection, frames)
        except Exception as error:
            self._mishaps.note("sending", error)
            return Sent.GONE

    def _retry(self, send: Send) -> None:
        now = self._clock.now
        for session in list(self._congested):
            self.attempt("sending", session, self._flush, session, send)
        for connection, (deadline, waiting) in list(self._unsaid.items()):
            outcome = Sent.OK
            while waiting and outcome is Sent.OK:
                outcome = self._send_farewell(send, connection, waiting[0])
                if outcome is Sent.OK:
                    waiting.popleft()
            if not waiting or outcome is Sent.GONE or now >= deadline:
                del self._unsaid[connection]
        self.retry_at = now + _RETRY + _RETRY_EACH * (len(self._congested) + len(self._unsaid))

    # -- heartbeats --------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Forgive the silence of those who were not listened to, and those whose ban is over."""
        if (stall := now - self._ticked - self._settings.heartbeat) > 0:
            for session in self.by_connection.values():
                session.heard += stall
        self._ticked = now
        self._bad_frames = 0
        self.offences.expire(now)

    def keep_alive(self, session: Session) -> None:
        """End a session whose other end is silent, or ask whether it is there."""
        now, heartbeat = self._clock.now, self._settings.heartbeat
        silence = now - session.heard
        if silence >= session.kind.timeout:
            self.end(session, Code.SILENT, f"nothing was heard for {silence:.1f} s")
        elif silence >= heartbeat and now - session.pinged >= heartbeat:
            session.pinged = now
            self.answer(session, Ping(0))

    def pong(self, session: Session, message: Ping) -> None:
        """PING: answer it."""
        self.answer(session, Pong(message.nonce))

    def heard_pong(self, session: Session, message: Pong) -> None:
        """PONG: that the session was heard is noted already."""

    # -- offences ----------------------------------------------------------------------------------------

    def bad_frame(self, connection: bytes, session: Session | None, reason: str, request: int) -> None:
        """A message is not of the protocol."""
        self.counters["bad_frames"] += 1
        self._bad_frames += 1
        if self._bad_frames <= _LOGGED:
            log.warning("bad frame", extra={"session": session.number if session else None, "reason": reason})
        self.strike(connection, session, Code.BAD_FRAME, reason, request)

    def strike(self, connection: bytes, session: Session | None, code: Code, reason: str, request: int) -> None:
        """Answer what a connection did; too many of that end its session, and it is ignored for a while."""
        strikes = self.offences.strike(connection, self._clock.now)
        if strikes:
            self.counters["banned"] += 1
            reason = f"{strikes} bad frames, the last: {reason}"
            if session is not None:
                self.end(session, Code.BANNED, reason)
            else:
                self.say(connection, Error(0, Code.BANNED, reason, fatal=True))
        elif session is not None:
            session.bad_frames += 1
            self.answer(session, Error(request, code, reason))
        else:
            self.say(connection, Error(request, code, reason))

    # -- how a session ends ------------------------------------------------------------------------------

    def attempt(self, doing: str, session: Session, function: Callable[..., object], *arguments: Any) -> None:
        """Do something for a session, which ends if that raises; nobody else is to feel it."""
        try:
            function(*arguments)
        except Exception as error:
            self._failed(doing, session, error)

    def _failed(self, doing: str, session: Session, error: Exception) -> None:
        self._mishaps.note(doing, error, session.number)
        if session.open:
            self._mishaps.attempt("ending a session", self.end, session, Code.INTERNAL, str(Mishap(error)))

    def end(self, session: Session, code: Code, reason: str) -> None:
        """End a session for a fault of its own, and tell it."""
        log.warning("session ended", extra={"session": session.number, "code": code, "reason": reason})
        self.counters["sessions_ended"] += 1
        self.close(session, Error(0, code, reason, fatal=True))

    def close(self, session: Session, last: Message) -> None:
        """End a session with a last message, behind what is already on its way."""
        self.remove(session)
        self._farewells.extend((session.connection, frames) for frames in session.closing(last))

    def close_all(self) -> None:
        """End every session with a BYE behind what is already on its way."""
        for session in list(self.by_connection.values()):
            self.attempt("goodbye", session, self._leave, session)

    def _leave(self, session: Session) -> None:
        session.report_drops()
        self.close(session, Bye("the broker is shutting down"))

    def remove(self, session: Session) -> None:
        """Forget a session, and tell everybody."""
        session.open = False
        del self.by_connection[session.connection]
        del self.by_number[session.number]
        self.backlog.pop(session, None)
        self._congested.pop(session, None)
        for listener in self.ended:
            self._mishaps.attempt("ending a session", listener, session)

    def _check(self) -> None:
        assert set(self.by_connection.values()) == set(self.by_number.values())
        for session in self.by_connection.values():
            assert session.open
            session._check()
        assert all(session.open and not session.congested for session in self.backlog)
        assert set(self._congested) == {session for session in self.by_connection.values() if session.congested}
