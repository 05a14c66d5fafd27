"""What this broker keeps of one neighbour: the link while it is up, and what outlives it."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.publication import Publication
    from contrada.broker.core.receiver import Receiver
    from contrada.broker.overlay.dial import Dial
    from contrada.broker.protocol.peer_messages import Run
    from contrada.broker.sessions.session import Session
    from contrada.errors import ContradaError

log = logging.getLogger("contrada.broker")

WINDOW: Final = 8192  # notifications that may be on their way over a link, one way


@dataclass
class NeighbourInterface:
    """A neighbour's interface in the forwarding table. Outlives the link, until the router lets go of its filters."""

    number: int
    filters: dict[bytes, list[int]] = field(default_factory=dict)  # the table's ids of each, by the router's key
    totals: Counter[str] = field(default_factory=Counter)


@dataclass(eq=False)
class Neighbour:
    """One link: a session whose other end is a broker.

    The `receiver` gets what the neighbour wants, as FORWARDs, for credit that the neighbour gives; it is among the
    delivery's receivers while the tree uses the link. What the neighbour sends are publications of which this is the
    source: their acknowledgement is credit, once no blocking queue is over its limit because of them, so that a
    subscriber that blocks holds back publishers however many brokers away, one link after the other.
    """

    id: str
    session: Session
    receiver: Receiver
    totals: Counter[str]
    dial: Dial | None = None  # None: the neighbour dialled
    incarnation: int = 0  # of the broker at the other end, once it has said LINK
    up: bool = False
    credit: int = 0  # to be given back to the neighbour
    custody: bool = False  # whether both ends have disks: then
    told: int = 0  # messages of the durable flow that it was sent,
    known: int = 0  # and how many of them everybody behind it knows,
    heard: int = 0  # and how many came from it;
    carrying: int = 0  # notifications that it carries here and that are not on disk,
    declined_round: int = 0  # and the last round of which something could not be kept
    interface: int = field(init=False)  # never gets back what came from there
    joins: bool = field(init=False, default=False)
    declined: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.interface = self.receiver.interface

    def number(self, publication: Publication) -> tuple[str, str, int, Sequence[int]]:
        """Notifications keep the numbers of the broker where they began."""
        run: Run = publication.run
        return run.origin, run.publisher, run.hops, run.sequences

    def acknowledge(self, publication: Publication) -> None:
        """Give credit back for them."""
        publication.settled = True
        self.session.unacknowledged -= len(publication.bodies)
        self.session.unacknowledged_bytes -= publication.size
        self.credit += len(publication.bodies)

    def refuse(
        self,
        publication: Publication,
        wrong: Mapping[int, ContradaError],
        matched: Sequence[AbstractSet[int]],
    ) -> Sequence[AbstractSet[int]]:
        """Leave out what cannot be read, and count it."""
        for error in wrong.values():
            log.warning("bad notification", extra={"neighbour": self.id, "reason": str(error)})
        kept = [place for place in range(len(publication.bodies)) if place not in wrong]
        publication.run = part_of_run(publication.run, kept)
        publication.bodies = publication.run.bodies
        lost = publication.size - sum(map(len, publication.bodies))
        publication.size -= lost
        self.session.unacknowledged -= len(wrong)
        self.session.unacknowledged_bytes -= lost
        self.credit += len(wrong)
        self.totals["invalid"] += len(wrong)
        return [matched[place] for place in kept]


def part_of_run(run: Run, places: Sequence[int]) -> Run:
    """The notifications of a run that are at these places."""
    return run._replace(
        sequences=tuple(run.sequences[at] for at in places), bodies=tuple(run.bodies[at] for at in places)
    )
