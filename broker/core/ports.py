"""What the parts of a broker ask of the outside and of each other, and how they say no.

Table and Codec: the engine. Recording: what a broker did, written down. Interest: whoever is told what clients want.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from contrada.broker.protocol.peer_messages import filter_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.protocol.wire import Code
    from contrada.errors import ContradaError
    from contrada.forwarding.language.filter import Filter


class Table(Protocol):
    """What the broker asks of a forwarding table, which knows interfaces by their numbers."""

    def add(self, interface: int, expression: Any) -> list[int]:
        """Add the filters of an expression; their ids."""

    def adding(self, interface: int, expression: Any, start: int = 0) -> Iterator[list[int]]:
        """As `add`, a piece at each step: the ids of the piece. From the filter at `start` on."""

    def remove(self, id: int) -> None:
        """Remove one filter."""

    def remove_interface(self, interface: int) -> None:
        """Remove all filters of an interface; KeyError when it has none."""

    def match_bodies(self, bodies: Sequence[bytes]) -> tuple[Sequence[AbstractSet[int]], Mapping[int, ContradaError]]:
        """Find the matching interfaces of each encoded notification; the places of those that cannot be read."""

    def filter(self, id: int) -> Any:
        """The filter of that id."""

    def explain(self, notification: Any, filter_id: int) -> Any:
        """Constraint by constraint, why a filter matches or does not."""

    def stats(self) -> Any:
        """Sizes, for people."""

    def alike(self) -> Table:
        """An empty table with the same settings."""


class Codec(NamedTuple):
    """How the bytes of notifications and filters are read. Both raise a `ContradaError` that says what is wrong."""

    notification: Callable[[bytes], Mapping[str, Any]]
    filter: Callable[[bytes], Any]
    costly: Callable[[Sequence[bytes]], bool] = lambda _filters: False
    """Whether reading these filters takes so long that another thread should, which `filter` must allow."""


class EncodedFilter(NamedTuple):
    """A filter as an object and as bytes: read once, and sent on as it came."""

    filter: Filter
    body: bytes

    @property
    def key(self) -> bytes:
        """What brokers call it among themselves."""
        return filter_key(self.body)


class Interest(Protocol):
    """Who is told what the clients of this broker want: the overlay."""

    awake: bool
    """Whether somebody listens: who wants something need not say so before."""

    woken: list[Callable[[], Iterable[None]]]
    """Called when `awake` becomes true: then everybody says, by steps, what was wanted by then."""

    def interest_changed(self, added: Sequence[EncodedFilter], removed: Sequence[bytes]) -> None:
        """More is wanted; what was added before is wanted once less, by its keys."""

    def durable_interest_changed(self, added: Sequence[EncodedFilter], removed: Sequence[bytes]) -> None:
        """The same of durable subscriptions: what is published durably is to be kept for them."""


class Refusal(Exception):
    """A request that is refused while its session goes on."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Recording(Protocol):
    """Is told events in the order in which they happen; `contrada.forwarding.recording.writer` writes them down.

    Replaying the filters and notifications of a recording through a table gives the same receivers.
    """

    def subscribed(
        self, interface: int, client: str, session: int, subscription: int, filters: Sequence[bytes]
    ) -> None:
        """A subscription began."""

    def unsubscribed(self, interface: int) -> None:
        """A subscription ended."""

    def accepted(
        self, broker: str, number: int, publisher: str, bodies: Sequence[bytes], matched: Sequence[Collection[int]]
    ) -> None:
        """Notifications, numbered on from `number`, were accepted; the subscriptions that each goes to."""

    def indexed(self, path: str, shard: str, digest: str, subscriptions: int, filters: int) -> None:
        """An index was loaded, in place of any before."""

    def added(self, id: str, name: str, filter: bytes) -> None:
        """A subscription was put into the index."""

    def removed(self, id: str) -> None:
        """A subscription was taken out of the index."""

    def standing(self, interface: int, name: str) -> None:
        """A name of the index gets its number."""

    def attached(self, interface: int, client: str, session: int, subscription: int, name: str) -> None:
        """A client attached to a name of the index; `unsubscribed` ends it."""

    def dropped(self, interface: int, reason: str, notifications: Sequence[tuple[str, int]]) -> None:
        """A subscription lost notifications that it had matched."""
