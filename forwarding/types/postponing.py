"""Counting: where what else filters ask for is selective, regions are decided last, instead of being searched for.

Counting finds every constraint that a notification satisfies, those of plugged-in types by a search of their indexes.
SFF's short cut, selective names first, is worth most with these: of filters on a kind, a level and an area, few are of
the kind and level that came, and only their areas matter. So the search may be postponed: filters are counted up to
their constraints of plugged-in types, and of those that get there these constraints are decided pair by pair, up to
the first that fails and the first filter of an interface (types/relating.py).

That is possible while every filter has another constraint to be counted, and pays where fewer pairs are left than a
search decides and finds. Both are measured, and the other way is looked at now and then, ever more rarely while the
choice stands. No answer depends on it. How much work it may be is bounded: a batch that leaves too many is searched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.forwarding.kernels.match.postponing import must_search
from contrada.forwarding.kernels.match.verifying import EXAMINED
from contrada.forwarding.kernels.memory import layout

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Index
    from contrada.forwarding.types.trying import Trying

WORTH: Final = 8.0  # constraints that a search decides for a value, from which on it may be postponed
_FOUND: Final = 0.25  # what counting a constraint that a search has found costs, of what deciding a pair does
_TOO_MANY: Final = 4.0  # times what a search costs: pairs after which a batch is searched after all
_SOME: Final = 64  # pairs that are decided in any case
_LOOK: Final = 64  # batches like the one at hand before the other way is looked at
_LONGEST: Final = 1 << 20  # notifications before that, at most
_SCANNED: Final = 64  # filters that may be looked through for each notification


class Postponing:
    """Whether searches are postponed. Threads that match may use it at once."""

    def __init__(self) -> None:
        self._left = 0.0  # pairs that are left of a value when its search is postponed, on average
        self._noted = 0
        self._until = self._gap = 0  # notifications before the other way is looked at, and between two looks
        self._asked = 0  # notifications since the filters were looked through
        self._possible: bool | None = None  # None after a change

    def note_change(self) -> None:
        """Be told that filters may be posted otherwise than before."""
        self._possible = None

    def pays(self, notifications: int, index: Index, trying: Trying) -> bool:
        """Whether the search for the next notifications is to be postponed."""
        self._asked += notifications
        if index.state[layout.S_MATCHING] != layout.COUNTING or _cost(trying) < WORTH:
            return False
        if self._possible is None and _SCANNED * self._asked >= index.state[layout.S_FILTERS]:
            self._possible, self._asked = not must_search(index), 0
        if not self._possible:
            return False
        better = self._left < _cost(trying)
        self._until -= notifications
        if self._until > 0:
            return better
        self._gap = min(2 * max(self._gap, _LOOK * notifications), _LONGEST)
        self._until = self._gap
        return not better or self._noted == 0

    @staticmethod
    def spare(values: int, trying: Trying) -> int:
        """What matching so many values may take of an allowance before they are searched for after all."""
        return int(EXAMINED * values * (_TOO_MANY * _cost(trying) + _SOME))

    def note(self, pairs: int, values: int, trying: Trying) -> None:
        """Be told how many pairs so many values have left."""
        before = self._left < _cost(trying)
        self._noted = min(self._noted + 1, 8)
        self._left += (pairs / values - self._left) / self._noted
        if before != (self._left < _cost(trying)):
            self._gap = 0


def _cost(trying: Trying) -> float:
    """What a search for a value costs, in pairs decided."""
    return trying.searched + _FOUND * trying.hits
