"""The records of a broker's recording, one immutable type each. How they are stored is told in `reader.py`.

Every record has its sequence number, without gaps over the whole recording, and the UTC time of the broker's turn in µs
since 1970. `restated` is true of what a file repeats at its beginning because it goes on.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from contrada.forwarding.language.lonlat import PLANE


class Kind(IntEnum):
    """The first field of a record; behind it come those named here."""

    STARTED = 1  # broker, crs: the subscriptions of the life before have ended
    STOPPED = 2  # a clean shutdown
    SUBSCRIBED = 3  # interface, client, session, subscription, [filter, …] as the codec encodes them
    UNSUBSCRIBED = 4  # interface
    ACCEPTED = 5  # broker, number of the first, publisher, [body, …], [interfaces of each: how many, …], [interface, …]
    DROPPED = 6  # interface, reason, [[broker, number], …]
    INDEXED = 7  # path, shard, digest, subscriptions, filters: an index was loaded, in place of any before
    STANDING = 8  # interface, name: an interface of the index, numbered when it is first matched
    ATTACHED = 9  # interface, client, session, subscription, name of the standing interface
    ADDED = 10  # id, name of the interface, filter: to the index, in place of any subscription of that id
    REMOVED = 11  # id: from the index


class Started(NamedTuple):
    """The broker began to serve. Whatever was subscribed before is not any more."""

    sequence: int
    time: int  # µs since 1970, UTC, here and below
    broker: str
    crs: str = PLANE  # what coordinates are


class Stopped(NamedTuple):
    """The broker shut down cleanly."""

    sequence: int
    time: int


class Subscribed(NamedTuple):
    """A subscription began, or is `restated` at the beginning of a file because it goes on."""

    sequence: int
    time: int
    interface: int
    client: str
    session: int
    subscription: int  # the client's own number for it
    filters: tuple[bytes, ...]  # each a predicate, for `codec.decode_filter`
    restated: bool


class Unsubscribed(NamedTuple):
    """A subscription ended."""

    sequence: int
    time: int
    interface: int


class Accepted(NamedTuple):
    """A notification, published here or come from a neighbour, and the subscriptions that it went to."""

    sequence: int
    time: int
    broker: str  # that first accepted it; with `number` the notification's id
    number: int
    publisher: str
    body: bytes  # for `codec.decode_notification`
    interfaces: tuple[int, ...]

    @property
    def id(self) -> str:
        """The notification's id as clients see it."""
        return f"{self.broker}:{self.number}"


class Dropped(NamedTuple):
    """Notifications that matched a subscription and never reached its client."""

    sequence: int
    time: int
    interface: int
    reason: str
    notifications: tuple[tuple[str, int], ...]  # broker and number of each


class Indexed(NamedTuple):
    """An index was loaded: its interfaces are standing subscriptions from here on, in place of any index before."""

    sequence: int
    time: int
    path: str
    shard: str  # "k/n", or empty for all of it
    digest: str
    subscriptions: int
    filters: int
    restated: bool


class Added(NamedTuple):
    """A subscription was put into the loaded index, in place of any of the same id."""

    sequence: int
    time: int
    id: str
    name: str  # of its interface
    filter: bytes
    restated: bool


class Removed(NamedTuple):
    """A subscription was taken out of the loaded index."""

    sequence: int
    time: int
    id: str
    restated: bool


class Attached(NamedTuple):
    """A client gets, from here to an `Unsubscribed` of this interface, what goes to the standing interface `name`.

    The number of an attachment is never among a notification's `interfaces`, only that of the standing interface.
    """

    sequence: int
    time: int
    interface: int
    client: str
    session: int
    subscription: int
    name: str
    restated: bool


class Standing(NamedTuple):
    """The number that a standing interface has in this life of the broker; told when it is first matched."""

    sequence: int
    time: int
    interface: int
    name: str
    restated: bool


class Gap(NamedTuple):
    """Not written but noticed: `missing` records before this point were lost.

    At the beginning of a file (`reset`), all that is subscribed is restated next and replaces what was known.
    """

    sequence: int
    time: int
    missing: int
    reset: bool


Record: TypeAlias = (
    Started
    | Stopped
    | Subscribed
    | Unsubscribed
    | Accepted
    | Dropped
    | Indexed
    | Standing
    | Attached
    | Added
    | Removed
    | Gap
)
