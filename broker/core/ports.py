"""What the core asks of the outside, and how it says no: the forwarding table, the codec, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.protocol.wire import Code


class Table(Protocol):
    """What the broker asks of a forwarding table: one interface per subscription, named by an integer."""

    def add(self, interface: int, expression: Any) -> list[int]:
        """Add the filters of an expression; their ids."""

    def remove(self, id: int) -> None:
        """Remove one filter."""

    def filter(self, id: int) -> Any:
        """Return the filter of an id."""

    def remove_interface(self, interface: int) -> None:
        """Remove all filters of an interface; KeyError when it has none."""

    def match_bodies(self, bodies: Sequence[bytes]) -> tuple[Sequence[AbstractSet[int]], Mapping[int, ContradaError]]:
        """Find the matching interfaces of each encoded notification; the places of those that cannot be read."""

    def explain(self, notification: Any, filter_id: int) -> Any:
        """Constraint by constraint, why a filter matches or does not."""

    def stats(self) -> Any:
        """Sizes, for people."""


class Codec(NamedTuple):
    """How the bytes of notifications and filters are read. Both raise a `ContradaError` that says what is wrong."""

    notification: Callable[[bytes], Mapping[str, Any]]
    filter: Callable[[bytes], Any]


class Mishap(ContradaError):
    """What the broker says of a message on which it failed: a mistake of the broker's, or of what it is built on."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"the broker failed on it ({type(error).__name__}): its log says how; please report it")


class Refusal(Exception):
    """A request that is refused while its session goes on."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code
