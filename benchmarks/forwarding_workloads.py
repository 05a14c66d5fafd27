"""Seeded workloads of the forwarding benchmark: Z and C after SFF's evaluation, and regions with strings and ranges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.operands import TextMatch

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


def star(rng: np.random.Generator, x: float, y: float, radius: float, vertices: int) -> list[tuple[float, float]]:
    """A simple polygon around a point: vertices at ascending angles, at various distances."""
    angles = (np.arange(vertices) + 0.8 * rng.random(vertices)) * (2 * math.pi / vertices)
    reach = radius * (0.4 + 0.6 * rng.random(vertices))
    return list(zip((x + reach * np.cos(angles)).tolist(), (y + reach * np.sin(angles)).tolist(), strict=True))


class RegionMix:
    """Filters of a polygon relation, a string equality and a numeric range, in a square of side 1,000.

    Of the notifications half are at a point and half have a polygon.
    """

    SEGMENT_KINDS = 100
    RELATIONS = (Operator.INTERSECTS, Operator.INSIDE, Operator.OVERLAPS)

    def __init__(self, seed: int = 3) -> None:
        self._rng = np.random.default_rng(seed)
        self.rows: list[tuple[list[tuple[float, float]], Operator, str, int, int]] = []

    def filters(self, count: int) -> list[Filter]:
        """Filters on area, kind and level; `rows` keeps what they are made of, for the rivals."""
        from contrada.spatial.geometry.region import Region

        made = []
        for _ in range(count):
            x, y = self._rng.random(2) * 1000
            ring = star(self._rng, x, y, 20 + 80 * self._rng.random(), 20)
            op = self.RELATIONS[int(self._rng.integers(3))]
            kind, low = f"kind {self._rng.integers(self.SEGMENT_KINDS)}", int(self._rng.integers(0, 80))
            high = low + int(self._rng.integers(5, 40))
            self.rows.append((ring, op, kind, low, high))
            made.append(
                Filter(
                    [
                        Constraint("area", op, Region(ring)),
                        Constraint("kind", Operator.EQ, kind),
                        Constraint("level", Operator.GT, low),
                        Constraint("level", Operator.LT, high),
                    ]
                )
            )
        return made

    def notifications(self, count: int) -> list[Notification]:
        """Points and polygons by turns."""
        from contrada.spatial.geometry.region import Point, Region

        made: list[Notification] = []
        for i in range(count):
            x, y = (self._rng.random(2) * 1000).tolist()
            area = Region(star(self._rng, x, y, 5 + 30 * self._rng.random(), 12)) if i % 2 else Point(x, y)
            made.append(
                {
                    "area": area,
                    "kind": f"kind {self._rng.integers(self.SEGMENT_KINDS)}",
                    "level": int(self._rng.integers(0, 100)),
                }
            )
        return made


def three_constraints(count: int, seed: int = 4) -> Iterator[Filter]:
    """Filters of exactly three constraints with mostly different values: what a table of a million holds."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 10_000_000, (count, 3)).tolist()
    for i, (a, b, c) in enumerate(numbers):
        yield Filter(
            [
                Constraint(f"user{a % 500}", Operator.EQ, f"account-{b}"),
                Constraint("price", Operator.LT if i % 2 else Operator.GT, c / 100),
                Constraint(f"tag{b % 50}", Operator.PREFIX if i % 3 else Operator.CONTAINS, f"item-{a}"),
            ]
        )


def geotexts(count: int, seed: int = 10) -> Iterator[Filter]:
    """Filters on one to three of 50,000 keywords, some much more common than others, within small boxes."""
    from contrada.spatial.geometry.region import Box

    rng = np.random.default_rng(seed)
    for _ in range(count):
        words = {f"w{int(50_000 * draw**3)}" for draw in rng.random(int(rng.integers(1, 4)))}
        x, y = rng.random(2) * 1000
        width, height = rng.random(2) * 10
        yield Filter([Constraint("post", "matches", TextMatch(frozenset(words), Box(x, y, x + width, y + height)))])
