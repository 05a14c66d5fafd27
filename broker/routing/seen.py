"""Which notifications this broker has handled: the last few thousand of every origin.

On a tree that everybody agrees on, no notification comes twice. While the tree changes one may, on another path; its
id gives it away. An origin's memory is two sets of sequence numbers: when the newer one is full it becomes the older
one, and the numbers of that are forgotten. So at least the last `per_origin` are known, and asking about a run of them
is three operations on sets. What comes again later than that is stopped by its hop count instead. `total` bounds the
memory whatever arrives: beyond it the origins that were silent longest are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

PER_ORIGIN: Final = 8192
TOTAL: Final = 1 << 20


class _Memory:
    __slots__ = ("newer", "older")

    def __init__(self) -> None:
        self.newer: set[int] = set()
        self.older: set[int] = set()

    def __len__(self) -> int:
        return len(self.newer) + len(self.older)


class SeenIds:
    """Bounded memory of notification ids."""

    def __init__(self, per_origin: int = PER_ORIGIN, total: int = TOTAL) -> None:
        self._per_origin = per_origin
        self._total = total
        self._count = 0
        self._origins: OrderedDict[str, _Memory] = OrderedDict()

    def unseen(self, origin: str, sequences: Sequence[int]) -> list[int] | None:
        """The places of the numbers that are new, or None if all are; they are remembered from now on."""
        memory = self._origins.get(origin)
        if memory is None:
            memory = self._origins[origin] = _Memory()
        else:
            self._origins.move_to_end(origin)
        newer, older = memory.newer, memory.older
        before = len(memory)
        fresh: list[int] | None = None
        if newer.isdisjoint(sequences) and older.isdisjoint(sequences) and len(set(sequences)) == len(sequences):
            newer.update(sequences)
        else:
            fresh = []
            for at, sequence in enumerate(sequences):
                if sequence not in newer and sequence not in older:
                    newer.add(sequence)
                    fresh.append(at)
        if len(newer) >= self._per_origin:
            memory.older, memory.newer = newer, set()
        self._count += len(memory) - before
        while self._count > self._total and len(self._origins) > 1:
            self._count -= len(self._origins.popitem(last=False)[1])
        return fresh

    def __contains__(self, id: tuple[str, int]) -> bool:
        memory = self._origins.get(id[0])
        return memory is not None and (id[1] in memory.newer or id[1] in memory.older)

    def snapshot(self) -> list[tuple[str, list[int]]]:
        """What is remembered of each origin, the older half first."""
        return [(origin, [*memory.older, *memory.newer]) for origin, memory in self._origins.items()]

    def _check(self) -> None:
        assert self._count == sum(map(len, self._origins.values()))
        for memory in self._origins.values():
            assert len(memory.newer) < self._per_origin
            assert not memory.newer & memory.older
