"""A table that takes in filters while another thread matches by it: these newcomers have a small table of their own.

Matching by another thread only reads, and a change waits for it; the loop must not. So from `lend` to `take_back` what
is added goes to a second table, and every notification that the loop matches asks both:

    add ─▶ lent? ─ no ─▶ the table ◀─ move_some ─┐
                 └ yes ▶ newcomers ──────────────┘   once it is back

Ids of newcomers are negative, and stay what they are when their filters have moved: `_moved` has the table's own. Only
the loop's thread adds, removes and moves; only `match_lent` may run on another thread.

Removals wait for the table as before: what has ended is muted (`Matching.muted`), and nobody waits for its filters to
be gone.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.ports import Table
    from contrada.errors import ContradaError


class _Newcomer(NamedTuple):
    interface: int
    id: int  # in the table of newcomers


class OpenTable:
    """A forwarding table and its newcomers, as one table."""

    def __init__(self, table: Table, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self.lent = False  # whether another thread matches by the table
        self.observe: Callable[[float, int], None] | None = None  # told how long matching so many notifications took
        self._table = table
        self._clock = clock
        self._newcomers: Table | None = None  # made when it is first needed
        self._waiting: dict[int, _Newcomer] = {}  # by their ids, in order of arrival
        self._moved: dict[int, int] = {}
        self._last = 0  # the latest id of a newcomer

    @property
    def newcomers(self) -> int:
        """How many filters wait to be moved into the table."""
        return len(self._waiting)

    # -- another thread ----------------------------------------------------------------------------------

    @property
    def may_lend(self) -> bool:
        """Whether another thread may begin to match: it asks one table only."""
        return not self.lent and not self._waiting

    def lend(self) -> None:
        """Change the table no more: another thread reads it."""
        assert self.may_lend
        self.lent = True

    def take_back(self) -> None:
        """Nobody reads the table any more."""
        self.lent = False

    def match_lent(self, body: bytes) -> tuple[Sequence[AbstractSet[int]], Mapping[int, ContradaError]]:
        """Find the interfaces of one notification, on the thread that it is lent to."""
        began = self._clock()
        answer = self._table.match_bodies((body,))
        if self.observe is not None:
            self.observe(self._clock() - began, 1)
        return answer

    def move_some(self, seconds: float) -> None:
        """Move newcomers into the table for so long, but at least one; none while the table is lent."""
        if self.lent or not self._waiting:
            return
        assert self._newcomers is not None
        until = self._clock() + seconds
        while self._waiting:
            id, (interface, there) = next(iter(self._waiting.items()))
            (self._moved[id],) = self._table.add(interface, self._newcomers.filter(there))
            del self._waiting[id]
            self._newcomers.remove(there)
            if self._clock() >= until:
                return

    # -- a table -----------------------------------------------------------------------------------------

    def add(self, interface: int, expression: Any) -> list[int]:
        """Add the filters of an expression; their ids."""
        if self.lent:
            return [id for some in self.adding(interface, expression) for id in some]
        return self._table.add(interface, expression)

    def adding(self, interface: int, expression: Any, start: int = 0) -> Iterator[list[int]]:
        """As `add`, a piece at each step: the ids of the piece."""
        if self._is_free():
            for some in self._table.adding(interface, expression, start):
                start += len(some)
                yield some
                if not self._is_free():
                    break
            else:
                return
        if self._newcomers is None:
            self._newcomers = self._table.alike()
        for some in self._newcomers.adding(interface, expression, start):
            yield [self._note(interface, there) for there in some]

    def remove(self, id: int) -> None:
        """Remove one filter."""
        table, there = self._find(id)
        table.remove(there)
        if id < 0:
            self._waiting.pop(id, None)
            self._moved.pop(id, None)

    def remove_interface(self, interface: int) -> None:
        """Remove all filters of an interface; KeyError when it has none."""
        mine = [id for id, each in self._waiting.items() if each.interface == interface]
        for id in mine:
            self.remove(id)
        try:
            self._table.remove_interface(interface)
        except KeyError:
            if not mine:
                raise

    def match_bodies(self, bodies: Sequence[bytes]) -> tuple[Sequence[AbstractSet[int]], Mapping[int, ContradaError]]:
        """Find the matching interfaces of each encoded notification; the places of those that cannot be read."""
        began = self._clock()
        found, refused = self._table.match_bodies(bodies)
        if self.observe is not None:
            self.observe(self._clock() - began, len(bodies))
        if self._waiting:
            assert self._newcomers is not None
            more, _ = self._newcomers.match_bodies(bodies)
            found = [mine | theirs if theirs else mine for mine, theirs in zip(found, more, strict=True)]
        return found, refused

    def explain(self, notification: Any, filter_id: int) -> Any:
        """Constraint by constraint, why a filter matches or does not."""
        table, id = self._find(filter_id)
        return table.explain(notification, id)

    def stats(self) -> Any:
        """Sizes of the table, for people; newcomers are on their way into it."""
        return self._table.stats()

    def filter(self, id: int) -> Any:
        """The filter of that id."""
        table, there = self._find(id)
        return table.filter(there)

    def alike(self) -> Table:
        """An empty table with the same settings."""
        return self._table.alike()

    def _find(self, id: int) -> tuple[Table, int]:
        """The table that has a filter, and its id there."""
        if id > 0:
            return self._table, id
        if (newcomer := self._waiting.get(id)) is not None:
            assert self._newcomers is not None
            return self._newcomers, newcomer.id
        return self._table, self._moved[id]

    def _is_free(self) -> bool:
        return not self.lent

    def _note(self, interface: int, there: int) -> int:
        """Give a newcomer its id."""
        self._last -= 1
        self._waiting[self._last] = _Newcomer(interface, there)
        return self._last

    def _check(self) -> None:
        assert not self._moved.keys() & self._waiting.keys()
        assert all(self._last <= id < 0 for id in (*self._moved, *self._waiting))
