"""The overlay as one broker sees it: its neighbours, what they want, and what they are told.

A link is a session whose other end is a broker (`links.py` makes them). The neighbour's interest is one interface of
the forwarding table, and the neighbour a receiver, so that a notification finds its way to clients and neighbours by
the same match and waits for both in the same kind of queue. What is wanted where is the `Router`'s business: this
module tells it what happens and does what it says.

    link_up, link_down, LINK_STATES, DIGEST, … ─▶ Router ─▶ Send        a message in the neighbour's session
    interest_changed, advertise                ─┘        ├▶ Install     filters of the neighbour's interface
                                                         ├▶ Uninstall
                                                         └▶ …Durable    the same of what is kept for it on disk

Owns the neighbours and the router. Is the `Interest` of the other parts. The router sleeps until there is a link: a
broker alone pays nothing for it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from contrada.broker.core.receiver import Receiver
from contrada.broker.core.subscriptions import read_filters
from contrada.broker.overlay.neighbour import WINDOW, Neighbour, NeighbourInterface
from contrada.broker.overlay.report import links
from contrada.broker.protocol.messages import Bye, Credit, Error, Grant
from contrada.broker.protocol.peer_frames import encode_peer, split
from contrada.broker.protocol.peer_messages import Change, Digest, Flow, LinkStates, PeerMessage, Replace
from contrada.broker.protocol.wire import Code, Policy
from contrada.broker.routing.actions import Action, Install, InstallDurable, Send, StandDown, UninstallDurable
from contrada.broker.routing.router import Router
from contrada.errors import ContradaError
from contrada.forwarding.language.filter import Filter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contrada.broker.core.delivery import Delivery
    from contrada.broker.core.ports import Codec, EncodedFilter, Table
    from contrada.broker.durable.custody import Custody
    from contrada.broker.node.settings import Settings
    from contrada.broker.overlay.dial import Dial
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.turn.clock import Clock
    from contrada.broker.turn.leftovers import Leftovers
    from contrada.broker.turn.work import Steps

log = logging.getLogger("contrada.broker")

_HEAR_AT_ONCE: Final = 1 << 12  # bytes of filters that the router is told without a pause
RECEIVER = 0  # the number of a neighbour's receiver in its session


class Overlay:
    """The neighbours of one broker."""

    def __init__(
        self,
        settings: Settings,
        table: Table,
        codec: Codec,
        sessions: Sessions,
        delivery: Delivery,
        leftovers: Leftovers,
        clock: Clock,
        *,
        id: str,
        incarnation: int = 1,
    ) -> None:
        self.id = id
        self.relations = settings.relations  # how regions are related here, and must be at every neighbour
        self.codec = codec
        self.awake = False
        self.woken: list[Callable[[], Iterable[None]]] = []
        self.neighbours: dict[str, Neighbour] = {}  # those whose link is up, by broker id
        self.interfaces: dict[str, NeighbourInterface] = {}
        self.link_rows: list[dict[str, Any]] = []  # what `report.links` said lately, for other threads to read
        self.names: Callable[[], Mapping[str, str]] = dict  # of brokers by their ids, where keys give names
        self.expects_link: Callable[[float], bool] = lambda _seconds: False  # is a peer dialled, and not for longer?
        self.stands_down_until = 0.0
        self.custody: Custody | None = None  # of what neighbours want durably, if there is a disk
        self.router = Router(
            id,
            decode=lambda body: self._decoded[body],
            sequence=incarnation,
            incarnation=incarnation,
            priority=settings.priority,
            advertisements=settings.advertisements,
            sampled=settings.relations != "exact",
            stale_after=settings.stale_after,
            hop_limit=settings.hop_limit,
        )
        self._decoded: dict[bytes, Filter] = {}
        self._tree_links: frozenset[str] = frozenset()
        self._going_on = False  # whether the leftovers have the rest of the router's work
        self._settings = settings
        self._table = table
        self._sessions = sessions
        self._delivery = delivery
        self._leftovers = leftovers
        self._clock = clock

    @property
    def stands_down(self) -> bool:
        """Whether this broker has left the overlay to another of its id."""
        return self._clock.now < self.stands_down_until

    # -- what clients want -------------------------------------------------------------------------------

    def interest_changed(self, added: Sequence[EncodedFilter], removed: Sequence[bytes]) -> None:
        """Clients want more filters, and others, by their keys, once less."""
        if added:
            self._act(self.router.subscribe(*added))
        if removed:
            self._act(self.router.unsubscribe(*removed))

    def durable_interest_changed(self, added: Sequence[EncodedFilter], removed: Sequence[bytes]) -> None:
        """The same of durable subscriptions: what is published durably is to be kept for them."""
        if added:
            self._act(self.router.subscribe(*added, flow=Flow.DURABLE))
        if removed:
            self._act(self.router.unsubscribe(*removed, flow=Flow.DURABLE))

    def forget_durable(self, neighbour: str) -> None:
        """Nothing is kept any longer for a neighbour that has not come back."""
        self._act(self.router.interests.forget_durable(neighbour))

    @property
    def wants_advertisements(self) -> bool:
        """Whether advertisements are of any use."""
        return self.awake and self.router.advertisements

    def advertise(self, filter: EncodedFilter) -> None:
        """A client may publish what matches."""
        self._act(self.router.advertise(filter))

    def unadvertise(self, key: bytes) -> None:
        """A client withdraws an advertisement."""
        self._act(self.router.unadvertise(key))

    # -- links come and go -------------------------------------------------------------------------------

    def new_neighbour(self, broker: str, session: Session, dial: Dial | None) -> Neighbour:
        """Another broker is at the other end of a session."""
        interface = self.interfaces.get(broker)
        if interface is None:
            interface = self.interfaces[broker] = NeighbourInterface(self._delivery.new_interface())
            self._delivery.unrecorded.add(interface.number)
        receiver = Receiver(
            session,
            RECEIVER,
            interface.number,
            Policy.BLOCK,
            credit=WINDOW,
            limit=self._settings.queue,
            limit_bytes=self._settings.limits.queue_bytes,
            since=self._delivery.sequence,
        )
        session.receivers[RECEIVER] = receiver
        session.source = neighbour = Neighbour(broker, session, receiver, interface.totals, dial)
        return neighbour

    def link_up(self, link: Neighbour) -> None:
        """Both ends have said LINK."""
        link.up = True
        self.neighbours[link.id] = link
        link.totals["ups"] += 1
        log.info("link up", extra={"neighbour": link.id, "dialled": link.dial is not None})
        if not self.awake:  # nobody is linked yet, so nothing is sent
            self.awake = True
            self.router.interests.silent = True
            for tell in self.woken:
                self._leftovers.go_through(tell())
            self._leftovers.go_through((), self._woken)
        self._act(self.router.link_up(link.id, custody=link.custody))
        self._follow_tree(link)  # also if the tree used the link before, over another connection
        if self.custody is not None:
            self.custody.link_up(link)

    def _woken(self) -> None:
        """The router knows what was wanted before the first link."""
        self.router.interests.silent = False
        self._act(self.router.go_on())

    def link_down(self, link: Neighbour) -> None:
        """The session of a link has ended."""
        receiver = link.receiver
        self._detach(link)
        if self.custody is not None:
            self.custody.link_down(link)
        link.totals["forwarded"] += receiver.delivered
        link.totals["lost"] += len(receiver.queue)
        link.totals["unconfirmed"] += max(0, WINDOW - receiver.credit)
        self._delivery.release(receiver, ended=True)
        if self.neighbours.get(link.id) is link:
            del self.neighbours[link.id]
            log.info("link down", extra={"neighbour": link.id})
            self._act(self.router.link_down(link.id, self._clock.now))

    def tick(self) -> None:
        """Time has passed."""
        if self.awake:
            self._act(self.router.tick(self._clock.now))
            self.link_rows = links(self, self._clock.now)

    def give_credit(self) -> None:
        """Grant neighbours what they have earned, if it is worth a message."""
        for link in self.neighbours.values():
            if link.credit >= WINDOW // 8:
                self._sessions.answer(link.session, Credit((Grant(RECEIVER, link.credit),)))
                link.credit = 0

    # -- what the router says ----------------------------------------------------------------------------

    def _act(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._send(action.neighbour, action.message)
            elif isinstance(action, StandDown):
                self._stand_down(action.rival)
            elif isinstance(action, Install):
                self._install(action)
            elif isinstance(action, InstallDurable | UninstallDurable):
                self._keep(action)
            else:
                self._leftovers.put(self._table.remove, self.interfaces[action.neighbour].filters.pop(action.key))
        if self.router.tree_links != self._tree_links:
            self._tree_links = self.router.tree_links
            for neighbour in self.neighbours.values():
                self._follow_tree(neighbour)
        if self.router.busy and not self._going_on:
            self._going_on = True
            self._leftovers.go_through(self._rest(), self._rest_done)

    def _rest(self) -> Iterator[None]:
        while self.router.busy:
            self._act(self.router.go_on())
            yield

    def _rest_done(self) -> None:
        self._going_on = False

    def _install(self, action: Install) -> None:
        interface = self.interfaces[action.neighbour]
        try:
            interface.filters[action.key] = self._table.add(interface.number, action.filter)
        except ContradaError as error:  # this table cannot hold it; the neighbour's own clients still get theirs
            interface.filters[action.key] = []
            log.error("bad filter", extra={"neighbour": action.neighbour, "reason": str(error)})

    def _keep(self, action: InstallDurable | UninstallDurable) -> None:
        assert self.custody is not None
        if isinstance(action, InstallDurable):
            self.custody.want(action.neighbour, action.filter)
        else:
            self.custody.unwant(action.neighbour, action.key)

    def _stand_down(self, rival: int) -> None:
        """Leave the overlay to the namesake for a while; it may be a mistake that is mended by then."""
        pause = self._settings.stale_after
        reason = f"another broker has the id {self.id} too, and started later: give each its own"
        log.error("two brokers of one id", extra={"reason": reason, "incarnation": rival, "pause": pause})
        self.stands_down_until = self._clock.now + pause
        for link in list(self.neighbours.values()):
            self._sessions.close(link.session, Bye(reason))

    def _follow_tree(self, link: Neighbour) -> None:
        """Match for this link if the tree uses it."""
        if link.id in self._tree_links:
            self._delivery.receivers[link.interface] = link.receiver
        else:
            self._detach(link)

    def _detach(self, link: Neighbour) -> None:
        """Match nothing more for this link."""
        if self._delivery.receivers.get(link.interface) is link.receiver:
            del self._delivery.receivers[link.interface]

    def _send(self, neighbour: str, message: PeerMessage) -> None:
        link = self.neighbours.get(neighbour)
        if link is not None:  # else it was lost by an earlier action
            for part in split(message):
                link.session.push(encode_peer(part))
                link.told += isinstance(part, Replace | Change) and part.flow is Flow.DURABLE
            self._sessions.mark(link.session)

    # -- what neighbours say -----------------------------------------------------------------------------

    def hear(self, session: Session, message: LinkStates | Digest) -> None:
        """LINK_STATES or DIGEST: for the router."""
        link = session.source
        if isinstance(link, Neighbour) and link.up:
            self._act(self.router.receive(link.id, message))

    def hear_filters(self, session: Session, message: Replace | Change) -> Steps:
        """REPLACE or CHANGE: for the router too, who is told of many filters by and by."""
        link = session.source
        if not isinstance(link, Neighbour) or not link.up:
            return
        if message.flow is Flow.DURABLE and (self.custody is None or not link.custody):
            self._sessions.end(session, Code.BAD_FRAME, "custody was not agreed on for this link")
            return
        encoded = message.filters if isinstance(message, Replace) else message.add
        try:
            filters = yield from read_filters(self.codec, encoded)
            if not all(isinstance(each, Filter) for each in filters):
                raise ContradaError("brokers exchange single filters, not predicates")
        except ContradaError as error:
            self._sessions.end(session, Code.BAD_FILTER, str(error))
            return
        decoded = dict(zip(encoded, filters, strict=True))
        for part in split(self.router.as_change(link.id, message), _HEAR_AT_ONCE):
            self._decoded = decoded
            self._act(self.router.receive(link.id, part))
            self._decoded = {}
            yield
        if message.flow is Flow.DURABLE and self.custody is not None:
            self.custody.heard(link)

    def hear_error(self, session: Session, message: Error) -> None:
        """ERROR: the neighbour refuses."""
        link = session.source
        facts = {"neighbour": session.name, "code": message.code, "reason": message.reason}
        log.warning("refused by neighbour", extra=facts)
        if message.fatal or not isinstance(link, Neighbour) or not link.up:
            self._sessions.remove(session)

    def _check(self) -> None:
        for id, link in self.neighbours.items():
            assert link.up
            assert link.id == id
            assert link.session.source is link
            assert link.session.receivers == {RECEIVER: link.receiver}
