"""Regions, points and boxes: every way in and out, canonical form, and every fault by name and place."""

from __future__ import annotations

import copy
import doctest
import importlib
import math
import operator
import pickle
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada import Box, ContradaError, InvalidRegion, InvalidValue, Point, Region
from contrada.spatial.geometry.region import MAX_VERTICES, ring_of
from contrada.spatial.geometry.rings import box_rows
from tests import strategies
from tests.naive import relate as naive

TRIANGLE = [(23.1, 10.9), (30.3, 27.0), (48.0, 19.0)]


def _vertices(region):
    return [tuple(vertex) for vertex in region.coords.tolist()]


class Carrier:
    """Anything with `__geo_interface__`."""

    def __init__(self, geometry):
        self.__geo_interface__ = geometry


GEOMETRY = {"type": "Polygon", "coordinates": [[*map(list, TRIANGLE), list(TRIANGLE[0])]]}
SOURCES = {
    "tuples": TRIANGLE,
    "lists": [list(p) for p in TRIANGLE],
    "generator": (p for p in TRIANGLE),
    "points": [Point(x, y) for x, y in TRIANGLE],
    "array": np.array(TRIANGLE),
    "read-only array": np.frombuffer(np.array(TRIANGLE).tobytes()).reshape(-1, 2),
    "memory view": memoryview(np.array(TRIANGLE)),
    "column-major array": np.asfortranarray(TRIANGLE),
    "numpy scalars": [tuple(np.float64(c) for c in p) for p in TRIANGLE],
    "WKT": "POLYGON((23.1 10.9, 30.3 27, 48 19, 23.1 10.9))",
    "WKT, not closed": "polygon ( ( 2.31e1 10.9,30.3 +27.0 , 48 19 ) )",
    "WKT of one part": "MULTIPOLYGON(((23.1 10.9, 30.3 27, 48 19, 23.1 10.9)))",
    "GeoJSON": GEOMETRY,
    "GeoJSON Feature": {"type": "Feature", "geometry": GEOMETRY, "properties": {"name": "x"}},
    "GeoJSON of one part": {"type": "MultiPolygon", "coordinates": [GEOMETRY["coordinates"]]},
    "geo interface": Carrier(GEOMETRY),
    "geo interface of a feature": Carrier({"type": "Feature", "geometry": GEOMETRY}),
    "shapely polygon": shapely.Polygon(TRIANGLE),
    "shapely ring": shapely.LinearRing(TRIANGLE),
    "shapely multipolygon of one": shapely.MultiPolygon([shapely.Polygon(TRIANGLE)]),
    "region": Region(TRIANGLE),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_region(source):
    region = Region.of(SOURCES[source])
    assert _vertices(region) == [(23.1, 10.9), (48.0, 19.0), (30.3, 27.0)]
    assert region.bounds == (23.1, 10.9, 48.0, 27.0)
    if source != "generator":
        assert Region(SOURCES[source]) == region


def test_of_returns_a_region_as_it_is():
    box = Box(0, 0, 1, 1)
    assert Region.of(box) is box
    assert Region(box) == box


@given(strategies.regions())
def test_round_trips(region):
    assert Region.of(region.wkt) == region
    assert Region.of(region.__geo_interface__) == region
    assert Region.of(region.to_shapely()) == region
    assert Region.of(shapely.from_wkt(region.wkt)) == region
    assert Region(region.coords) == region
    assert Region.trusted(region.coords) == region
    for other in (pickle.loads(pickle.dumps(region)), copy.copy(region), copy.deepcopy(region)):
        assert other == region
        assert hash(other) == hash(region)
        assert type(other) is type(region)
        assert other.bounds == region.bounds


@given(st.data())
def test_same_points_same_region(data):
    ring = data.draw(strategies.rings())
    region = Region(ring)
    again = Region(data.draw(strategies.rewritten(ring)))
    assert region == again
    assert hash(region) == hash(again)
    vertices = _vertices(region)
    assert sorted(vertices) == sorted(ring)
    assert vertices[0] == min(vertices)
    assert naive.turn(vertices) == 1
    assert len(region) == len(vertices)


@given(strategies.pairs())
def test_other_points_other_region(pair):
    first, second = map(Region, pair)
    assert (first == second) == (set(pair[0]) == set(pair[1]) and naive.relate(*pair) == "equals")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=9))
def test_accepts_exactly_the_simple_polygons(ring):
    """Any list of grid positions: accepted iff what cleaning leaves is simple, and a spike is not cleaned away."""
    try:
        region = Region(ring)
    except InvalidRegion:
        region = None
    open_ring = [p for i, p in enumerate(ring) if p != ring[i - 1]] or ring[:1]
    n = len(open_ring)
    spikes = [
        i
        for i in range(n)
        if naive.turn([open_ring[i - 1], open_ring[i], open_ring[(i + 1) % n]]) == 0
        and not naive.is_straight(open_ring[i - 1], open_ring[i], open_ring[(i + 1) % n])
    ]
    left = naive.cleaned(open_ring)
    simple = len(left) >= 3 and not spikes and naive.is_simple(left)
    assert (region is not None) == simple
    if region is not None:
        assert sorted(_vertices(region)) == sorted(left)


SQUARE = [(0, 0), (4, 0), (4, 4), (0, 4)]
FAULTS = {
    "empty": ([], "0 distinct vertices; a region has at least 3"),
    "one": ([(1, 1)] * 5, "1 distinct vertices"),
    "two": ([(0, 0), (1, 1), (0, 0), (1, 1)], "2 distinct vertices"),
    "on a line": ([(0, 0), (1, 1), (2, 2)], "zero area"),
    "on a line, back and forth": ([(0, 0), (3, 3), (1, 1), (2, 2)], "zero area"),
    "NaN": ([(0, 0), (1, 0), (math.nan, 1)], r"vertex 2 at \(nan, 1\) .* not finite"),
    "infinity": ([(0, 0), (1, -math.inf), (1, 1)], r"vertex 1 at \(1, -inf\) .* not finite"),
    "too large": ([(0, 0), (1, 0), (1, 1.1e100)], r"vertex 2 .*1e-100 to 1e100"),
    "too small": ([(0, 0), (1, 0), (1, 1e-101)], r"vertex 2 .*1e-100 to 1e100"),
    "denormal": ([(5e-324, 0), (1, 0), (1, 1)], r"vertex 0 .*1e-100 to 1e100"),
    "huge integer": ([(0, 0), (10**400, 0), (1, 1)], r"vertex 1: coordinate 10+… is too large"),
    "integer of too many digits to write": ([(0, 0), (1, 0), (1, -(10**5000))], "vertex 2: coordinate a huge int is"),
    "huge long double": (np.array([(0, 0), (1, 0), (1, "1e1000")], np.longdouble), r"vertex 2 at \(1, inf\)"),
    "bow-tie": (
        [(0, 0), (4, 4), (4, 0), (0, 4)],
        r"from vertex 0 at \(0, 0\) to vertex 1 at \(4, 4\) crosses .* vertex 2 at \(4, 0\) to vertex 3 at \(0, 4\)",
    ),
    "spike out": ([(0, 0), (4, 0), (6, 0), (4, 0), (4, 4)], r"spike: .* vertex 2 at \(6, 0\)"),
    "spike in": ([(0, 0), (4, 0), (4, 4), (2, 2), (4, 4), (0, 4)], r"spike: .* vertex 3 at \(2, 2\)"),
    "spike at the start": ([(-2, 0), (0, 0), (4, 0), (4, 4), (0, 0)], r"spike: .* vertex 0 at \(-2, 0\)"),
    "repeated segment": ([(0, 0), (2, 0), (2, 2), (4, 2), (4, 4), (2, 4), (2, 0)], "self-intersection|spike"),
    "segment twice": (
        [(0, 0), (3, 0), (3, 3), (2, 3), (2, 1), (1, 1), (1, 2), (2, 2), (2, 3), (0, 3)],
        "self-intersection",
    ),
    "runs along": ([(0, 0), (4, 0), (4, 4), (3, 4), (3, 0), (1, 0), (1, 4), (0, 4)], "self-intersection"),
    "vertex on edge": (
        [(0, 0), (4, 0), (4, 4), (2, 0), (0, 4)],
        r"vertex 3 at \(2, 0\) lies on the edge from",
    ),
    "vertex on vertex": (
        [(0, 0), (2, 0), (2, 2), (0, 2), (0, 0), (-2, 0), (-2, -2)],
        r"vertex \d at \(0, 0\) is also vertex \d",
    ),
    "bool": ([(0, 0), (True, 0), (1, 1)], "vertex 1: coordinate True is a bool"),
    "text": ([(0, 0), (1, 0), (1, "1")], "vertex 2: coordinate '1' is a str"),
    "none": ([(0, 0), (1, 0), (1, None)], "vertex 2: coordinate None is a NoneType"),
    "complex": ([(0, 0), (1, 0), (1, 1j)], "vertex 2: coordinate 1j"),
    "three dimensions": ([(0, 0, 5), (1, 0, 5), (1, 1, 5)], "vertex 0 has 3 coordinates; a region is planar"),
    "ragged": ([(0, 0), (1, 0), (1,)], "vertex 2 has 1 coordinates"),
    "flat": ([0, 0, 1, 0, 1, 1], "vertex 0 is an int; expected a position"),
    "number": (7, "expected a sequence"),
    "nothing": (None, "expected a sequence"),
    "bytes": (b"POLYGON((0 0, 1 0, 0 1))", "expected a sequence"),
    "array of three": (np.zeros((4, 3)), r"shape \(4, 3\); expected \(n, 2\)"),
    "array of one": (np.zeros(6), r"shape \(6,\)"),
    "array of bool": (np.zeros((3, 2), bool), "type bool"),
    "array of text": (np.full((3, 2), "1"), "expected real numbers"),
    "array of objects": (np.array(SQUARE, dtype=object), "expected real numbers"),
    "array with NaN": (np.array([(0, 0), (1, 0), (1, np.nan)]), "vertex 2"),
    "WKT empty": ("POLYGON EMPTY", "empty"),
    "WKT empty parts": ("MULTIPOLYGON EMPTY", "empty"),
    "WKT Z": ("POLYGON Z((0 0 1, 1 0 1, 1 1 1))", "POLYGON Z"),
    "WKT three numbers": ("POLYGON((0 0 1, 1 0 1, 1 1 1))", "vertex 0 has 3 coordinates"),
    "WKT NaN": ("POLYGON((0 0, nan 0, 1 1))", "position 1 is not two numbers: ' nan 0'"),
    "WKT underscore": ("POLYGON((0 0, 1_0 0, 1 1))", "position 1"),
    "WKT sign": ("POLYGON((0 0, 1- 0, 1 1))", "position 1"),
    "WKT missing": ("POLYGON((0 0,, 1 1))", "position 1"),
    "WKT unbalanced": ("POLYGON((0 0, 1 0, 1 1)", "parentheses do not balance"),
    "WKT too flat": ("POLYGON(0 0, 1 0, 1 1)", "not a list of rings"),
    "WKT too deep": ("POLYGON(((0 0, 1 0, 1 1)))", "not a list of rings"),
    "WKT multi too flat": ("MULTIPOLYGON((0 0, 1 0, 1 1))", "not a list of polygons"),
    "WKT trailing": ("POLYGON((0 0, 1 0, 1 1)) x", "POLYGON"),
    "WKT line": ("LINESTRING(0 0, 1 1)", "a region is a polygon, not a LineString"),
    "WKT point": ("POINT(0 0)", "a region is a polygon, not a Point"),
    "WKT SRID": ("SRID=4326;POLYGON((0 0, 1 0, 1 1))", "leave out SRID"),
    "not WKT": ("a square", "not well-known text"),
    "no text": ("", "not well-known text"),
    "box": ("BOX(0 0, 0 1)", "x1 < x2"),
    "box of nothing": ("BOX EMPTY", "two corners"),
    "WKT after empty": ("POLYGON EMPTY ((0 0, 1 0, 1 1))", "after EMPTY"),
    "shapely itself": (shapely.Point, "mapping|not a geometry|expected a sequence"),
    "box of three": ("BOX(0 0, 1 1, 2 2)", "3 corners"),
    "GeoJSON parts": ({"type": "MultiPolygon", "coordinates": [[SQUARE], [SQUARE]]}, "share more than points"),
    "GeoJSON line": ({"type": "LineString", "coordinates": [(0, 0), (1, 1)]}, "not a LineString"),
    "GeoJSON collection": ({"type": "FeatureCollection", "features": []}, "several shapes"),
    "GeoJSON no type": ({"coordinates": [SQUARE]}, 'without a "type"'),
    "GeoJSON no coordinates": ({"type": "Polygon"}, "no coordinates"),
    "GeoJSON of itself": ({"type": "Feature", "geometry": {"type": "Feature", "geometry": {}}}, "no geometry"),
    "GeoJSON no geometry": ({"type": "Feature", "geometry": None}, "no geometry"),
    "GeoJSON null": ({"type": "Polygon", "coordinates": None}, "not a list of rings"),
    "GeoJSON number in an array": ({"type": "Polygon", "coordinates": np.array(5)}, "not a list of rings"),
    "GeoJSON parts in an array": ({"type": "MultiPolygon", "coordinates": np.array(5)}, "not a list of rings"),
    "GeoJSON text": ({"type": "Polygon", "coordinates": "0 0"}, "not a list of rings"),
    "GeoJSON empty": ({"type": "Polygon", "coordinates": []}, "empty"),
    "GeoJSON flat": ({"type": "Polygon", "coordinates": SQUARE}, "hole|position"),
    "shapely empty": (shapely.Polygon(), "empty"),
    "shapely z": (shapely.Polygon([(0, 0, 1), (1, 0, 1), (1, 1, 1)]), "z or m coordinates"),
    "shapely m": (shapely.from_wkt("POLYGON M((0 0 1, 1 0 1, 1 1 1, 0 0 1))"), "z or m coordinates"),
    "shapely line": (shapely.LineString([(0, 0), (1, 1)]), "not a LineString"),
    "shapely invalid": (shapely.Polygon([(0, 0), (4, 4), (4, 0), (0, 4)]), "crosses"),
    "geo interface of nothing": (Carrier(5), "mapping"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_and_placed(fault):
    shape, message = FAULTS[fault]
    with pytest.raises(InvalidValue, match=message):
        Region.of(shape)


def test_cleaning_is_not_simplifying():
    """A vertex one ulp off the line stays; one exactly on it goes."""
    up = math.nextafter(2.0, 3.0)
    assert len(Region([(0, 0), (4, 0), (4, 4), (2, 2)])) == 3
    assert len(Region([(0, 0), (4, 0), (4, 4), (2, up)])) == 4
    # In doubles 0.1 + 0.2 is not 0.3: these three are not on a line.
    assert len(Region([(0.1, 0.1), (1, 0), (0.3, 0.1 + 0.2), (0.2, 0.2)])) == 4


def test_minus_zero_is_zero():
    region = Region([(-0.0, -0.0), (1, -0.0), (1, 1)])
    assert region == Region([(0, 0), (1, 0), (1, 1)])
    assert hash(region) == hash(Region([(0, 0), (1, 0), (1, 1)]))
    assert region.wkt == "POLYGON((0 0, 1 0, 1 1, 0 0))"
    assert hash(Point(-0.0, 0)) == hash(Point(0, 0))


def test_immutable():
    region, point = Region(TRIANGLE), Point(1, 2)
    with pytest.raises(ValueError, match="read-only"):
        region.coords[0] = 0
    for thing, name in ((region, "coords"), (region, "bounds"), (region, "colour"), (point, "x"), (point, "colour")):
        with pytest.raises(AttributeError):
            setattr(thing, name, 1)


def test_input_arrays_are_copied():
    array = np.array(TRIANGLE)
    region = Region(array)
    array[:] = 0
    assert region == Region(TRIANGLE)


def _gear(vertices):
    angle = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    radius = 1 + 0.1 * np.sin(1000 * angle)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def test_largest_regions():
    gear = _gear(MAX_VERTICES)
    region = Region(gear)
    assert len(region) == MAX_VERTICES
    assert Region(np.vstack([gear, gear[:1]])) == region
    assert len(repr(region)) < 300
    assert region.ring[1].shape == (box_rows(MAX_VERTICES), 4)
    with pytest.raises(InvalidRegion, match="at most 100000"):
        Region(_gear(MAX_VERTICES + 1))
    with pytest.raises(InvalidRegion, match="100001 vertices"):
        Region([(i, i * i) for i in range(MAX_VERTICES + 1)])


def test_a_contact_is_found_among_many_vertices():
    gear = _gear(50_000)
    gear[123] = gear[25_000] * 1.5
    with pytest.raises(InvalidRegion, match=r"self-intersection: .*vertex 12[234] "):
        Region(gear)


def test_ring_is_as_kernels_want_it():
    for region in (Region(TRIANGLE), Box(0, 0, 1, 2), Region.trusted(Region(TRIANGLE).coords)):
        xy, boxes = region.ring
        assert xy.flags.c_contiguous
        assert xy.shape == (len(region) + 1, 2)
        assert (xy[0] == xy[-1]).all()
        assert boxes.shape == (1, 4)
        assert tuple(boxes[0]) == region.bounds
        # Read-only arrays are another type to the compiler, and would be compiled for again.
        assert all(array.flags.writeable for array in ring_of(region))


def test_nothing_about_a_shape_can_be_changed():
    region = Region(TRIANGLE)
    for array in (*region.ring, region.coords):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 7
    for shape, name in ((region, "_xy"), (region, "_hash"), (Box(0, 0, 1, 1), "_boxes"), (Point(1, 2), "_x")):
        with pytest.raises(AttributeError, match=f"immutable: {name}"):
            setattr(shape, name, 3)
        with pytest.raises(AttributeError, match=f"immutable: {name}"):
            delattr(shape, name)
    with pytest.raises(AttributeError):
        Point(1, 2).x = 3
    assert hash(region) == hash(Region(TRIANGLE))
    assert region == Region(TRIANGLE)
    assert Point(1, 2) == Point(1, 2)


@pytest.mark.parametrize("position", [{1, 2}, frozenset({1, 2}), {1: "x", 2: "y"}])
def test_a_position_has_an_order(position):
    with pytest.raises(InvalidRegion, match=r"vertex 2 is a .*no order"):
        Region([(0, 0), (1, 0), position])


def test_a_box_is_no_geojson():
    with pytest.raises(InvalidValue, match='"Box" is not a type of GeoJSON'):
        Region.of({"type": "Box", "coordinates": [[0, 0], [1, 1]]})
    with pytest.raises(InvalidValue, match='"Box" is not a type of GeoJSON'):
        Region.of({"type": "Feature", "geometry": {"type": "Box", "coordinates": [[0, 0], [1, 1]]}})
    assert Region.of("BOX(0 0, 1 1)") == Box(0, 0, 1, 1)


def test_repr():
    assert repr(Region(TRIANGLE)) == "Region([(23.1, 10.9), (48, 19), (30.3, 27)])"
    assert repr(Box(0, 0.5, 1, 2)) == "Box(0, 0.5, 1, 2)"
    assert repr(Point(1, 2.5)) == "Point(1, 2.5)"
    octagon = Region([(1, 0), (2, 0), (3, 1), (3, 2), (2, 3), (1, 3), (0, 2), (0, 1)])
    assert repr(octagon) == "<Region of 8 vertices: (0, 1), (1, 0), (2, 0), (3, 1), …>"


def test_box_is_a_region():
    box = Box(0, 1, 4, 3)
    assert box == Region([(0, 1), (0, 3), (4, 3), (4, 1)])
    assert hash(box) == hash(Region([(0, 1), (0, 3), (4, 3), (4, 1)]))
    assert box.bounds == (0, 1, 4, 3)
    assert type(Region.of("BOX(0 1, 4 3)")) is Box
    assert Region("BOX(0 1, 4 3)") == box
    assert Box(np.float64(0), np.int64(1), 4, 3) == box
    assert box.coords.tolist() == Region(box.coords).coords.tolist()


@pytest.mark.parametrize(
    "corners", [(0, 0, 0, 1), (0, 1, 1, 1), (2, 0, 1, 1), (0, 2, 1, 1), (0, 0, math.nan, 1), (0, 0, math.inf, 1)]
)
def test_bad_boxes(corners):
    with pytest.raises(InvalidValue):
        Box(*corners)


POINTS = [
    Point(1, 2.5),
    (1, 2.5),
    [1, 2.5],
    np.array([1, 2.5]),
    "POINT(1 2.5)",
    "point ( 1 2.5 )",
    {"type": "Point", "coordinates": [1, 2.5]},
    {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2.5]}},
    shapely.Point(1, 2.5),
]


@pytest.mark.parametrize("source", POINTS, ids=repr)
def test_points(source):
    point = Point.of(source)
    assert (point.x, point.y) == tuple(point) == (1, 2.5)
    assert point == Point(1, 2.5)
    assert point != (1, 2.5)
    assert Region(TRIANGLE) != TRIANGLE
    assert point.bounds == (1, 2.5, 1, 2.5)
    for again in (point.wkt, point.__geo_interface__, point.to_shapely(), pickle.loads(pickle.dumps(point))):
        assert Point.of(again) == point
    assert copy.deepcopy(point) == point
    assert len({point, Point.of(source)}) == 1


@pytest.mark.parametrize(
    "source",
    [
        (math.nan, 0),
        (0, math.inf),
        (1e101, 0),
        (1e-101, 0),
        (10**400, 0),
        (True, 0),
        {1, 2},
        {1: "x", 2: "y"},
        memoryview(np.zeros((2, 2))),
        ("1", 0),
        (1, 2, 3),
        (1,),
        5,
        None,
        "POINT(1)",
        "POINT(1 2, 3 4)",
        "POINT EMPTY",
        "POINT((1 2))",
        "POLYGON((0 0, 1 0, 1 1))",
        {"type": "Point", "coordinates": [1, 2, 3]},
        {"type": "Point", "coordinates": None},
        b"12",
        shapely.Point(),
    ],
    ids=lambda wrong: f"memory of {wrong.shape}" if isinstance(wrong, memoryview) else repr(wrong),
)
def test_bad_points(source):
    with pytest.raises(ContradaError):
        Point.of(source)


@pytest.mark.parametrize("huge", [10**5000, Fraction(10**5000)], ids=["integer", "fraction"])
def test_what_python_does_not_write_out_is_refused_all_the_same(huge):
    """Python writes no integer of more than some thousand digits: the message has to do without."""
    for call in (lambda: Point(huge, 0), lambda: Box(0, 0, huge, 1), lambda: Point("x" * 5000, huge)):
        with pytest.raises(InvalidValue) as refused:
            call()
        assert len(str(refused.value)) < 200


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_wkt_of_points_reads_back(x, y):
    x, y = (c if c == 0 or 1e-100 <= abs(c) <= 1e100 else 1.0 for c in (x, y))
    assert Point.of(Point(x, y).wkt) == Point(x, y)


@given(st.text(alphabet="POLYGNBXEMT()0123456789.,-+eE zm", max_size=60))
def test_no_text_breaks_the_reader(text):
    for make in (Region.of, Point.of):
        try:
            make(text)
        except ContradaError:
            continue


def test_documentation():
    page = Path(__file__).parents[3] / "docs" / "regions.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert (failed, tried > 10) == (0, True)
    assert doctest.testmod(importlib.import_module("contrada.spatial.geometry.region")).failed == 0


def test_parts_of_a_partition_are_accepted():
    """Slivers between rounded subdivisions are valid regions, however thin."""
    rng = random.Random(4)
    for _ in range(200):
        x, y = rng.random(), rng.random()
        middle = (x / 3, y / 3)
        ring = [(0, 0), (x, y), middle]
        if naive.turn(ring):
            assert len(Region(ring)) == 3
        else:
            with pytest.raises(InvalidRegion, match="zero area"):
                Region(ring)


@pytest.mark.parametrize(
    "unordered",
    [{(0, 0), (1, 0), (0, 1)}, np.ma.masked_array([[0.0, 0], [1, 0], [0, 1]], mask=[[0, 0]] * 2 + [[1, 1]])],
)
def test_what_has_no_order_or_is_masked_is_no_ring(unordered):
    with pytest.raises(InvalidRegion):
        Region(unordered)


def test_a_box_has_its_arrays_when_they_are_asked_for() -> None:
    box = Box(0, 1, 4, 3)
    assert box.bounds == (0, 1, 4, 3)
    assert hash(box) == hash(Region([(4, 3), (0, 3), (0, 1), (4, 1)]))
    assert box.coords.tolist() == [[0, 1], [4, 1], [4, 3], [0, 3]]
    assert Box(0, 1, 4, 3).ring[1].tolist() == [[0, 1, 4, 3]]
    assert pickle.loads(pickle.dumps(Box(0, 1, 4, 3))) == box
    with pytest.raises(AttributeError, match="a Box has no shell"):
        operator.attrgetter("shell")(box)


def test_a_ring_of_plain_numbers_is_judged_as_any_other() -> None:
    assert Region.through([0.0, 0.0, 4.0, 0.0, 4.0, 3.0]) == Region([(0, 0), (4, 0), (4, 3)])
    with pytest.raises(InvalidRegion, match="crosses"):
        Region.through([0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0])
