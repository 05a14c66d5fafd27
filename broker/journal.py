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

    def dropped(self, interface: int, reason: str, notifications: Sequence[tuple[str, int]]) -> None:
        """A subscription lost notifications that it had matched."""
