"""Trees of strips: what they hold, that no pair of edges that is near is missed, and that bundles cost little."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.spatial.distance.earth import paths_near_on_earth
from contrada.spatial.distance.geodesic import edges_near
from contrada.spatial.distance.near import near, path_of
from contrada.spatial.distance.planar import _strips_near
from contrada.spatial.distance.strips import LEAF, first_leaves, next_leaves, strips_of
from contrada.spatial.geometry.rings import edges_touch
from contrada.spatial.lines.line import Line
from tests.naive import distance as naive

SCALES = (1.0, 1e-90, 1e90, 1e-3)


@st.composite
def lines(draw, most=12):
    """Lines of some parts on a grid, long and short, crossing one another."""
    place = st.tuples(st.integers(-9, 9), st.integers(-9, 9))
    part = st.lists(place, min_size=2, max_size=4).filter(lambda p: len({*p}) > 1)
    return draw(st.lists(part, min_size=1, max_size=most))


def edges_of(line):
    return [(*a, *b) for part in line.parts for a, b in zip(part.tolist(), part[1:].tolist(), strict=False)]


def bundle(count, offset, step, angle, length):
    along = np.array([math.cos(angle), math.sin(angle)])
    across = np.array([-along[1], along[0]])
    return Line.of_parts(
        [[across * (offset + k * step), across * (offset + k * step) + along * length] for k in range(count)]
    )


@given(lines(40))
def test_every_edge_is_in_its_nodes(parts):
    line = Line.of_parts(parts)
    ends, bounds = strips_of(path_of(line)[0])
    assert sorted(map(tuple, ends.tolist())) == sorted(
        tuple(sorted(((a, b), (c, d)))[0] + max((a, b), (c, d))) for a, b, c, d in edges_of(line)
    )
    stack = [(0, 0, len(ends))]
    while stack:
        node, low, high = stack.pop()
        for side in range(4):
            at = side // 2 * 4 + side % 2
            assert bounds[node, at] == ends[low:high, side].min()
            assert bounds[node, at + 2] == ends[low:high, side].max()
        if high - low > LEAF:
            middle = (low + high) // 2
            stack += [(2 * node + 1, low, middle), (2 * node + 2, middle, high)]


@given(lines(), lines(), st.integers(-20, 20), st.sampled_from(SCALES))
def test_strips_find_what_is_near(first, second, moved, scale):
    a = Line.of_parts([[(x * scale, y * scale) for x, y in part] for part in first])
    b = Line.of_parts([[((x + moved) * scale, y * scale) for x, y in part] for part in second])
    squared = min(naive._of_segments(e[:2], e[2:], f[:2], f[2:]) for e in edges_of(a) for f in edges_of(b))
    root = math.sqrt(squared)
    for d in (0.0, root, math.nextafter(root, 0.0), root / 2, 2.5 * scale):
        if d == 0 or 1e-100 <= d <= 1e100:
            assert _strips_near(path_of(a)[0], path_of(b)[0], d) == (squared <= naive.Fraction(d) ** 2)
            assert near(a, b, d) == (squared <= naive.Fraction(d) ** 2)


@pytest.mark.parametrize("angle", [0.0, 0.3, math.pi / 4, 1.2, math.pi / 2, 2.5])
def test_bundles_of_parallel_lines_are_told_apart_in_few_steps(angle):
    a, b = bundle(400, 0.0, 0.2, angle, 100.0), bundle(400, 0.1, 0.2, angle, 100.0)
    trees = [strips_of(path_of(line)[0]) for line in (a, b)]
    stack = first_leaves(400, 400)
    pairs = 0
    while next_leaves(stack, trees[0][1], trees[1][1], 0.0, 0.09, False) > 0:
        pairs += 1
    assert pairs < 3 * 800
    assert not near(a, b, 0.0999)
    assert near(a, b, 0.1001)


@given(lines(5), lines(5), st.sampled_from([(0.0, 0.0), (175.0, 60.0), (-172.0, -80.5), (0.0, 80.0)]))
def test_strips_on_earth_find_what_every_pair_of_edges_tells(first, second, corner):
    a = Line.of_parts([[(corner[0] + x, corner[1] + y) for x, y in part] for part in first])
    b = Line.of_parts([[(corner[0] + y, corner[1] + x) for x, y in part] for part in second])
    for metres in (0.0, 1e3, 1.2e5, 9e5):
        held = any(
            edges_touch(p + t, q, r + t, s, *f) or edges_near(p + t, q, r + t, s, *f, metres)
            for p, q, r, s in edges_of(a)
            for f in edges_of(b)
            for t in (-360.0, 0.0, 360.0)
        )
        assert paths_near_on_earth(*path_of(a), *path_of(b), metres) == held
