"""What a broker tells of its doings while it does them: the events of a recording, without files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class Journal(Protocol):
    """Takes events in the order in which they happen; `forwarding.recording_writer` writes them down."""

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
