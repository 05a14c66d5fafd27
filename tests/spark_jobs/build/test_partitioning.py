"""Cutting the curve: what a plan promises, however the subscriptions crowd."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contrada.forwarding.segments.manifest import SEGMENT_KINDS
from contrada.spark_jobs.build.partitioning import hilbert, plan_segments, segments_of
from contrada.spark_jobs.build.statistics import GRID, NAMES, Grid, bucket_parts, buckets_of

buckets = st.integers(0, len(SEGMENT_KINDS) * NAMES * GRID * GRID - 1)


def bucket(kind: str, x: int, y: int) -> int:
    (code,) = buckets_of(
        np.array([SEGMENT_KINDS.index(kind)]), np.zeros(1, np.int64), np.array([[x, y]]), UNIT
    ).tolist()
    assert bucket_parts(np.int64(code)) == (SEGMENT_KINDS.index(kind), 0, x, y)
    return code


UNIT = Grid(0.0, 0.0, float(GRID), float(GRID))


def test_the_curve_visits_every_cell_and_steps_to_a_neighbour() -> None:
    side = 16
    xs, ys = (each.ravel() for each in np.mgrid[:side, :side])
    way = sorted(zip(hilbert(xs, ys, side).tolist(), xs.tolist(), ys.tolist(), strict=True))
    assert [distance for distance, _, _ in way] == list(range(side * side))
    for (_, x1, y1), (_, x2, y2) in pairwise(way):
        assert abs(x1 - x2) + abs(y1 - y2) == 1


@given(st.dictionaries(buckets, st.integers(1, 100_000), max_size=60), st.none() | st.integers(1, 40))
def test_no_segment_is_much_fuller_than_its_share(counts: dict[int, int], segments: int | None) -> None:
    plan = plan_segments(counts, segments)
    assert plan.buckets.tolist() == sorted(counts)
    share = max(1, -(-sum(counts.values()) // segments) if segments else 1 << 17)
    sizes = [0.0] * len(plan.kinds)
    for code, (first, ways) in zip(plan.buckets.tolist(), plan.places.tolist(), strict=True):
        for segment in range(first, first + ways):
            assert plan.kinds[segment] == SEGMENT_KINDS[bucket_parts(np.int64(code))[0]]
            sizes[segment] += counts[code] / ways
    assert all(0 < size <= 1.5 * share for size in sizes)
    if segments:
        assert len(sizes) <= 2 * segments + 3, "two neighbours hold more than a share between them"


def test_one_hot_cell_is_spread_and_its_neighbours_are_not() -> None:
    cold, hot, other = bucket("geotext", 0, 0), bucket("geotext", 0, 1), bucket("geotext", 1, 1)
    plan = plan_segments({cold: 10, hot: 1_000_000, other: 10}, 10)
    placed = dict(zip(plan.buckets.tolist(), plan.places.tolist(), strict=True))
    first, ways = placed[hot]
    assert ways == 10
    assert placed[cold][1] == placed[other][1] == 1
    assert first + ways <= len(plan.kinds)
    owners = np.arange(1000, dtype=np.uint64)
    spread = segments_of(np.full(1000, hot), owners, plan)
    assert np.unique(spread).tolist() == list(range(first, first + ways))
    assert set(segments_of(np.full(1000, cold), owners, plan).tolist()) == {placed[cold][0]}


def test_places_outside_the_grid_fall_into_its_border_and_those_without_into_one_cell() -> None:
    places = np.array([[-5.0, 300.0], [np.nan, np.nan], [2.5, 3.5]])
    codes = buckets_of(np.zeros(3, np.int64), np.zeros(3, np.int64), places, UNIT)
    assert np.stack(bucket_parts(codes)[2:], axis=1).tolist() == [[0, 255], [0, 0], [2, 3]]


def test_nothing() -> None:
    plan = plan_segments({})
    assert (len(plan.buckets), len(plan.places), plan.kinds) == (0, 0, [])
