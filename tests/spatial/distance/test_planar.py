"""Paths near one another, against rational arithmetic."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contrada.spatial.distance.near import distance, grown, near, path_of
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from tests.naive import distance as naive
from tests.naive.relate import is_simple
from tests.strategies import hostile_pairs, pairs, points, rings

LENGTHS = (0.0, 0.5, 1.0, 2.0, math.sqrt(2), math.sqrt(0.5), 2.5, 1e-9)


def lengths(squared):
    root = math.sqrt(squared) if squared < 1e300 else 0.0
    return [d for d in (*LENGTHS, root, math.nextafter(root, 0.0)) if d == 0 or 1e-100 <= d <= 1e100]


@given(points(), rings())
def test_points_and_regions(point, ring):
    squared = naive.squared_distance(([tuple(point)], False), (ring, True))
    region = Region(ring)
    for d in lengths(squared):
        expected = squared <= naive.Fraction(d) ** 2
        assert near(point, region, d) == expected
        assert near(region, point, d) == expected


@st.composite
def apart(draw):
    """Pairs of regions on grids, the second moved by whole numbers."""
    first, second = draw(pairs())
    dx, dy = draw(st.integers(-9, 9)), draw(st.integers(-9, 9))
    moved = [(x + dx, y + dy) for x, y in second]
    assume(is_simple(moved))
    return first, moved


@given(st.one_of(pairs(), hostile_pairs(), apart()))
def test_regions(pair):
    a, b = map(Region, pair)
    squared = naive.squared_distance((a.coords.tolist(), True), (b.coords.tolist(), True))
    for d in lengths(squared):
        expected = squared <= naive.Fraction(d) ** 2
        assert near(a, b, d) == expected
        assert near(b, a, d) == expected


def test_what_is_inside_is_near():
    assert near(Point(5, 5), Box(0, 0, 10, 10), 0.0)
    assert near(Box(4, 4, 5, 5), Box(0, 0, 10, 10), 0.0)
    assert near(Box(0, 0, 10, 10), Box(4, 4, 5, 5), 0.0)
    assert not near(Point(13, 14), Box(0, 0, 10, 10), math.nextafter(5.0, 0.0))
    assert near(Point(13, 14), Box(0, 0, 10, 10), 5.0)
    assert distance(Point(13, 14), Box(0, 0, 10, 10)) == 5.0


def test_boundaries_of_many_edges_are_walked():
    circle = Region([(math.cos(k / 500 * math.pi), math.sin(k / 500 * math.pi)) for k in range(1000)])
    shifted = Region([(x + 3.0, y) for x, y in circle.coords.tolist()])
    assert near(circle, shifted, 1.0 + 1e-12)
    assert not near(circle, shifted, 1.0 - 1e-12)
    assert not near(circle, shifted, 0.5)


@pytest.mark.parametrize(
    "bounds",
    [(0.0, 0.0, 1.0, 1.0), (1e-100, -1e-100, 1e-100, -1e-100), (1e16, -1e16, 1e16, 1e16), (0.1, 0.2, 0.3, 0.4)],
)
@pytest.mark.parametrize("length", [0.0, 0.1, 1.0, 1e20])
def test_grown_boxes_reach_at_least_as_far(bounds, length):
    x1, y1, x2, y2 = map(naive.Fraction, grown(bounds, length))
    far = naive.Fraction(length)
    assert x1 <= naive.Fraction(bounds[0]) - far
    assert y1 <= naive.Fraction(bounds[1]) - far
    assert x2 >= naive.Fraction(bounds[2]) + far
    assert y2 >= naive.Fraction(bounds[3]) + far
    assert x1 < x2
    assert y1 < y2


def test_grown_boxes_stay_where_coordinates_are():
    assert grown((0.0, 0.0, 0.0, 0.0), 0.0) == (-1e-100, -1e-100, 1e-100, 1e-100)
    assert grown((-1e100, 0.0, 1e100, 0.0), 1e100) == (-1e100, -1e100, 1e100, 1e100)


def test_a_point_is_a_path_of_one_edge():
    xy, boxes, filled = path_of(Point(1, 2))
    assert xy.tolist() == [[1, 2], [1, 2]]
    assert boxes.tolist() == [[1, 2, 1, 2]]
    assert not filled
