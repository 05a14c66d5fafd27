"""What a client asked for once and keeps until it withdraws it: it is made again on every new connection.

WAITING ──ACK──▶ LIVE ──withdrawn──▶ LEAVING ──ACK──▶ ENDED
▲──connection lost──┘                                refused, or closed: ENDED at once
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING

from contrada.broker.protocol.messages import Advertise, Unadvertise
from contrada.client.engine.tickets import Ticket, Waitable

if TYPE_CHECKING:
    from contrada.broker.protocol.messages import Message
    from contrada.errors import ContradaError


class Stage(Enum):
    """The life of a kept request."""

    WAITING = "waiting"  # to be sent, or sent and not yet acknowledged
    LIVE = "live"
    LEAVING = "leaving"  # its end is on its way to the broker
    ENDED = "ended"


class KeptRequest(Waitable, ABC):
    """A subscription or an advertisement. Changed by the core only."""

    __slots__ = ("accepted", "error", "filters", "id", "stage", "withdrawn")

    def __init__(self, id: int, filters: tuple[bytes, ...]) -> None:
        super().__init__()
        self.id = id
        self.filters = filters
        self.stage = Stage.WAITING
        self.error: ContradaError | None = None
        self.accepted = Ticket()  # finished by the broker's first answer
        self.withdrawn: Ticket | None = None  # made by the application's wish to end it, finished at its end

    @abstractmethod
    def request(self, number: int) -> Message:
        """Make the message that makes or restores it."""

    @abstractmethod
    def withdrawal(self, number: int) -> Message:
        """Make the message that ends it."""

    @property
    def over(self) -> bool:
        """Whether it has ended, or the application has withdrawn it."""
        return self.stage is Stage.ENDED or self.withdrawn is not None

    def interrupt(self) -> None:
        """Note that the connection is gone, and with it the broker's side of this."""
        self.stage = Stage.WAITING

    def end(self, error: ContradaError | None) -> None:
        """Note that it is over."""
        self.stage = Stage.ENDED
        self.error = error


class KeptAdvertisement(KeptRequest):
    """An advertisement."""

    __slots__ = ()

    def request(self, number: int) -> Advertise:
        """Make the ADVERTISE."""
        return Advertise(number, self.id, self.filters)

    def withdrawal(self, number: int) -> Unadvertise:
        """Make the UNADVERTISE."""
        return Unadvertise(number, self.id)
