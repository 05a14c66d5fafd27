"""Exact relations against rational arithmetic and shapely; points, batches, converse."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import EXACT, Box, InvalidValue, Line, Point, Region, Relation, Uniform, relate, relate_many
from contrada.spatial.relations.relate import pack, relate_codes
from contrada.spatial.relations.relation import RELATIONS
from tests import strategies
from tests.naive import relate as naive

SQUARE = Region([(0, 0), (4, 0), (4, 4), (0, 4)])
NOTCHED = Region([(0, 0), (6, 0), (6, 6), (4, 6), (4, 3), (2, 3), (2, 6), (0, 6)])
HEXAGON = Region([(2, 0), (4, 0), (6, 2), (4, 4), (2, 4), (0, 2)])

CASES = {
    "apart": (SQUARE, Box(5, 0, 6, 1), Relation.DISJOINT),
    "only MBRs overlap": (
        Region([(0, 0), (4, 0), (0, 4)]),
        Region([(4, 4), (4, 1), (1, 4)]),
        Relation.DISJOINT,
    ),
    "in the notch, not touching": (NOTCHED, Box(2.5, 3.5, 3.5, 5), Relation.DISJOINT),
    "fills the notch": (NOTCHED, Box(2, 3, 4, 6), Relation.MEETS),
    "stands in the notch on its floor": (NOTCHED, Region([(3, 3), (3.5, 5), (2.5, 5)]), Relation.MEETS),
    "common vertex": (SQUARE, Box(4, 4, 6, 6), Relation.MEETS),
    "common edge": (SQUARE, Box(4, 0, 6, 4), Relation.MEETS),
    "part of an edge": (SQUARE, Box(4, 1, 6, 2), Relation.MEETS),
    "vertex on edge": (SQUARE, Region([(4, 2), (6, 1), (6, 3)]), Relation.MEETS),
    "crossing bars": (Box(0, 1, 4, 2), Box(1, 0, 2, 4), Relation.OVERLAPS),
    "through vertices only": (SQUARE, Region([(0, 0), (4, 4), (8, 0)]), Relation.OVERLAPS),
    "covers but for a bump": (SQUARE, Region([(1, 0), (2, -1), (3, 0), (3, 2), (1, 2)]), Relation.OVERLAPS),
    "same": (SQUARE, Region([(4, 4), (4, 2), (4, 0), (0, 0), (0, 4)]), Relation.EQUALS),
    "strictly within": (Box(1, 1, 2, 2), SQUARE, Relation.INSIDE),
    "corner within": (Box(0, 0, 2, 2), SQUARE, Relation.COVERED_BY),
    "vertex touches from within": (Region([(0, 2), (2, 1), (2, 3)]), SQUARE, Relation.COVERED_BY),
    "inscribed triangle": (HEXAGON, Region([(2, 0), (6, 2), (2, 4)]), Relation.COVERS),
    "inscribed by a diagonal": (SQUARE, Region([(0, 0), (4, 0), (4, 4)]), Relation.COVERS),
    "touches in the notch, MBR strictly within": (NOTCHED, Region([(2, 3), (3, 1), (4, 3)]), Relation.COVERS),
    "one ulp inside": (SQUARE, Box(math.ulp(1e-16), 1, 2, 2), Relation.CONTAINS),
    "one ulp outside": (SQUARE, Box(math.nextafter(4, 5), 1, 6, 2), Relation.DISJOINT),
}


@pytest.mark.parametrize("case", CASES)
def test_named_configurations(case):
    a, b, relation = CASES[case]
    assert relate(a, b) is relation
    assert relate(b, a) is relation.converse
    assert naive.relate(a.coords.tolist(), b.coords.tolist()) is relation


@settings(max_examples=400)
@given(strategies.pairs())
def test_agrees_with_rational_arithmetic(pair):
    a, b = pair
    assert relate(Region(a), Region(b)) is naive.relate(a, b)


@settings(max_examples=200)
@given(strategies.hostile_pairs())
def test_agrees_where_doubles_are_hard(pair):
    a, b = pair
    assert relate(Region(a), Region(b)) is naive.relate(a, b)


@given(strategies.region_pairs(), st.data())
def test_converse_and_independent_of_the_ring(pair, data):
    a, b = pair
    relation = relate(a, b)
    assert relate(b, a) is relation.converse
    rewritten = data.draw(strategies.rewritten([tuple(p) for p in a.coords.tolist()]))
    assert relate(Region(rewritten), b) is relation


@given(strategies.grid_rings(), strategies.points())
def test_points(ring, point):
    region = Region(ring)
    relation = relate(point, region)
    assert relation is naive.relate_point(tuple(point), ring)
    assert relate(region, point) is relation.converse
    assert relate(point, region, Uniform(3, halo=True)) is relation
    assert relate_many(point, [region, region]) == [relation] * 2


def test_point_and_point():
    assert relate(Point(1, 2), Point(1, 2)) is Relation.EQUALS
    assert relate(Point(1, 2), Point(2, 1)) is Relation.DISJOINT


# The DE-9IM patterns of the eight relations between regions (Egenhofer and Herring).
_SHAPELY = {
    "FF2FF1212": Relation.DISJOINT,
    "212101212": Relation.OVERLAPS,
    "2FFF1FFF2": Relation.EQUALS,
    "2FF1FF212": Relation.INSIDE,
    "212FF1FF2": Relation.CONTAINS,
}


def _from_de9im(matrix: str) -> Relation:
    if matrix in _SHAPELY:
        return _SHAPELY[matrix]
    if matrix[0] == "F":
        return Relation.MEETS
    if matrix[2] == "F" and matrix[5] == "F":
        return Relation.COVERED_BY
    if matrix[6] == "F" and matrix[7] == "F":
        return Relation.COVERS
    return Relation.OVERLAPS


def _random_star(rng: random.Random, vertices: int) -> Region:
    x, y, size = rng.uniform(0, 3), rng.uniform(0, 3), rng.uniform(0.2, 2)
    steps = [rng.uniform(0.5, 1) for _ in range(vertices)]
    angle, ring = 0.0, []
    for step in steps:
        angle += step * 2 * math.pi / sum(steps)
        radius = size * rng.uniform(0.3, 1)
        ring.append((x + radius * math.cos(angle), y + radius * math.sin(angle)))
    return Region(ring)


def test_agrees_with_shapely_on_ordinary_regions():
    rng = random.Random(1)
    regions = [_random_star(rng, rng.randint(3, 40)) for _ in range(300)]
    shapes = np.array([region.to_shapely() for region in regions])
    packed = pack(regions)
    seen = set()
    for i in range(0, 300, 6):
        ours = relate_many(regions[i], packed)
        assert ours == [_from_de9im(matrix) for matrix in shapely.relate(shapes[i], shapes)]
        seen.update(ours)
    assert seen == {Relation.DISJOINT, Relation.OVERLAPS, Relation.EQUALS, Relation.INSIDE, Relation.CONTAINS}


@settings(max_examples=300)
@given(strategies.grid_rings(4), strategies.grid_rings(4))
def test_agrees_with_shapely_on_grids(a, b):
    """Contacts at whole numbers, where GEOS is exact too: a second oracle for every kind of touching."""
    assert relate(Region(a), Region(b)) is _from_de9im(shapely.relate(shapely.Polygon(a), shapely.Polygon(b)))


@pytest.mark.parametrize("teeth", [500, 5000])
def test_large_rings(teeth):
    comb = [(0, 0), *((i / 2, 1 + i % 2) for i in range(2 * teeth)), (teeth, 0)]
    a = Region(comb)
    above = Region([(x, y) for x, y in comb[1:-1]] + [(teeth, 3), (0, 3)])
    assert relate(a, above) is Relation.MEETS
    assert relate(a, Box(0, 0, teeth, 2)) is Relation.COVERED_BY
    assert relate(a, Region([(x, y + 0.5) for x, y in comb])) is Relation.OVERLAPS
    assert relate(a, Box(0.1, 0.1, teeth - 1, 0.9)) is Relation.CONTAINS
    assert relate(a, a) is Relation.EQUALS


@given(st.lists(strategies.grid_regions(), max_size=8), strategies.grid_regions())
def test_batches_are_single_calls_repeated(regions, a):
    expected = [relate(a, b) for b in regions]
    assert relate_many(a, regions) == expected
    assert relate_many(a, iter(regions)) == expected
    codes = relate_codes(a, pack(regions), EXACT)
    assert [RELATIONS[code] for code in codes] == expected
    sampled = Uniform(1.5, halo=True)
    assert relate_many(a, regions, sampled) == [relate(a, b, sampled) for b in regions]


@pytest.mark.parametrize("wrong", ["POLYGON((0 0, 1 0, 0 1))", None, (0, 0), [(0, 0), (1, 0), (0, 1)]])
def test_what_is_no_shape_is_refused(wrong):
    for arguments in ((wrong, SQUARE), (SQUARE, wrong)):
        with pytest.raises(InvalidValue, match=r"Region\.of"):
            relate(*arguments)
    with pytest.raises(InvalidValue, match=r"Region\.of"):
        relate_many(wrong, [SQUARE])
    with pytest.raises(InvalidValue, match="discretization"):
        relate(SQUARE, SQUARE, wrong)
    with pytest.raises(InvalidValue, match="discretization"):
        relate(Point(0, 0), SQUARE, wrong)
    with pytest.raises(InvalidValue, match="discretization"):
        relate_many(Point(0, 0), [SQUARE], wrong)
    with pytest.raises(InvalidValue, match=r"regions: 1 is a .*Region\.of"):
        relate_many(SQUARE, [SQUARE, wrong])


@pytest.mark.parametrize(
    "wrong", [SQUARE, None, 5, np.array(5), memoryview(np.ones((1, 1)))], ids=lambda wrong: type(wrong).__name__
)
def test_many_regions_are_a_list_of_them(wrong):
    with pytest.raises(InvalidValue, match="no list of regions"):
        relate_many(SQUARE, wrong)


def test_a_line_and_a_point_are_related_the_other_way_around():
    with pytest.raises(InvalidValue, match=r"relate\(point, line\)"):
        relate(Line([(0, 0), (1, 1)]), Point(0, 0))
