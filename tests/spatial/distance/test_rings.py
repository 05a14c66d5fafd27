"""Distances of regions with holes and parts against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Box, Point, Region, Relation
from contrada.spatial.distance.near import near
from tests import strategies
from tests.naive import faces
from tests.naive.distance import _of_segments, of_point

LAKE = Region([(0, 0), (9, 0), (9, 9), (0, 9)], holes=[[(3, 3), (6, 3), (6, 6), (3, 6)]])
ISLES = Region.of("MULTIPOLYGON(((0 0, 1 0, 1 1, 0 1)), ((4 4, 5 4, 5 5, 4 5)))")
LENGTHS = st.sampled_from([0.0, 0.5, 1.0, 2.0**0.5, 2.0, 3.0, 5.0])


@pytest.mark.parametrize(
    ("a", "b", "length", "expected"),
    [
        (Point(4, 4), LAKE, 0.999, False),
        (Point(4, 4), LAKE, 1, True),
        (Point(1, 1), LAKE, 0, True),
        (Box(4, 4, 5, 5), LAKE, 0.999, False),
        (Box(4, 4, 5, 5), LAKE, 1, True),
        (Box(-1, -1, 10, 10), LAKE, 0, True),
        (Box(2, 2, 3, 3), ISLES, 1, False),
        (Box(2, 2, 3, 3), ISLES, 1.5, True),
        (Box(4.2, 4.2, 4.8, 4.8), ISLES, 0, True),
        (ISLES, LAKE, 0, True),
        (Region.of("MULTIPOLYGON(((4 4, 5 4, 5 5)), ((20 20, 21 20, 21 21)))"), LAKE, 0.999, False),
    ],
)
def test_named_configurations(a, b, length, expected):
    assert near(a, b, float(length)) is expected
    assert near(b, a, float(length)) is expected


@given(strategies.compound_pairs(3), LENGTHS)
def test_regions_are_as_near_as_their_edges(pair, length):
    a, b = pair
    squared = Fraction(0)
    if faces.relate(a, b) is Relation.DISJOINT:
        squared = min(_of_segments(*mine, *theirs) for mine in faces.edges_of(a) for theirs in faces.edges_of(b))
    assert near(a, b, length) == near(b, a, length) == (squared <= Fraction(length) ** 2)


@given(strategies.compound_regions(), st.tuples(st.integers(-3, 9), st.integers(-3, 9)), LENGTHS)
def test_points_are_as_near_as_the_edges(region, at, length):
    point = Point(*at)
    squared = min(of_point(at, *edge) for edge in faces.edges_of(region))
    expected = squared <= Fraction(length) ** 2 or faces.contains(region, at)
    assert near(point, region, length) == near(region, point, length) == expected
