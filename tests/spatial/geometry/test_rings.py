"""Run boxes and the walks over them, against looking at every edge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.spatial.geometry.rings import IN, ON, OUT, RUN, box_rows, fill_boxes, locate, next_run, self_contact
from contrada.spatial.relations.exact import relate_rings
from contrada.spatial.relations.relation import COVERED_BY, COVERS, DISJOINT, EQUALS, MEETS, OVERLAPS


def boxed(xy):
    xy = np.ascontiguousarray(xy, dtype=np.float64)
    boxes = np.empty((box_rows(len(xy) - 1), 4))
    fill_boxes(xy, boxes)
    return xy, boxes


def comb(teeth, *, flip=False, dx=0.0):
    """A comb with `teeth` long teeth: every run box is tall, so boxes alone decide little."""
    points = [(0.0, -1.0), (2.0 * teeth, -1.0)]
    for k in range(teeth, 0, -1):
        points += [(2.0 * k, 0.0), (2.0 * k - 0.5, 100.0), (2.0 * k - 1.0, 0.0)]
    points.append((0.0, 0.0))
    xy = np.array([*points, points[0]])
    if flip:
        xy = -xy
    return boxed(xy + np.array([dx, 0.0]))


@pytest.mark.parametrize("edges", [3, 15, 16, 17, 255, 256, 257, 4096, 4097, 70_000])
def test_boxes_hold_their_runs_and_the_last_is_the_mbr(edges):
    angle = np.linspace(0, 2 * np.pi, edges + 1)
    xy, boxes = boxed(np.column_stack([np.cos(angle), np.sin(angle)]))
    for run in range(0, (edges + RUN - 1) // RUN, max(1, edges // 300)):
        part = xy[run * RUN : min((run + 1) * RUN, edges) + 1]
        assert boxes[run].tolist() == [*part.min(axis=0), *part.max(axis=0)]
    assert boxes[-1].tolist() == [*xy.min(axis=0), *xy.max(axis=0)]


@given(st.integers(1, 700), st.integers(0, 2**32 - 1), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_next_run_finds_every_run_that_meets_the_window(runs, seed, window):
    rng = np.random.default_rng(seed)
    xy, boxes = boxed(np.cumsum(rng.normal(size=(runs * RUN + 1, 2)), axis=0))
    low, high = xy.min(axis=0), xy.max(axis=0)
    x1, x2 = sorted(low[0] + (high - low)[0] * np.array(window[:2]))
    y1, y2 = sorted(low[1] + (high - low)[1] * np.array(window[2:]))
    found, run = [], next_run(boxes, runs, 0, x1, y1, x2, y2)
    while run < runs:
        found.append(run)
        run = next_run(boxes, runs, run + 1, x1, y1, x2, y2)
    b = boxes[:runs]
    assert found == np.flatnonzero((b[:, 0] <= x2) & (b[:, 2] >= x1) & (b[:, 1] <= y2) & (b[:, 3] >= y1)).tolist()


def test_a_large_comb_is_simple_and_located_exactly():
    xy, boxes = comb(20_000)
    assert self_contact(xy, boxes) == (-1, -1)
    for k in (1, 777, 20_000):
        tip = 2.0 * k - 0.5
        assert locate(tip, 100.0, xy, boxes) == ON
        assert locate(tip, 99.0, xy, boxes) == IN
        assert locate(tip - 0.25, 99.0, xy, boxes) == OUT
        assert locate(tip, np.nextafter(100.0, 200.0), xy, boxes) == OUT


def test_a_touch_deep_in_a_large_ring_is_found():
    xy, _ = comb(5_000)
    at = 3 * 2_500 + 3
    assert xy[at, 1] == 100.0
    xy[at] = [xy[at, 0], -1.0]  # the tip of one tooth now rests on the comb's back
    i, j = self_contact(*boxed(xy))
    assert 0 in (i, j)
    assert {i, j} & {at - 1, at}


def test_interlocking_combs_of_tens_of_thousands_of_edges():
    a = comb(20_000)
    assert relate_rings(*a, *comb(20_000)) == EQUALS
    assert relate_rings(*a, *comb(20_000, dx=1.0)) == OVERLAPS
    shifted = comb(20_000, flip=True, dx=40_000.0)
    assert relate_rings(*a, *(boxed(shifted[0] + [0.0, 202.0]))) == DISJOINT
    assert relate_rings(*a, *(boxed(shifted[0] + [1.0, 200.0]))) == MEETS
    back = boxed([(0.0, -1.0), (40_000.0, -1.0), (40_000.0, 0.0), (0.0, 0.0), (0.0, -1.0)])
    assert relate_rings(*a, *back) == COVERS
    assert relate_rings(*back, *a) == COVERED_BY
