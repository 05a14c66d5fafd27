"""What [RT-TREE] claims of its trees, and the splits that small random workloads do not reach."""

from __future__ import annotations

import pytest

from contrada.errors import InvalidValue
from contrada.spatial.textual.protocol import Subscription
from contrada.spatial.textual.registry import textual_index
from contrada.spatial.textual.rt.rt_plus_plus import RtPlusPlusTree
from contrada.spatial.textual.rt.rt_tree import RtPlusTree, RtTree
from contrada.spatial.textual.rt.token_order import STRATEGIES
from tests.naive.textual import NaiveTextual
from tests.spatial.textual.workloads import zipf_messages, zipf_subscriptions

SUBSCRIPTIONS = zipf_subscriptions(3_000, 31)
MESSAGES = [*zipf_messages(40, 32), *zipf_messages(10, 33, tokens=150), *zipf_messages(30, 34, side=0.4)]

# Figure 1 of the paper, its regions simplified: the left half and the right half of a street.
LEFT, RIGHT = (0.0, 0.0, 4.0, 4.0), (5.0, 0.0, 9.0, 4.0)
FIGURE_1 = [
    Subscription(1, frozenset({"iphone4s", "32GB"}), LEFT),
    Subscription(2, frozenset({"iphone4s", "verizon"}), LEFT),
    Subscription(3, frozenset({"ipad2", "64GB"}), LEFT),
    Subscription(4, frozenset({"iphone4s", "verizon"}), LEFT),
    Subscription(7, frozenset({"AT&T", "ipad2"}), RIGHT),
    Subscription(8, frozenset({"AT&T", "ipad2", "iphone4s"}), RIGHT),
    Subscription(10, frozenset({"32GB", "AT&T", "iphone4s"}), RIGHT),
    Subscription(12, frozenset({"AT&T", "iphone4s"}), RIGHT),
]


@pytest.mark.parametrize("name", ["rt", "rt+", "rt++"])
def test_example_1(name: str) -> None:
    index = textual_index(name).build(FIGURE_1)
    assert index.search({"iphone4s", "AT&T", "discount"}, (6.0, 1.0, 6.0, 1.0)).tolist() == [12]
    assert index.search({"iphone4s", "ipad2", "AT&T", "64GB"}, (4.0, 3.0, 6.0, 9.0)).tolist() == [3, 7, 8, 12]


@pytest.mark.parametrize("order", STRATEGIES)
def test_lemma_2_rt_plus_meets_no_more_candidates_than_rt(order: str) -> None:
    rt, plus = RtTree.build(SUBSCRIPTIONS[:2_000]), RtPlusTree.build(SUBSCRIPTIONS[:2_000], order=order)
    for subscription in SUBSCRIPTIONS[2_000:]:
        rt.insert(subscription)
        plus.insert(subscription)
    plus._check()
    fewer = 0
    for tokens, box in MESSAGES:
        assert rt.search(tokens, box).tolist() == plus.search(tokens, box).tolist()
        assert plus.counters.verified <= rt.counters.verified
        assert plus.counters.nodes <= rt.counters.nodes
        fewer += plus.counters.verified < rt.counters.verified
    assert fewer or order in ("df", "random"), "rare representatives prune"


@pytest.mark.parametrize("order", STRATEGIES)
def test_rt_plus_plus_verifies_nothing(order: str) -> None:
    index, naive = RtPlusPlusTree.build(SUBSCRIPTIONS, order=order), NaiveTextual(SUBSCRIPTIONS)
    index._check()
    for tokens, box in MESSAGES:
        assert index.search(tokens, box).tolist() == naive.search(tokens, box)
        assert index.counters.verified == 0
    index.store.rows.keywords[:] = -1
    for tokens, box in MESSAGES:
        assert index.search(tokens, box).tolist() == naive.search(tokens, box), "no keyword was read"


@pytest.mark.parametrize("name", ["rt", "rt+", "rt++", "ir-tree"])
def test_splits_in_the_middle_of_the_tree(name: str) -> None:
    """Insertions into one corner split inner nodes while the root has room."""
    index, naive = textual_index(name).build(SUBSCRIPTIONS), NaiveTextual(SUBSCRIPTIONS)
    root = int(index.tree.head[0])
    for subscription in zipf_subscriptions(1_200, 35, side=0.01, first=10_000):
        x1, y1, x2, y2 = (c / 50 for c in subscription.box)
        moved = subscription._replace(box=(x1, y1, x2, y2))
        index.insert(moved)
        naive.insert(moved)
    assert int(index.tree.level[root]) >= 2
    index._check()
    for tokens, (x1, y1, x2, y2) in MESSAGES:
        for box in ((x1, y1, x2, y2), (x1 / 50, y1 / 50, x2 / 50, y2 / 50)):
            assert index.search(tokens, box).tolist() == naive.search(tokens, box)


def test_a_message_inside_or_across_a_box_meets_it() -> None:
    """The paper's vertex-in-box test would miss the crossing and one of the two containments."""
    index = RtTree.build([Subscription(1, frozenset({"a"}), (0.0, 4.0, 10.0, 6.0))])
    for box in ((4.0, 0.0, 6.0, 10.0), (1.0, 4.5, 2.0, 5.0), (-1.0, -1.0, 11.0, 11.0), (10.0, 6.0, 11.0, 7.0)):
        assert index.search({"a"}, box).tolist() == [1]
    assert index.search({"a"}, (10.0, 6.1, 11.0, 7.0)).tolist() == []


def test_subscriptions_shorter_and_longer_than_the_path() -> None:
    """Three levels: one keyword stops at the first, ten fill the leaf."""
    long = frozenset(f"w{i}" for i in range(10))
    index = RtPlusPlusTree.build([*SUBSCRIPTIONS, Subscription(9_000, long, (0.4, 0.4, 0.6, 0.6))])
    index._check()
    assert index.tree.level[index.tree.head[0]] >= 2
    assert 9_000 in index.search(long, (0.5, 0.5, 0.5, 0.5)).tolist()
    assert 9_000 not in index.search(long - {"w3"}, (0.5, 0.5, 0.5, 0.5)).tolist()


def test_unknown_orders_and_grids() -> None:
    with pytest.raises(InvalidValue, match="token order"):
        RtPlusTree(order="alphabetical")
    with pytest.raises(InvalidValue, match="grid"):
        RtPlusPlusTree(grid=0)
