"""The algebra of relations against brute force: every triple of a few hundred grid regions, and points among them."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Box, ContradaError, Point, Region, Relation, relate
from contrada.spatial.relations.rcc8 import COMPOSITION, codes, compose, conflicts, converse, covers
from contrada.spatial.relations.relate import pack, relate_codes
from contrada.spatial.relations.relation import ALL, EQUALS, INTERSECTS, RELATIONS
from tests import strategies

MASKS = [relation.mask for relation in RELATIONS] + [INTERSECTS]


def _grid_region(rng: random.Random) -> Region:
    size, scale = rng.choice([(2, 2), (4, 1), (8, 0.5)])
    x, y = rng.randint(0, 8 - int(size * scale)), rng.randint(0, 8 - int(size * scale))
    while True:
        ring = [(x + rng.randint(0, size) * scale, y + rng.randint(0, size) * scale) for _ in range(rng.randint(3, 6))]
        try:
            return Region(ring)
        except ContradaError:
            continue


@pytest.fixture(scope="module")
def regions():
    rng = random.Random(5)
    nested = [Box(i, i, 8 - i, 8 - i) for i in range(4)] + [Box(0.5 * i, 0, 8, 8 - 0.5 * i) for i in range(6)]
    return sorted({*nested, *(_grid_region(rng) for _ in range(500))}, key=lambda region: region.coords.tobytes())


@pytest.fixture(scope="module")
def matrix(regions):
    """Relation code of every region to every region."""
    packed = pack(regions)
    return np.array([relate_codes(region, packed) for region in regions])


def _realised(of_x, between):
    """For each (relation of X to R2, relation of R2 to R1): the set of relations of X to R1 over all triples."""
    seen = np.zeros((8, 8), np.int64)
    for middle in range(len(between)):
        keys = (of_x[:, middle, None].astype(int) * 8 + between[middle, None, :]) * 8 + of_x
        for key in np.flatnonzero(np.bincount(keys.ravel())):
            seen[key // 64, key // 8 % 8] |= 1 << (key % 8)
    return seen


def test_composition_is_exactly_what_triples_of_regions_show(matrix):
    assert _realised(matrix, matrix).tolist() == [list(row) for row in COMPOSITION]


def test_composition_holds_for_points_too(regions, matrix):
    packed = pack(regions)
    points = [Point(x / 2, y / 2) for x, y in product(range(17), range(17))]
    seen = _realised(np.array([relate_codes(point, packed) for point in points]), matrix)
    assert np.count_nonzero(seen) == 3 * 8
    assert not (seen & ~np.array(COMPOSITION)).any()


def test_converse_of_composition():
    for r, k in product(range(8), repeat=2):
        assert converse(COMPOSITION[r][k]) == compose(converse(1 << k), converse(1 << r))


@given(st.integers(0, ALL), st.integers(0, ALL))
def test_sets_of_relations(first, second):
    assert converse(converse(first)) == first
    assert compose(first, 1 << EQUALS) == first
    assert compose(1 << EQUALS, first) == first
    union = 0
    for r, k in product(codes(first), codes(second)):
        union |= COMPOSITION[r][k]
    assert compose(first, second) == union


def _allowed(mask: int, region: Region, value: Region | Point) -> bool:
    return bool(relate(value, region).mask & mask)


@settings(max_examples=300)
@given(st.data())
def test_covers_and_conflicts_are_sound(data):
    """No value separates constraints that cover, nor satisfies two that conflict; all pairs of operators at once."""
    first, second = data.draw(strategies.pairs())
    region1, region2 = Region(first), Region(second)
    third = data.draw(st.one_of(strategies.grid_rings(), strategies.related(first), strategies.related(second)))
    corners = [Point(x, y) for x, y in (*first, *second)]
    for value in (Region(third), data.draw(strategies.points()), data.draw(st.sampled_from(corners))):
        for mask1, mask2 in product(MASKS, MASKS):
            holds1, holds2 = _allowed(mask1, region1, value), _allowed(mask2, region2, value)
            if holds2 and not holds1:
                assert not covers(mask1, region1, mask2, region2)
            if holds1 and holds2:
                assert not conflicts(mask1, region1, mask2, region2)


A, B = Box(0, 0, 4, 4), Box(2, 2, 6, 6)


def test_the_printed_conflict_is_none():
    """[SIENA-2D], section 4.2: (x covered-by A) is said to conflict with (x disjoint B) if A overlaps B."""
    assert relate(A, B) is Relation.OVERLAPS
    assert not conflicts(Relation.COVERED_BY.mask, A, Relation.DISJOINT.mask, B)
    in_the_difference = Box(0, 0, 1, 1)
    assert relate(in_the_difference, A) is Relation.COVERED_BY
    assert relate(in_the_difference, B) is Relation.DISJOINT


WITHIN = Box(1, 1, 2, 2)
AWAY = Box(7, 7, 9, 9)


@pytest.mark.parametrize(
    ("one", "of", "other", "to", "is_covered"),
    [
        ("inside", A, "inside", WITHIN, True),
        ("inside", A, "covered-by", WITHIN, True),
        ("inside", WITHIN, "inside", A, False),
        ("disjoint", WITHIN, "disjoint", A, True),
        ("disjoint", A, "inside", AWAY, True),
        ("contains", WITHIN, "covers", A, True),
        ("contains", WITHIN, "equals", A, True),
        ("overlaps", A, "overlaps", B, False),
        ("disjoint", A, "meets", AWAY, False),
    ],
)
def test_covers(one, of, other, to, is_covered):
    assert covers(Relation(one).mask, of, Relation(other).mask, to) is is_covered


def test_intersects():
    assert covers(INTERSECTS, A, INTERSECTS, WITHIN)
    assert covers(INTERSECTS, A, Relation.INSIDE.mask, A)
    assert covers(INTERSECTS, WITHIN, Relation.CONTAINS.mask, A)
    assert not covers(INTERSECTS, WITHIN, INTERSECTS, A)
    assert conflicts(INTERSECTS, A, Relation.DISJOINT.mask, A)
    assert conflicts(INTERSECTS, A, Relation.INSIDE.mask, AWAY)
    assert not conflicts(INTERSECTS, A, INTERSECTS, AWAY)


@given(
    strategies.compound_regions(3),
    strategies.compound_regions(3),
    strategies.compound_regions(3),
    st.tuples(st.integers(-3, 8), st.integers(-3, 8)),
)
def test_composition_is_sound_for_regions_with_holes_and_parts(x, second, first, at):
    between = relate(second, first)
    for value in (x, Point(*at)):
        assert relate(value, first).mask & COMPOSITION[relate(value, second).code][between.code]
