"""The constants of the wire protocol: everything that two implementations must agree on before they can talk.

`PROTOCOL.md` gives each of them its meaning.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MAGIC: Final = "contrada"
# the newest this package speaks: 2 has durable publishing and subscriptions, 3 forgets last values, and has custody
VERSION: Final = 3
OLDEST_VERSION: Final = 1  # the oldest it still understands

PLANE: Final = "plane"  # what coordinates are, where nothing is said
SYSTEMS: Final = (PLANE, "lonlat")

# The first element of every message. Numbers are never reused. 32 to 63 belong to links between brokers.
HELLO: Final = 1
WELCOME: Final = 2
SUBSCRIBE: Final = 3
UNSUBSCRIBE: Final = 4
PUBLISH: Final = 5
DELIVER: Final = 6
ACK: Final = 7
CREDIT: Final = 8
PING: Final = 9
PONG: Final = 10
ERROR: Final = 11
BYE: Final = 12
DROPPED: Final = 13
STATUS: Final = 14
EXPLAIN: Final = 15
REPLY: Final = 16
ADVERTISE: Final = 17
UNADVERTISE: Final = 18
ATTACH: Final = 19
INDEX_LOAD: Final = 20
INDEX_ADD: Final = 21
INDEX_REMOVE: Final = 22
STORE: Final = 23
SUBSCRIBE_DURABLE: Final = 24
ACKNOWLEDGE: Final = 25
DELIVER_DURABLE: Final = 26
DURABLE_QUERY: Final = 27
LIST_SUBSCRIPTIONS: Final = 28
LIST_RECEIVERS: Final = 29
LINK: Final = 32
LINK_STATES: Final = 33
DIGEST: Final = 34
REPLACE: Final = 35
CHANGE: Final = 36
FORWARD: Final = 37
CARRY: Final = 38
CARRIED: Final = 39
DECLINE: Final = 40
KNOWN: Final = 41

INLINE_BYTES: Final = 8192  # a longer notification travels in a frame of its own, so that fan-out shares its memory
LIST_LENGTH: Final = 1024  # entries, grants, filters, or subscriptions of one entry, in one message
MAX_INTEGER: Final = 2**63 - 1  # requests, sequences, credits and counts
MAX_SUBSCRIPTION: Final = 2**32 - 1  # ids of subscriptions and advertisements, chosen by the client
NAME_BYTES: Final = 128  # client names and broker ids, in UTF-8
ASKED_AT_ONCE: Final = 256  # notifications in one LIST_RECEIVERS
PEER_LIST_LENGTH: Final = 65_536  # filters, keys, or elements of a FORWARD's head, between brokers
INDEX_NAME_BYTES: Final = 1024  # ids of subscriptions, and interfaces, of an index
REASON_BYTES: Final = 4096  # longer reasons are cut by the sender
DURABLE_VERSION: Final = 2  # of the protocol, from which on there is anything durable,
FIRST_VERSION: Final = 3  # and from which on the ACK of a subscription says which notification is the first behind it
CUSTODY_VERSION: Final = 3  # and from which on there is custody over links


class Policy(StrEnum):
    """What the broker does when a subscription's queue is full."""

    BLOCK = "block"  # hold back the publishers that fill it
    DROP_OLDEST = "drop-oldest"  # lose the oldest, count it, and report the count
    DISCONNECT = "disconnect"  # end the session of the slow consumer


class Full(StrEnum):
    """What the broker does when a durable subscription reaches one of its limits."""

    REFUSE = "refuse"  # durable publishes that match it, with the reason
    DROP_OLDEST = "drop-oldest"  # lose the oldest, and count it
    DEAD_LETTER = "dead-letter"  # the oldest goes to the dead letters


class DurableAction(StrEnum):
    """What is asked about durable subscriptions."""

    LIST = "ls"
    REMOVE = "rm"
    DEAD = "dead"
    FORGET = "forget"  # the last value of a key
    UNLINK = "unlink"  # what is kept for a neighbour


class Sync(StrEnum):
    """How soon a recording is on the disk, for when the machine dies. A killed broker loses nothing by any of them."""

    NONE = "none"  # when the operating system likes
    INTERVAL = "interval"  # within about a second
    ALWAYS = "always"  # before anything that it tells of is acknowledged or sent


class Role(StrEnum):
    """What a client's key allows it to do."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    ADMIN = "admin"
    PEER = "peer"


class Code(StrEnum):
    """Why the broker refused: for programs. The reason beside it is for people."""

    BAD_FRAME = "bad-frame"  # bytes that are not a message, or a message that has no place here
    BAD_FILTER = "bad-filter"
    BAD_NOTIFICATION = "bad-notification"
    BAD_INDEX = "bad-index"  # no index there, or not a whole one
    VERSION = "version"  # no common protocol version
    NO_SESSION = "no-session"  # say HELLO first (again, after a reconnect)
    UNAUTHORISED = "unauthorised"  # unknown key, or a role that the key lacks
    LIMIT = "limit"  # over one of the limits that WELCOME gave
    FLOW = "flow"  # more unacknowledged notifications than the window
    DUPLICATE = "duplicate"  # the subscription id is in use
    UNKNOWN = "unknown"  # no such subscription, session or notification
    SLOW_CONSUMER = "slow-consumer"
    SILENT = "silent"  # nothing was heard for the liveness timeout
    SHUTTING_DOWN = "shutting-down"
    BANNED = "banned"  # too many bad frames
    STORAGE = "storage"  # the broker keeps nothing on disk, or its disk fails or is full
    INTERNAL = "internal"  # the broker failed on it, and goes on: its log says how
