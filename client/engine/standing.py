"""What a client asked for once and keeps until it takes it back: it is restored on every new connection.

WAITING ──ACK──▶ LIVE ──taken back──▶ LEAVING ──ACK──▶ ENDED
▲───connection lost──┘                                 refused, or closed: ENDED at once
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any

from contrada.broker.protocol.messages import Advertise, Unadvertise
from contrada.client.engine.outbox import Ticket

if TYPE_CHECKING:
    from contrada.broker.protocol.messages import Message
    from contrada.errors import ContradaError


class Stage(Enum):
    """The life of a standing request."""

    WAITING = "waiting"  # to be sent, or sent and not yet acknowledged
    LIVE = "live"
    LEAVING = "leaving"  # its end is on its way to the broker
    ENDED = "ended"


class Standing(ABC):
    """A standing request of some filters. Changed by the core only."""

    __slots__ = ("closing", "error", "filters", "id", "opening", "stage", "waiter")

    def __init__(self, id: int, filters: tuple[bytes, ...]) -> None:
        self.id = id
        self.filters = filters
        self.stage = Stage.WAITING
        self.error: ContradaError | None = None
        self.opening = Ticket()
        self.closing: Ticket | None = None
        self.waiter: Any = None  # belongs to the driver

    @abstractmethod
    def request(self, number: int) -> Message:
        """Make the message that makes or restores it."""

    @abstractmethod
    def withdrawal(self, number: int) -> Message:
        """Make the message that ends it."""

    def interrupt(self) -> None:
        """Note that the connection is gone, and with it the broker's side of this."""
        self.stage = Stage.WAITING

    def end(self, error: ContradaError | None) -> None:
        """Note that it is over."""
        self.stage = Stage.ENDED
        self.error = error


class Promise(Standing):
    """An advertisement."""

    __slots__ = ()

    def request(self, number: int) -> Advertise:
        """Make the ADVERTISE."""
        return Advertise(number, self.id, self.filters)

    def withdrawal(self, number: int) -> Unadvertise:
        """Make the UNADVERTISE."""
        return Unadvertise(number, self.id)
