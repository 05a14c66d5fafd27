"""Set values in the forwarding table: the handles of `has` by the members that they ask for.

    members   by name and member, the posted handles of `has`, and of `not has`, that ask for it
    refused   by name, the posted handles of `not has`

A value looks its members up, each once: O(members + found). What `not has` refuses is found in the same way, and all
the others posted under the name hold. Pairs that are pending are decided one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.types.plain import PlainType
from contrada.forwarding.types.records import FIRST_MARK, POSTED
from contrada.spatial import allowance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.operands import ValueSet
    from contrada.forwarding.language.set_value import SetValue
    from contrada.forwarding.types.plugged import Settings

_REFUSED = FIRST_MARK
_MEMBER_COST = 50  # nanoseconds, about, of a member that is looked up, and of each handle found under it


class SetType(PlainType):
    """Constraints on set values."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._members: dict[tuple[int, object], set[int]] = {}
        self._refused: dict[int, set[int]] = {}

    def handle(self, name: int, constraint: Constraint) -> int:
        """The handle of a constraint."""
        handle = super().handle(name, constraint)
        if constraint.op is Operator.NOT_HAS:
            self._records.mark(handle, _REFUSED)
        return handle

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the constraints back and post those that were."""
        super().restore(arrays)
        for handle in self._records.marked(POSTED).tolist():
            self._file(handle)

    def post(self, handle: int) -> None:
        """Make `search` find a handle."""
        super().post(handle)
        self._file(handle)

    def _file(self, handle: int) -> None:
        name, _, value = self._records.get(handle)
        for member in cast("ValueSet", value):
            self._members.setdefault((name, member), set()).add(handle)
        if self._records.flags[handle] & _REFUSED:
            self._refused.setdefault(name, set()).add(handle)

    def unpost(self, handle: int) -> None:
        """Undo `post`."""
        super().unpost(handle)
        name, _, value = self._records.get(handle)
        for member in cast("ValueSet", value):
            posted = self._members[name, member]
            posted.remove(handle)
            if not posted:
                del self._members[name, member]
        if self._records.flags[handle] & _REFUSED:
            self._refused[name].remove(handle)
            if not self._refused[name]:
                del self._refused[name]

    def search(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """Look each value's members up."""
        return [self._found(name, value) for name, value in zip(names, values, strict=True)]

    def _found(self, name: int, value: SetValue) -> Ints | None:
        found: set[int] = set()
        for member in value:
            posted = self._members.get((name, member), _NONE)
            allowance.spend(_MEMBER_COST * (1 + len(posted)))
            found |= posted
        if refused := self._refused.get(name):
            found ^= refused  # of those that have a member, what asks for it; of the refusals, what has none
        return np.array(sorted(found), np.int64) if found else None

    def _check(self) -> None:
        super()._check()
        members: dict[tuple[int, object], set[int]] = {}
        refused: dict[int, set[int]] = {}
        for handle in self._records.marked(POSTED).tolist():
            name, op, value = self._records.get(handle)
            for member in cast("ValueSet", value):
                members.setdefault((name, member), set()).add(handle)
            if op is Operator.NOT_HAS:
                refused.setdefault(name, set()).add(handle)
        assert members == self._members
        assert refused == self._refused


_NONE: frozenset[int] = frozenset()
