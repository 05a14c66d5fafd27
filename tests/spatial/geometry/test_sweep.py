"""The plane sweep against the walk over boxes and rational arithmetic, and on shapes that defeat boxes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from contrada import InvalidRegion, Region
from contrada.spatial.geometry.rings import box_rows, edges_touch, fill_boxes, self_contact
from contrada.spatial.geometry.sweep import sorted_rows, sweep_contact
from tests import strategies
from tests.naive import relate as naive


def _contact(ring):
    """Return the edges the sweep found, having checked that they do touch."""
    xy = np.array([*ring, ring[0]], dtype=float)
    i, j = sweep_contact(xy)
    if i < 0:
        return None
    assert {0 <= i < len(ring), 0 <= j < len(ring), abs(i - j) not in (0, 1, len(ring) - 1)} == {True}
    assert edges_touch(*xy[i], *xy[i + 1], *xy[j], *xy[j + 1])
    return i, j


def _has_no_straight_vertex(ring):
    return all(naive.turn([ring[i - 1], ring[i], ring[(i + 1) % len(ring)]]) for i in range(len(ring)))


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=9, unique=True),
    st.sampled_from([1, 1 / 3]),
)
def test_agrees_on_any_ring(ring, scale):
    ring = [(x * scale, y * scale) for x, y in ring]
    assume(_has_no_straight_vertex(ring))
    assert (_contact(ring) is None) == naive.is_simple(ring)


@given(strategies.rings())
def test_finds_nothing_in_a_simple_ring(ring):
    assert _contact(ring) is None


def test_agrees_with_the_walk_on_larger_rings():
    """Stars of 60 vertices rounded to a grid: some survive it, some touch themselves."""
    rng = random.Random(3)
    found = 0
    for _ in range(200):
        angles = np.sort(np.array([rng.uniform(0, 2 * np.pi) for _ in range(60)]))
        radii = np.array([rng.uniform(0.5, 1) for _ in angles])
        ring = np.rint(np.column_stack([np.cos(angles), np.sin(angles)]) * radii[:, None] * 60)
        points = naive.cleaned(ring.tolist())
        xy = np.array([*points, points[0]])
        boxes = np.empty((box_rows(len(points)), 4))
        fill_boxes(xy, boxes)
        walked = self_contact(xy, boxes) != (-1, -1)
        assert (_contact(points) is not None) == walked
        found += walked
    assert 20 < found < 180


@given(hnp.arrays(np.float64, st.tuples(st.integers(0, 30), st.just(3)), elements=st.integers(-2, 2)))
def test_rows_are_sorted(keys):
    rows = keys[sorted_rows(keys)].tolist()
    assert rows == sorted(keys.tolist())


def _slanted_comb(teeth):
    """Long parallel teeth, so that the boxes of all edges meet, on a handle."""
    at = np.arange(teeth) * 1e-4
    ring = np.empty((2 * teeth, 2))
    ring[0::2] = np.column_stack([at, np.zeros(teeth)])
    ring[1::2] = np.column_stack([at + 1 + 5e-5, np.ones(teeth)])
    return np.vstack([ring, [[teeth * 1e-4, 0], [0, -1]]])


def test_long_teeth_are_not_compared_in_pairs():
    """Five billion pairs of edges have boxes that meet: by pairs this takes most of a minute."""
    comb = _slanted_comb(49_999)
    assert len(Region(comb)) == 100_000
    comb[50_001] = [2.0, 0.5]
    with pytest.raises(InvalidRegion, match="self-intersection"):
        Region(comb)


def test_contacts_at_aligned_vertices():
    """All vertices on few verticals: ties in x, and vertical edges that touch others' ends."""
    teeth = 1500
    down = [(1 + i % 2, 2 * teeth - i) for i in range(2 * teeth)]
    ring = [(0, 0), *reversed(down), (0, 2 * teeth)]
    assert len(Region(ring)) > 2_000
    # The same teeth, with the closing edge a vertical that runs through the tips of half of them.
    ring = [(1, -1), (3, -1), *reversed(down), (3, 2 * teeth + 5), (1, 2 * teeth + 5)]
    with pytest.raises(InvalidRegion, match="self-intersection"):
        Region(ring)
