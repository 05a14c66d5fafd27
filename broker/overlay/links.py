"""Links between brokers, as sessions of the switchboard.

A link is a session whose other end is a broker. It becomes one by an exchange of LINKs, whoever dialled; from there on
heartbeats, congestion, credit and closing are those of any session. The neighbour's interest is one interface of the
forwarding table, and its `outlet` a subscription, so that a notification finds its way to clients and
neighbours by the same match and waits for both in the same kind of queue. What is wanted where is the `Router`'s
business: this module tells it what happens and does what it says.

    LINK, connection lost ─▶ link_up, link_down ─┐            ┌─▶ Send       a message in the session's queue
    LINK_STATES, DIGEST, … ─▶ receive ───────────┤  Router    ├─▶ Install    filters of the neighbour's interface
    SUBSCRIBE, UNSUBSCRIBE ─▶ subscribe, … ──────┘            └─▶ Uninstall

The router sleeps until there is a link: a broker alone pays nothing for it.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any, Final

from contrada.broker.core.delivery import Switchboard
from contrada.broker.core.ports import Codec, Refusal, Table
from contrada.broker.core.session import Session
from contrada.broker.core.subscription import Subscription
from contrada.broker.overlay.actions import Action, Install, Send, StandDown
from contrada.broker.overlay.dial import Dial, NoTransport, Peer, Transport
from contrada.broker.overlay.neighbour import Interest, Neighbour
from contrada.broker.overlay.report import links
from contrada.broker.overlay.router import Router
from contrada.broker.protocol.messages import Bye, Error, Hello, Link, Message, Welcome
from contrada.broker.protocol.peer_frames import encode_peer, forward_frames, split
from contrada.broker.protocol.peer_messages import Change, Digest, LinkStates, PeerMessage, Replace
from contrada.broker.protocol.wire import LIST_LENGTH, OLDEST_VERSION, VERSION, Code, Policy, Role
from contrada.errors import ContradaError
from contrada.forwarding.codec.msgpack import encode_filter
from contrada.forwarding.language.filter import Filter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contrada.broker.node.settings import Settings

log = logging.getLogger("contrada.broker")

WINDOW: Final = 8192  # notifications that may be on their way over a link, one way
MOST_LINKS: Final = LIST_LENGTH  # a LINK_STATES names no more
OUTLET: Final = 0  # the subscription number of a link's outlet


class Linking(Switchboard):
    """A switchboard with neighbours."""

    def __init__(
        self, settings: Settings, table: Table, codec: Codec, *, id: str, first_sequence: int, now: float
    ) -> None:
        super().__init__(settings, table, codec, id=id, first_sequence=first_sequence, now=now)
        self.transport: Transport = NoTransport()
        self.neighbours: dict[str, Neighbour] = {}  # those whose link is up, by broker id
        self.interests: dict[str, Interest] = {}
        self.dials = [Dial(Peer.parse(address)) for address in settings.peers]
        self.router = Router(
            id,
            encode=encode_filter,
            decode=self._known_filter,
            sequence=first_sequence,
            incarnation=first_sequence,
            priority=settings.priority,
            advertisements=settings.advertisements,
            stale_after=settings.stale_after,
            hop_limit=settings.hop_limit,
        )
        self.link_rows: list[dict[str, Any]] = []  # what `report.links` said lately, for other threads to read
        self._awake = False
        self._incarnation = first_sequence
        self._stands_down_until = 0.0
        self._tree_links: frozenset[str] = frozenset()
        self._dialled: dict[bytes, Dial] = {}
        self._retired: list[bytes] = []
        self._attempts = 0
        self._random = random.Random(id)  # brokers that lost the same link must not redial in step
        self._decoded: dict[bytes, Filter] = {}
        self._next_session = 1
        self._next_handle = 1

    @property
    def subscriptions(self) -> Mapping[int, Subscription]:
        """Clients' subscriptions by their interface in the table."""
        return {handle: s for handle, s in self._subscriptions.items() if s.session.link is None}

    @property
    def stands_down(self) -> bool:
        """Whether this broker has left the overlay to another of its id."""
        return self._now < self._stands_down_until

    # -- dialling ----------------------------------------------------------------------------------------

    def is_dialled(self, connection: bytes) -> bool:
        """Whether this broker opened the connection."""
        return connection in self._dialled

    def _tick_links(self, now: float) -> None:
        for connection in self._retired:
            self.transport.close(connection)
        self._retired.clear()
        for dial in self.dials:
            if dial.connection is not None:
                if now >= dial.deadline:
                    self.disconnected(dial.connection, "no answer", now)
            elif now >= max(dial.next_at, self._stands_down_until) and dial.neighbour not in self.neighbours:
                self._attempts += 1
                connection = b"\0dial-%d" % self._attempts  # no client's: theirs are 5 bytes, or begin with no zero
                dial.begin(connection, now + self.settings.timeout)
                self._dialled[connection] = dial
                try:
                    self.transport.open(connection, dial.peer)
                except ContradaError as error:
                    self.disconnected(connection, str(error), now)
                else:
                    self._farewell(connection, Hello(OLDEST_VERSION, VERSION, self.id))
        if self._awake:
            self._act(self.router.tick(now))
            self.link_rows = links(self, now)

    def disconnected(self, connection: bytes, reason: str, now: float) -> None:
        """A dialled connection is gone, or came to nothing."""
        self._now = now
        session = self._sessions.get(connection)
        dial = self._dialled.get(connection)
        if session is not None:
            log.info("link lost", extra={"neighbour": session.name, "reason": reason})
            self._remove(session)
        elif dial is not None:
            if dial.failures == 0:  # once, not at every attempt
                log.warning("cannot link", extra={"peer": dial.peer.url, "reason": reason})
            self._hang_up(dial)

    def _hang_up(self, dial: Dial) -> None:
        if dial.connection is not None:
            del self._dialled[dial.connection]
            self._retired.append(dial.connection)
        dial.hung_up(self._now, self._random)

    def _greeted(self, connection: bytes, message: Message | PeerMessage) -> bool:
        """Take the answer to our HELLO; False when we said none there."""
        dial = self._dialled.get(connection)
        if dial is None:
            return False
        if not isinstance(message, Welcome):
            reason = message.reason if isinstance(message, Error) else f"{type(message).__name__.upper()} for HELLO"
            self.disconnected(connection, reason, self._now)
            return True
        dial.neighbour = message.broker
        if message.broker in self.neighbours:
            log.info("linked already", extra={"neighbour": message.broker, "peer": dial.peer.url})
            self._farewell(connection, Bye("linked already"))
            self._hang_up(dial)
        elif Role.PEER not in message.roles:
            self.disconnected(connection, f"{message.broker} does not give this broker's key the role peer", self._now)
        elif message.broker == self.id:
            self.disconnected(connection, f"{self.id} is this broker's own id: is it its own peer?", self._now)
        else:
            session = self._open(connection, message.broker, message.broker, frozenset((Role.PEER,)), None)
            session.link = self._neighbour(message.broker, session, dial)
            self._answer(session, self._own_link())
        return True

    def _open(self, connection: bytes, name: str, publisher: str, roles: frozenset[Role], user: str | None) -> Session:
        """Register a new session."""
        number = self._next_session
        self._next_session += 1
        session = Session(connection, number, name, publisher or f"client-{number}", roles, user, self._now)
        self._sessions[connection] = self._numbers[number] = session
        self.counters["sessions_opened"] += 1
        return session

    # -- links come and go -------------------------------------------------------------------------------

    def _link(self, session: Session, message: Link) -> None:
        """LINK: the other end of this session is a broker, or answers that it is."""
        link = session.link
        if link is not None:
            if link.up or link.id != message.broker:
                self._end(session, Code.BAD_FRAME, "a LINK that answers none")
            elif message.broker in self.neighbours:
                self._close(session, Bye("linked already"))
            else:
                link.incarnation = message.incarnation
                self._link_up(link)
            return
        if Role.PEER not in session.roles:
            raise Refusal(Code.UNAUTHORISED, "a link needs the role peer")
        if session.subscriptions or session.advertisements or session.held:
            raise Refusal(Code.BAD_FRAME, "LINK comes first in a session, or not at all")
        if message.broker == self.id:
            raise Refusal(Code.DUPLICATE, f"{self.id} is this broker's own id")
        if message.advertisements != self.router.advertisements:
            raise Refusal(Code.VERSION, "advertisements are on at one end only: set them alike in the whole overlay")
        if self.stands_down:
            raise Refusal(Code.DUPLICATE, f"another broker has the id {self.id} too, and this one stands down")
        if len(self.neighbours) >= MOST_LINKS and message.broker not in self.neighbours:
            raise Refusal(Code.LIMIT, f"{self.id} has its {MOST_LINKS} links")
        rival = self._rival(message.broker)
        if rival is not None and rival.incarnation > message.incarnation:
            log.error("two brokers of one id", extra={"neighbour": message.broker, "linked": rival.session.number})
            raise Refusal(Code.DUPLICATE, f"another broker has the id {message.broker} too, and started later")
        if rival is not None and rival.dial is not None and self.id < message.broker:
            raise Refusal(Code.DUPLICATE, f"{self.id} has dialled {message.broker} itself, and its id is the smaller")
        self._match()
        link = session.link = self._neighbour(message.broker, session, None)
        link.incarnation = message.incarnation
        session.name = message.broker
        self._answer(session, self._own_link())
        self._link_up(link)
        if rival is not None:
            self._close(rival.session, Bye("replaced by another connection"))

    def _rival(self, broker: str) -> Neighbour | None:
        """Another link to the same broker, up or about to be."""
        sessions = (self._sessions.get(connection) for connection in self._dialled)
        pending = (s.link for s in sessions if s is not None and s.link is not None)
        return self.neighbours.get(broker) or next((link for link in pending if link.id == broker), None)

    def _neighbour(self, broker: str, session: Session, dial: Dial | None) -> Neighbour:
        interest = self.interests.get(broker)
        if interest is None:
            interest = self.interests[broker] = Interest(self._next_handle)
            self._unrecorded.add(self._next_handle)
            self._next_handle += 1
        outlet = Subscription(
            session,
            OUTLET,
            interest.handle,
            Policy.BLOCK,
            credit=WINDOW,
            limit=self.settings.queue,
            limit_bytes=self.settings.limits.queue_bytes,
            since=self._sequence,
        )
        session.subscriptions[OUTLET] = outlet
        session.join = forward_frames
        return Neighbour(broker, session, outlet, interest.totals, dial)

    def _link_up(self, link: Neighbour) -> None:
        link.up = True
        self.neighbours[link.id] = link
        link.totals["ups"] += 1
        if link.dial is not None:
            link.dial.linked(self._now)
        log.info("link up", extra={"neighbour": link.id, "dialled": link.dial is not None})
        self._wake()
        self._act(self.router.link_up(link.id))
        self._follow_the_tree(link)  # also if the tree used the link before, over another connection

    def _wake(self) -> None:
        """Tell the router of the subscriptions so far. Nobody is linked yet, so nothing is to be sent."""
        if not self._awake:
            self._awake = True
            for subscription in self.subscriptions.values():
                self._spread(subscription.filters)

    def _remove(self, session: Session) -> None:
        link = session.link
        if link is not None:
            self._detach(link)
            del session.subscriptions[OUTLET]
            session.waiting.pop(link.outlet, None)
            session.dropping.pop(link.outlet, None)
        super()._remove(session)
        if link is not None:
            self._attempt("ending a link", None, self._unlink, link)

    def _unlink(self, link: Neighbour) -> None:
        """The session of a link has ended."""
        link.totals["forwarded"] += link.outlet.delivered
        link.totals["lost"] += len(link.outlet.queue)
        link.totals["unconfirmed"] += max(0, WINDOW - link.outlet.credit)
        self._release(link.outlet, ended=True)
        if link.dial is not None:
            self._hang_up(link.dial)
        if self.neighbours.get(link.id) is link:
            del self.neighbours[link.id]
            log.info("link down", extra={"neighbour": link.id})
            self._act(self.router.link_down(link.id, self._now))

    # -- what the router says ----------------------------------------------------------------------------

    def _act(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._tell(action.neighbour, action.message)
            elif isinstance(action, StandDown):
                self._stand_down(action.rival)
            elif isinstance(action, Install):
                interest = self.interests[action.neighbour]
                try:
                    interest.filters[action.key] = self.table.add(interest.handle, action.filter)
                except (
                    ContradaError
                ) as error:  # this table cannot hold it; the neighbour's own clients still get theirs
                    interest.filters[action.key] = []
                    log.error("bad filter", extra={"neighbour": action.neighbour, "reason": str(error)})
            else:
                self.leftovers.put(self.table.remove, self.interests[action.neighbour].filters.pop(action.key))
        if self.router.tree_links != self._tree_links:
            self._tree_links = self.router.tree_links
            for neighbour in self.neighbours.values():
                self._follow_the_tree(neighbour)

    def _stand_down(self, rival: int) -> None:
        """Leave the overlay to the namesake for a while; it may be a mistake that is mended by then."""
        pause = self.settings.stale_after
        reason = f"another broker has the id {self.id} too, and started later: give each its own"
        log.error("two brokers of one id", extra={"reason": reason, "incarnation": rival, "pause": pause})
        self._stands_down_until = self._now + pause
        for link in list(self.neighbours.values()):
            self._close(link.session, Bye(reason))

    def _own_link(self) -> Link:
        return Link(self.id, self.router.advertisements, self._incarnation)

    def _follow_the_tree(self, link: Neighbour) -> None:
        """Match for this link if the tree uses it."""
        if link.id in self._tree_links:
            self._subscriptions[link.outlet.handle] = link.outlet
        else:
            self._detach(link)

    def _detach(self, link: Neighbour) -> None:
        """Match nothing more for this link."""
        if self._subscriptions.get(link.outlet.handle) is link.outlet:
            del self._subscriptions[link.outlet.handle]

    def _tell(self, neighbour: str, message: PeerMessage) -> None:
        link = self.neighbours.get(neighbour)
        if link is not None:  # else it was lost by an earlier action
            for part in split(message):
                link.session.push(encode_peer(part))
            self._soil(link.session)

    # -- what neighbours say -----------------------------------------------------------------------------

    def _routing(self, session: Session, message: LinkStates | Digest | Replace | Change) -> None:
        link = session.link
        if link is None or not link.up:
            return
        self._match()
        if not session.open:
            return
        if isinstance(message, (Replace, Change)):
            encoded = message.filters if isinstance(message, Replace) else message.add
            try:
                self._decoded = {each: self._read_filter(each) for each in encoded}
            except ContradaError as error:
                self._end(session, Code.BAD_FILTER, str(error))
                return
        self._act(self.router.receive(link.id, message))
        self._decoded = {}

    def _read_filter(self, encoded: bytes) -> Filter:
        f = self.codec.filter(encoded)
        if not isinstance(f, Filter):
            raise ContradaError("brokers exchange single filters, not predicates")
        return f

    def _known_filter(self, encoded: bytes) -> Filter:
        return self._decoded[encoded]

    def _peer_error(self, session: Session, message: Error) -> None:
        """ERROR: the neighbour refuses."""
        link = session.link
        log.warning(
            "refused by neighbour", extra={"neighbour": session.name, "code": message.code, "reason": message.reason}
        )
        if message.fatal or link is None or not link.up:
            self._remove(session)

    # -- what clients subscribe to -----------------------------------------------------------------------

    def _spread(self, filters: Sequence[int]) -> None:
        """Clients want these filters of the table."""
        if self._awake:
            self._act(self.router.subscribe(*map(self.table.filter, filters)))

    def _forget_filter(self) -> Callable[[int], None]:
        return self._unspread if self._awake else super()._forget_filter()

    def _unspread(self, id: int) -> None:
        """A client wants a filter of the table no more."""
        unwanted = self.table.filter(id)
        self.table.remove(id)
        self._act(self.router.unsubscribe(unwanted))
