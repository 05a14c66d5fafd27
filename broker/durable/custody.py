"""Custody over links: a durable notification is on the disk of one broker until the next one has it on its own.

A neighbour that wants something durably is a durable subscription of this broker (`stored/link_cursor.py`), and the
journal its queue. Hop by hop:

    published durably, or carried here ── on disk here ─▶ queue of each neighbour that wants it durably ─▶ CARRY
    CARRIED: on the neighbour's disk ─▶ freed here        (`carrying.py` is the neighbour's side of this)
    DECLINE: its disk, or a subscription of its, is full ─▶ kept here, and tried again from there on

What a neighbour wants is the durable flow of the router. It is on disk too, because nobody can ask a neighbour that is
away: this broker, killed and started again, goes on to keep what matches. Custody uses a link whenever it is up, in the
tree or not, since what was accepted for a neighbour is only here.

    link down          filters and queue stay, for up to `abandoned`; when the queue is full, publishers are refused
    link up            from the oldest that is not carried; the neighbour knows what it has by (broker, sequence)
    the tree re-forms  what is withdrawn on the old way goes on for a while (`routing/interests.py`), so that nothing
                       falls between the ways; what comes both ways is one notification by its id
    no disk there      then there is no custody on that link: durable notifications are forwarded like any other

A durable subscription is confirmed when all brokers of the tree know: each tells the neighbour that a word of the
durable flow came from (KNOWN) when it is on its own disk, and everybody behind it has said the same. Who was linked a
moment ago, or is about to be, is waited for a little: a link that just breaks should not leave somebody uninformed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contrada.broker.core.ports import EncodedFilter
from contrada.broker.overlay.neighbour import Neighbour
from contrada.broker.protocol.peer_frames import encode_peer
from contrada.broker.protocol.peer_messages import Known
from contrada.broker.stored.link_cursor import LinkCursor
from contrada.broker.stored.rows import Row
from contrada.broker.stored.subscription import EVERYTHING, DurableReceiver
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.broker.core.delivery import Delivery
    from contrada.broker.core.matching import Matching
    from contrada.broker.core.ports import Codec, Table
    from contrada.broker.durable.delivering import Delivering
    from contrada.broker.overlay.overlay import Overlay
    from contrada.broker.protocol.peer_messages import Carried, Decline
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.stored.rows import RowOf
    from contrada.broker.stored.state import State
    from contrada.broker.stored.store import Commit, Store
    from contrada.broker.turn.clock import Clock
    from contrada.broker.turn.leftovers import Leftovers

log = logging.getLogger("contrada.broker")

_GRACE: Final = 6.0  # seconds in which a neighbour that has gone may be back: redialling takes up to five


@dataclass(eq=False)
class _Asking:
    """Somebody who wants to know when everybody knows what is wanted durably here; `source` said it, if a neighbour."""

    source: Neighbour | None
    done: Callable[[], None]
    told: dict[Neighbour, int] | None = None  # how much each other neighbour has to know, once that is certain
    save: int = 0  # and what has to be on disk


class Custody:
    """What this broker keeps for its neighbours. `cursors` are theirs, by their interfaces in the table."""

    def __init__(
        self,
        store: Store,
        state: State,
        table: Table,
        codec: Codec,
        sessions: Sessions,
        delivery: Delivery,
        matching: Matching,
        delivering: Delivering,
        overlay: Overlay,
        leftovers: Leftovers,
        clock: Clock,
    ) -> None:
        self.cursors: dict[int, LinkCursor] = {}
        self._store = store
        self._state = state
        self._table = table
        self._sessions = sessions
        self._delivery = delivery
        self._matching = matching
        self._delivering = delivering
        self._overlay = overlay
        self._leftovers = leftovers
        self._clock = clock
        self._asking: list[_Asking] = []
        self._saves = 0  # rows about what neighbours want, so far
        self._unsaved: dict[int, RowOf] = {}  # of these, the ones that are not on disk
        self._again: list[int] = []  # of these, the ones to be tried again
        self._left_at = dict.fromkeys(state.links, clock.now)  # when links were lost, those of an earlier life just now
        for cursor in list(state.links.values()):
            self._recover(cursor, codec)

    def _recover(self, cursor: LinkCursor, codec: Codec) -> None:
        """Keep for a neighbour what the journal says that it wants."""
        self._register(cursor)
        known: list[EncodedFilter] = []
        for key, body in list(cursor.wanted.items()):
            try:
                known.append(EncodedFilter(codec.filter(body), body))
                cursor.wanted_ids[key] = self._table.add(cursor.interface, known[-1].filter)
            except ContradaError as error:
                log.error("durable interest lost", extra={"neighbour": cursor.name, "reason": str(error)})
                cursor.wanted.pop(key)
        self._overlay.router.interests.remember(cursor.name, known)

    def _register(self, cursor: LinkCursor) -> None:
        cursor.interface = self._delivery.new_interface()
        self.cursors[cursor.interface] = cursor
        self._delivery.unrecorded.add(cursor.interface)

    def interface_of(self, neighbour: str) -> int:
        """The interface of what is kept for a neighbour; 0, which is none, if nothing is."""
        cursor = self._state.links.get(neighbour)
        return cursor.interface if cursor is not None else 0

    def waiting(self, neighbour: str) -> int:
        """How many notifications wait until a neighbour has them."""
        cursor = self._state.links.get(neighbour)
        return len(cursor.queue) if cursor is not None else 0

    # -- what neighbours want ----------------------------------------------------------------------------

    def want(self, neighbour: str, wanted: EncodedFilter) -> None:
        """A neighbour wants what matches this durably."""
        cursor = self._state.links.get(neighbour)
        if cursor is None:
            number, self._state.next_number = self._state.next_number, self._state.next_number + 1
            cursor = LinkCursor(number, neighbour, self._state.limits)
            cursor.left = self._store.wall()
            self._register(cursor)
            self._state.by_number[number] = self._state.links[neighbour] = cursor
            self._save(cursor.subscribed)
            if (link := self._overlay.neighbours.get(neighbour)) is not None:
                self.link_up(link)
        try:
            cursor.wanted_ids[wanted.key] = self._table.add(cursor.interface, wanted.filter)
        except ContradaError as error:  # this table cannot hold it
            cursor.wanted_ids[wanted.key] = []
            log.error("bad filter", extra={"neighbour": neighbour, "reason": str(error)})
        cursor.wanted[wanted.key] = wanted.body
        self._save((Row.WANTED, cursor.number, (wanted.body,), ()))

    def unwant(self, neighbour: str, key: bytes) -> None:
        """It does no longer."""
        cursor = self._state.links.get(neighbour)
        if cursor is not None and cursor.wanted.pop(key, None) is not None:
            self._leftovers.put(self._table.remove, cursor.wanted_ids.pop(key))
            self._save((Row.WANTED, cursor.number, (), (key,)))

    def _save(self, row: RowOf) -> None:
        self._saves += 1
        self._unsaved[self._saves] = row
        self._put(self._saves)

    def _put(self, save: int) -> None:
        def done(commit: Commit) -> None:
            if commit.failure is None:
                del self._unsaved[save]
            else:
                self._again.append(save)

        self._store.put([self._unsaved[save]], done, lane=self)

    def end(self, cursor: LinkCursor, reason: str) -> None:
        """Keep nothing more for a neighbour, and forget what waits for it."""
        lost = len(cursor.queue)
        log.error("custody ended", extra={"neighbour": cursor.name, "reason": reason, "lost": lost})
        self._delivering.dropped(lost)
        self._overlay.forget_durable(cursor.name)
        for key in list(cursor.wanted):
            self.unwant(cursor.name, key)
        self._save((Row.ENDED, cursor.number))
        self._state.forget(cursor.number)
        del self.cursors[cursor.interface]
        self._delivery.unrecorded.discard(cursor.interface)
        cursor.receiver = None

    # -- links -------------------------------------------------------------------------------------------

    def link_up(self, link: Neighbour) -> None:
        """A neighbour is there: it gets what waits for it."""
        self._left_at.pop(link.id, None)
        cursor = self._state.links.get(link.id)
        if cursor is not None and not link.custody:  # it has no disk any more: what matches is forwarded as to anybody
            self._overlay.forget_durable(link.id)
        elif cursor is not None:
            cursor.receiver = DurableReceiver(link.session, 0, cursor, EVERYTHING, 0)
            cursor.plain_interface = link.interface
            cursor.left = None
            cursor.paused = False
            cursor.queue.rewind()
            self._delivering.flag(cursor)

    def link_down(self, link: Neighbour) -> None:
        """It is gone: what it has not on disk goes again when it is back."""
        cursor = self._state.links.get(link.id)
        if link.custody and self._overlay.neighbours.get(link.id) in (None, link):
            self._left_at[link.id] = self._clock.now
        if cursor is not None and cursor.receiver is not None and cursor.receiver.session is link.session:
            cursor.receiver = None
            cursor.left = self._store.wall()
            self._store.put([(Row.LEFT, cursor.number, cursor.left)], urgent=False)

    def _cursor(self, session: Session) -> LinkCursor | None:
        """What is kept for the neighbour at the other end of a session."""
        link = session.source
        cursor = self._state.links.get(link.id) if isinstance(link, Neighbour) else None
        return cursor if cursor is not None and cursor.receiver and cursor.receiver.session is session else None

    def carried(self, session: Session, message: Carried) -> None:
        """CARRIED: the neighbour has these on disk, and they are freed."""
        if (cursor := self._cursor(session)) is not None:
            for first, last in message.spans:
                if count := cursor.carried(first, last):
                    self._sessions.counters["custody_passed"] += count
                    self._store.put([(Row.ACKNOWLEDGED, cursor.number, first, last)], urgent=False)
            self._delivering.flag(cursor)

    def declined(self, session: Session, message: Decline) -> None:
        """DECLINE: the neighbour cannot keep it now."""
        cursor = self._cursor(session)
        if cursor is not None and message.round == cursor.round:
            self._sessions.counters["custody_declined"] += 1
            log.warning("custody declined", extra={"neighbour": cursor.name, "reason": message.reason})
            cursor.declined(self._clock.now)
            cursor.paused = True

    def tick(self) -> None:
        """Begin again what was declined, and what could not be written."""
        for cursor in self.cursors.values():
            if cursor.paused and self._clock.now >= cursor.resumes_at:
                cursor.paused = False
                self._delivering.flag(cursor)
        again, self._again = self._again, []
        for save in sorted(again):
            self._put(save)

    # -- who knows ---------------------------------------------------------------------------------------

    def heard(self, link: Neighbour) -> None:
        """A word of the durable flow was taken in: the neighbour is told when everybody knows."""
        link.heard += 1
        count = link.heard

        def done() -> None:
            if link.session.open:
                link.session.push(encode_peer(Known(count)))
                self._sessions.mark(link.session)

        self._asking.append(_Asking(link, done))

    def known(self, session: Session, message: Known) -> None:
        """KNOWN: everybody behind a link knows what it was told."""
        if isinstance(link := session.source, Neighbour):
            link.known = max(link.known, message.count)

    def when_known(self, done: Callable[[], None]) -> None:
        """Call back when every broker of the tree has on disk what is wanted durably here by now."""
        self._asking.append(_Asking(None, done))
        self.turn()

    def turn(self) -> None:
        """Tell those who asked, and may be told."""
        if self._asking:
            asking, self._asking = self._asking, []
            self._asking = [each for each in asking if not self._answer(each)] + self._asking

    def _answer(self, asking: _Asking) -> bool:
        if asking.told is None:
            router = self._overlay.router
            linked = [link for link in self._overlay.neighbours.values() if link is not asking.source and link.custody]
            if not all(router.is_agreed(link.id) for link in linked) or self._expects_link():
                return False  # the tree may yet use another link
            others = [link for link in linked if link.id in router.tree_links]
            if not all(router.is_told(link.id) for link in others):
                return False
            asking.told = {link: link.told for link in others}
            asking.save = self._saves
        here = self._overlay.neighbours
        if any(here.get(link.id) is link and link.known < told for link, told in asking.told.items()):
            return False
        if next(iter(self._unsaved), asking.save + 1) <= asking.save:
            return False
        asking.done()
        return True

    def _expects_link(self) -> bool:
        """Whether a neighbour that is not there may be in a moment."""
        now = self._clock.now
        self._left_at = {id: at for id, at in self._left_at.items() if now - at < _GRACE}
        return bool(self._left_at) or self._overlay.expects_link(_GRACE)

    def _check(self) -> None:
        assert {*self.cursors.values()} == {*self._state.links.values()}
        for interface, cursor in self.cursors.items():
            assert cursor.interface == interface
            assert cursor.receiver is None or cursor.receiver.session.open
