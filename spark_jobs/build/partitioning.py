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
    """The buckets, ascending, each with its first segment and over how many it is spread; per segment its kind."""

    buckets: Ints
    places: Ints  # (n, 2)
    kinds: list[str]


def hilbert(x: Ints, y: Ints, side: int = GRID) -> Ints:
    """How far along the Hilbert curve cells lie, on a grid whose side is a power of two."""
    distance = np.zeros_like(x)
    half = side // 2
    while half:
        right, up = (x & half) > 0, (y & half) > 0
        distance += half * half * ((3 * right) ^ up)
        back = right & ~up
        x, y = np.where(back, side - 1 - x, x), np.where(back, side - 1 - y, y)
        x, y = np.where(up, x, y), np.where(up, y, x)
        half //= 2
    return distance


def share_of(total: int, segments: int | None) -> int:
    """How many subscriptions a segment should have: `SEGMENT`, or what makes as many segments as asked."""
    return max(1, -(-total // segments) if segments else SEGMENT)


def plan_segments(histogram: Mapping[int, int], segments: int | None = None) -> Plan:
    """Cut the buckets into segments of about equal size."""
    share = share_of(sum(histogram.values()), segments)
    codes = np.array(sorted(histogram), np.int64)
    number, group, x, y = bucket_parts(codes)
    order = np.lexsort((hilbert(x, y), group, number))
    places = np.zeros((len(codes), 2), np.int64)
    kinds: list[str] = []
    size, open = 0, -1  # of the segment that is being filled, and the kind of what may still come into it
    for place, code, kind in zip(order.tolist(), codes[order].tolist(), number[order].tolist(), strict=True):
        count = histogram[code]
        if 2 * count > 3 * share:
            ways = -(-count // share)
            places[place] = len(kinds), ways
            kinds += [SEGMENT_KINDS[kind]] * ways
            open = -1
            continue
        if open != kind or 2 * (size + count) > 3 * share:
            kinds.append(SEGMENT_KINDS[kind])
            size = 0
        places[place] = len(kinds) - 1, 1
        size += count
        open = kind if size < share else -1
    return Plan(codes, places, kinds)


def segments_of(buckets: Ints, owners: np.ndarray, plan: Plan) -> Ints:
    """The segment of each subscription, given its bucket and a hash of what it is placed by."""
    first, ways = plan.places[np.searchsorted(plan.buckets, buckets)].T
    segments: Ints = first + (owners % ways.astype(np.uint64)).astype(np.int64)
    return segments
