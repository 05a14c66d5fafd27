"""One immutable type per message of the protocol, and `Message`, the union of them.

C marks what a client sends, B what a broker sends. A `request` is a number ≥ 1 that the client chooses, never twice
in a session; each request is answered by exactly one ACK, REPLY or ERROR that carries it. `PROTOCOL.md` tells when
each message may be sent and what it means; `frames.py` turns them into frames and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.broker.protocol.wire import MAX_INTEGER, PLANE, Full

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.broker.protocol.wire import Code, DurableAction, Policy, Role


class NotificationId(NamedTuple):
    """Names one notification for good: the broker that accepted it, and its number there."""

    broker: str
    sequence: int

    def __str__(self) -> str:
        return f"{self.broker}:{self.sequence}"

    @classmethod
    def parse(cls, text: str) -> NotificationId:
        """Read back what `str` wrote; ValueError when it is not that."""
        broker, colon, sequence = text.rpartition(":")
        if not broker or not colon or not (sequence.isascii() and sequence.isdigit() and int(sequence) <= MAX_INTEGER):
            raise ValueError(f"{text!r} is not a notification id: expected BROKER:SEQUENCE, as in b-1f2e:42")
        return cls(broker, int(sequence))


class Limits(NamedTuple):
    """What the broker accepts from one session. All are inclusive; bytes are those of encoded values."""

    message_bytes: int = 8 << 20  # all frames of one message together
    notification_bytes: int = 1 << 20
    batch: int = 1024  # notifications in one PUBLISH; at most `wire.LIST_LENGTH`
    subscriptions: int = 10_000
    window: int = 8192  # notifications published and not yet acknowledged
    window_bytes: int = 32 << 20
    queue: int = 65_536  # notifications waiting for one subscription
    queue_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Hello:
    """C: open a session. `name` is shown to operators, and is the publisher's name where keys do not name it."""

    oldest: int
    newest: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Welcome:
    """B: the session is open. `heartbeat` and `timeout` are seconds."""

    version: int
    broker: str
    session: int
    publisher: str
    roles: frozenset[Role]
    heartbeat: float
    timeout: float
    limits: Limits


@dataclass(frozen=True, slots=True)
class Subscribe:
    """C: deliver what matches any of these encoded filters. `queue` 0 takes the broker's default."""

    request: int
    subscription: int
    filters: tuple[bytes, ...]
    policy: Policy
    credit: int
    queue: int = 0


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """C: end a subscription. Deliveries sent before the ACK may still arrive before it, none after."""

    request: int
    subscription: int


@dataclass(frozen=True, slots=True)
class Publish:
    """C: encoded notifications, all accepted in this order or all refused."""

    request: int
    notifications: tuple[bytes, ...]


class Delivered(NamedTuple):
    """One notification in a DELIVER, and the receiver's subscriptions that it goes to."""

    id: NotificationId
    publisher: str
    body: bytes
    subscriptions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Deliver:
    """B: notifications. Each uses one credit of each subscription that it names."""

    entries: tuple[Delivered, ...]


class Acked(NamedTuple):
    """One answered request. For a PUBLISH, `sequence` is its first notification's number; the rest follow on.

    For an ATTACH it is 1 if the index has the name, else 0.
    """

    request: int
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Ack:
    """B: these requests succeeded, in any order."""

    entries: tuple[Acked, ...]


class Grant(NamedTuple):
    """Room for `credit` more notifications of one subscription."""

    subscription: int
    credit: int


@dataclass(frozen=True, slots=True)
class Credit:
    """C: the application has consumed; the broker may send so many more."""

    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class Ping:
    """C, B: are you there? Answered by a PONG with the same nonce."""

    nonce: int


@dataclass(frozen=True, slots=True)
class Pong:
    """C, B: yes."""

    nonce: int


@dataclass(frozen=True, slots=True)
class Error:
    """B: no, and why. `request` 0 answers no request in particular; after a fatal one the session is gone."""

    request: int
    code: Code
    reason: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Bye:
    """C, B: the session ends here. The broker answers a client's with its own, behind what was already on its way."""

    reason: str = ""


class Drop(NamedTuple):
    """Notifications that one subscription lost: since the last report, and since it began."""

    subscription: int
    dropped: int
    total: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """B: what the `drop-oldest` policy cost."""

    entries: tuple[Drop, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """C (admin): clients, subscriptions, rates. Answered by a REPLY."""

    request: int


@dataclass(frozen=True, slots=True)
class Explain:
    """C: why did this notification (not) reach this subscription? `session` 0 means my own; others need admin."""

    request: int
    notification: NotificationId
    session: int
    subscription: int


@dataclass(frozen=True, slots=True)
class ListSubscriptions:
    """C (admin): everybody's subscriptions, those behind the interface `after`. Answered by a REPLY, a page each."""

    request: int
    after: int = 0


@dataclass(frozen=True, slots=True)
class ListReceivers:
    """C (admin): the interfaces that these notifications of late went to. Answered by a REPLY."""

    request: int
    notifications: tuple[NotificationId, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """B: the answer to STATUS, EXPLAIN, LIST_… or INDEX_…: a document of None, bool, int, float, str, list, dict."""

    request: int
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Advertise:
    """C: I may publish what matches any of these encoded filters."""

    request: int
    advertisement: int
    filters: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """C: I no longer do."""

    request: int
    advertisement: int


@dataclass(frozen=True, slots=True)
class Attach:
    """C: deliver what the standing subscriptions of this interface of the index match. UNSUBSCRIBE ends it."""

    request: int
    subscription: int
    name: str
    policy: Policy
    credit: int
    queue: int = 0


@dataclass(frozen=True, slots=True)
class IndexLoad:
    """C (admin): load the index in a directory of the broker's machine, or a shard "k/n" of it. Answered by a REPLY."""

    request: int
    path: str
    shard: str = ""


@dataclass(frozen=True, slots=True)
class IndexAdd:
    """C (admin): put a subscription into the index, in place of any of the same id. Answered by a REPLY."""

    request: int
    id: str
    name: str
    filter: bytes


@dataclass(frozen=True, slots=True)
class IndexRemove:
    """C (admin): take a subscription out of the index. Answered by a REPLY."""

    request: int
    id: str


@dataclass(frozen=True, slots=True)
class Link:
    """C, B: make this session a link. C names its broker; B answers with its own id, and the link is up.

    `incarnation` tells two broker processes of one id apart: the one that started later has the greater number. `crs`
    is what coordinates are, "plane" or "lonlat"; `relations` how regions are related, "exact", or "uniform" with
    density and halo. Both are alike in a whole overlay. `custody` says that the broker has a disk, and keeps there what
    is carried over the link; there is custody if both ends say so.
    """

    broker: str
    advertisements: bool
    incarnation: int = 0
    crs: str = PLANE
    relations: str = "exact"
    custody: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """C: as PUBLISH, answered once they are on the broker's disk.

    With a `key` it is one notification, accepted once however often it is sent; with `retain` it is one notification,
    which becomes the last value of that key.
    """

    request: int
    notifications: tuple[bytes, ...]
    key: str = ""
    retain: str = ""


class Keep(NamedTuple):
    """What a durable subscription may have waiting, and what happens beyond that; 0 takes the broker's default.

    `age` is seconds. After `attempts` deliveries without an acknowledgement a notification is a dead letter.
    """

    notifications: int = 0
    when_notifications: Full = Full.REFUSE
    bytes: int = 0
    when_bytes: Full = Full.REFUSE
    age: int = 0
    when_age: Full = Full.DROP_OLDEST
    attempts: int = 0


Since = NotificationId | int | str | None
"""Where a new durable subscription begins: behind a notification, at a time (µs since 1970), at "all", or now."""


@dataclass(frozen=True, slots=True)
class SubscribeDurable:
    """C: make the durable subscription of this name, or be the one that it is delivered to.

    It asks for filters, or for an interface of the broker's index. UNSUBSCRIBE leaves it at the broker.
    """

    request: int
    subscription: int
    name: str
    filters: tuple[bytes, ...]
    interface: str
    credit: int
    since: Since = None
    keep: Keep = Keep()  # noqa: RUF009  # an immutable tuple


class Acknowledgement(NamedTuple):
    """Positions of a durable subscription, from the first to the last, that need not be delivered again."""

    subscription: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """C: the application is done with these."""

    entries: tuple[Acknowledgement, ...]


class Stored(NamedTuple):
    """One notification of a durable subscription: where it stands in the journal, how often it was sent, and its time.

    `time` is µs since 1970, of the broker that stored it.
    """

    id: NotificationId
    publisher: str
    body: bytes
    position: int
    attempt: int
    time: int


@dataclass(frozen=True, slots=True)
class DeliverDurable:
    """B: notifications of one durable subscription, in order of their positions. Each uses one credit."""

    subscription: int
    entries: tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class DurableQuery:
    """C: list durable subscriptions, remove one, or read its dead letters behind a position. Answered by a REPLY.

    With FORGET, the name is a key that shall have no last value any more; with UNLINK, the id of a neighbour that is
    gone for good. REMOVE behind 1 removes what nobody uses.
    """

    request: int
    action: DurableAction
    name: str = ""
    behind: int = 0


Message = (
    Hello
    | Welcome
    | Subscribe
    | Unsubscribe
    | Publish
    | Deliver
    | Ack
    | Credit
    | Ping
    | Pong
    | Error
    | Bye
    | Dropped
    | Status
    | Explain
    | ListSubscriptions
    | ListReceivers
    | Reply
    | Advertise
    | Unadvertise
    | Attach
    | IndexLoad
    | IndexAdd
    | IndexRemove
    | Link
    | Store
    | SubscribeDurable
    | Acknowledge
    | DeliverDurable
    | DurableQuery
)
