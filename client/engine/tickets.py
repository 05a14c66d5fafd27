"""What can be waited for: the core changes it and names it in `take_changed`, the driver wakes whoever waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.broker.protocol.messages import Message
    from contrada.errors import ContradaError


class Waitable:
    """Something whose changes can be waited for. `waiters` belongs to the driver."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: Any = None


class Ticket(Waitable):
    """A request of the application, finished exactly once with a result or an error."""

    __slots__ = ("done", "error", "result")

    def __init__(self) -> None:
        self.waiters: Any = None
        self.done = False
        self.error: ContradaError | None = None
        self.result: Any = None

    def finish(self, result: Any = None, error: ContradaError | None = None) -> None:
        """Set the outcome."""
        assert not self.done, "a ticket is finished once"
        self.done, self.result, self.error = True, result, error


class Query(Ticket):
    """A request that a REPLY answers: harmless to repeat, so a broken connection only delays it."""

    __slots__ = ("message",)

    def __init__(self, message: Callable[[int], Message]) -> None:
        super().__init__()
        self.message = message
