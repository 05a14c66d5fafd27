"""Taking over custody: what neighbours carry here is on this disk before they are told, and may free it.

    CARRY ─▶ here before? ── yes ─▶ CARRIED
               └── no ─▶ matched like any publication ─▶ a row each ─▶ on disk ─▶ queues, CARRIED
                                    └── full, or the disk fails ─▶ DECLINE: nothing more of this round

A CARRY is one receipt: it is answered when everything in it is on disk, came before, or cannot be read (which is
counted, and no better the next time). Of one that is declined, what is before the notification that does not fit is
kept, and has a receipt of its own. What comes over two links at once is stored once: the second waits for the first.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contrada.broker.core.publication import Publication
from contrada.broker.durable.publishing import NotNow, Storing
from contrada.broker.overlay.neighbour import Neighbour, part_of_run
from contrada.broker.protocol.peer_frames import encode_peer
from contrada.broker.protocol.peer_messages import Carried, Decline
from contrada.broker.protocol.wire import Code
from contrada.broker.stored.link_cursor import WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.matching import Matching
    from contrada.broker.protocol.peer_messages import Carry, Run
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.stored.state import State
    from contrada.errors import ContradaError

    CursorOf = Callable[[str], int]
    Matched = Sequence[AbstractSet[int]]

log = logging.getLogger("contrada.broker")


class _Receipt:
    """One CARRY that is to be answered."""

    __slots__ = ("link", "round", "spans", "waiting")

    def __init__(self, link: Neighbour, round: int, spans: tuple[tuple[int, int], ...]) -> None:
        self.link = link
        self.round = round
        self.spans = spans
        self.waiting = 1


class Carrying:
    """What neighbours carry to this broker, and its way to the disk."""

    def __init__(
        self, id: str, state: State, sessions: Sessions, matching: Matching, hop_limit: int, cursor: CursorOf
    ) -> None:
        self._id = id
        self._state = state
        self._sessions = sessions
        self._matching = matching
        self._hop_limit = hop_limit
        self._cursor = cursor
        self._under_way: dict[tuple[str, int], list[_Receipt]] = {}  # ids, and who else waits for each

    def carry(self, session: Session, message: Carry) -> None:
        """CARRY: take over what is new here."""
        link = session.source
        if not isinstance(link, Neighbour) or not link.up:
            return
        count = len(message.positions)
        if link.carrying + count > WINDOW:
            self._sessions.end(session, Code.FLOW, f"{link.carrying + count} notifications are not carried yet")
            return
        link.totals["received"] += count
        if message.round <= link.declined_round:
            return
        receipt = _Receipt(link, message.round, ((message.positions[0], message.positions[-1]),))
        start = 0
        for run in message.runs:
            self._take(run, message.positions[start : start + len(run.bodies)], receipt)
            start += len(run.bodies)
        self._done(receipt)

    def _take(self, run: Run, positions: Sequence[int], receipt: _Receipt) -> None:
        link = receipt.link
        fresh: list[int] = []
        if run.hops > self._hop_limit:
            link.totals["expired"] += len(run.bodies)
            return
        for place, sequence in enumerate(run.sequences if run.origin != self._id else ()):
            id = run.origin, sequence
            if (followers := self._under_way.get(id)) is not None:
                followers.append(receipt)
                receipt.waiting += 1
            elif id not in self._state.carried:
                self._under_way[id] = []
                fresh.append(place)
        link.totals["duplicates"] += len(run.bodies) - len(fresh)
        if fresh:
            part = part_of_run(run, fresh)
            storing = Storing(hops=run.hops, lane=link, came_from=self._cursor(link.id))
            size = sum(map(len, part.bodies))
            receipt.waiting += 1
            link.carrying += len(part.bodies)
            carrier = Carrier(self, receipt, [positions[place] for place in fresh])
            self._matching.submit(Publication(carrier, 0, part.bodies, size, part, storing))

    # -- what becomes of it ------------------------------------------------------------------------------

    def finished(self, ids: Iterable[tuple[str, int]], receipt: _Receipt | None) -> None:
        """These are on disk, or need not be."""
        for id in ids:
            for follower in self._under_way.pop(id, ()):
                self._done(follower)
        if receipt is not None:
            self._done(receipt)

    def failed(self, ids: Iterable[tuple[str, int]], receipt: _Receipt, reason: str) -> None:
        """These cannot be kept now."""
        for id in ids:
            for follower in self._under_way.pop(id, ()):
                self._decline(follower, reason)
        self._decline(receipt, reason)

    def _done(self, receipt: _Receipt) -> None:
        receipt.waiting -= 1
        session = receipt.link.session
        if not receipt.waiting and session.open:
            session.push(encode_peer(Carried(receipt.spans)))
            self._sessions.mark(session)

    def _decline(self, receipt: _Receipt, reason: str) -> None:
        link = receipt.link
        if receipt.round > link.declined_round:
            link.declined_round = receipt.round
            if link.session.open:
                link.session.push(encode_peer(Decline(receipt.round, reason)))
                self._sessions.mark(link.session)


class Carrier:
    """The source of what is in one CARRY."""

    __slots__ = ("_carrying", "_positions", "_receipt", "interface", "session")

    joins = False

    def __init__(self, carrying: Carrying, receipt: _Receipt, positions: Sequence[int]) -> None:
        self._carrying = carrying
        self._positions = positions
        self._receipt = receipt
        self.session = receipt.link.session
        self.interface = receipt.link.interface

    @property
    def declined(self) -> bool:
        """Whether something before it could not be kept, so that this must not be."""
        return self._receipt.round <= self._receipt.link.declined_round

    def number(self, publication: Publication) -> tuple[str, str, int, Sequence[int]]:
        """Notifications keep the numbers of the broker where they began."""
        run: Run = publication.run
        return run.origin, run.publisher, run.hops, run.sequences

    def acknowledge(self, publication: Publication) -> None:
        """They are on disk, and nobody holds them back."""
        publication.settled = True
        self._let_go(len(publication.bodies), publication.size)
        self._carrying.finished(_ids(publication.run), self._receipt)

    def refuse(self, publication: Publication, wrong: Mapping[int, ContradaError], matched: Matched) -> Matched:
        """Decline what cannot be kept now, and all behind it; leave out what cannot be read."""
        run: Run = publication.run
        first = next((place for place, error in sorted(wrong.items()) if isinstance(error, NotNow)), None)
        if first is not None or self.declined:
            return self._decline(publication, first or 0, str(wrong[first]) if first is not None else "", matched)
        for error in wrong.values():
            log.warning("bad notification", extra={"neighbour": self._receipt.link.id, "reason": str(error)})
        kept = [place for place in range(len(run.bodies)) if place not in wrong]
        left_out = part_of_run(run, [place for place in range(len(run.bodies)) if place in wrong])
        publication.run = part_of_run(run, kept)
        self._positions = [self._positions[place] for place in kept]
        publication.bodies = publication.run.bodies
        lost = sum(map(len, left_out.bodies))
        publication.size -= lost
        self._let_go(len(left_out.bodies), lost)
        self._receipt.link.totals["invalid"] += len(wrong)
        self._carrying.finished(_ids(left_out), None if kept else self._receipt)
        return [matched[place] for place in kept]

    def _decline(self, publication: Publication, first: int, reason: str, matched: Matched) -> Matched:
        """Keep what is before a place, and not what is behind."""
        run: Run = publication.run
        kept, rest = part_of_run(run, range(first)), part_of_run(run, range(first, len(run.bodies)))
        publication.run, publication.bodies = kept, kept.bodies
        publication.size -= (size := sum(map(len, rest.bodies)))
        publication.settled = not kept.bodies
        self._let_go(len(rest.bodies), size)
        self._carrying.failed(_ids(rest), self._receipt, reason)
        spans = tuple((position, position) for position in self._positions[:first])
        self._receipt = _Receipt(self._receipt.link, self._receipt.round, spans)
        return matched[:first]

    def _let_go(self, count: int, size: int) -> None:
        self.session.unacknowledged -= count
        self.session.unacknowledged_bytes -= size
        self._receipt.link.carrying -= count


def _ids(run: Run) -> list[tuple[str, int]]:
    return [(run.origin, sequence) for sequence in run.sequences]
