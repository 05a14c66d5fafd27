"""Whom to dial, and when: one `Dial` per configured peer, with back-off and jitter. No sockets, no clock.

    waiting ──due──▶ dialling ──WELCOME──▶ greeted ──LINK──▶ linked
       ▲                │ no answer, refused, hung up          │ lost
       └── back-off ────┴──────────────────────────────────────┘

A dial whose neighbour is linked already, because that neighbour dialled too, waits until that link is gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from contrada.errors import InvalidValue

if TYPE_CHECKING:
    import random

FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 5.0
_ADDRESS: Final = re.compile(r"(?:(?P<name>[\w.\-]{1,97})@)?(?P<url>(?:tcp|ipc|inproc)://\S+)")


class Peer(NamedTuple):
    """Where a neighbour listens, and the file in the key directory that holds its public key."""

    url: str
    key: str | None = None

    @classmethod
    def parse(cls, address: str) -> Peer:
        """Read `URL` or `KEY@URL`."""
        found = _ADDRESS.fullmatch(address)
        if found is None:
            raise InvalidValue(
                f"{address!r} is not the address of a peer: expected URL, as in tcp://10.0.0.2:7400, "
                "or with keys KEY@URL, as in north@tcp://10.0.0.2:7400"
            )
        return cls(found["url"], found["name"])


class Transport(Protocol):
    """What opens and closes the connections that are dialled."""

    def open(self, connection: bytes, peer: Peer) -> None:
        """Begin to connect; messages may be sent at once."""

    def silence(self, connection: bytes) -> str:
        """Say why nothing may have come from a connection."""

    def close(self, connection: bytes) -> None:
        """Hang up, if it is still open."""


class NoTransport:
    """For a broker that dials nobody."""

    def open(self, connection: bytes, peer: Peer) -> None:
        """Nothing answers there."""

    def silence(self, connection: bytes) -> str:
        """Say that there was no answer."""
        return "no answer"

    def close(self, connection: bytes) -> None:
        """There is nothing to close."""


@dataclass
class Dial:
    """The state of dialling one peer."""

    peer: Peer
    next_at: float = 0.0
    failures: int = 0
    connection: bytes | None = None  # of the attempt under way, or the link
    deadline: float = 0.0  # of the attempt
    neighbour: str | None = None  # the broker id that answered there last
    linked_at: float | None = None

    def begin(self, connection: bytes, deadline: float) -> None:
        """An attempt is under way."""
        self.connection = connection
        self.deadline = deadline

    def linked(self, now: float) -> None:
        """The attempt has become a link."""
        self.linked_at = now
        self.deadline = float("inf")

    def hung_up(self, now: float, random: random.Random) -> None:
        """The attempt failed, or the link is lost: try again, later each time, and not all at once.

        Only a link that lasted makes a new beginning: one that comes and goes would have all brokers look for a new
        tree each time.
        """
        self.connection = None
        if self.linked_at is not None and now - self.linked_at >= LONGEST_DELAY:
            self.failures = 0
        self.linked_at = None
        delay = min(FIRST_DELAY * 2.0**self.failures, LONGEST_DELAY)
        self.next_at = now + delay * random.uniform(0.5, 1.0)
        self.failures = min(self.failures + 1, 16)
