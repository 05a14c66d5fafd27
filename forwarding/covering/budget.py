"""What looking for covers may cost: an allowance that every change adds to and every comparison draws on.

Covering is an optimisation. A filter that is not found to be covered stays active in the table (rule 3 of [SIENA-2D],
section 4.2), or is told to a neighbour; answers do not change. Finding out may be dear, though: two regions of ten
thousand vertices can take milliseconds to relate, and fifty of them have a thousand pairs. So whoever looks for covers
holds an allowance of two numbers,

    comparisons   questions put to one constraint about another, or about one value
    vertices      of regions that have to be related exactly, where their MBRs leave it open

Each change earns a little; what is not used is kept, up to a limit. A relation that costs more than there is raises
`OutOfBudget`, and the caller goes on as if the answer were no. Hence a burst of changes, of whatever filters, spends at
most the limit and its own earnings, and a quiet time makes up for a busy one. Candidates are tried in the order of
their promise (`PluggedType.promise`), since not all may be.

Building in bulk and offline earns more, and asking `Filter.covers` directly is never refused.
"""

from __future__ import annotations

import math
from typing import Final

# Some tens of milliseconds at the worst that shapes can be made to cost, a hundredth of it for ordinary ones. One pair
# of the largest regions that clients may send is just affordable.
MOST_COMPARISONS: Final = 8192
MOST_VERTICES: Final = 20_480
_COMPARISONS: Final = 64
_VERTICES: Final = 1024
OF_REGIONS: Final = 8  # comparisons that one of regions counts as, besides its vertices
_IN_BULK: Final = 64  # times as much


class OutOfBudget(Exception):  # no error: nothing is wrong, and nobody outside sees it
    """A comparison would cost more than is left."""


class CoveringBudget:
    """The allowance of one table or one set of filters. Starts full."""

    __slots__ = ("_scale", "comparisons", "sampled", "vertices")

    def __init__(self, *, bulk: bool = False, sampled: bool = False) -> None:
        self.sampled = sampled  # whether relations of regions are sampled where the answers are used
        self._scale = _IN_BULK if bulk else 1
        self.comparisons: float = MOST_COMPARISONS * self._scale
        self.vertices: float = MOST_VERTICES * self._scale

    def earn(self, filters: int = 1) -> None:
        """Add what a change of so many filters brings."""
        gain = self._scale * filters
        self.comparisons = min(self.comparisons + _COMPARISONS * gain, MOST_COMPARISONS * self._scale)
        self.vertices = min(self.vertices + _VERTICES * gain, MOST_VERTICES * self._scale)

    def spend(self, comparisons: int, vertices: int = 0) -> None:
        """Pay for what is done next; `OutOfBudget`, and nothing is paid, when it costs more than there is."""
        if comparisons > self.comparisons or vertices > self.vertices:
            raise OutOfBudget
        self.comparisons -= comparisons
        self.vertices -= vertices


class _Unlimited(CoveringBudget):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self.comparisons = self.vertices = math.inf

    def spend(self, comparisons: int, vertices: int = 0) -> None:
        pass


UNLIMITED: Final[CoveringBudget] = _Unlimited()
"""For questions that a user asks."""
