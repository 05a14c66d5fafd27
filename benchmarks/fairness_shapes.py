"""Shapes that are dear to compare, for the rows of `benchmarks.fairness`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from contrada import Line, Region

if TYPE_CHECKING:
    import random


def ring(rng: random.Random, vertices: int, *, star: bool = False, size: float = 10.0) -> Region:
    """A polygon around some place; a star's radius jumps from vertex to vertex."""
    x, y = rng.uniform(0, 100), rng.uniform(0, 100)
    points = []
    for number in range(vertices):
        angle = 2 * math.pi * number / vertices
        radius = size * (rng.uniform(0.3, 1.0) if star else 1.0 + 0.1 * math.sin(9 * angle) + 0.001 * rng.random())
        points.append((x + radius * math.cos(angle), y + radius * math.sin(angle)))
    return Region(points)


def diamonds(vertices: int, phase: float, size: float = 10.0) -> Line:
    """A spiral of four vertices to a turn: two of them do not touch, and the boxes of their edges all meet."""
    turns = [(size * (0.05 + (n + phase) / vertices), math.pi / 2 * n) for n in range(vertices)]
    return Line([(50 + r * round(math.cos(a)), 50 + r * round(math.sin(a))) for r, a in turns])


def ripple(rng: random.Random, vertices: int, size: float) -> Region:
    """A ring around one place whose radius hardly changes."""
    angles = [2 * math.pi * n / vertices for n in range(vertices)]
    radii = [size * (1 + 0.001 * rng.random()) for _ in angles]
    return Region([(50 + r * math.cos(a), 50 + r * math.sin(a)) for a, r in zip(angles, radii, strict=True)])
