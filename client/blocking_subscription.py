"""A subscription of the blocking client: taking and waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.client.engine.inbox import Inbox
from contrada.client.engine.standing import Stage
from contrada.client.holding import Held
from contrada.client.settle import subscription_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.client.notification import Notification


class Subscription(Held[Inbox]):
    """A subscription: iterate it, or `get` one notification at a time. `close` it, or use it as a context manager."""

    @property
    def id(self) -> int:
        """The subscription's number in its session."""
        return self._standing.id

    @property
    def pending(self) -> int:
        """Notifications that have arrived and were not taken."""
        return len(self._standing.buffer)

    @property
    def dropped(self) -> int:
        """Notifications that the broker dropped because this subscriber was too slow."""
        return self._standing.dropped

    @property
    def interruptions(self) -> int:
        """How often the subscription was restored on a new connection; what was published in between is missing."""
        return self._standing.interruptions

    def get(self, timeout: float | None = None) -> Notification:
        """Take the next notification; TimeoutError if none came in time, Disconnected once the subscription ended."""
        with self._client._changed:
            notification = self._take(timeout)
        if notification is None:
            raise subscription_failure(self._standing)
        return notification

    def __iter__(self) -> Iterator[Notification]:
        return self

    def __next__(self) -> Notification:
        with self._client._changed:
            notification = self._take(None)
        if notification is not None:
            return notification
        if self._standing.error is not None:
            raise self._standing.error
        raise StopIteration

    def _take(self, timeout: float | None) -> Notification | None:
        """Take the next notification; None once the subscription has ended and nothing is left. The lock is held."""
        inbox, client = self._standing, self._client

        def settled() -> bool:
            return bool(inbox.buffer) or inbox.stage is Stage.ENDED or inbox.closing is not None

        if not client._wait_for(settled, timeout):
            raise TimeoutError(f"no notification in {timeout:g} s")
        if not inbox.buffer:
            return None
        notification = client._core.take(inbox)
        if client._core.has_actions:
            client._wake()
        return notification
