"""The quick proof of simplicity against rational arithmetic, and where it has to give up."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contrada import InvalidRegion, Region
from contrada.spatial.geometry.rings import box_rows, fill_boxes, self_contact
from contrada.spatial.geometry.simple import surely_simple, word_count
from tests import strategies
from tests.naive import relate as naive


def proved(ring) -> bool:
    xy = np.array([*ring, ring[0]], float)
    (x1, y1), (x2, y2) = xy.min(axis=0).tolist(), xy.max(axis=0).tolist()
    words = np.zeros(word_count(len(ring)), np.uint64)
    return surely_simple(xy.reshape(-1), 0, len(ring), x1, y1, x2, y2, words)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=4, max_size=12, unique=True),
    st.sampled_from([(1, 0), (1 / 3, 1e6), (1e-90, 0), (1e95, -3e99)]),
)
def test_decides_every_small_ring(ring, place):
    scale, shift = place
    ring = [(x * scale + shift, y * scale) for x, y in ring]
    assume(len(set(ring)) == len(ring))
    assume(all(naive.turn([ring[i - 1], ring[i], ring[(i + 1) % len(ring)]]) for i in range(len(ring))))
    assert proved(ring) == naive.is_simple(ring)


@given(strategies.rings())
def test_proves_simple_rings(ring):
    assert proved(ring)


def gear(vertices: int, rng: random.Random) -> np.ndarray:
    angles = (np.arange(vertices) + [rng.uniform(0, 0.8) for _ in range(vertices)]) * (2 * np.pi / vertices)
    radii = np.array([rng.uniform(1 - 1 / vertices, 1) for _ in range(vertices)])
    return np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])


@pytest.mark.parametrize("vertices", [15, 16, 17, 31, 32, 33, 100, 127, 128, 129, 143, 144, 145, 500, 2001])
def test_one_contact_anywhere_is_seen(vertices):
    """All ways to be few or many, with runs full or not; a vertex is put on another, the first and last included."""
    rng = random.Random(vertices)
    ring = gear(vertices, rng)
    assert proved(ring)
    for first in (0, 1, vertices // 2, vertices - 2, vertices - 1):
        for apart in (3, vertices // 2, vertices - 3):
            touched = ring.copy()
            other = (first + apart) % vertices
            touched[other] = ring[first]
            assert not proved(touched), (first, other)
            xy = np.vstack([touched, touched[:1]])
            boxes = np.empty((box_rows(vertices), 4))
            fill_boxes(xy, boxes)
            assert self_contact(xy, boxes) != (-1, -1)


def test_edges_too_near_each_other_are_left_to_the_sweep():
    """A comb of slanting teeth: the boxes of nearly all edges overlap, no two edges touch."""
    teeth = [p for i in range(1000) for p in ((i, 0), (i + 10_000.5, 10_000))]
    ring = [*teeth, (1000, 0), (1000, -1), (0, -1)]
    assert not proved(ring)
    assert len(Region(ring)) == len(ring)
    with pytest.raises(InvalidRegion, match="self-intersection"):
        Region([*teeth, (1000, 0), (1000, -1), (500, 1), (0, -1)])
