"""Notifications that come from neighbours: each is handled once, and paid for with credit when nobody holds it back.

A FORWARD is taken in as a publication is, by runs: what has been here before or has come too far is left out and
counted, as is what turns out to be unreadable; the rest waits for the next match like everything else. A neighbour's
credit comes back as a publisher's ACK does, once no blocking queue is over its limit because of what it sent: so a
subscriber that blocks holds back publishers however many brokers away, one link after the other.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contrada.broker.core.subscription import Publication
from contrada.broker.overlay.links import OUTLET, WINDOW, Linking
from contrada.broker.protocol.messages import Credit, Dropped, Grant
from contrada.broker.protocol.wire import Code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.session import Sent, Session
    from contrada.broker.overlay.neighbour import Neighbour
    from contrada.broker.protocol.peer_messages import Forward, Run
    from contrada.errors import ContradaError

log = logging.getLogger("contrada.broker")


class Relaying(Linking):
    """A switchboard whose neighbours send notifications."""

    def _forward(self, session: Session, message: Forward) -> None:
        """FORWARD: handle each notification once."""
        link = session.link
        if link is None or not link.up:
            return
        count = sum(len(run.bodies) for run in message.runs)
        if session.held + count > WINDOW:
            self._end(session, Code.FLOW, f"{session.held + count} notifications without credit")
            return
        link.totals["received"] += count
        taken = 0
        for run in message.runs:
            wanted = self._unseen(link, run)
            if wanted.bodies:
                size = sum(map(len, wanted.bodies))
                publication = Publication(session, 0, wanted.bodies, size)
                publication.run = wanted
                self._pending.append(publication)
                session.held_bytes += size
                taken += len(wanted.bodies)
        self._pending_count += taken
        session.held += taken
        link.credit += count - taken

    def _unseen(self, link: Neighbour, run: Run) -> Run:
        """Of a run, what has not been here before and has not come too far; the rest is counted."""
        kept = run
        if run.origin == self.id:
            kept = _part(run, ())
        elif (fresh := self.router.unseen(run.origin, run.sequences)) is not None:
            kept = _part(run, fresh)
        if kept is not run:
            link.totals["duplicates"] += len(run.bodies) - len(kept.bodies)
        if run.hops > self.router.hop_limit:
            link.totals["expired"] += len(kept.bodies)
            kept = _part(run, ())
        return kept

    def _refuse(
        self, publication: Publication, wrong: Mapping[int, ContradaError], matched: Sequence[AbstractSet[int]]
    ) -> Sequence[AbstractSet[int]]:
        """Of a run, leave out what cannot be read, and count it."""
        session, run = publication.session, publication.run
        if session.link is None or run is None:
            return super()._refuse(publication, wrong, matched)
        for error in wrong.values():
            log.warning("bad notification", extra={"neighbour": session.link.id, "reason": str(error)})
        kept = [place for place in range(len(run.bodies)) if place not in wrong]
        publication.run = _part(run, kept)
        publication.bodies = publication.run.bodies
        lost = publication.size - sum(map(len, publication.bodies))
        publication.size -= lost
        session.held -= len(wrong)
        session.held_bytes -= lost
        session.link.credit += len(wrong)
        session.link.totals["invalid"] += len(wrong)
        return [matched[place] for place in kept]

    def _acknowledge(self, publication: Publication) -> None:
        link = publication.session.link
        if link is None:
            super()._acknowledge(publication)
            return
        session = publication.session
        publication.settled = True
        session.held -= len(publication.bodies)
        session.held_bytes -= publication.size
        link.credit += len(publication.bodies)

    def _peer_dropped(self, session: Session, message: Dropped) -> None:
        """DROPPED: the neighbour lost what it had for us."""
        if session.link is not None:
            session.link.totals["dropped"] += sum(entry.dropped for entry in message.entries)

    def flush(self, send: Callable[[bytes, Sequence[bytes]], Sent]) -> None:
        """Hand over what is ready, credit for neighbours included."""
        for link in self.neighbours.values():
            if link.credit >= WINDOW // 8:
                self._answer(link.session, Credit((Grant(OUTLET, link.credit),)))
                link.credit = 0
        super().flush(send)


def _part(run: Run, places: Sequence[int]) -> Run:
    return run._replace(
        sequences=tuple(run.sequences[at] for at in places), bodies=tuple(run.bodies[at] for at in places)
    )
