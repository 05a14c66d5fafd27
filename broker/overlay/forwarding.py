"""Notifications that come from neighbours: each is handled once.

A FORWARD is taken in as a publication is, by runs: what has been here before or has come too far is left out and
counted; the rest is submitted to be matched like everything else, and is paid for with credit when nobody holds it
back (`neighbour.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.broker.core.publication import Publication
from contrada.broker.overlay.neighbour import WINDOW, Neighbour, part_of_run
from contrada.broker.protocol.wire import Code

if TYPE_CHECKING:
    from contrada.broker.core.matching import Matching
    from contrada.broker.protocol.messages import Dropped
    from contrada.broker.protocol.peer_messages import Forward, Run
    from contrada.broker.routing.router import Router
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions


class Forwarding:
    """What neighbours forward to this broker."""

    def __init__(self, id: str, sessions: Sessions, matching: Matching, router: Router) -> None:
        self._id = id
        self._sessions = sessions
        self._matching = matching
        self._router = router

    def forward(self, session: Session, message: Forward) -> None:
        """FORWARD: submit what is new."""
        link = session.source
        if not isinstance(link, Neighbour) or not link.up:
            return
        count = sum(len(run.bodies) for run in message.runs)
        held = session.unacknowledged - link.carrying + count
        if held > WINDOW:
            self._sessions.end(session, Code.FLOW, f"{held} notifications without credit")
            return
        link.totals["received"] += count
        taken = 0
        for run in message.runs:
            wanted = self._unseen(link, run)
            if wanted.bodies:
                bodies = wanted.bodies
                self._matching.submit(Publication(link, 0, bodies, sum(map(len, bodies)), wanted))
                taken += len(bodies)
        link.credit += count - taken

    def _unseen(self, link: Neighbour, run: Run) -> Run:
        """Of a run, what has not been here before and has not come too far; the rest is counted."""
        kept = run
        if run.origin == self._id:
            kept = part_of_run(run, ())
        elif (fresh := self._router.unseen(run.origin, run.sequences)) is not None:
            kept = part_of_run(run, fresh)
        if kept is not run:
            link.totals["duplicates"] += len(run.bodies) - len(kept.bodies)
        if run.hops > self._router.hop_limit:
            link.totals["expired"] += len(kept.bodies)
            kept = part_of_run(run, ())
        return kept

    def dropped(self, session: Session, message: Dropped) -> None:
        """DROPPED: the neighbour lost what it had for us."""
        if isinstance(link := session.source, Neighbour):
            link.totals["dropped"] += sum(entry.dropped for entry in message.entries)
