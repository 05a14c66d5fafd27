"""A plugged-in type without an index: constraints are kept as objects and evaluated one by one.

What regions and geotext build on: they add an index for `search` and kernels for `holds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.forwarding.constraint import Constraint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.constraint import Operand, Operator
    from contrada.forwarding.index.layout import Ints
    from contrada.forwarding.plugged import Settings


class PlainType:
    """Handles of constraints, dense and reused; see `plugged.PluggedType` for what each method must do."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._handles: dict[tuple[int, Operator, Operand], int] = {}
        self._keys: list[tuple[int, Operator, Operand] | None] = []
        self._free: list[int] = []
        self._posted: dict[int, set[int]] = {}  # by name

    def handle(self, name: int, constraint: Constraint) -> int:
        """The handle of a constraint."""
        key = (name, constraint.op, constraint.value)
        handle = self._handles.get(key)
        if handle is None:
            if self._free:
                handle = self._free.pop()
            else:
                handle = len(self._keys)
                self._keys.append(None)
            self._made(handle, constraint)
            self._keys[handle] = key
            self._handles[key] = handle
        return handle

    def handles(self) -> list[tuple[int, int, bool]]:
        """Each handle with its name and whether it is posted."""
        return [(h, key[0], h in self._posted.get(key[0], ())) for key, h in self._handles.items()]

    def restore(self, saved: Sequence[tuple[int, int, bool, Constraint]]) -> None:
        """Take in constraints under the handles they had: (handle, name, posted, constraint) each."""
        self._keys = [None] * (1 + max(handle for handle, _, _, _ in saved))
        for handle, name, posted, constraint in saved:
            key = (name, constraint.op, constraint.value)
            self._made(handle, constraint)
            self._keys[handle] = key
            self._handles[key] = handle
            if posted:
                self.post(handle)
        self._free = [handle for handle, key in enumerate(self._keys) if key is None]

    def constraint(self, handle: int, name: str) -> Constraint:
        """The constraint of a handle."""
        _, op, value = self._key(handle)
        return Constraint(name, op, value)

    def release(self, handle: int) -> None:
        """Forget a handle."""
        del self._handles[self._key(handle)]
        self._forgotten(handle)
        self._keys[handle] = None
        self._free.append(handle)

    def post(self, handle: int) -> None:
        """Make `search` find a handle."""
        self._posted.setdefault(self._key(handle)[0], set()).add(handle)

    def unpost(self, handle: int) -> None:
        """Undo `post`."""
        name = self._key(handle)[0]
        self._posted[name].remove(handle)
        if not self._posted[name]:
            del self._posted[name]

    def search(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """Evaluate every posted constraint on each value's name."""
        found: list[Ints | None] = []
        for name, value in zip(names, values, strict=True):
            posted = self._posted.get(name, ())
            found.append(np.array([handle for handle in posted if self._holds(handle, value)], np.int64))
        return found

    def holds(self, numbers: Ints, handles: Ints, values: Sequence[Any]) -> NDArray[np.bool_]:
        """Evaluate pairs, each different one once."""
        known: dict[tuple[int, int], bool] = {}
        held = np.empty(len(numbers), np.bool_)
        for i, pair in enumerate(zip(numbers.tolist(), handles.tolist(), strict=True)):
            answer = known.get(pair)
            if answer is None:
                answer = known[pair] = self._holds(pair[1], values[pair[0]])
            held[i] = answer
        return held

    def covers(self, first: int, second: int) -> bool:
        """Whether the second handle's constraint implies the first's."""
        return self.constraint(first, "x").covers(self.constraint(second, "x"))

    def __len__(self) -> int:
        """How many handles there are."""
        return len(self._handles)

    def _key(self, handle: int) -> tuple[int, Operator, Operand]:
        key = self._keys[handle]
        assert key is not None
        return key

    def _holds(self, handle: int, value: Any) -> bool:
        return self.constraint(handle, "x").holds(
            value, discretization=self.settings.discretization, roads=self.settings.road_network
        )

    def _made(self, handle: int, constraint: Constraint) -> None:
        """Take in a new handle."""

    def _forgotten(self, handle: int) -> None:
        """Let a handle go."""

    def _check(self) -> None:
        assert len(self._handles) + len(self._free) == len(self._keys)
        for key, handle in self._handles.items():
            assert self._keys[handle] == key
        for name, posted in self._posted.items():
            assert posted
            assert {self._key(handle)[0] for handle in posted} == {name}
