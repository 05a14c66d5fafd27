"""Cutting the curve: what a plan promises, however the subscriptions crowd."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from contrada.spark_jobs.partitioning import hilbert, plan_segments

buckets = st.builds(
    lambda kind, group, cell: f"{kind}:{group}:{cell}",
    st.sampled_from(("region", "geotext", "hash")),
    st.integers(0, 15),
    st.integers(0, 256 * 256 - 1),
)


def test_the_curve_visits_every_cell_and_steps_to_a_neighbour() -> None:
    side = 16
    way = sorted((hilbert(x, y, side), x, y) for x in range(side) for y in range(side))
    assert [distance for distance, _, _ in way] == list(range(side * side))
    for (_, x1, y1), (_, x2, y2) in pairwise(way):
        assert abs(x1 - x2) + abs(y1 - y2) == 1


@given(st.dictionaries(buckets, st.integers(1, 100_000), max_size=60), st.none() | st.integers(1, 40))
def test_no_segment_is_much_fuller_than_its_share(counts: dict[str, int], segments: int | None) -> None:
    plan = plan_segments(counts, segments)
    assert plan.buckets.keys() == counts.keys()
    share = max(1, -(-sum(counts.values()) // segments) if segments else 1 << 17)
    sizes = [0.0] * len(plan.kinds)
    for bucket, (first, ways) in plan.buckets.items():
        for segment in range(first, first + ways):
            assert plan.kinds[segment] == bucket.split(":")[0]
            sizes[segment] += counts[bucket] / ways
    assert all(0 < size <= 1.5 * share for size in sizes)
    if segments:
        assert len(sizes) <= 2 * segments + 3, "two neighbours hold more than a share between them"


def test_one_hot_cell_is_spread_and_its_neighbours_are_not() -> None:
    plan = plan_segments({"geotext:0:0": 10, "geotext:0:1": 1_000_000, "geotext:0:257": 10}, 10)
    first, ways = plan.buckets["geotext:0:1"]
    assert ways == 10
    assert plan.buckets["geotext:0:0"][1] == plan.buckets["geotext:0:257"][1] == 1
    assert first + ways <= len(plan.kinds)


def test_nothing() -> None:
    assert plan_segments({}) == ({}, [])
