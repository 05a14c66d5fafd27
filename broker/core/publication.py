"""One publication, and the source that it came from.

A source says what the acknowledgement of a publication means and what becomes of one that is refused: for a client an
ACK and an ERROR, for a neighbour (`contrada.broker.overlay.neighbour`) credit and a count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from contrada.broker.protocol.messages import Error
from contrada.broker.protocol.wire import Code
from contrada.broker.turn.mishaps import Mishap
from contrada.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.delivery import Delivery
    from contrada.broker.durable.publishing import Storing
    from contrada.broker.sessions.batch import Batch
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.errors import ContradaError

    Matched = Sequence[AbstractSet[int]]


class Source(Protocol):
    """Where publications come from."""

    session: Session
    interface: int
    """The interface that does not get back what it sent; 0, which is no interface, if there is none."""
    joins: bool
    """Whether successive publications may be handed out as if they were one."""

    @property
    def declined(self) -> bool:
        """Whether nothing more of it may be stored, because something before could not be."""

    def number(self, publication: Publication) -> tuple[str, str, int, Sequence[int]]:
        """Where the notifications began: broker, publisher, links crossed since, sequence numbers."""

    def acknowledge(self, publication: Publication) -> None:
        """Nothing holds the publication back any more."""

    def refuse(self, publication: Publication, wrong: Mapping[int, ContradaError], matched: Matched) -> Matched:
        """Take what cannot be read out of a publication, or all of it; what matched of the rest."""


class Publication:
    """One PUBLISH, or a run of a FORWARD.

    Its acknowledgement is withheld while `waiting` blocking queues are over their limits because of it, or the disk
    does not have it yet. A PUBLISH has its `sequence` once it is matched.
    """

    __slots__ = ("bodies", "onward", "request", "run", "sequence", "settled", "size", "source", "storing", "waiting")

    def __init__(
        self,
        source: Source,
        request: int,
        bodies: tuple[bytes, ...],
        size: int,
        run: Any = None,
        storing: Storing | None = None,
    ) -> None:
        self.source = source
        self.request = request
        self.sequence = 0
        self.bodies = bodies
        self.size = size
        self.waiting = 0
        self.settled = False  # acknowledged or refused
        self.onward: list[tuple[Batch, AbstractSet[int]]] = []  # what neighbours get when it is on disk
        self.run = run  # what a neighbour said of where they came from
        self.storing = storing  # what is to be kept with them on disk; None unless they are published durably


class ClientSource:
    """The publications of one client."""

    __slots__ = ("_delivery", "_sessions", "session")

    interface = 0
    joins = True
    declined = False

    def __init__(self, session: Session, delivery: Delivery, sessions: Sessions) -> None:
        self.session = session
        self._delivery = delivery
        self._sessions = sessions

    def number(self, publication: Publication) -> tuple[str, str, int, Sequence[int]]:
        """The notifications begin here, and get this broker's next numbers."""
        count, session, delivery = len(publication.bodies), self.session, self._delivery
        publication.sequence = first = delivery.sequence
        delivery.sequence += count
        delivery.counters["published"] += count
        session.published += count
        return delivery.id, session.publisher, 0, range(first, delivery.sequence)

    def acknowledge(self, publication: Publication) -> None:
        """ACK, together with the others of the turn."""
        session = self.session
        publication.settled = True
        session.unacknowledged -= len(publication.bodies)
        session.unacknowledged_bytes -= publication.size
        if session.open:
            session.acks.append((publication.request, publication.sequence))
            if not session.dirty:
                self._sessions.mark(session)

    def refuse(self, publication: Publication, wrong: Mapping[int, ContradaError], _matched: Matched) -> Matched:
        """ERROR: a PUBLISH is accepted as a whole or not at all."""
        session, count = self.session, len(publication.bodies)
        publication.settled = True
        session.unacknowledged -= count
        session.unacknowledged_bytes -= publication.size
        self._sessions.counters["refused"] += 1
        if session.open:
            place = min(wrong)
            reason = f"notification {place} of {count}: {wrong[place]}" if count > 1 else str(wrong[place])
            if isinstance(wrong[place], Mishap):
                self._sessions.strike(session.connection, session, Code.INTERNAL, reason, publication.request)
            else:
                error = wrong[place]
                code = Code(error.code) if isinstance(error, Refused) else Code.BAD_NOTIFICATION
                self._sessions.answer(session, Error(publication.request, code, reason))
        if publication.storing is not None and self._delivery.durable is not None:
            self._delivery.durable.refused(publication.storing, wrong[min(wrong)])
        publication.bodies = ()
        return ()
