"""Where searches of plugged-in types lead: by kind and handle, the operand that filters are posted under.

The hash over operands would tell as well, at a look-up for each constraint that a value satisfies, of which there may
be thousands; here all of them take one gather. Made of the operands when a table is loaded, and kept up by the
events of changes; never saved. 8 bytes for each handle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.forwarding.kernels.memory import layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.forwarding.kernels.memory.layout import Index, Ints
    from contrada.forwarding.types.plugged import PluggedType

_FEWEST: Final = 64
_NOTHING: Final = np.zeros(0, np.int64)


class PostedOperands:
    """The operands of all handles that searches may find. Who changes the table writes; others only read."""

    def __init__(self) -> None:
        self._by_kind: dict[int, Ints] = {}

    def note(self, kind: int, handles: Ints, operands: Ints) -> None:
        """Be told the operands of some handles."""
        known = self._by_kind.get(kind)
        top = int(handles.max(initial=0)) + 1
        if known is None or len(known) < top:
            more = np.zeros(max(2 * top, _FEWEST), np.int64)
            if known is not None:
                more[: len(known)] = known
            self._by_kind[kind] = known = more
        known[handles] = operands

    def put(self, kind: int, handle: int, operand: int) -> None:
        """Be told the operand of one handle."""
        known = self._by_kind.get(kind)
        if known is None or len(known) <= handle:
            self.note(kind, np.array([handle]), np.array([operand]))
        else:
            known[handle] = operand

    def of(self, kind: int) -> Ints:
        """By handle, the operands of one kind."""
        return self._by_kind.get(kind, _NOTHING)

    def find(self, kind: int, handles: Ints) -> Ints:
        """The operand of each of the handles that a search has found."""
        found: Ints = self.of(kind)[handles]
        return found

    def restore(self, index: Index, types: Mapping[int, PluggedType]) -> None:
        """Take in all operands of a table that was loaded and found sound."""
        rows = index.operands[: index.state[layout.S_OPERANDS]]
        kinds = np.where(rows[:, layout.O_REFS] > 0, rows[:, layout.O_TAG] & 255, 0)
        for kind, plugged in types.items():
            mine = np.flatnonzero(kinds == kind)
            self.note(kind, np.array([plugged.handles]), np.zeros(1, np.int64))
            self.note(kind, rows[mine, layout.O_KEY], mine)
