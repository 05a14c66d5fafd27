"""Regions as section 5 of [SIENA-2D] has them: synthetic constraints, query types A, B and C, and real polygons.

A *universe* is a rectangle. Synthetic regions are polygons of 20 vertices in a random rectangle, of at least a tenth of
the universe's area. Queries have an MBR of 1 to 25 % of the universe's area: A round and nearly square with at most 10
vertices, B irregular with 30 to 50, C narrow and long with up to 5. Everything follows from a numpy generator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contrada.errors import InvalidRegion
from contrada.spatial.geometry.region import Box, Region

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Random = np.random.Generator

UNIT = Box(0, 0, 1000, 1000)
TYPES = ("A", "B", "C")


def half_length(universe: Region) -> float:
    """Half of a universe's perimeter: the paper gives densities in points per half-length."""
    x1, y1, x2, y2 = universe.bounds
    return (x2 - x1) + (y2 - y1)


def synthetic(random: Random, universe: Region = UNIT, vertices: int = 20) -> Region:
    """Return a random polygon with a point on three or four sides of a random rectangle."""
    x1, y1, x2, y2 = universe.bounds
    while True:
        (left, right), (bottom, top) = np.sort(random.uniform((x1, y1), (x2, y2), (2, 2)).T)
        inner = random.uniform((left, bottom), (right, top), (vertices, 2))
        for side in random.permutation(4)[: random.integers(3, 5)]:
            inner[side, side % 2] = (left, bottom, right, top)[side]
        ring = _around_centre(inner)
        if ring is not None and _area(ring) >= 0.1 * (x2 - x1) * (y2 - y1):
            return Region(ring)


def query(random: Random, kind: str, universe: Region) -> Region:
    """Return a query region of type A, B or C."""
    while True:
        try:
            return Region(_QUERY[kind](random, universe))
        except InvalidRegion:  # two vertices fell together
            continue


def queries(random: Random, kind: str, universe: Region, count: int) -> list[Region]:
    """Return several query regions of a type."""
    return [query(random, kind, universe) for _ in range(count)]


def _frame(random: Random, universe: Region, elongation: float) -> tuple[float, float, float, float]:
    """Return a rectangle of 1 to 25 % of the universe's area: its lower left corner, width and height."""
    x1, y1, x2, y2 = universe.bounds
    share = math.sqrt(random.uniform(0.01, 0.25))
    stretch = math.exp(random.uniform(-1, 1) * math.log(elongation))
    width = min(share * stretch, 1.0) * (x2 - x1)
    height = min(share / stretch, 1.0) * (y2 - y1)
    return random.uniform(x1, x2 - width), random.uniform(y1, y2 - height), width, height


def _round(random: Random, universe: Region) -> Floats:
    return _star(random, _frame(random, universe, 1.1), int(random.integers(7, 11)), 0.8)


def _irregular(random: Random, universe: Region) -> Floats:
    return _star(random, _frame(random, universe, 2.0), int(random.integers(30, 51)), 0.3)


def _narrow(random: Random, universe: Region) -> Floats:
    """A strip from corner to corner of its frame, a fiftieth as wide as long, with a kink."""
    x, y, width, height = _frame(random, universe, 2.0)
    thin = random.uniform(0.01, 0.04)
    strip = np.array([[0, 0], [thin, 0], [1, 1 - thin], [1, 1], [0.5 - thin, 0.5]])
    if random.random() < 0.5:
        strip = strip[::-1] * (-1, 1) + (1, 0)
    return np.asarray(strip * (width, height) + (x, y))


_QUERY = {"A": _round, "B": _irregular, "C": _narrow}


def _star(random: Random, frame: tuple[float, float, float, float], vertices: int, inner: float) -> Floats:
    """Return vertices around a centre at random angles and distances from `inner` to 1, stretched to fill the frame."""
    x, y, width, height = frame
    angles = (np.arange(vertices) + random.uniform(0, 0.9, vertices)) * (2 * np.pi / vertices)
    spokes = random.uniform(inner, 1, vertices)
    ring = np.column_stack([spokes * np.cos(angles), spokes * np.sin(angles)])
    low, high = ring.min(axis=0), ring.max(axis=0)
    return np.asarray((ring - low) / (high - low) * (width, height) + (x, y))


def _around_centre(points: Floats) -> Floats | None:
    """Order points by angle around their mean; None when the polygon that makes is not simple."""
    offset = points - points.mean(axis=0)
    angles = np.sort(np.arctan2(offset[:, 1], offset[:, 0]))
    gaps = np.diff(angles, append=angles[0] + 2 * np.pi)
    if gaps.min() < 1e-9 or gaps.max() >= np.pi:
        return None
    return points[np.argsort(np.arctan2(offset[:, 1], offset[:, 0]))]


def _area(ring: Floats) -> float:
    x, y = ring.T
    return 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


@dataclass(frozen=True)
class Polygons:
    """A set of real polygons: ring i is coords[offsets[i]:offsets[i+1]]."""

    name: str
    coords: Floats
    offsets: NDArray[np.int64]
    universe: Box

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rings(self) -> Iterator[Floats]:
        """Yield each ring's vertices."""
        for low, high in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True):
            yield self.coords[low:high]


NAMES = {"census blocks": "census_blocks_la", "natural features": "osm_natural", "London": "london_buildings"}


def load(directory: Path, name: str) -> Polygons:
    """Read a set by its name in `NAMES`. Far-apart areas of one set are moved side by side."""
    with np.load(directory / f"{NAMES[name]}.npz") as file:
        coords = file["coords"] * float(file["scale"])
        offsets = file["offsets"].astype(np.int64)
        area = file.get("region")
    if area is not None:
        of_vertex = np.repeat(area, np.diff(offsets))
        x = 0.0
        for which in np.unique(area):
            here = of_vertex == which
            low, high = coords[here].min(axis=0), coords[here].max(axis=0)
            coords[here] += (x - low[0], -low[1])
            x += 1.01 * (high[0] - low[0])
    (x1, y1), (x2, y2) = coords.min(axis=0).tolist(), coords.max(axis=0).tolist()
    return Polygons(name, coords, offsets, Box(x1, y1, x2, y2))
