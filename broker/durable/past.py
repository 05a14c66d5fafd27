"""Which notifications of the past a new subscription matches.

The table of everybody's filters is not asked: a subscription has a table of its own filters while it looks back, which
another thread may use for as long as it takes. A name of the standing index has no filters of its own: the index is
asked, and nobody changes it meanwhile (`StandingIndex.readers`).

    hold ─▶ some(bodies) by any thread, as often as it takes ─▶ release
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from contrada.spatial.allowance import MILLISECOND, Exhausted, allowed

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from contrada.broker.core.ports import Table
    from contrada.broker.core.standing_index import StandingIndex

_AT_ONCE: Final = 64  # notifications
_WORK: Final = 50 * MILLISECOND  # of one call of `some`,
_MOST_WORK: Final = 10_000 * MILLISECOND  # or of one notification: what takes more is as if it were not there


class Past:
    """Looking back with filters."""

    def __init__(self, table: Table, filters: Sequence[Any]) -> None:
        self._alike = table
        self._filters = filters
        self._table: Table | None = None  # made where it is used

    def hold(self) -> None:
        """Somebody begins to look."""

    def release(self) -> None:
        """Somebody has looked."""

    def some(self, bodies: Sequence[bytes]) -> list[bool]:
        """Whether each of the first notifications matches; of at least one."""
        found: list[bool] = []
        try:
            with allowed(_WORK):
                while len(found) < len(bodies):
                    found += self._match(bodies[len(found) : len(found) + _AT_ONCE])
        except Exhausted:
            if not found:
                found = [self._match_one(bodies[0])]
        return found

    def _match_one(self, body: bytes) -> bool:
        try:
            with allowed(_MOST_WORK):
                return self._match((body,))[0]
        except Exhausted:
            return False

    def _match(self, bodies: Sequence[bytes]) -> list[bool]:
        if self._table is None:
            table = self._alike.alike()
            for expression in self._filters:
                table.add(1, expression)
            self._table = table
        return [bool(matched) for matched in self._table.match_bodies(bodies)[0]]


class PastOfName(Past):
    """Looking back with a name of the standing index."""

    def __init__(self, index: StandingIndex, name: str) -> None:
        self._index = index
        self._name = name

    def hold(self) -> None:
        """The index does not change from here on."""
        self._index.readers += 1

    def release(self) -> None:
        """The index may change."""
        self._index.readers -= 1

    def _match(self, bodies: Sequence[bytes]) -> list[bool]:
        return self._index.names_match(self._name, bodies)


def look_back(past: Past, bodies: Sequence[bytes]) -> Generator[Any, Any, list[bool]]:
    """Whether each notification matches, by another thread: steps (`turn/work.py`)."""
    found: list[bool] = []
    past.hold()
    try:
        while len(found) < len(bodies):
            more = yield partial(past.some, bodies[len(found) :])
            found += more
    finally:
        past.release()
    return found
