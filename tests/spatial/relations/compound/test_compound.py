"""Relations of regions with holes and parts against rational arithmetic and shapely; the sweep against the walk."""

from __future__ import annotations

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Box, Point, Region, Relation, relate, relate_many
from contrada.spatial.geometry.region import ring_of
from contrada.spatial.relations.compound.faces import sweep_faces
from contrada.spatial.relations.compound.relating import relation_of_faces
from contrada.spatial.relations.relation import RELATIONS
from tests import strategies
from tests.naive import faces as naive

RING = Region([(0, 0), (9, 0), (9, 9), (0, 9)], holes=[[(3, 3), (6, 3), (6, 6), (3, 6)]])
ISLAND = Region.of("MULTIPOLYGON(((0 0, 9 0, 9 9, 0 9), (2 2, 7 2, 7 7, 2 7)), ((4 4, 5 4, 5 5, 4 5)))")
PAIR = Region.of("MULTIPOLYGON(((0 0, 1 0, 1 1, 0 1)), ((4 4, 5 4, 5 5, 4 5)))")
CROSSED = Region.of("MULTIPOLYGON(((0 4, 1 4, 1 5, 0 5)), ((4 0, 5 0, 5 1, 4 1)))")
CHECKS = Region.of("MULTIPOLYGON(((0 0, 2 0, 2 2, 0 2)), ((2 2, 4 2, 4 4, 2 4)))")
PINCHED = Region([(0, 0), (4, 0), (4, 4), (0, 4)], holes=[[(0, 0), (2, 1), (1, 2)]])

CASES = {
    "in a hole": (Box(4, 4, 5, 5), RING, Relation.DISJOINT),
    "fills a hole": (Box(3, 3, 6, 6), RING, Relation.MEETS),
    "touches a hole's edge from within the hole": (Box(3, 4, 4, 5), RING, Relation.MEETS),
    "larger than a hole, within the shell": (Box(2, 2, 7, 7), RING, Relation.OVERLAPS),
    "the shell without its hole": (Box(0, 0, 9, 9), RING, Relation.COVERS),
    "around all of it": (Box(-1, -1, 10, 10), RING, Relation.CONTAINS),
    "beside the hole": (Box(1, 1, 2, 2), RING, Relation.INSIDE),
    "beside the hole, at it": (Box(1, 1, 3, 4), RING, Relation.COVERED_BY),
    "a hole in the hole": (
        Region([(1, 1), (8, 1), (8, 8), (1, 8)], holes=[[(2, 2), (7, 2), (7, 7), (2, 7)]]),
        RING,
        Relation.INSIDE,
    ),
    "the same shell, another hole": (
        Region([(0, 0), (9, 0), (9, 9), (0, 9)], holes=[[(4, 4), (5, 4), (5, 5)]]),
        RING,
        Relation.COVERS,
    ),
    "the same shell, a hole elsewhere": (
        Region([(0, 0), (9, 0), (9, 9), (0, 9)], holes=[[(1, 1), (2, 1), (2, 2)]]),
        RING,
        Relation.OVERLAPS,
    ),
    "an island alone": (Box(4, 4, 5, 5), ISLAND, Relation.COVERED_BY),
    "an island and the water": (Box(3, 3, 6, 6), ISLAND, Relation.OVERLAPS),
    "in the water": (Box(2.5, 2.5, 3, 3), ISLAND, Relation.DISJOINT),
    "the shore of the island": (Box(3, 4, 4, 5), ISLAND, Relation.MEETS),
    "the water itself": (
        Region([(2, 2), (7, 2), (7, 7), (2, 7)], holes=[[(4, 4), (5, 4), (5, 5), (4, 5)]]),
        ISLAND,
        Relation.MEETS,
    ),
    "one part inside, one apart": (PAIR, Box(-1, -1, 2, 2), Relation.OVERLAPS),
    "one part equal": (PAIR, Box(0, 0, 1, 1), Relation.COVERS),
    "between the parts": (PAIR, Box(2, 2, 3, 3), Relation.DISJOINT),
    "equal MBRs, apart": (PAIR, CROSSED, Relation.DISJOINT),
    "MBRs that cross, apart": (
        PAIR,
        Region.of("MULTIPOLYGON(((1.5 -1, 2 -1, 2 0)), ((2 6, 3 6, 3 7)))"),
        Relation.DISJOINT,
    ),
    "both parts inside": (PAIR, Box(-1, -1, 6, 6), Relation.INSIDE),
    "one part in each": (
        PAIR,
        Region.of("MULTIPOLYGON(((-1 -1, 2 -1, 2 2, -1 2)), ((3 3, 6 3, 6 6, 3 6)))"),
        Relation.INSIDE,
    ),
    "checks against the others": (
        CHECKS,
        Region.of("MULTIPOLYGON(((2 0, 4 0, 4 2, 2 2)), ((0 2, 2 2, 2 4, 0 4)))"),
        Relation.MEETS,
    ),
    "checks against all": (CHECKS, Box(0, 0, 4, 4), Relation.COVERED_BY),
    "in the pinch": (Region([(0, 0), (2, 1), (1, 2)]), PINCHED, Relation.MEETS),
    "through the pinch": (Region([(0, 0), (1, 1), (0, 1)]), PINCHED, Relation.OVERLAPS),
    "beside the pinch": (Region([(0, 0), (1, 0), (2, 1)]), PINCHED, Relation.COVERED_BY),
    "within the pinch": (Region([(0, 0), (1.5, 1), (1, 1.5)]), PINCHED, Relation.MEETS),
}


@pytest.mark.parametrize("case", CASES)
def test_named_configurations(case):
    a, b, relation = CASES[case]
    assert naive.relate(a, b) is relation
    assert relate(a, b) is relation
    assert relate(b, a) is relation.converse
    assert swept(a, b) is relation
    assert relate_many(a, [b, b, a]) == [relation, relation, Relation.EQUALS]


def swept(a: Region, b: Region) -> Relation:
    return RELATIONS[relation_of_faces(sweep_faces(ring_of(a)[0], ring_of(b)[0]))]


@settings(max_examples=400)
@given(strategies.compound_pairs())
def test_relations_are_those_of_rational_arithmetic(pair):
    a, b = pair
    relation = naive.relate(a, b)
    assert relate(a, b) is relation
    assert relate(b, a) is relation.converse
    assert swept(a, b) is relation
    assert swept(b, a) is relation.converse


@settings(max_examples=200)
@given(strategies.compound_regions(7), strategies.compound_regions(7))
def test_relations_are_those_of_shapely(a, b):
    """On a grid of integers shapely is right too."""
    matrix = shapely.relate(a.to_shapely(), b.to_shapely())
    relation = relate(a, b)
    interiors, boundaries = matrix[0] != "F", matrix[4] != "F"
    only_a, only_b = matrix[2] != "F", matrix[6] != "F"
    if not interiors:
        assert relation is (Relation.MEETS if boundaries else Relation.DISJOINT)
    elif only_a and only_b:
        assert relation is Relation.OVERLAPS
    elif only_a:
        assert relation is (Relation.COVERS if boundaries else Relation.CONTAINS)
    elif only_b:
        assert relation is (Relation.COVERED_BY if boundaries else Relation.INSIDE)
    else:
        assert relation is Relation.EQUALS


@given(strategies.compound_regions(), st.tuples(st.integers(-3, 9), st.integers(-3, 9)))
def test_points_are_where_shapely_has_them(region, at):
    point, shape = shapely.Point(at), region.to_shapely()
    expected = (
        Relation.INSIDE if shape.contains(point) else Relation.MEETS if shape.touches(point) else Relation.DISJOINT
    )
    assert relate(Point(*at), region) is expected
    assert relate_many(Point(*at), [region, region]) == [expected] * 2


def test_a_region_alone_is_not_the_union_of_what_its_parts_are():
    """Algorithm 1 of the paper takes the first part for the whole."""
    assert [relate(part, Box(-1, -1, 2, 2)) for part in PAIR.parts] == [Relation.INSIDE, Relation.DISJOINT]
    assert relate(PAIR, Box(-1, -1, 2, 2)) is Relation.OVERLAPS
