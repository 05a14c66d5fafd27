"""What the core tells its driver: where the connection stands, what to do now, and what has happened."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from contrada.client.engine.outbox import Ticket

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.broker.protocol.messages import Message
    from contrada.client.engine.inbox import Inbox


class Phase(Enum):
    """Where the connection stands."""

    IDLE = "idle"
    GREETING = "connecting"
    OPEN = "connected"
    WAITING = "waiting to reconnect"
    CLOSING = "closing"
    CLOSED = "closed"


class Fault(Enum):
    """What may happen to a connection."""

    CUT = "cut"  # or nobody listens
    HANDSHAKE = "handshake"  # security could not be agreed on
    REFUSED = "refused"  # the broker's key directory does not have this client's key


class Connect(NamedTuple):
    """Action: connect a new socket."""


class Send(NamedTuple):
    """Action: send one multipart message on the socket."""

    frames: list[bytes]


class Hangup(NamedTuple):
    """Action: close the socket. With `linger`, let it first send what it was given."""

    linger: bool = False


class Finished(NamedTuple):
    """Event: the ticket has its outcome."""

    ticket: Ticket


class Ready(NamedTuple):
    """Event: the subscription has something to take, or has ended."""

    inbox: Inbox


class Room(NamedTuple):
    """Event: publications were answered; there may be room for more."""


class Moved(NamedTuple):
    """Event: the phase has changed."""

    phase: Phase


Action = Connect | Send | Hangup
Event = Finished | Ready | Room | Moved


class Query(Ticket):
    """STATUS or EXPLAIN: harmless to repeat, so a broken connection only delays it."""

    __slots__ = ("build",)

    def __init__(self, build: Callable[[int], Message]) -> None:
        super().__init__()
        self.build = build
