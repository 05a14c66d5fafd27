"""Distances on the Earth against geographiclib: right but for a millimetre, at poles and across 180 degrees too."""

from __future__ import annotations

import math

import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.spatial.distance.earth import grown_on_earth, position_near_path
from contrada.spatial.distance.geodesic import geodesic_length, position_near_edge, positions_within
from contrada.spatial.distance.near import distance_on_earth, near_on_earth, path_of
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from tests.naive import earth as naive

MILLIMETRE = 1e-3
longitudes = st.floats(-180, 180) | st.sampled_from([-180.0, 180.0, 179.9999, 0.0])
latitudes = st.floats(-90, 90) | st.sampled_from([-90.0, 90.0, 89.9999, 0.0, -89.5])
positions = st.tuples(longitudes, latitudes)
lengths = st.floats(-2, 6).map(lambda power: 10.0**power)
azimuths = st.floats(0, 360)


def moved(position, azimuth, length):
    found = Geodesic.WGS84.Direct(position[1], position[0], azimuth, length)
    return round(found["lon2"], 12), round(found["lat2"], 12)


@given(positions, azimuths, lengths)
def test_positions(a, azimuth, length):
    b = moved(a, azimuth, length)
    true = naive.of_positions(a, b)
    assert abs(geodesic_length(*a, *b) - true) < MILLIMETRE / 10
    assert positions_within(*a, *b, true + MILLIMETRE)
    assert not positions_within(*a, *b, true - MILLIMETRE)
    assert positions_within(*a, *a, 0.0)


@st.composite
def edges(draw):
    a = draw(positions)
    span = 10.0 ** draw(st.floats(-4, 1.7))
    b = a[0] + draw(st.floats(-span, span)), min(max(a[1] + draw(st.floats(-span, span)), -90.0), 90.0)
    t = draw(st.floats(-0.2, 1.2))
    beside = a[0] + t * (b[0] - a[0]), min(max(a[1] + t * (b[1] - a[1]), -90.0), 90.0)
    return a, b, moved(beside, draw(azimuths), draw(lengths))


@given(edges())
@settings(max_examples=20)
def test_positions_and_edges(drawn):
    a, b, p = drawn
    true = naive.of_edge(p, a, b)
    if true <= 1e6:
        assert position_near_edge(*p, *a, *b, true + MILLIMETRE)
        assert not position_near_edge(*p, *a, *b, true - MILLIMETRE)


@st.composite
def rings(draw):
    """Quadrilaterals and triangles around a place, and a position near them."""
    lon, lat = draw(st.floats(-178, 178)), draw(st.floats(-88, 88))
    size = 10.0 ** draw(st.floats(-3, 0))
    turns = sorted(draw(st.lists(st.floats(0, 6.28), min_size=3, max_size=5, unique_by=lambda turn: round(turn, 1))))
    ring = [(lon + size * math.cos(turn), lat + size * math.sin(turn)) for turn in turns]
    return ring, moved((lon, lat), draw(azimuths), draw(lengths))


@given(rings())
@settings(max_examples=10)
def test_positions_and_regions(drawn):
    ring, p = drawn
    try:
        region = Region(ring)
    except ValueError:
        return
    true = naive.of_shape(p, region.coords.tolist(), True)
    assert near_on_earth(Point(*p), region, true + MILLIMETRE)
    assert near_on_earth(region, Point(*p), true + MILLIMETRE)
    if true > MILLIMETRE:
        assert not near_on_earth(Point(*p), region, true - MILLIMETRE)


@given(positions, azimuths, lengths)
def test_grown_boxes_hold_all_that_is_near(a, azimuth, length):
    x, y = moved(a, azimuth, length)
    x1, y1, x2, y2 = grown_on_earth((*a, *a), length)
    assert -180 <= x1 < x2 <= 180
    assert x1 <= x <= x2
    assert y1 - 1e-9 <= y <= y2 + 1e-9


@pytest.mark.parametrize(
    ("a", "b", "metres"),
    [
        (Point(179.999, 10), Point(-179.999, 10), 219.28),  # across the antimeridian
        (Point(180, 10), Point(-180, 10), 0.0),
        (Point(0, 90), Point(90, 90), 0.0),  # a pole has all longitudes
        (Point(0, 89.999), Point(180, 89.999), 223.39),
        (Box(0, 0, 1, 1), Box(2, 0, 3, 1), 111302.64),  # corners at 1 degree north are nearest
        (Box(0, 0, 1, 1), Box(0.5, 0.5, 3, 3), 0.0),
        (Box(170, 0, 180, 5), Point(-180, 2), 0.0),
        (Point(0, 0), Point(180, 0), math.inf),  # beyond what may be asked for
    ],
)
def test_distances(a, b, metres):
    assert distance_on_earth(a, b) == pytest.approx(metres, abs=0.011)
    assert distance_on_earth(b, a) == pytest.approx(metres, abs=0.011)


def test_edges_that_bulge_towards_each_other_are_nearest_between_their_ends():
    # A parallel bulges towards the pole: from a geodesic north of it, its middle is nearer than its ends.
    south, north = Region([(0, 60), (10, 60), (5, 59)]), Region([(1, 60.6), (9, 60.6), (5, 62)])
    ends = min(near_vertices(south, north), near_vertices(north, south))
    slanted = Region([(-3, 60.1), (13, 60.9), (5, 63)])
    assert distance_on_earth(south, north) <= ends + 0.01
    best = min(near_vertices(south, slanted), near_vertices(slanted, south))
    assert distance_on_earth(south, slanted) <= best + 0.01


def near_vertices(a, b):
    """The distance of the nearest vertex of one region from another."""
    return min(distance_on_earth(Point(*vertex), b) for vertex in a.coords.tolist())


def test_a_window_over_a_pole_has_all_longitudes():
    band = Box(-180, 80, 180, 85)
    xy, boxes, filled = path_of(band)
    assert position_near_path(12.0, 90.0, xy, boxes, filled, 558_500.0)
    assert not position_near_path(12.0, 90.0, xy, boxes, filled, 558_000.0)
