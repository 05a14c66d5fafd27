"""What brokers tell one another over a link: one immutable type each, and `PeerMessage`, the union of them.

A link carries messages in order, without loss, for as long as it is up; when it goes down, what was under way is
gone. `Router` says what each of them means.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple

BUCKETS: Final = 64
KEY_BYTES: Final = 16
LAST_SEQUENCE: Final = 2**62  # of a link state: those of honest brokers begin at their clock's microseconds


class Flow(StrEnum):
    """The kinds of filters that brokers spread."""

    SUBSCRIPTIONS = "subscriptions"
    ADVERTISEMENTS = "advertisements"
    DURABLE = "durable"  # those of durable subscriptions: what was published durably is kept for them


@dataclass(frozen=True, slots=True)
class LinkState:
    """One broker's word on its links. A greater sequence replaces a smaller one.

    `priority` ranks brokers for the root of the tree: the smallest wins, then the smallest id. `incarnation` tells the
    lives of a broker apart, later ones greater; `rival` is the last other incarnation that this one has heard of, or 0.
    """

    broker: str
    sequence: int
    neighbours: frozenset[str]
    priority: int = 100
    incarnation: int = 0
    rival: int = 0


@dataclass(frozen=True, slots=True)
class LinkStates:
    """Flooded: whatever the sender has just learnt, or all it knows when the link comes up."""

    states: tuple[LinkState, ...]


@dataclass(frozen=True, slots=True)
class Digest:
    """What the sender holds of the receiver's filters, as one number per bucket. Sent when the link comes up."""

    flow: Flow
    buckets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """The answer to a digest: the whole contents of the buckets that differ. Unmentioned buckets are right."""

    flow: Flow
    buckets: tuple[int, ...]
    filters: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Filters that the sender now wants, and keys of those it no longer does. Takes effect as one."""

    flow: Flow
    add: tuple[bytes, ...]
    remove: tuple[bytes, ...]


class Run(NamedTuple):
    """Notifications of one publisher on their way: their numbers at the broker that accepted them, and their bodies.

    `hops` counts the links they have crossed when they arrive.
    """

    origin: str
    publisher: str
    hops: int
    sequences: tuple[int, ...]
    bodies: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Forward:
    """Notifications that the receiver, or somebody behind it, wants; each uses one credit of the link."""

    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Carry:
    """Notifications that the receiver, or somebody behind it, wants durably, with their positions in our journal.

    The sender keeps each until it is in a CARRIED. After a DECLINE of its round it begins again, with the next round.
    """

    round: int
    positions: tuple[int, ...]
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """Positions, from first to last, that the sender has on its disk: the receiver may free them."""

    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Decline:
    """The sender cannot keep something of this round now: nothing more of it is taken, so that order is kept."""

    round: int
    reason: str


@dataclass(frozen=True, slots=True)
class Known:
    """The first `count` messages about the durable flow are on the disks of the sender and of all behind it."""

    count: int


PeerMessage = LinkStates | Digest | Replace | Change | Forward | Carry | Carried | Decline | Known


def filter_key(encoded: bytes) -> bytes:
    """The key by which both ends of a link name an encoded filter."""
    return blake2b(encoded, digest_size=KEY_BYTES).digest()


def bucket_of(key: bytes) -> int:
    """The bucket of a digest that a key falls into."""
    return key[0] % BUCKETS
