"""A map in a terminal: Braille dots for borders, background colours for storms and warned counties.

A character cell is 2 x 4 dots, which on most screens is about square, so a cell is twice as high as wide. The base
(which dots are border, and whose county each cell's middle is) depends on the size alone and is drawn once for each.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.text import Text

    from contrada.client.demo.scenario import County, StormState

# Dots of a Braille character by (row, column); U+2800 is the empty one.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))

LAND = "grey42"
WARNED = ("on dark_goldenrod", "on dark_orange3", "on red3")  # few, several, many of a county's facilities
STORM = ("on navy_blue", "on dark_blue", "on purple4", "on purple4", "on deep_pink4", "on deep_pink4")


class Base(NamedTuple):
    """The unchanging part of a map: `bits[row][column]` are border dots, `owner[row][column]` a county or -1."""

    bits: list[list[int]]
    owner: list[list[int]]
    x1: float
    y2: float
    dx: float  # degrees per cell
    dy: float


class Sketch:
    """Draws the counties of a state, with storms and warnings."""

    def __init__(self, counties: Sequence[County]) -> None:
        self._rings = [[tuple(map(float, xy)) for xy in county.region.coords] for county in counties]
        xs = [x for ring in self._rings for x, _ in ring]
        ys = [y for ring in self._rings for _, y in ring]
        self._bounds = min(xs) - 0.1, min(ys) - 0.1, max(xs) + 0.1, max(ys) + 0.1
        self.base = lru_cache(maxsize=4)(self._base)

    def size(self, columns: int, rows: int) -> tuple[int, int]:
        """Return the largest size within so many columns and rows that keeps the proportions."""
        x1, y1, x2, y2 = self._bounds
        wide = (x2 - x1) * math.cos(math.radians((y1 + y2) / 2))
        ratio = 2 * wide / (y2 - y1)  # columns per row
        if columns / ratio <= rows:
            return columns, max(1, round(columns / ratio))
        return max(1, round(rows * ratio)), rows

    def draw(
        self,
        columns: int,
        rows: int,
        storms: Sequence[StormState] = (),
        warned: Mapping[int, int] | None = None,
        marks: Mapping[tuple[float, float], tuple[str, str]] | None = None,
    ) -> Text:
        """Draw. `warned` gives counties a level from 1; `marks` puts a character and its style at a place."""
        from rich.text import Text

        base = self.base(columns, rows)
        placed = {}
        for (x, y), mark in (marks or {}).items():
            placed[int((base.y2 - y) // base.dy), int((x - base.x1) // base.dx)] = mark
        for storm in storms:
            middle = int((base.y2 - storm.y) // base.dy), int((storm.x - base.x1) // base.dx)
            placed[middle] = (storm.name[0], "bold white")
        text = Text(no_wrap=True)
        for row in range(rows):
            y = base.y2 - (row + 0.5) * base.dy
            for column in range(columns):
                x = base.x1 + (column + 0.5) * base.dx
                style = self._background(base.owner[row][column], x, y, storms, warned or {})
                bits = base.bits[row][column]
                character, colour = chr(0x2800 + bits) if bits else " ", LAND if not style else "white"
                if (row, column) in placed:
                    character, colour = placed[row, column]
                text.append(character, f"{colour} {style}".strip())
            if row < rows - 1:
                text.append("\n")
        return text

    @staticmethod
    def _background(owner: int, x: float, y: float, storms: Sequence[StormState], warned: Mapping[int, int]) -> str:
        level = warned.get(owner, 0)
        if level:
            return WARNED[min(level, len(WARNED)) - 1]
        strongest = max((storm.category for storm in storms if storm.covers(x, y)), default=None)
        return "" if strongest is None else STORM[strongest]

    def _base(self, columns: int, rows: int) -> Base:
        x1, y1, x2, y2 = self._bounds
        dx, dy = (x2 - x1) / columns, (y2 - y1) / rows
        bits = [[0] * columns for _ in range(rows)]
        for ring in self._rings:
            for (ax, ay), (bx, by) in zip(ring, [*ring[1:], ring[0]], strict=True):
                steps = max(1, math.ceil(max(abs(bx - ax) / dx * 2, abs(by - ay) / dy * 4)))
                for i in range(steps + 1):
                    column = ((ax + (bx - ax) * i / steps) - x1) / dx * 2
                    row = (y2 - (ay + (by - ay) * i / steps)) / dy * 4
                    bits[int(row) // 4][int(column) // 2] |= _DOTS[int(row) % 4][int(column) % 2]
        owner = [
            [self._owner(x1 + (column + 0.5) * dx, y2 - (row + 0.5) * dy) for column in range(columns)]
            for row in range(rows)
        ]
        return Base(bits, owner, x1, y2, dx, dy)

    def _owner(self, x: float, y: float) -> int:
        return next((index for index, ring in enumerate(self._rings) if _inside(x, y, ring)), -1)


def _inside(x: float, y: float, ring: list[tuple[float, ...]]) -> bool:
    """Count crossings of a ray to the right: good enough for a picture."""
    inside = False
    for (ax, ay), (bx, by) in zip(ring, [*ring[1:], ring[0]], strict=True):
        if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
            inside = not inside
    return inside
