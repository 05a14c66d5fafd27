"""Regions of several rings: what is one, what is not and why, and what equal ones have in common."""

from __future__ import annotations

import copy
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Box, InvalidRegion, InvalidValue, Line, Point, Region, Relation, relate
from contrada.spatial.geometry.compound.rows import part_count, ring_count, ring_mbrs, ring_role, touch_points
from contrada.spatial.geometry.region import MAX_VERTICES, ring_of
from tests import strategies

SQUARE = "(0 0, 8 0, 8 8, 0 8, 0 0)"
FAULTS = {
    "hole outside": (f"POLYGON({SQUARE}, (9 9, 10 9, 10 10))", "hole 0 lies outside the shell"),
    "hole around": ("POLYGON((2 2, 4 2, 4 4), (0 0, 8 0, 8 8, 0 8))", "hole 0 lies outside the shell"),
    "hole crosses": (f"POLYGON({SQUARE}, (6 1, 9 1, 9 2))", "shell and hole 0 cross: .*edge from.*edge from"),
    "hole crosses at vertices": (f"POLYGON({SQUARE}, (7 1, 8 0, 9 9, 7 8))", "cross"),
    "hole is the shell": (f"POLYGON({SQUARE}, {SQUARE})", "share more than points: .* runs along"),
    "hole at an edge": (
        f"POLYGON({SQUARE}, (0 2, 1 2, 1 3, 0 3))",
        "hole 0 .*share more than points|shell and hole 0 share",
    ),
    "hole in a hole": (f"POLYGON({SQUARE}, (1 1, 6 1, 6 6, 1 6), (2 2, 3 2, 3 3))", "hole 1 lies inside hole 0"),
    "holes that cross": (f"POLYGON({SQUARE}, (1 1, 4 1, 4 4, 1 4), (3 3, 6 3, 6 6, 3 6))", "hole . and hole . cross"),
    "hole of one part in another": (
        f"MULTIPOLYGON(({SQUARE}), ((10 0, 14 0, 14 4), (1 1, 2 1, 2 2)))",
        "hole 0 of part 1 lies outside part 1",
    ),
    "nested parts": (f"MULTIPOLYGON(({SQUARE}), ((1 1, 2 1, 2 2)))", "part 1 lies inside part 0"),
    "nested parts, the other way": (f"MULTIPOLYGON(((1 1, 2 1, 2 2)), ({SQUARE}))", "part 0 lies inside part 1"),
    "the same part twice": (f"MULTIPOLYGON(({SQUARE}), ({SQUARE}))", "share more than points"),
    "parts that overlap": (f"MULTIPOLYGON(({SQUARE}), ((4 4, 12 4, 12 12, 4 12)))", "part . and part . overlap"),
    "parts side by side": (f"MULTIPOLYGON(({SQUARE}), ((8 2, 12 2, 12 4, 8 4)))", "join them into one"),
    "island larger than its lake": (
        f"MULTIPOLYGON(({SQUARE}, (2 2, 4 2, 4 4, 2 4)), ((3 3, 6 3, 6 5, 3 5)))",
        "part 1 and hole 0 of part 0 cross|hole 0 of part 0 and part 1 cross",
    ),
    "cut in two by a hole": (f"POLYGON({SQUARE}, (0 4, 4 3, 8 4, 4 5))", "cut the interior of their part in two"),
    "cut in two by holes": (
        f"POLYGON({SQUARE}, (2 4, 4 2, 6 4, 4 3), (2 4, 4 6, 6 4, 4 5))",
        "hole . and hole . touch, .* cut the interior",
    ),
    "hole of two vertices": (f"POLYGON({SQUARE}, (1 1, 2 2))", "hole 0: 2 distinct vertices"),
    "hole that crosses itself": (f"POLYGON({SQUARE}, (1 1, 3 3, 3 1, 1 3))", "hole 0: self-intersection: .* crosses"),
    "part that is a line": (f"MULTIPOLYGON(({SQUARE}), ((20 20, 21 21, 22 22)))", "part 1: zero area"),
    "hole of a part": (f"MULTIPOLYGON(({SQUARE}), ((20 20, 29 20, 29 29), (1 1, 2 2)))", "part 1: hole 0: 2 distinct"),
    "parts without rings": ({"type": "MultiPolygon", "coordinates": [[], []]}, "an empty MultiPolygon"),
    "empty parts": ("MULTIPOLYGON(EMPTY, EMPTY)", "an empty MultiPolygon"),
    "a hole that is no ring": ({"type": "Polygon", "coordinates": [[(0, 0), (1, 0), (1, 1)], 5]}, "hole 0: expected"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault):
    shape, message = FAULTS[fault]
    with pytest.raises(InvalidRegion, match=message):
        Region.of(shape)


LOOSE = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=6, unique=True)
SQUARES = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 6), st.integers(1, 6)).map(
    lambda s: [(s[0], s[1]), (s[0] + s[2], s[1]), (s[0] + s[2], s[1] + s[3]), (s[0], s[1] + s[3])]
)
DIAMONDS = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 4)).map(
    lambda s: [(s[0] - s[2], s[1]), (s[0], s[1] - s[2]), (s[0] + s[2], s[1]), (s[0], s[1] + s[2])]
)


@settings(max_examples=500)
@given(st.lists(st.lists(LOOSE | SQUARES | DIAMONDS, min_size=1, max_size=4), min_size=1, max_size=3))
def test_accepts_exactly_what_is_valid(parts):
    """Valid as OGC and shapely have it; a ring of three on a line, or with spikes, is not."""
    try:
        region = Region.of({"type": "MultiPolygon", "coordinates": parts})
    except InvalidRegion:
        region = None
    shape = shapely.MultiPolygon([(part[0], part[1:]) for part in parts])
    assert (region is not None) == shapely.is_valid(shape), shapely.is_valid_reason(shape)
    if region is not None:
        assert region.to_shapely().equals(shape)


@settings(max_examples=200)
@given(strategies.compound_regions(6), st.randoms(use_true_random=False))
def test_same_points_same_region(region, random):
    """Rings in any order and direction, from any vertex; what shapely makes of it; the codes of Python."""
    parts = []
    for shell, *holes in region.rings:
        rings = []
        for ring in [shell, *random.sample(holes, len(holes))]:
            points = ring[:-1].tolist()
            start = random.randrange(len(points))
            points = points[start:] + points[:start]
            rings.append(points[::-1] if random.random() < 0.5 else points)
        parts.append(rings)
    random.shuffle(parts)
    again = [
        Region.of({"type": "MultiPolygon", "coordinates": parts}),
        Region.of(region.wkt),
        Region.of(region.__geo_interface__),
        Region.of(region.to_shapely()),
        Region(region),
        Region.trusted_rows(ring_of(region)[0]),
        pickle.loads(pickle.dumps(region)),
        copy.deepcopy(region),
    ]
    for other in again:
        assert other == region
        assert hash(other) == hash(region)
        assert other.bounds == region.bounds
        assert other.wkt == region.wkt
    assert shapely.from_wkt(region.wkt).equals(region.to_shapely())
    assert len(region) == len(region.coords) == sum(len(ring) - 1 for part in region.rings for ring in part)


@given(strategies.compound_regions(6))
def test_parts_and_holes(region):
    shape = region.to_shapely()
    union = shapely.unary_union([part.to_shapely() for part in region.parts])
    assert union.equals(shape)
    assert all(len(part.parts) == 1 for part in region.parts)
    filled = shapely.unary_union([shapely.Polygon(shell) for shell, *_ in region.rings])
    holes = [hole.to_shapely() for hole in region.holes]
    assert all(not hole.interiors for hole in holes)
    assert len(region.holes) == sum(len(part) - 1 for part in region.rings)
    assert shapely.difference(filled, shapely.unary_union(holes) if holes else shapely.Polygon()).area <= shape.area
    for part in region.parts:
        assert relate(part, region) in (Relation.EQUALS, Relation.COVERED_BY)
    for hole in region.holes:
        assert relate(hole, Region.of(shapely.Polygon(region.parts[0].rings[0][0]))) is not Relation.EQUALS


@given(strategies.compound_regions(6))
def test_rows_say_what_they_are(region):
    rows, boxes = ring_of(region)
    rings = [ring for part in region.rings for ring in part]
    assert ring_count(rows) == len(rings)
    assert part_count(rows) == len(region.rings)
    assert boxes[-1].tolist() == list(region.to_shapely().bounds)
    if len(rings) > 1:
        for k, ring in enumerate(rings):
            signed = shapely.LinearRing(ring).is_ccw
            assert signed == (ring_role(rows, k) >= 0), "shells one way, holes the other"
            assert ring_mbrs(rows)[k].tolist() == list(shapely.LinearRing(ring).bounds)
            assert ring[0].tolist() == min(ring.tolist())
        positions = [tuple(p) for ring in rings for p in ring[:-1].tolist()]
        shared = {p for p in positions if positions.count(p) > 1}
        touches = {tuple(p) for p in touch_points(rows).tolist()}
        assert shared <= touches
        lines = [shapely.LinearRing(ring) for ring in rings]
        assert touches == {p for p in {*positions} if sum(line.intersects(shapely.Point(p)) for line in lines) > 1}


def test_many_rings():
    """A thousand islands and their lakes, more than boxes have levels for, and no more vertices than are allowed."""
    parts = []
    for k in range(1_000):
        x, y = 10 * (k % 40), 10 * (k // 40)
        shell = [(x, y), (x + 8, y), (x + 8, y + 8), (x, y + 8)]
        parts.append([shell, [(x + 2, y + 2), (x + 4, y + 2), (x + 4, y + 4)]])
    region = Region.of({"type": "MultiPolygon", "coordinates": parts})
    assert len(region.parts) == len(region.holes) == 1_000
    assert relate(Point(103.5, 102.5), region) is Relation.DISJOINT
    assert relate(Point(101, 101), region) is Relation.INSIDE
    assert relate(Point(398, 248), region) is Relation.MEETS
    assert "2000 vertices" not in repr(region)
    assert "7000 vertices, 1000 parts, 1000 holes" in repr(region)
    with pytest.raises(InvalidRegion, match=f"at most {MAX_VERTICES}"):
        Region.of({"type": "MultiPolygon", "coordinates": parts * 30})


def test_holes_go_with_coordinates():
    with pytest.raises(InvalidRegion, match="holes go with the coordinates"):
        Region(Region([(0, 0), (9, 0), (9, 9)]), holes=[[(5, 1), (6, 1), (6, 2)]])
    square = np.array([(0, 0), (9, 0), (9, 9), (0, 9)])
    assert Region(square, holes=[square[::-1] / 3 + 1]) == Region.of(shapely.Polygon(square, [square / 3 + 1]))


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(3, 200))
def test_circles(x, y, r, segments):
    x, y = round(x, 3), round(y, 3)
    circle = Region.circle(x, y, r, segments)
    assert len(circle) == segments
    away = np.hypot(*(circle.coords - (x, y)).T)
    assert np.allclose(away, r, rtol=1e-6)
    assert relate(Point(x, y), circle) is Relation.INSIDE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0, 0), "radius above 0"),
        ((0, 0, -1), "radius above 0"),
        ((0, 0, 1, 2), "segments is 2; expected an integer from 3"),
        ((0, 0, 1, 8.0), "segments is 8.0"),
        ((0, 0, 1, True), "segments is True"),
        ((0, 0, "1"), "r is '1'"),
        ((float("nan"), 0, 1), "x is nan"),
        ((1e20, 0, 1), "distinct vertices|zero area|spike|self-intersection"),
    ],
)
def test_circles_that_are_none(arguments, message):
    with pytest.raises(InvalidValue, match=message):
        Region.circle(*arguments)


@given(strategies.compound_regions(5))
def test_pictures(region):
    """One path, whose rings fill by turns; what it draws is the region, scaled and turned upside down."""
    root = ElementTree.fromstring(region.svg)
    (path,) = root
    assert path.get("fill-rule") == "evenodd"
    rings = [
        [tuple(map(float, pair.split(","))) for pair in ring.strip(" MZ").split(" L")]
        for ring in path.get("d").split("Z")
        if ring
    ]
    drawn = shapely.Polygon()
    for ring in rings:
        drawn = drawn.symmetric_difference(shapely.Polygon(ring))
    x1, y1, x2, y2 = region.bounds
    scale = 200 / max(x2 - x1, y2 - y1)
    assert drawn.area == pytest.approx(region.to_shapely().area * scale**2, rel=1e-3)
    assert region._repr_svg_() == region.svg


def test_pictures_of_the_very_large_and_the_very_thin():
    for region in (Region([(0, 0), (1e100, 0), (1e100, 1e-100)]), Region([(1e-90, 0), (2e-90, 0), (2e-90, 1e-90)])):
        assert "nan" not in region.svg
        assert "inf" not in region.svg


def test_parts_without_points_are_left_out():
    triangle = Region([(0, 0), (1, 0), (1, 1)])
    assert Region.of("MULTIPOLYGON(EMPTY, ((0 0, 1 0, 1 1)), empty)") == triangle
    assert Region.of({"type": "MultiPolygon", "coordinates": [[], [[(0, 0), (1, 0), (1, 1)]]]}) == triangle
    assert Line("MULTILINESTRING(EMPTY, (0 0, 1 1))") == Line([(0, 0), (1, 1)])


@pytest.mark.parametrize("holes", [None, 5, Box(1, 1, 2, 2)])
def test_holes_that_are_no_list_are_refused(holes):
    with pytest.raises(InvalidRegion, match="holes are a list of rings"):
        Region([(0, 0), (8, 0), (8, 8)], holes=holes)
