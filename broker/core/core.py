"""The broker without its sockets: messages in, messages out.

The loop around it (`node/node.py`, or a test) drives it in turns:

    receive(connection, user, frames, now)      for each message that has arrived
    turn(now)                                   match what was published, move what credit allows
    flush(send)                                 hand messages to the transport
    tick(now)                                   a few times per second: heartbeats, deadlines, reports

Time is whatever monotonic number the loop passes in. The core owns the parts and knows which message goes to which of
them (`handlers`); what each message means is said there:

    strangers        what connections without a session say, some of it in each turn
    sessions         who is connected, what waits to be sent to them, how a session ends
    matching         publications of a turn: one match, or slices of what takes long
    delivery         batches, queues, credit, acknowledgements
    subscriptions    what clients asked for: filters in the table, one interface each
    index            an index loaded from disk, its interfaces, who is attached
    durable          what is kept on disk: durable publications and subscriptions
    overlay          neighbours: what they want and are told; with links, forwarding and advertisements
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from contrada.broker.core.admin import Admin
from contrada.broker.core.delivery import Delivery
from contrada.broker.core.handlers import client_handlers, neighbour_handlers
from contrada.broker.core.matching import Matching
from contrada.broker.core.newcomers import OpenTable
from contrada.broker.core.ports import Codec, Refusal, Table
from contrada.broker.core.publication import ClientSource, Publication
from contrada.broker.core.standing_index import StandingIndex
from contrada.broker.core.subscriptions import Subscriptions
from contrada.broker.durable.durable import Durable
from contrada.broker.overlay.advertisements import Advertisements
from contrada.broker.overlay.forwarding import Forwarding
from contrada.broker.overlay.links import Links
from contrada.broker.overlay.overlay import Overlay
from contrada.broker.protocol.frames import decode, request_of
from contrada.broker.protocol.messages import Bye, Credit, Error, Hello, Publish, Store, Unsubscribe
from contrada.broker.protocol.peer_frames import decode_peer, forward_frames
from contrada.broker.protocol.wire import Code
from contrada.broker.sessions.batch import deliver_frames
from contrada.broker.sessions.session import Handler, Order, SessionKind
from contrada.broker.sessions.sessions import Sessions
from contrada.broker.sessions.strangers import Said, Strangers
from contrada.broker.turn.clock import Clock
from contrada.broker.turn.leftovers import Leftovers
from contrada.broker.turn.mishaps import Mishap, Mishaps
from contrada.broker.turn.turns import Turns
from contrada.broker.turn.work import LATER, Work
from contrada.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contrada.broker.durable.publishing import Storing
    from contrada.broker.node.settings import Settings
    from contrada.broker.sessions.session import Sent, Session
    from contrada.broker.sessions.sessions import Identity
    from contrada.broker.turn.work import Steps

log = logging.getLogger("contrada.broker")

_POSTPONED_BYTES = 256  # that a message takes beside its own bytes while it waits


class Core:
    """One broker."""

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
        self.id = id
        self.table = table = OpenTable(table)
        self.codec = codec
        self.started = now
        self.stopping = False
        self.rates: dict[str, float] = {"published": 0.0, "delivered": 0.0}
        self._measured = (now, 0, 0)
        self._hearing = ("", 0)  # the type of the message that is being heard, and its session

        self.counters: Counter[str] = Counter()
        self.clock = clock = Clock(now)
        self.turns = Turns()
        self.mishaps = mishaps = Mishaps(self.counters)
        self.leftovers = leftovers = Leftovers(lambda error: mishaps.note("leftovers", error))
        self.work = Work(self._hear_message, self._work_failed, step=self._timed)
        self.strangers = Strangers()
        self.heartbeats = Leftovers(lambda error: mishaps.note("tick", error), most=sys.maxsize)  # of a tick
        self.sessions = sessions = Sessions(settings, clock, self.counters, mishaps, id=id, identify=identify)
        self.delivery = delivery = Delivery(
            sessions,
            clock,
            mishaps,
            id=id,
            first_sequence=first_sequence,
            block_timeout=settings.block_timeout,
        )
        self.matching = matching = Matching(table, delivery, mishaps, self.turns)
        self.overlay = overlay = Overlay(
            settings, table, codec, sessions, delivery, leftovers, clock, id=id, incarnation=first_sequence
        )
        self.subscriptions = Subscriptions(
            settings, table, codec, sessions, delivery, matching, overlay, leftovers, mishaps
        )
        self.index = StandingIndex(codec, sessions, delivery, matching, self.subscriptions, overlay, leftovers)
        self.durable = Durable(
            settings, table, codec, sessions, delivery, matching, self.index, overlay, leftovers, clock
        )
        self.advertisements = Advertisements(codec, sessions, overlay, leftovers, most=settings.limits.subscriptions)
        self.links = Links(settings, sessions, overlay, self.advertisements, clock, incarnation=first_sequence)
        self.admin = Admin(self)
        self.forwarding = Forwarding(id, sessions, matching, overlay.router)
        sessions.ended.append(self.work.cancel)
        self._most_postponed = settings.filter_bytes + settings.limits.window_bytes
        self._clients = SessionKind(
            decode=decode,
            encode_batches=deliver_frames,
            handlers=client_handlers(self),
            timeout=settings.timeout,
            counter="delivered",
        )
        self.links.kind = SessionKind(
            decode=decode_peer,
            encode_batches=forward_frames,
            handlers=neighbour_handlers(self),
            timeout=settings.link_timeout,
            counter="forwarded",
            fragile=True,
        )

    # -- the loop's questions ----------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Notifications received in this turn and not yet matched."""
        return self.matching.pending

    @property
    def busy(self) -> bool:
        """Whether another turn would make progress even if nothing arrives."""
        changes = not self.table.lent and (self.leftovers or self.table.newcomers)
        waiting = self.strangers or self.heartbeats or self.work
        return bool(changes or waiting or self.matching.ready) or self.sessions.busy or self.durable.busy

    @property
    def will_last(self) -> bool:
        """Whether the next turn will last: what is ready should be sent before it."""
        return bool(self.work) or self.matching.will_last

    @property
    def congested(self) -> bool:
        """Whether some connection's buffer is full, so that a flush should be tried again at `retry_at`."""
        return self.sessions.congested

    @property
    def retry_at(self) -> float:
        """When to flush again, if `congested`."""
        return self.sessions.retry_at

    # -- events ------------------------------------------------------------------------------------------

    def receive(self, connection: bytes, user: str | None, frames: Sequence[bytes], now: float) -> None:
        """Take in one message. `user` is the key that the transport has verified, None without security."""
        self.clock.now = now
        self.counters["received"] += 1
        known = connection in self.sessions.by_connection or self.links.is_dialled(connection)
        if (known and connection not in self.strangers.connections) or self.strangers.hears_now():
            self._hear(connection, user, frames)
        else:
            self._let_wait(Said(connection, user, frames))

    def _let_wait(self, said: Said) -> None:
        """What a stranger said is heard in a later turn, unless too much waits."""
        if not self.sessions.offences.is_banned(said.connection, self.clock.now):
            self.strangers.put(said)
            while self.strangers.overflow:
                self._hear(*self.strangers.take())

    def _hear(self, connection: bytes, user: str | None, frames: Sequence[bytes] | None) -> None:
        """Hear one message; without frames, turn its connection away."""
        self._hearing = "an unread message", 0
        self.turns.enter()
        try:
            if self.sessions.offences.is_banned(connection, self.clock.now):
                return
            if frames is None:
                reason = "the connection has a routing id of its own choice: leave it unset"
                self.sessions.bad_frame(connection, None, reason, 0)
                return
            session = self.sessions.by_connection.get(connection)
            if session is not None:
                if session.user != user:
                    self.sessions.end(session, Code.NO_SESSION, "the connection changed hands: say HELLO again")
                    session = None
                else:
                    session.heard = self.clock.now
            try:
                # Without a session it may be what a neighbour said before it knew that the link is gone.
                read = session.kind.decode if session is not None else decode_peer
                message = read(frames, self.settings.limits)
            except ProtocolError as error:
                self.sessions.bad_frame(connection, session, str(error), request_of(frames))
                return
            self._hearing = type(message).__name__.upper(), session.number if session is not None else 0
            if type(message) is Hello and not self.links.is_dialled(connection):
                opened = self.sessions.greet(connection, user, message, self._clients)
                if opened is not None:
                    opened.source = ClientSource(opened, self.delivery, self.sessions)
            elif session is not None:
                if session in self.work.tasks and self._postpone(session, message, frames):
                    return
                steps = self._hear_message(session, message)
                if steps is not None:
                    self.work.start(session, message, steps)
            elif not self.links.greeted(connection, message) and type(message) is not Error:  # brokers must not quarrel
                self.sessions.say(connection, Error(0, Code.NO_SESSION, "say HELLO first", fatal=True))
        except Exception as error:
            session = self.sessions.by_connection.get(connection)
            self._fail(self._hearing[0], connection, session, request_of(frames or ()), error)
        finally:
            self.turns.leave(*self._hearing)

    def _postpone(self, session: Session, message: Any, frames: Sequence[bytes]) -> bool:
        """Let a message wait for what its session asked for before, unless it need not."""
        handler = session.handlers.get(type(message))
        if handler is not None and handler.order is Order.NONE:
            return False
        waiting = self.work.postpone(session, message, _POSTPONED_BYTES + sum(map(len, frames)))
        if waiting > self._most_postponed:
            reason = f"{waiting} bytes of messages wait for what the session asked for before"
            self.sessions.end(session, Code.LIMIT, reason)
        return True

    def _hear_message(self, session: Session, message: Any) -> Steps | None:
        """Have a message heard, or refuse it; what is left to do of it."""
        handler = session.handlers.get(type(message))
        try:
            if handler is None:
                self._turn_away(session, message)
                return None
            if self.stopping and handler.needs_running:
                raise Refusal(Code.SHUTTING_DOWN, "the broker is shutting down")
            if handler.order >= Order.MATCHED:
                if not self._may_hear(session, handler):
                    return self._hear_when_matched(session, message, handler)
                if not session.open:  # matching may end a session, for a full queue
                    return None
            return handler.function(session, message)
        except Refusal as refusal:
            self._refuse(session, message, refusal)
            return None

    def _hear_when_matched(self, session: Session, message: Any, handler: Handler) -> Steps:
        while not self._may_hear(session, handler):
            yield LATER
        if session.open and (steps := handler.function(session, message)) is not None:
            yield from steps

    def _may_hear(self, session: Session, handler: Handler) -> bool:
        """Whether what the session published before is matched, and the index may change if the message changes it."""
        is_asked = handler.order is Order.INDEX and (self.table.lent or self.index.readers > 0)
        return self.matching.match_before(session) and not is_asked

    @contextmanager
    def _timed(self, session: Session, message: Any) -> Iterator[None]:
        """Around a step of what a message asked for."""
        self.turns.enter()
        try:
            yield
        finally:
            self.turns.leave(type(message).__name__.upper(), session.number)

    def _refuse(self, session: Session, message: Any, refusal: Refusal) -> None:
        self.sessions.answer(session, Error(getattr(message, "request", 0), refusal.code, str(refusal)))
        self.counters["refused"] += 1

    def _work_failed(self, session: Session, message: Any, error: Exception) -> None:
        """A step of what a message asked for raised."""
        if isinstance(error, Refusal):
            self._refuse(session, message, error)
        else:
            doing, request = type(message).__name__.upper(), getattr(message, "request", 0)
            self._fail(doing, session.connection, session, request, error)

    def _turn_away(self, session: Session, message: Any) -> None:
        """Say why a message is not for this session to send."""
        handler = session.kind.handlers.get(type(message))
        if handler is not None and handler.role is not None:
            self.sessions.require(session, handler.role)
        reason = f"{type(message).__name__.upper()} is for the broker to send"
        self.sessions.bad_frame(session.connection, session, reason, 0)

    def _fail(self, doing: str, connection: bytes, session: Session | None, request: int, error: Exception) -> None:
        """What a message led to raised what it should not have: refuse the message, and keep everybody else going."""
        self.mishaps.note(doing, error, session.number if session is not None else None)
        reason = str(Mishap(error))
        if session is not None and session.kind.fragile:
            self.mishaps.attempt("ending a link", self.sessions.end, session, Code.INTERNAL, reason)
        else:
            strike = self.sessions.strike
            self.mishaps.attempt("refusing", strike, connection, session, Code.INTERNAL, reason, request)

    def refuse(self, connection: bytes, now: float) -> None:
        """Turn away a connection that chose its own name, which may be somebody else's."""
        self.clock.now = now
        self.counters["received"] += 1
        if connection[:1] == b"\0":  # what only ZeroMQ and this broker may choose: do not even answer
            self.counters["bad_frames"] += 1
        elif self.strangers.hears_now():
            self._hear(connection, None, None)
        else:
            self._let_wait(Said(connection, None, None))

    def disconnected(self, connection: bytes, reason: str, now: float) -> None:
        """A dialled connection is gone, or came to nothing."""
        self.clock.now = now
        self.links.disconnected(connection, reason)

    def turn(self, now: float) -> None:
        """Match what was published and move what credit allows."""
        self.clock.now = now
        self.strangers.begin_turn()
        while (said := self.strangers.next()) is not None:
            self._hear(*said)
        self.heartbeats.work()
        self.work.work()
        if not self.table.lent and (self.leftovers or self.table.newcomers):
            self.turns.enter()
            self.table.move_some(self.leftovers.seconds)
            self.leftovers.work()
            self.turns.leave("leftovers")
        self.matching.match_some()
        self.turns.enter()
        self.delivery.drain()
        self.turns.leave("queues")
        self.turns.enter()
        self.durable.turn()
        self.turns.leave("durable")

    def flush(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        """Hand over what is ready. A connection that is full keeps the rest; one that is gone loses its session."""
        self.turns.enter()
        if self.overlay.neighbours:
            self.overlay.give_credit()
        self.sessions.flush(send)
        self.turns.leave("sending")

    def tick(self, now: float) -> None:
        """Heartbeats, deadlines and reports. Call a few times per heartbeat."""
        self.clock.now = now
        self.turns.enter()
        self.mishaps.tick()
        self.sessions.tick(now)
        if not self.heartbeats:  # else the last tick is not through with them
            self.heartbeats.put(self._tick, list(self.sessions.by_connection.values()))
            self.heartbeats.work()
        self.mishaps.attempt("tick of links", self.links.tick)
        self.mishaps.attempt("tick of links", self.overlay.tick)
        self.mishaps.attempt("tick of the disk", self.durable.tick)
        self._measure(now)
        self.turns.leave("tick")

    def _tick(self, session: Session) -> None:
        if session.open:
            self.sessions.attempt("tick", session, self.sessions.keep_alive, session)
        if session.open:
            self.sessions.attempt("tick", session, self.delivery.tick, session)

    def stop(self, now: float) -> None:
        """Begin to shut down: no new sessions, subscriptions or publications; what is queued still goes out."""
        self.turn(now)
        self.stopping = True
        self.sessions.accepting = False

    def goodbye(self) -> None:
        """End every session with a BYE behind what is already on its way."""
        self.sessions.close_all()

    # -- messages ----------------------------------------------------------------------------------------

    def store(self, session: Session, message: Store) -> None:
        """STORE: as `submit`, and acknowledged when it is on disk."""
        storing = self.durable.publish(session, message)
        if storing is not None:
            self.submit(session, message, storing)

    def submit(self, session: Session, message: Publish | Store, storing: Storing | None = None) -> None:
        """PUBLISH, within the window: to be matched with everything else of the turn."""
        bodies = message.notifications
        size = sum(map(len, bodies))
        limits = self.settings.limits
        if (
            session.unacknowledged + len(bodies) > limits.window
            or session.unacknowledged_bytes + size > limits.window_bytes
        ):
            unacknowledged = (
                f"{session.unacknowledged + len(bodies)} notifications ({session.unacknowledged_bytes + size} bytes)"
            )
            allowed = f"the window is {limits.window} ({limits.window_bytes} bytes)"
            reason = f"{unacknowledged} published without waiting for an ACK; {allowed}"
            self.sessions.end(session, Code.FLOW, reason)
            return
        assert session.source is not None
        self.matching.submit(Publication(session.source, message.request, bodies, size, storing=storing))

    def grant(self, session: Session, message: Credit) -> None:
        """CREDIT: receivers may get more, durable ones too."""
        self.delivery.grant(session, message)
        self.durable.granted(session)

    def unsubscribe(self, session: Session, message: Unsubscribe) -> None:
        """UNSUBSCRIBE: ends a subscription; a durable one is left, and goes on."""
        if not self.durable.leave(session, message):
            self.subscriptions.unsubscribe(session, message)

    def bye(self, session: Session, message: Bye) -> None:
        """BYE: the other end leaves; what it published before is delivered."""
        self.sessions.close(session, Bye())
        log.info("session closed", extra={"session": session.number, "reason": message.reason or "bye"})

    # -- small things ------------------------------------------------------------------------------------

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
        for part in (
            self.sessions,
            self.delivery,
            self.matching,
            self.subscriptions,
            self.index,
            self.durable,
            self.overlay,
            self.work,
            self.strangers,
        ):
            part._check()
