"""The order in which subscriptions came does not decide how well they are found: periods, trends, clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from contrada.spatial.textual.partition_tree.ap_tree import APTree
from contrada.spatial.textual.partition_tree.build import SAMPLE, draw_sample
from contrada.spatial.textual.partition_tree.rk_tree import RankedKeyTree
from contrada.spatial.textual.protocol import Subscription

if TYPE_CHECKING:
    from contrada.spatial.textual.partition_tree.tree import PartitionTree

Boxes = NDArray[np.float64]
ASKED = 200


def in_turn(count: int, cities: int) -> tuple[Boxes, NDArray[np.int64]]:
    """Boxes of one word, the i-th in city i mod `cities`: those of a city overlap, so that nothing divides them."""
    rng = np.random.default_rng(1)
    xy = rng.random((cities, 2))[np.arange(count) % cities] + rng.normal(0, 0.0005, (count, 2))
    return np.hstack([xy - 0.005, xy + 0.005]), np.zeros(count, np.int64)


def counted(kind: type[PartitionTree], boxes: Boxes, words: NDArray[np.int64], *, again: bool = False) -> float:
    """Nodes visited and candidates verified by messages at some of the boxes."""
    tree = kind.build_arrays(np.arange(len(boxes)), np.arange(len(boxes) + 1), words, ["tea"], boxes)
    if again:
        tree.rebuild()
    total = 0
    for x1, y1, x2, y2 in boxes[np.lexsort(boxes.T)][:: len(boxes) // ASKED].tolist():
        tree.search({"tea"}, ((x1 + x2) / 2, (y1 + y2) / 2) * 2)
        total += tree.counters.nodes + tree.counters.verified
    return total


@pytest.mark.parametrize("kind", [APTree, RankedKeyTree])
@pytest.mark.parametrize("cities", [16, 17, 32, 1_000])
def test_any_order_costs_at_most_half_as_much_again_as_shuffled(kind: type[PartitionTree], cities: int) -> None:
    count = 16 * SAMPLE if cities == 1_000 else cities * SAMPLE  # every count-th-of-the-sample is of one city
    boxes, words = in_turn(count, cities)
    shuffled = np.random.default_rng(2).permutation(count)
    base = counted(kind, boxes[shuffled], words[shuffled])
    orders = {
        "in turn": np.arange(count),
        "city by city": np.argsort(np.arange(count) % cities, kind="stable"),
        "by x": np.argsort(boxes[:, 0]),
        "by y, falling": np.argsort(-boxes[:, 1]),
        "by word and x": np.lexsort((boxes[:, 0], words)),
        "strips in turn": np.argsort(boxes[:, 0])[np.argsort(np.arange(count) % (count // 16), kind="stable")],
    }
    for name, order in orders.items():
        assert counted(kind, boxes[order], words[order]) <= 1.5 * base, name
    assert counted(kind, boxes, words, again=True) <= 1.5 * base, "rebuilt"


@pytest.mark.parametrize("kind", [APTree, RankedKeyTree])
def test_grown_from_empty_is_nearly_as_good_as_built(kind: type[PartitionTree]) -> None:
    rng = np.random.default_rng(3)
    centres, halves = 100 + rng.random((4_000, 2)), rng.uniform(0.01, 0.1, (4_000, 2))
    tree = kind()
    for i, (low, high) in enumerate(zip(centres - halves, centres + halves, strict=True)):
        box = (float(low[0]), float(low[1]), float(high[0]), float(high[1]))
        tree.insert(Subscription(i, frozenset({f"w{i % 4}"}), box))
    tree._check()
    work = []
    for _ in range(2):
        total = 0
        for x, y in centres[::20].tolist():
            tree.search({"w0", "w1", "w2", "w3"}, (x, y, x, y))
            total += tree.counters.nodes + tree.counters.verified
        work.append(total)
        tree.rebuild()
    assert work[0] <= 1.4 * work[1]


@pytest.mark.parametrize("count", [SAMPLE + 1, 16 * SAMPLE, 17 * SAMPLE, 100_000, 1_000 * SAMPLE])
def test_a_sample_has_of_every_period_its_share(count: int) -> None:
    slots = np.arange(count, dtype=np.int32)
    sample = draw_sample(slots)
    assert sample.size == SAMPLE
    assert (np.diff(sample) > 0).all()
    for period in (2, 3, 7, 16, 17, 32):
        shares = np.bincount(sample % period, minlength=period)
        assert shares.max() < 2 * SAMPLE / period + 12, period
    assert np.array_equal(draw_sample(slots[:SAMPLE]), slots[:SAMPLE])
