"""Links between brokers: how one is made, by whoever dials, and how it is lost.

A connection becomes a link by an exchange of LINKs; from there on heartbeats, congestion, credit and closing are those
of any session. Of two brokers that dial each other one link stays.

    dialled:   transport.open, HELLO ─▶ WELCOME: a neighbour's session, LINK ─▶ LINK: up
    accepted:  HELLO, WELCOME as for any client ─▶ LINK: the session becomes a neighbour's, LINK, up

Owns the dials (`dial.py`: whom to dial, and when). Tells the `Overlay` which links are up and which are lost.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Final

from contrada.broker.core.ports import Refusal
from contrada.broker.overlay.dial import Dial, NoTransport, Peer, Transport
from contrada.broker.overlay.neighbour import Neighbour
from contrada.broker.protocol.messages import Bye, Error, Hello, Link, Message, Welcome
from contrada.broker.protocol.wire import CUSTODY_VERSION, LIST_LENGTH, OLDEST_VERSION, VERSION, Code, Role
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from contrada.broker.node.settings import Settings
    from contrada.broker.overlay.advertisements import Advertisements
    from contrada.broker.overlay.overlay import Overlay
    from contrada.broker.protocol.peer_messages import PeerMessage
    from contrada.broker.sessions.session import Session, SessionKind
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.turn.clock import Clock

log = logging.getLogger("contrada.broker")

MOST_LINKS: Final = LIST_LENGTH  # a LINK_STATES names no more


class Links:
    """The links of one broker, and those that it would like to have."""

    def __init__(
        self,
        settings: Settings,
        sessions: Sessions,
        overlay: Overlay,
        advertisements: Advertisements,
        clock: Clock,
        *,
        incarnation: int,
    ) -> None:
        self.transport: Transport = NoTransport()
        self.dials = [Dial(Peer.parse(address)) for address in settings.peers]
        self.kind: SessionKind  # of neighbours' sessions; the core sets it, whose handlers it names
        self._timeout = settings.timeout
        self._sessions = sessions
        self._overlay = overlay
        self._advertisements = advertisements
        self._clock = clock
        self._incarnation = incarnation
        self._crs = settings.crs
        self._dialled: dict[bytes, Dial] = {}
        self._retired: list[bytes] = []
        self._attempts = 0
        self._random = random.Random(overlay.id)  # brokers that lost the same link must not redial in step
        self._started = clock.now
        overlay.expects_link = self.expects_link
        sessions.ended.append(self.session_ended)

    # -- dialling ----------------------------------------------------------------------------------------

    def is_dialled(self, connection: bytes) -> bool:
        """Whether this broker opened the connection."""
        return connection in self._dialled

    def expects_link(self, seconds: float) -> bool:
        """Whether a peer is dialled that is not linked, and this broker has not been there for longer than that."""
        return self._clock.now - self._started < seconds and not all(map(self._is_linked, self.dials))

    def tick(self) -> None:
        """Close what is lost, and dial whoever is due."""
        now = self._clock.now
        for connection in self._retired:
            self.transport.close(connection)
        self._retired.clear()
        for dial in self.dials:
            if dial.connection is not None:
                if now >= dial.deadline:
                    self.disconnected(dial.connection, self.transport.silence(dial.connection))
            elif now >= max(dial.next_at, self._overlay.stands_down_until) and not self._is_linked(dial):
                self._dial(dial)

    def _is_linked(self, dial: Dial) -> bool:
        return dial.neighbour in self._overlay.neighbours

    def _dial(self, dial: Dial) -> None:
        self._attempts += 1
        connection = b"\0dial-%d" % self._attempts  # no client's: theirs are 5 bytes, or begin with no zero
        dial.begin(connection, self._clock.now + self._timeout)
        self._dialled[connection] = dial
        try:
            self.transport.open(connection, dial.peer)
        except ContradaError as error:
            self.disconnected(connection, str(error))
        else:
            self._sessions.say(connection, Hello(OLDEST_VERSION, VERSION, self._overlay.id))

    def disconnected(self, connection: bytes, reason: str) -> None:
        """A dialled connection is gone, or came to nothing."""
        session = self._sessions.by_connection.get(connection)
        dial = self._dialled.get(connection)
        if session is not None:
            log.info("link lost", extra={"neighbour": session.name, "reason": reason})
            self._sessions.remove(session)
        elif dial is not None:
            if dial.failures == 0:  # once, not at every attempt
                log.warning("cannot link", extra={"peer": dial.peer.url, "reason": reason})
            self._hang_up(dial)

    def _hang_up(self, dial: Dial) -> None:
        if dial.connection is not None:
            del self._dialled[dial.connection]
            self._retired.append(dial.connection)
        dial.hung_up(self._clock.now, self._random)

    def greeted(self, connection: bytes, message: Message | PeerMessage) -> bool:
        """Take the answer to our HELLO; False when we said none there."""
        dial = self._dialled.get(connection)
        if dial is None:
            return False
        if not isinstance(message, Welcome):
            reason = message.reason if isinstance(message, Error) else f"{type(message).__name__.upper()} for HELLO"
            self.disconnected(connection, reason)
            return True
        dial.neighbour = broker = message.broker
        own = self._overlay.id
        if self._is_linked(dial):
            log.info("linked already", extra={"neighbour": broker, "peer": dial.peer.url})
            self._sessions.say(connection, Bye("linked already"))
            self._hang_up(dial)
        elif Role.PEER not in message.roles:
            self.disconnected(connection, f"{broker} does not give this broker's key the role peer")
        elif broker == own:
            self.disconnected(connection, f"{own} is this broker's own id: is it its own peer?")
        else:
            session = self._sessions.open(connection, broker, broker, frozenset((Role.PEER,)), None, self.kind)
            self._overlay.new_neighbour(broker, session, dial)
            self._sessions.answer(session, self._own_link(message.version >= CUSTODY_VERSION))
        return True

    # -- LINK --------------------------------------------------------------------------------------------

    def answered(self, session: Session, message: Link) -> None:
        """LINK, from a broker that was dialled: it answers ours."""
        link = session.source
        if not isinstance(link, Neighbour) or link.up or link.id != message.broker:
            self._sessions.end(session, Code.BAD_FRAME, "a LINK that answers none")
        elif (unlike := self._unlike(message)) is not None:
            log.error("unlike shapes", extra={"neighbour": message.broker, "reason": unlike})
            self._sessions.close(session, Bye(unlike))
        elif message.broker in self._overlay.neighbours:
            self._sessions.close(session, Bye("linked already"))
        else:
            link.incarnation = message.incarnation
            link.custody = message.custody and self._overlay.custody is not None
            self._link_up(link)

    def accept(self, session: Session, message: Link) -> None:
        """LINK, from what was a client until now: the other end is a broker."""
        rival = self._rival(message.broker)
        self._check_link(session, message, rival)
        session.become(self.kind)
        session.name = message.broker
        link = self._overlay.new_neighbour(message.broker, session, None)
        link.incarnation = message.incarnation
        link.custody = message.custody and self._overlay.custody is not None
        self._sessions.answer(session, self._own_link(message.custody))
        self._link_up(link)
        if rival is not None:
            self._sessions.close(rival.session, Bye("replaced by another connection"))

    def _check_link(self, session: Session, message: Link, rival: Neighbour | None) -> None:
        """Refuse what cannot become a link."""
        overlay, broker = self._overlay, message.broker
        if Role.PEER not in session.roles:
            raise Refusal(Code.UNAUTHORISED, "a link needs the role peer")
        if session.receivers or self._advertisements.has_any(session) or session.unacknowledged:
            raise Refusal(Code.BAD_FRAME, "LINK comes first in a session, or not at all")
        if broker == overlay.id:
            raise Refusal(Code.DUPLICATE, f"{overlay.id} is this broker's own id")
        if message.advertisements != overlay.router.advertisements:
            raise Refusal(Code.VERSION, "advertisements are on at one end only: set them alike in the whole overlay")
        if (unlike := self._unlike(message)) is not None:
            raise Refusal(Code.VERSION, unlike)
        if overlay.stands_down:
            raise Refusal(Code.DUPLICATE, f"another broker has the id {overlay.id} too, and this one stands down")
        if len(overlay.neighbours) >= MOST_LINKS and broker not in overlay.neighbours:
            raise Refusal(Code.LIMIT, f"{overlay.id} has its {MOST_LINKS} links")
        if rival is not None and rival.incarnation > message.incarnation:
            log.error("two brokers of one id", extra={"neighbour": broker, "linked": rival.session.number})
            raise Refusal(Code.DUPLICATE, f"another broker has the id {broker} too, and started later")
        if rival is not None and rival.dial is not None and overlay.id < broker:
            raise Refusal(Code.DUPLICATE, f"{overlay.id} has dialled {broker} itself, and its id is the smaller")

    def _unlike(self, message: Link) -> str | None:
        """In what the other broker takes shapes for something else; None when it does not."""
        own = self._overlay.relations
        if message.crs != self._crs:
            return f"crs is {message.crs} at {message.broker} and {self._crs} here: set it alike in the whole overlay"
        if message.relations != own:
            unlike = f"regions are related {message.relations} at {message.broker} and {own} here"
            return f"{unlike}: set discretization, density and halo alike in the whole overlay"
        return None

    def _rival(self, broker: str) -> Neighbour | None:
        """Another link to the same broker, up or about to be."""
        sessions = (self._sessions.by_connection.get(connection) for connection in self._dialled)
        pending = (s.source for s in sessions if s is not None and isinstance(s.source, Neighbour))
        return self._overlay.neighbours.get(broker) or next((link for link in pending if link.id == broker), None)

    def _link_up(self, link: Neighbour) -> None:
        if link.dial is not None:
            link.dial.linked(self._clock.now)
        self._overlay.link_up(link)

    def _own_link(self, custody: bool) -> Link:
        """What this end says, of `custody` too if the other end understands that."""
        overlay = self._overlay
        custody = custody and overlay.custody is not None
        return Link(overlay.id, overlay.router.advertisements, self._incarnation, self._crs, overlay.relations, custody)

    def session_ended(self, session: Session) -> None:
        """A link is lost, if it was one."""
        if isinstance(link := session.source, Neighbour):
            if link.dial is not None:
                self._hang_up(link.dial)
            self._overlay.link_down(link)
