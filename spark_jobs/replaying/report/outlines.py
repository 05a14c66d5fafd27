"""Outlines of subscriptions' places, for the map of a report: some of each segment, the busiest and an even sample.

The subscriptions of a segment are near one another on the map, and segments are of about equal size, so a share of each
shows where subscriptions are. A map of all of millions would be black.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.spark_jobs.common.index_cache import OpenIndex

MOST: Final = 400


class Outline(NamedTuple):
    """A place that a subscription asks for, as a closed ring of x, y, and how many deliveries the subscription had."""

    ring: Floats
    deliveries: int


def outlines_of(counted: Sequence[tuple[OpenIndex, Mapping[int, Ints]]], most: int = MOST) -> list[Outline]:
    """Some outlines of the subscriptions of indexes, whose deliveries were counted by segment and number."""
    total = sum(info.subscriptions for index, _ in counted for info in index.infos)
    found: list[Outline] = []
    for index, sums in counted:
        for number, info in enumerate(index.infos):
            share = -(-most * info.subscriptions // total)
            counts = np.zeros(info.subscriptions, np.int64)
            known = sums.get(number, counts[:0])
            counts[: len(known)] = known
            for each in chosen(counts, share).tolist():
                found += [Outline(ring, int(counts[each])) for ring in index[number].rings(each)]
    return found


def chosen(counts: Ints, most: int) -> Ints:
    """The numbers of at most so many subscriptions: up to half are the busiest, the rest lie evenly among all."""
    if len(counts) <= most:
        return np.arange(len(counts))
    busiest = np.argsort(-counts, kind="stable")[: most // 2]
    busiest = busiest[counts[busiest] > 0]
    others = np.setdiff1d(np.arange(len(counts)), busiest)
    even = others[np.linspace(0, len(others) - 1, most - len(busiest)).astype(np.int64)]
    return np.union1d(busiest, even)
