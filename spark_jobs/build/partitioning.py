"""Which segment a subscription goes to: along a space-filling curve for places, by hash for the rest.

The histogram (statistics.py) says how many subscriptions each cell of the grid has. Cells are laid out along the
Hilbert curve, so that neighbours on the curve are neighbours on the map, and the curve is cut where a segment is full:
segments are compact and of equal size wherever the places crowd. A cell that alone is too much for a segment, the hot
spot, is cut into several by hash; so are the filters without a place. No segment exceeds its share by more
than half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.forwarding.segments.manifest import SEGMENT_KINDS
from contrada.spark_jobs.build.statistics import GRID, bucket_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.forwarding.kernels.memory.layout import Ints

SEGMENT: Final = 1 << 17
"""Subscriptions of a segment, unless the number of segments is given."""


class Plan(NamedTuple):
    """Per bucket its first segment and over how many it is spread; per segment its kind."""

    buckets: dict[int, tuple[int, int]]
    kinds: list[str]


def hilbert(x: int, y: int, side: int = GRID) -> int:
    """How far along the Hilbert curve a cell lies, on a grid whose side is a power of two."""
    distance = 0
    half = side // 2
    while half:
        right, up = (x & half) > 0, (y & half) > 0
        distance += half * half * ((3 * right) ^ up)
        if not up:
            if right:
                x, y = side - 1 - x, side - 1 - y
            x, y = y, x
        half //= 2
    return distance


def share_of(total: int, segments: int | None) -> int:
    """How many subscriptions a segment should have: `SEGMENT`, or what makes as many segments as asked."""
    return max(1, -(-total // segments) if segments else SEGMENT)


def plan_segments(histogram: Mapping[int, int], segments: int | None = None) -> Plan:
    """Cut the buckets into segments of about equal size."""
    share = share_of(sum(histogram.values()), segments)
    buckets: dict[int, tuple[int, int]] = {}
    kinds: list[str] = []
    for number, kind in enumerate(SEGMENT_KINDS):
        size, open = 0, False  # of the segment that is being filled
        for bucket in sorted((b for b in histogram if bucket_parts(b)[0] == number), key=_along):
            count = histogram[bucket]
            if 2 * count > 3 * share:
                ways = -(-count // share)
                buckets[bucket] = (len(kinds), ways)
                kinds += [kind] * ways
                open = False
                continue
            if not open or 2 * (size + count) > 3 * share:
                kinds.append(kind)
                size = 0
            buckets[bucket] = (len(kinds) - 1, 1)
            size += count
            open = size < share
    return Plan(buckets, kinds)


def _along(bucket: int) -> tuple[int, int]:
    _, group, x, y = bucket_parts(bucket)
    return group, hilbert(x, y)


def segments_of(buckets: Ints, owners: np.ndarray, plan: Plan) -> Ints:
    """The segment of each subscription, given its bucket and a hash of what it is placed by."""
    known = np.array(sorted(plan.buckets), np.int64)
    places = np.array([plan.buckets[bucket] for bucket in known.tolist()], np.int64).reshape(-1, 2)
    first, ways = places[np.searchsorted(known, buckets)].T
    segments: Ints = first + (owners % ways.astype(np.uint64)).astype(np.int64)
    return segments
