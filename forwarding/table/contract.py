"""What every forwarding table does: ForwardingTable, in memory, and SegmentedTable, mostly mapped from files.

Code that is given a table asks for a `Table`; tests/forwarding/table/test_contract.py holds both to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from contrada.forwarding.table.interfaces import InterfaceT

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set

    from contrada.errors import CodecError
    from contrada.forwarding.batches.columns import Columns
    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.forwarding.language.explain import Explanation
    from contrada.forwarding.language.filter import Expression, Filter
    from contrada.forwarding.state.state import TableStats


class Table(Protocol[InterfaceT]):
    """Filters of many interfaces. Ids of filters are integers, never reused; `NotFound` for those that are not there.

    Values that no notification or filter may have are refused with `InvalidValue`, and nothing has changed then.
    """

    def add(self, interface: InterfaceT, filter: Expression | str) -> list[int]:
        """Add a filter, each filter of a predicate, or those that a text describes; their ids, in order."""

    def add_many(self, pairs: Iterable[tuple[InterfaceT, Expression | str]]) -> list[list[int]]:
        """As `add` of each (interface, filter) pair, at a fraction of the cost. When one is refused none is added."""

    def adding(self, interface: InterfaceT, filter: Expression | str, start: int = 0) -> Iterator[list[int]]:
        """As `add`, a piece at each step: the ids of the piece. For callers who have others to serve in between.

        From the filter at `start` on, for those who have added the ones before.
        """

    def remove(self, id: int) -> None:
        """Take a filter out."""

    def remove_interface(self, interface: Hashable) -> None:
        """Take all filters of an interface out. `NotFound` when it has none."""

    def match(self, notification: Mapping[str, object]) -> set[InterfaceT]:
        """Every interface with at least one filter that matches."""

    def match_many(
        self, notifications: Iterable[Mapping[str, object]], *, threads: int | None = 1
    ) -> list[set[InterfaceT]]:
        """As `match` of each, much cheaper per notification; a large batch in several threads, None for all cores."""

    def match_bodies(self, bodies: Sequence[bytes]) -> tuple[list[Set[InterfaceT]], dict[int, CodecError]]:
        """As `match_many` of notifications as `encode_notification` writes them, most of which are never made objects.

        What the codec refuses matches nothing; its place, and the reason, are in the second answer. Equal answers may
        be one object.
        """

    def match_filters(self, notification: Mapping[str, object]) -> list[int]:
        """The ids of the filters that match, in ascending order."""

    def match_many_filters(self, notifications: Iterable[Mapping[str, object]]) -> list[list[int]]:
        """As `match_filters` of each, much cheaper per notification."""

    def match_pairs(
        self, notifications: Columns | Sequence[Mapping[str, object]], *, threads: int | None = 1
    ) -> tuple[Ints, Ints]:
        """As `match_many_filters`, in arrays: places of notifications, ascending, and ids of filters they match."""

    def filter(self, id: int) -> Filter:
        """The filter of that id, equal to what was added."""

    def interface(self, id: int) -> InterfaceT:
        """The interface of the filter of that id."""

    def interface_filters(self, interface: Hashable, most: int | None = None) -> list[int]:
        """The ids of an interface's filters, or of `most` of them; none when it has none."""

    def explain(self, notification: Mapping[str, object], id: int) -> Explanation:
        """Constraint by constraint, whether the filter of that id holds and why; `str()` of it is readable."""

    def stats(self) -> TableStats:
        """How much the table holds."""

    def __contains__(self, id: object) -> bool:
        """Whether there is a filter of that id."""

    def __len__(self) -> int:
        """How many filters there are."""
