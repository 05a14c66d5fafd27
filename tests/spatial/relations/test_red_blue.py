"""The sweep over two rings against rational arithmetic, and on pairs that defeat boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from contrada import Box, Region, Relation, relate
from contrada.spatial.geometry.region import ring_of
from contrada.spatial.relations.contacts import proves_overlap
from contrada.spatial.relations.exact import _without_crossing
from contrada.spatial.relations.red_blue import sweep_witnesses
from contrada.spatial.relations.relation import RELATIONS
from tests import strategies
from tests.naive import relate as naive


def _relate_by_sweep(a: Region, b: Region) -> Relation:
    found = sweep_witnesses(ring_of(a)[0], ring_of(b)[0])
    return Relation.OVERLAPS if proves_overlap(found) else RELATIONS[_without_crossing(found, *ring_of(a), *ring_of(b))]


@settings(max_examples=400)
@given(strategies.pairs())
def test_agrees_with_rational_arithmetic(pair):
    a, b = pair
    assert _relate_by_sweep(Region(a), Region(b)) is naive.relate(a, b)


@given(strategies.hostile_pairs())
def test_agrees_where_doubles_are_hard(pair):
    a, b = pair
    assert _relate_by_sweep(Region(a), Region(b)) is naive.relate(a, b)


@given(strategies.float_stars(max_vertices=60), strategies.float_stars(max_vertices=60))
def test_agrees_with_the_walk_on_larger_rings(a, b):
    assert _relate_by_sweep(Region(a), Region(b)) is relate(Region(a), Region(b))


def _slanted(teeth, *rest):
    """A zigzag of long parallel edges, whose boxes all meet, closed through the given vertices."""
    at = np.arange(teeth) * 1e-4
    zigzag = np.empty((2 * teeth, 2))
    zigzag[0::2] = np.column_stack([at, np.zeros(teeth)])
    zigzag[1::2] = np.column_stack([at + 1 + 5e-5, np.ones(teeth)])
    return Region(np.vstack([zigzag, rest]))


@pytest.mark.parametrize("teeth", [300, 30_000])
def test_long_teeth_are_not_compared_in_pairs(teeth):
    """Billions of pairs of edges have boxes that meet, and none of them crosses: by pairs this takes minutes."""
    end = teeth * 1e-4
    below = _slanted(teeth, (end, 0), (0, -1))
    above = _slanted(teeth, (end + 2, 0), (end + 2, 3), (-1, 3))
    larger = _slanted(teeth, (end, 0), (end, -1), (0, -1))
    assert relate(below, above) is Relation.MEETS
    assert relate(below, larger) is Relation.COVERED_BY
    assert relate(below, below) is Relation.EQUALS
    # Along the teeth, out and in.
    assert relate(below, Region(above.coords + 1e-6)) is Relation.DISJOINT
    assert relate(below, Region(above.coords - 1e-6)) is Relation.OVERLAPS
    assert relate(below, Box(-1, -2, end + 3, 2)) is Relation.INSIDE
