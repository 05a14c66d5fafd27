"""Seeded workloads of the forwarding benchmark: Z and C after SFF's evaluation, and regions with strings and ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.forwarding.constraint import Constraint, Operator
from contrada.forwarding.filter import Filter

if TYPE_CHECKING:
    from collections.abc import Iterator

Notification = dict[str, Any]

NAMES = 1_000
STRINGS = 1_000
_NUMERIC = [Operator.EQ] * 6 + [Operator.LT] * 2 + [Operator.GT] * 2
_TEXTUAL = [Operator.EQ] * 5 + [
    Operator.LT,
    Operator.GT,
    Operator.PREFIX,
    Operator.SUFFIX,
    Operator.CONTAINS,
]
_COMPARING = [Operator.EQ, Operator.NE, Operator.LT, Operator.GT]


class Zipf:
    """Workload Z: names by Zipf's law, half the values numbers in 0..99, half one of 1,000 strings."""

    def __init__(self, seed: int = 1) -> None:
        self._rng = np.random.default_rng(seed)
        weights = 1.0 / np.arange(1, NAMES + 1)
        self._cumulative = np.cumsum(weights / weights.sum())
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        self._strings = sorted(
            {"".join(self._rng.choice(letters, int(self._rng.integers(4, 11)))) for _ in range(STRINGS + 50)}
        )[:STRINGS]

    def _names(self, count: int) -> list[str]:
        """Different names, the first `count` that Zipf's law draws."""
        chosen: dict[int, None] = {}
        while len(chosen) < count:
            for rank in np.searchsorted(self._cumulative, self._rng.random(count)):
                chosen[int(rank)] = None
                if len(chosen) == count:
                    break
        return [f"name{rank}" for rank in chosen]

    def _constraint(self, name: str, draws: np.ndarray[Any, Any]) -> Constraint:
        which, op, value = draws
        if which < 0.5:
            return Constraint(name, _NUMERIC[int(op * 10)], int(value * 100))
        return Constraint(name, _TEXTUAL[int(op * 10)], self._strings[int(value * STRINGS)])

    def filters(self, count: int) -> Iterator[Filter]:
        """Filters of one to five constraints."""
        sizes = self._rng.integers(1, 6, count)
        for size in sizes:
            names = self._names(int(size))
            draws = self._rng.random((len(names), 3))
            yield Filter([self._constraint(name, row) for name, row in zip(names, draws, strict=True)])

    def notifications(self, count: int) -> list[Notification]:
        """Notifications of one to nineteen attributes."""
        made = []
        for size in self._rng.integers(1, 20, count):
            note: Notification = {}
            for name in self._names(int(size)):
                kind, value = self._rng.random(2)
                note[name] = int(value * 100) if kind < 0.5 else self._strings[int(value * STRINGS)]
            made.append(note)
        return made


class Comparing:
    """Workload C: names n0..n99, `= != < >` on 0..99, filters of three to five constraints, notifications likewise."""

    def __init__(self, seed: int = 2) -> None:
        self._rng = np.random.default_rng(seed)

    def filters(self, count: int) -> Iterator[Filter]:
        """Filters of three to five constraints on different names."""
        for size in self._rng.integers(3, 6, count):
            names = self._distinct(int(size))
            draws = self._rng.random((int(size), 2))
            yield Filter(
                [
                    Constraint(f"n{name}", _COMPARING[int(op * 4)], int(value * 100))
                    for name, (op, value) in zip(names, draws, strict=True)
                ]
            )

    def notifications(self, count: int) -> list[Notification]:
        """Notifications of three to five attributes."""
        return [
            {f"n{name}": int(self._rng.integers(0, 100)) for name in self._distinct(int(size))}
            for size in self._rng.integers(3, 6, count)
        ]

    def _distinct(self, count: int) -> list[int]:
        chosen: set[int] = set()
        while len(chosen) < count:
            chosen.update(self._rng.integers(0, 100, count - len(chosen)).tolist())
        return list(chosen)
