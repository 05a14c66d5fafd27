"""The paper's sampling: against its naive twin, its limits, and each gap of the printed algorithm."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contrada import Box, InvalidValue, Region, Relation, Uniform, relate
from contrada.errors import shown
from contrada.spatial.geometry.region import ring_of
from contrada.spatial.relations.mbr import POSSIBLE, POSSIBLE_OF_PARTS, boxes_cross, relate_boxes
from contrada.spatial.relations.relate import pack, relate_codes
from contrada.spatial.relations.relation import RELATIONS
from contrada.spatial.relations.uniform import _algorithm_1
from tests import strategies
from tests.naive import uniform as naive

discretizations = st.builds(Uniform, st.sampled_from([0, 0.2, 0.5, 1, 2.3, 7]), st.booleans())


def _vertices(region):
    return [tuple(vertex) for vertex in region.coords.tolist()]


@settings(max_examples=250)
@given(strategies.region_pairs(), discretizations)
def test_agrees_with_the_naive_twin(pair, how):
    a, b = pair
    assert relate(a, b, how) is naive.relate(_vertices(a), _vertices(b), how.density, how.halo)


@settings(max_examples=50)
@given(strategies.hostile_pairs(), st.booleans())
def test_agrees_where_doubles_are_hard(pair, halo):
    a, b = map(Region, pair)
    x1, y1, x2, y2 = a.bounds
    density = 3 / max(x2 - x1, y2 - y1)
    assert relate(a, b, Uniform(density, halo)) is naive.relate(_vertices(a), _vertices(b), density, halo)


@settings(max_examples=200)
@given(strategies.region_pairs(), discretizations, st.data())
def test_converse_and_independent_of_the_ring(pair, how, data):
    a, b = pair
    relation = relate(a, b, how)
    assert relate(b, a, how) is relation.converse
    assert relate(Region(data.draw(strategies.rewritten(_vertices(a)))), b, how) is relation


@given(strategies.regions(), discretizations)
def test_a_region_equals_itself(region, how):
    """Rounded samples of a slanted edge are hardly ever on it; the same edge must count as shared nevertheless."""
    assert relate(region, region, how) is Relation.EQUALS


@settings(max_examples=200)
@given(strategies.region_pairs(), discretizations)
def test_never_contradicts_the_rectangles(pair, how):
    """What an index may decide by MBR, it may decide under any discretization."""
    a, b = pair
    rectangles = relate_boxes(*a.bounds, *b.bounds)
    for relation in (relate(a, b), relate(a, b, how)):
        assert relation.mask & POSSIBLE[rectangles]
        if boxes_cross(*a.bounds, *b.bounds):
            assert relation is Relation.OVERLAPS


@settings(max_examples=300)
@given(strategies.compound_pairs(3), discretizations)
def test_regions_of_several_rings_follow_the_definition(pair, how):
    a, b = pair
    assume(a.is_compound or b.is_compound)
    relation = relate(a, b, how)
    assert relation is naive.relate_regions(a, b, how.density, how.halo)
    assert relate(b, a, how) is relation.converse
    in_one = a.in_one_part and b.in_one_part
    rectangles = relate_boxes(*a.bounds, *b.bounds)
    for each in (relation, relate(a, b)):
        assert each.mask & (POSSIBLE if in_one else POSSIBLE_OF_PARTS)[rectangles]
        if in_one and boxes_cross(*a.bounds, *b.bounds):
            assert each is Relation.OVERLAPS


def test_one_part_inside_and_one_apart():
    """Algorithm 1 takes a region for connected."""
    pair = Region.of("MULTIPOLYGON(((0 0, 1 0, 1 1, 0 1)), ((4 4, 5 4, 5 5, 4 5)))")
    for how in (Uniform(0), Uniform(5), Uniform(5, halo=True)):
        assert relate(pair, Box(-1, -1, 2, 2), how) is Relation.OVERLAPS
        assert relate(Box(2, 2, 3, 3), pair, how) is Relation.DISJOINT


@given(strategies.boxes(), strategies.boxes())
def test_relation_of_rectangles(a, b):
    assert RELATIONS[relate_boxes(*a.bounds, *b.bounds)] is relate(a, b)


def test_table_2_as_printed_is_unsound():
    """Covers with MBR(A) strictly containing MBR(B): they touch in a notch of A."""
    notched = Region([(0, 0), (6, 0), (6, 6), (4, 6), (4, 3), (2, 3), (2, 6), (0, 6)])
    below = Region([(2, 3), (3, 1), (4, 3)])
    assert RELATIONS[relate_boxes(*notched.bounds, *below.bounds)] is Relation.CONTAINS
    for how in (Uniform(0), Uniform(2)):
        assert relate(notched, below) is relate(notched, below, how) is Relation.COVERS
        assert relate(below, notched, how) is Relation.COVERED_BY


HEXAGON = Region([(2, 0), (4, 0), (6, 2), (4, 4), (2, 4), (0, 2)])
INSCRIBED = Region([(2, 0), (6, 2), (2, 4)])


@pytest.mark.parametrize("density", [0, 0.1, 1, 50])
@pytest.mark.parametrize("halo", [False, True])
def test_all_samples_on_the_other_boundary(density, halo):
    """Algorithm 1 answers equals (first loop) or meets (second loop) here, with vertices only."""
    how = Uniform(density, halo)
    assert relate(HEXAGON, INSCRIBED, how) is Relation.COVERS
    assert relate(INSCRIBED, HEXAGON, how) is Relation.COVERED_BY


@pytest.mark.parametrize("halo", [False, True])
def test_second_loop_falls_through(halo):
    """The larger region sampled first, as printed: every sample of the triangle is then on the hexagon's boundary."""
    code = _algorithm_1(*ring_of(HEXAGON), *ring_of(INSCRIBED), 0.0, halo)
    assert RELATIONS[code] is Relation.COVERS


def test_midpoint_between_contacts_decides():
    """Both ends of B's edges are on ∂A; only what is between them shows that B leaves A through the notch."""
    notched = Region([(0, 0), (6, 0), (6, 6), (4, 6), (3, 1), (2, 6), (0, 6)])
    bridge = Region([(2, 6), (4, 6), (6, 0), (0, 0)])
    assert relate(notched, bridge) is Relation.OVERLAPS
    assert relate(bridge, notched, Uniform(0)) is Relation.OVERLAPS


def test_neighbours_that_share_a_slanted_border_meet():
    a = Region([(0, 0), (0.7, 0.1), (0.3, 0.9)])
    b = Region([(0.7, 0.1), (1.3, 1.7), (0.3, 0.9)])
    for density in (0, 3, 1000):
        assert relate(a, b, Uniform(density)) is Relation.MEETS


def test_vertices_only():
    """D = 0 is legal, and misses what happens between vertices."""
    a, b = Region([(0, 0), (9, 1), (9, 2), (0, 3)]), Region([(3, -5), (4, -5), (4, 5), (3, 9)])
    assert boxes_cross(*a.bounds, *b.bounds)
    assert relate(a, b, Uniform(0)) is Relation.OVERLAPS
    c = Region([(3, -5), (9, -5), (4, 5), (3, 9)])
    assert relate(a, c) is Relation.OVERLAPS
    assert relate(a, c, Uniform(0)) is Relation.DISJOINT
    assert relate(a, c, Uniform(2)) is Relation.OVERLAPS


def _across(gap):
    """Two triangles, mirrored about a diagonal slit of the given width; their MBRs overlap."""
    shift = gap / math.sqrt(2)
    return Region([(0, 0), (8, 0), (0, 8)]), Region([(8 + shift, shift), (8 + shift, 8 + shift), (shift, 8 + shift)])


def test_halo_widens_meets():
    """r = d/2, d the distance between neighbouring samples: with 8√2·D parts on the slit, r is near 1/(2D)."""
    density = 4
    step = 8 * math.sqrt(2) / math.ceil(8 * math.sqrt(2) * density)
    for gap, expected in ((0.9 * step / 2, Relation.MEETS), (1.1 * step / 2, Relation.DISJOINT)):
        a, b = _across(gap)
        assert relate(a, b) is relate(a, b, Uniform(density)) is Relation.DISJOINT
        assert relate(a, b, Uniform(density, halo=True)) is expected


def test_halo_does_not_reach_across_disjoint_rectangles():
    """The MBR test comes first, so that an index by MBR gives the same answer as a scan."""
    a, b = Box(0, 0, 8, 8), Box(8.001, 0, 16, 8)
    for density in (0, 0.5, 10):
        assert relate(a, b, Uniform(density, halo=True)) is Relation.DISJOINT


def test_halo_makes_nearly_equal_regions_equal_only_with_equal_rectangles():
    a = Box(0, 0, 8, 8)
    dented = Region([(0, 0), (4, 0.01), (8, 0), (8, 8), (0, 8)])
    assert relate(a, dented) is Relation.COVERS
    assert relate(a, dented, Uniform(1, halo=True)) is Relation.EQUALS
    assert relate(a, Box(0, 0, 8, 8.01), Uniform(1, halo=True)) is Relation.COVERED_BY
    assert relate(Box(0.01, 0.01, 7.9, 7.9), a, Uniform(1, halo=True)) is Relation.COVERED_BY


def test_converges_to_exact():
    rng = random.Random(7)
    regions = []
    for _ in range(150):
        x, y, n = rng.uniform(0, 6), rng.uniform(0, 6), rng.randint(3, 20)
        angles = sorted((k + rng.random() * 0.9) * 2 * math.pi / n for k in range(n))
        ring = [(x + r * math.cos(t), y + r * math.sin(t)) for t in angles for r in [rng.uniform(0.3, 3)]]
        regions.append(Region(ring))
    packed = pack(regions)
    wrong = []
    for density in (0, 2, 200):
        how = Uniform(density)
        wrong.append(sum((relate_codes(a, packed) != relate_codes(a, packed, how)).sum() for a in regions[:50]))
    assert wrong[0] > wrong[1] > wrong[2]
    assert wrong[2] <= 0.001 * 50 * len(regions)


def test_work_is_bounded():
    a, b = _across(1.0)
    assert relate(a, b, Uniform(1e300)) is Relation.DISJOINT
    assert relate(Region([(0, 0), (1e100, 0), (0, 1e100)]), Box(1, 1, 2, 2), Uniform(10)) is Relation.CONTAINS


def test_is_a_value():
    assert Uniform(2) == Uniform(2.0, halo=False)
    assert hash(Uniform(2)) == hash(Uniform(2.0))
    assert Uniform(np.float32(2)) == Uniform(np.int64(2)) == Uniform(2)
    assert Uniform(2) != Uniform(2, halo=True)
    with pytest.raises(AttributeError):
        Uniform(2).density = 3


@pytest.mark.parametrize("density", [-1, math.nan, math.inf, 10**400, 10**5000, True, "2", None], ids=shown)
def test_bad_density(density):
    with pytest.raises(InvalidValue, match="density"):
        Uniform(density)


def test_bad_halo():
    with pytest.raises(InvalidValue, match="halo"):
        Uniform(1, halo=0.5)
