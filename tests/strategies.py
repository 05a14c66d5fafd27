"""Polygons for Hypothesis: ordinary, degenerate and hostile. Every ring drawn here is a valid `Region`.

`rings()` and `pairs()` draw vertex lists; `regions()` and `region_pairs()` the same as regions. Small integer grids
make contacts likely: shared vertices, shared edges, vertices on edges, nesting with and without contact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import shapely
from hypothesis import assume
from hypothesis import strategies as st

from contrada.errors import InvalidRegion
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from tests.naive.relate import cleaned, is_simple, turn

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[..., object]
    Ring = list[tuple[float, float]]


@st.composite
def grid_stars(draw, size=6, min_vertices=3, max_vertices=9):
    """Star-shaped polygons on an integer grid: lattice points in angular order around one that is not a vertex."""
    coordinate = st.integers(0, size)
    centre = draw(st.tuples(coordinate, coordinate))
    points = draw(
        st.lists(st.tuples(coordinate, coordinate), min_size=min_vertices, max_size=max_vertices, unique=True)
    )
    by_direction = {}
    for x, y in points:
        dx, dy = x - centre[0], y - centre[1]
        if dx or dy:
            scale = math.gcd(dx, dy)
            by_direction[dx // scale, dy // scale] = (x, y)
    ring = [by_direction[d] for d in sorted(by_direction, key=lambda d: math.atan2(d[1], d[0]))]
    ring = cleaned(ring)
    assume(is_simple(ring))
    return ring


@st.composite
def grid_columns(draw, size=6):
    """Rectilinear polygons on an integer grid: columns of which each shares a stretch with the next. Notches abound."""
    count = draw(st.integers(1, size))
    left = draw(st.integers(0, size - count))
    columns = []
    for _ in range(count):
        if columns:
            low = draw(st.integers(0, columns[-1][1] - 1))
            high = draw(st.integers(max(low, columns[-1][0]) + 1, size))
        else:
            low = draw(st.integers(0, size - 1))
            high = draw(st.integers(low + 1, size))
        columns.append((low, high))
    floor = [(left + i + d, low) for i, (low, _) in enumerate(columns) for d in (0, 1)]
    roof = [(left + i + d, high) for i, (_, high) in enumerate(columns) for d in (0, 1)]
    ring = floor + roof[::-1]
    if draw(st.booleans()):
        ring = [(y, x) for x, y in ring]
    return cleaned(ring)


@st.composite
def float_stars(draw, min_vertices=3, max_vertices=24):
    """Star-shaped polygons with arbitrary doubles: ordinary regions of the papers' kind."""
    count = draw(st.integers(min_vertices, max_vertices))
    centre = draw(st.tuples(st.floats(-4, 4), st.floats(-4, 4)))
    weights = draw(st.lists(st.floats(0.2, 1), min_size=count, max_size=count))
    radii = draw(st.lists(st.floats(0.1, 4), min_size=count, max_size=count))
    angle, whole = 0.0, sum(weights)
    ring = []
    for weight, radius in zip(weights, radii, strict=True):
        ring.append((centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle)))
        angle += 2 * math.pi * weight / whole
    ring = _in_range(ring)
    assume(is_simple(ring))
    return ring


@st.composite
def slivers(draw):
    """Triangles and quadrilaterals thinner than rounding can see: vertices an ulp or a few off a common line."""
    slope = draw(st.sampled_from([1.0, 1 / 3, 0.1, 3.0, 7.0]))
    xs = sorted(draw(st.lists(st.floats(0.01, 1), min_size=3, max_size=5, unique=True)))
    ring = [(x, _ulps(x * slope, draw(st.integers(-3, 3)))) for x in xs]
    ring = cleaned(ring)
    assume(len(ring) >= 3 and is_simple(ring))
    return ring


def grid_rings(size=6):
    """Draw polygons on a small integer grid."""
    return st.one_of(grid_columns(size), grid_stars(size))


def rings():
    """Draw polygons of every kind."""
    return st.one_of(grid_rings(), float_stars(), slivers())


@st.composite
def related(draw, ring):
    """Draw a polygon made from another: equal, inscribed, with an ear cut off or grown, shifted, scaled or shaken."""
    n = len(ring)
    kind = draw(st.sampled_from(["equal", "inscribed", "ear", "bump", "shift", "scale", "shake", "edge", "flip"]))
    if kind == "equal":
        k = draw(st.integers(0, n - 1))
        other = ring[k:] + ring[:k]
        return other[::-1] if draw(st.booleans()) else other
    if kind == "shift":
        dx, dy = draw(st.tuples(st.integers(-3, 3), st.integers(-3, 3)))
        other = [(x + dx, y + dy) for x, y in ring]
    elif kind == "scale":
        factor = draw(st.sampled_from([0.5, 0.25, 2.0, 1.5]))
        ox, oy = draw(st.sampled_from(ring))
        other = [(ox + (x - ox) * factor, oy + (y - oy) * factor) for x, y in ring]
    elif kind == "shake":
        other = [(_ulps(x, draw(st.integers(-2, 2))), _ulps(y, draw(st.integers(-2, 2)))) for x, y in ring]
    elif kind == "inscribed":
        # Vertices and midpoints of edges: all its samples may lie on the other boundary.
        around = [p for i in range(n) for p in (ring[i], _middle(ring[i], ring[(i + 1) % n]))]
        keep = draw(st.lists(st.integers(0, 2 * n - 1), min_size=3, max_size=2 * n, unique=True))
        other = [around[i] for i in sorted(keep)]
    elif kind == "ear":
        k = draw(st.integers(0, n - 1))
        other = ring[:k] + ring[k + 1 :]
    else:
        i = draw(st.integers(0, n - 1))
        a, b = ring[i], ring[(i + 1) % n]
        apex = draw(st.tuples(st.integers(-1, 7), st.integers(-1, 7)))
        apex = (float(apex[0]), float(apex[1]))
        if kind == "bump":
            other = [*ring[: i + 1], apex, *ring[i + 1 :]]
        elif kind == "edge":
            other = [a, b, apex]  # shares the whole edge
        else:
            other = [_middle(a, b), b, apex]  # shares a part of it
    other = cleaned(_in_range(other))
    assume(len(other) >= 3 and is_simple(other))
    return other


@st.composite
def pairs(draw):
    """Draw two polygons: independent on one grid, independent anywhere, or one made from the other."""
    kind = draw(st.sampled_from(["grid", "grid", "any", "related", "related", "related"]))
    if kind == "grid":
        size = draw(st.integers(2, 6))
        return draw(grid_rings(size)), draw(grid_rings(size))
    first = draw(rings())
    return first, draw(rings() if kind == "any" else related(first))


@st.composite
def hostile_pairs(draw):
    """Draw pairs moved to where doubles are hard: far from the origin, huge, tiny, or turned by an inexact angle."""
    first, second = draw(pairs())
    scale = draw(st.sampled_from([1.0, 1 / 3, 1e-90, 1e80, 2.0**-300, 2.0**270]))
    offset = draw(st.sampled_from([0.0, 1.0, 1e6 + 0.1, 2.0**52])) * scale
    cos, sin = draw(st.sampled_from([(1.0, 0.0), (0.6, 0.8), (math.cos(1), math.sin(1))]))
    moved = []
    for ring in (first, second):
        other = [((x * cos - y * sin) * scale + offset, (x * sin + y * cos) * scale + offset) for x, y in ring]
        other = cleaned(_in_range(other))
        assume(len(other) >= 3 and is_simple(other))
        moved.append(other)
    return moved[0], moved[1]


def regions():
    """Draw regions of every kind, boxes among them."""
    return st.one_of(rings().map(Region), boxes())


def grid_regions(size=6):
    """Draw regions on a small integer grid."""
    return grid_rings(size).map(Region)


def region_pairs():
    """Draw pairs of regions, mostly in contact."""
    return pairs().map(lambda pair: (Region(pair[0]), Region(pair[1])))


@st.composite
def boxes(draw, size=6):
    """Draw boxes on a small integer grid."""
    x1, x2 = sorted(draw(st.lists(st.integers(0, size), min_size=2, max_size=2, unique=True)))
    y1, y2 = sorted(draw(st.lists(st.integers(0, size), min_size=2, max_size=2, unique=True)))
    return Box(x1, y1, x2, y2)


@st.composite
def points(draw, size=6):
    """Draw points of the half-integer grid: often on boundaries of grid polygons."""
    return Point(draw(st.integers(0, 2 * size)) / 2, draw(st.integers(0, 2 * size)) / 2)


@st.composite
def rewritten(draw, ring):
    """Draw the same polygon as another ring: start, orientation, closure, repeated and collinear vertices."""
    k = draw(st.integers(0, len(ring) - 1))
    ring = ring[k:] + ring[:k]
    if draw(st.booleans()):
        ring = ring[::-1]
    out = []
    for i, a in enumerate(ring):
        out += [a] * draw(st.sampled_from([1, 1, 2, 3]))
        b = ring[(i + 1) % len(ring)]
        middle = _middle(a, b)
        exact = tuple((Fraction(p) + Fraction(q)) / 2 for p, q in zip(a, b, strict=True))
        if draw(st.booleans()) and middle == exact and middle not in (a, b):
            out.append(middle)
    if draw(st.booleans()):
        out.append(out[0])
    return out


def is_counter_clockwise(ring):
    """Tell whether a ring goes counter-clockwise."""
    return turn(ring) > 0


def _middle(a, b):
    return ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)


def _ulps(value, steps):
    for _ in range(abs(steps)):
        value = math.nextafter(value, math.copysign(math.inf, steps))
    return value


def _in_range(ring):
    """Put coordinates below the smallest magnitude that regions take at zero."""
    return [(x if abs(x) >= 1e-100 else 0.0, y if abs(y) >= 1e-100 else 0.0) for x, y in ring]


def _tile(width: int, whole: bool, k: int) -> Ring:
    """Tile k of a grid of squares so many wide: a whole square, or a quarter of one, cut along both diagonals."""
    cell, quarter = (k, 0) if whole else divmod(k, 4)
    x, y = 2 * (cell % width), 2 * (cell // width)
    corners = [(x, y), (x + 2, y), (x + 2, y + 2), (x, y + 2)]
    return corners if whole else [corners[quarter], corners[(quarter + 1) % 4], (x + 1, y + 1)]


def _joined(width: int, whole: bool, chosen: int, dx: int = 0, dy: int = 0) -> Region:
    """The region of the tiles whose bits are set: any valid one. Holes, parts in holes, rings that touch abound."""
    tiles = [_tile(width, whole, k) for k in range(chosen.bit_length()) if chosen >> k & 1]
    moved = [shapely.Polygon([(x + dx, y + dy) for x, y in tile]) for tile in tiles]
    return Region.of(shapely.unary_union(moved))


@st.composite
def _grids(draw, most):
    width, height, whole = draw(st.integers(1, most)), draw(st.integers(1, most)), draw(st.booleans())
    return width, whole, (1 << width * height * (1 if whole else 4)) - 1


@st.composite
def compound_regions(draw, most=4):
    """Regions of several rings, and single ones where chance has it, on a small grid of integers."""
    width, whole, full = draw(_grids(most))
    return _joined(width, whole, draw(st.integers(1, full)), draw(st.integers(-2, 2)), draw(st.integers(-2, 2)))


@st.composite
def compound_pairs(draw, most=4):
    """Pairs that touch, share stretches, are in one another, fill one another's holes: of one grid, mapped one way."""
    width, whole, full = draw(_grids(most))
    first, second = draw(st.integers(1, full)), draw(st.integers(1, full))
    second = draw(st.sampled_from([second, first | second, first & second, full & ~first, first ^ (1 << second % 7)]))
    assume(0 < second <= full)
    moved = draw(st.sampled_from([(0, 0), (0, 0), (2, 0), (1, 1), (0, -2)]))
    pair = _joined(width, whole, first), _joined(width, whole, second, *moved)
    a, b, c, d = draw(
        st.sampled_from([(1, 0, 0, 1), (0.1, 0, 0, 0.3), (1, 1, 0, 1), (3, -1, 1, 2), (1e-3, 0.7, 0.9, 0)])
    )
    if (a, b, c, d) == (1, 0, 0, 1):
        return pair
    # Rounding moves the vertices: they stay where both regions have them, and edges along one another may part.
    mapped = []
    for region in pair:
        moved = [[[(a * x + b * y, c * x + d * y) for x, y in ring.tolist()] for ring in part] for part in region.rings]
        try:
            mapped.append(Region.of({"type": "MultiPolygon", "coordinates": moved}))
        except InvalidRegion:
            assume(False)
    return tuple(mapped)
