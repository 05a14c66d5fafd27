"""How `auto` posts filters of several constraints, by what matching has shown (S_MATCHING, from AUTO on).

    AUTO       each in the way that is expected to make less work
    STOPPING   where most interfaces match most notifications: under one constraint, which finds that out sooner
    SEARCHING  where more is left to plugged-in types after matching than a search for it would find: filters with
               constraints of such types are counted, so that nothing of them is left

How much is left is measured (types/trying.py); what a search would find is estimated by the types, for some
constraints. A look that ends with no is not taken again before half as much again is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.forwarding.kernels.memory import layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.forwarding.state.memory import Memory
    from contrada.forwarding.types.plugged import PluggedType

_LEAST: Final = 256  # pairs left of a value, below which nothing is gained
_MORE: Final = 1.5  # times what was left at the last look: worth another
_WORTH: Final = 0.5  # of what a search finds, from which on it is cheaper than to decide so many pairs
_TOO_MUCH: Final = 4.0  # times what had been left: a search that finds more has become dearer than that
_SOME: Final = 512  # operands that tell what a search would find


class Turning:
    """Which of the ways of `auto` a table is in, and when that should become another."""

    def __init__(self, memory: Memory, types: Mapping[int, PluggedType]) -> None:
        self._memory, self._types = memory, types
        self._looked = _LEAST / _MORE  # what was left at the last look
        self._random = np.random.default_rng(1)

    def is_due(self) -> bool:
        """Whether it may have to be another."""
        way = int(self._memory.state[layout.S_MATCHING])
        if self._memory.matched.is_most(way == layout.STOPPING) != (way == layout.STOPPING):
            return True
        trying = self._memory.trying
        if way == layout.SEARCHING:
            return trying.hits > _TOO_MUCH * self._looked
        return way == layout.AUTO and trying.late >= _MORE * self._looked

    def choose(self) -> int:
        """Which it should be. The caller holds the lock."""
        way, trying = int(self._memory.state[layout.S_MATCHING]), self._memory.trying
        if self._memory.matched.is_most(way == layout.STOPPING):
            return layout.STOPPING
        if way == layout.SEARCHING:
            return layout.AUTO if trying.hits > _TOO_MUCH * self._looked else way
        if trying.late < _MORE * self._looked:
            return layout.AUTO
        self._looked = trying.late
        return layout.SEARCHING if trying.late > _WORTH * self._expected() else layout.AUTO

    def _expected(self) -> float:
        """How many filters a search for a value is expected to find, were all with such constraints posted so."""
        operands = self._memory.index.operands
        top = int(self._memory.state[layout.S_OPERANDS])
        some = np.unique(self._random.integers(1, max(top, 2), _SOME))
        some = some[operands[some, layout.O_REFS] > 0]
        kinds = operands[some, layout.O_TAG] & 255
        total = 0.0
        for kind, plugged in self._types.items():
            mine = some[kinds == kind]
            if len(mine):
                shares = plugged.shares(operands[mine, layout.O_KEY])
                names = len(np.unique(operands[mine, layout.O_TAG]))
                total += float((shares * operands[mine, layout.O_REFS]).sum()) / names
        return total * top / max(len(some), 1)
