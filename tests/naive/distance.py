"""Squared distances in rational arithmetic: slow, obvious, exact.

A shape is a list of vertices: one is a point; `filled` makes it a polygon, unclosed, and otherwise it is a path.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.naive.relate import OUT, locate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Position = tuple[float, float]
    Shape = tuple[Sequence[Position], bool]


def within(a: Shape, b: Shape, length: float) -> bool:
    return squared_distance(a, b) <= Fraction(length) ** 2


def squared_distance(a: Shape, b: Shape) -> Fraction:
    for (first, filled), (second, _) in ((a, b), (b, a)):
        if filled and any(locate(vertex, first) != OUT for vertex in second):
            return Fraction(0)
    return min(_of_segments(*mine, *theirs) for mine in _edges(a) for theirs in _edges(b))


def _edges(shape: Shape) -> Iterator[tuple[Position, Position]]:
    vertices, filled = shape
    if len(vertices) == 1:
        yield vertices[0], vertices[0]
    else:
        yield from pairwise([*vertices, vertices[0]] if filled else vertices)


def _of_segments(a: Position, b: Position, c: Position, d: Position) -> Fraction:
    if _crossing(a, b, c, d):
        return Fraction(0)
    return min(of_point(a, c, d), of_point(b, c, d), of_point(c, a, b), of_point(d, a, b))


def of_point(p: Position, a: Position, b: Position) -> Fraction:
    """The squared distance of a point from a segment."""
    (px, py), (ax, ay), (bx, by) = (tuple(map(Fraction, each)) for each in (p, a, b))
    squares = (bx - ax) ** 2 + (by - ay) ** 2
    along = Fraction(0) if squares == 0 else ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / squares
    along = min(max(along, Fraction(0)), Fraction(1))
    return (ax + along * (bx - ax) - px) ** 2 + (ay + along * (by - ay) - py) ** 2


def _crossing(a: Position, b: Position, c: Position, d: Position) -> bool:
    """Whether each segment has the ends of the other strictly on its two sides; contacts at ends are distances of 0."""
    return _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0


def _side(a: Position, b: Position, p: Position) -> int:
    (ax, ay), (bx, by), (px, py) = (tuple(map(Fraction, each)) for each in (a, b, p))
    turn = (bx - ax) * (py - ay) - (by - ay) * (px - ax)
    return (turn > 0) - (turn < 0)
