"""The structures of [LFILTER]: the trie's probes and ranges, the quadtree's pivots and covers, the choice by cost."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import CorruptFile, InvalidValue
from contrada.spatial.textual.lfilter import lfilter
from contrada.spatial.textual.lfilter.layered import Layer, as_labels, rounded
from contrada.spatial.textual.lfilter.lfilter import LFilter, hybrid_prune, search_both
from contrada.spatial.textual.lfilter.mbr_trie import PROBES, MBRTrie, select_pairs
from contrada.spatial.textual.lfilter.pt_quadtree import PTQuadtree, filter_quadtree
from contrada.spatial.textual.lfilter.pt_quadtree_build import greedy_pivots
from contrada.spatial.textual.protocol import Subscription
from contrada.spatial.textual.store import token_table
from tests.naive.hitting_set import is_greedy
from tests.naive.textual import NaiveTextual
from tests.spatial.textual.workloads import messages, subscription_lists, zipf_messages, zipf_subscriptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

Message = tuple[frozenset[str], tuple[float, float, float, float]]

# What the paper tells of Figure 1.
FIGURE_1 = [
    Subscription(1, frozenset("abc"), (25.0, 0.0, 30.0, 20.0)),
    Subscription(3, frozenset("bcd"), (20.0, 32.0, 35.0, 35.0)),
    Subscription(4, frozenset("bcd"), (20.0, 10.0, 28.0, 18.0)),
]
POINT_MESSAGE: Message = (frozenset("bcdef"), (26.0, 14.0, 26.0, 14.0))


def chosen(index: MBRTrie, probe: int, tokens: NDArray[np.int32], box: tuple[float, ...], node: int = 0) -> list[int]:
    """The labels of a node's children that SELECTPAIR pushes."""
    trie = index.trie
    pairs, top = select_pairs(
        trie.labels,
        trie.mbrs,
        trie.child[node],
        trie.child[node + 1],
        as_labels(tokens),
        0,
        rounded(np.array(box)),
        probe,
        np.zeros((1, 2), np.int32),
        0,
    )
    return trie.labels[pairs[:top, 0]].tolist()


@pytest.mark.parametrize("probe", PROBES)
def test_select_pair_keeps_children_whose_box_meets_the_message(probe: str) -> None:
    """The pseudo-code prints `= φ`; the prose, and sense, say `≠ φ`."""
    index = MBRTrie.build(
        [Subscription(1, frozenset("a"), (0.0, 0.0, 1.0, 1.0)), Subscription(2, frozenset("b"), (5.0, 5.0, 6.0, 6.0))],
        probe=probe,
    )
    tokens = index.vocabulary.lookup("ab")
    a, b = (-int(index.vocabulary.lookup(word)[0]) for word in "ab")
    assert chosen(index, PROBES[probe], tokens, (0.5, 0.5, 0.5, 0.5)) == [a]
    assert chosen(index, PROBES[probe], tokens, (6.0, 6.0, 7.0, 7.0)) == [b], "boxes are closed"
    assert sorted(chosen(index, PROBES[probe], tokens, (1.0, 1.0, 5.0, 5.0))) == sorted([a, b])
    assert chosen(index, PROBES[probe], tokens, (2.0, 2.0, 3.0, 3.0)) == []


@pytest.mark.parametrize("probe", PROBES)
def test_a_node_whose_token_the_message_lacks_is_not_visited(probe: str) -> None:
    """The worked example visits node 1 (token a) for m_p = {b, c, d, e, f}; Definition 1 says that s1 is no answer."""
    index = MBRTrie.build(FIGURE_1, probe=probe)
    assert index.search(*POINT_MESSAGE).tolist() == [4]
    with_a, without = MBRTrie.build(FIGURE_1, probe=probe), MBRTrie.build(FIGURE_1[1:], probe=probe)
    for tree in (with_a, without):
        tree.search(*POINT_MESSAGE)
    assert with_a.counters.verified == without.counters.verified
    for name in (PTQuadtree, LFilter):
        assert name.build(FIGURE_1).search(*POINT_MESSAGE).tolist() == [4]


def test_probing_strategies_differ_in_nothing_but_effort() -> None:
    subscriptions = zipf_subscriptions(1_500, 31)
    asked = [*zipf_messages(20, 1), *zipf_messages(8, 2, tokens=150, side=0.2)]
    naive = NaiveTextual(subscriptions)
    seen = []
    for probe in PROBES:
        index = MBRTrie.build(subscriptions, probe=probe)
        assert [index.search(*m).tolist() for m in asked] == [naive.search(*m) for m in asked]
        counters = []
        for message in asked:
            index.search(*message)
            counters.append(index.counters)
        seen.append(counters)
    assert seen[0] == seen[1] == seen[2]


def test_ranges_are_token_set_order() -> None:
    """Subscriptions are sorted by token sets, rarest keyword first, and each node's are one range of them."""
    index = MBRTrie.build(zipf_subscriptions(400, 5))
    sets = [(-index.store.keywords(slot)[::-1]).tolist() for slot in index.order.tolist()]
    assert sets == sorted(sets)
    index._check()


@settings(max_examples=150)
@given(st.lists(st.frozensets(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=25))
def test_pivotal_tokens_are_a_greedy_hitting_set(sets: list[frozenset[int]]) -> None:
    subscriptions = [Subscription(i, frozenset(f"w{w}" for w in s), (0.0, 0.0, 1.0, 1.0)) for i, s in enumerate(sets)]
    index = PTQuadtree.build(subscriptions)
    scratch = np.zeros(index.vocabulary.size, np.int32)
    slots = index.store.slots
    pivots = greedy_pivots(index.store.rows, slots, scratch).tolist()
    assert not scratch.any()
    assert is_greedy([frozenset(index.store.keywords(s).tolist()) for s in slots.tolist()], pivots)


def test_a_token_in_all_four_children_is_their_parents_cover() -> None:
    quarters = [(x, y) for x in (0.0, 6.0) for y in (0.0, 6.0)]
    subscriptions = [
        Subscription(10 * q + i, frozenset({"all", f"only{q}"} if i % 2 else {"all"}), (x + i / 8, y, x + i / 8, y + 1))
        for q, (x, y) in enumerate(quarters)
        for i in range(8)
    ]
    subscriptions.append(Subscription(99, frozenset({"rim"}), (0.0, 0.0, 7.0, 7.0)))
    tree = PTQuadtree.build(subscriptions, leaf=8)
    tree._check()
    q = tree.quadtree
    words = [tree.vocabulary.word(i) for i in q.cover[q.cover_at[0] : q.cover_at[1]].tolist()]
    assert words == ["all"]
    for child in range(1, 5):
        assert "all" not in {
            tree.vocabulary.word(i) for i in q.other[q.other_at[child] : q.other_at[child + 1]].tolist()
        }
    rest = {tree.vocabulary.word(i) for i in q.other[q.other_at[0] : q.other_at[1]].tolist()}
    assert rest == {"rim"}
    assert tree.search({"all"}, (0.0, 0.0, 9.0, 9.0)).size == 16
    tree.search({"rim"}, (0.0, 0.0, 9.0, 9.0))
    assert tree.counters.verified == 1


@pytest.mark.parametrize("kind", [PTQuadtree, LFilter])
@settings(max_examples=40)
@given(subscriptions=subscription_lists(), asked=st.lists(messages, min_size=1, max_size=6))
def test_deep_quadtrees_on_hostile_input(
    kind: type[PTQuadtree] | type[LFilter], subscriptions: list[Subscription], asked: list[Message]
) -> None:
    index, naive = kind.build(subscriptions, leaf=1), NaiveTextual(subscriptions)
    index._check()
    for message in asked:
        assert index.search(*message).tolist() == naive.search(*message)


@dataclass
class Filtered:
    """What the quadtree's filter step hands to list pruning."""

    groups: NDArray[np.int32]
    entries: int
    table: NDArray[np.int32]


def filtered(index: LFilter, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> Filtered:
    table = token_table(tokens)
    groups, _, entries = filter_quadtree(index.quadtree, tokens, table, box)
    return Filtered(groups, entries, table)


@pytest.mark.parametrize("average", [0.0, 3.0, 1e9])
def test_list_pruning_and_direct_verification_agree(average: float) -> None:
    """At any price of a keyword: the walk may stop at the root, at each node on its own, or only at the leaves."""
    subscriptions = zipf_subscriptions(1_500, 41)
    index, naive = LFilter.build(subscriptions, leaf=16), NaiveTextual(subscriptions)
    for tokens, box in [*zipf_messages(20, 1, side=0.1), *zipf_messages(6, 2, tokens=150, side=0.3)]:
        known, place = index.vocabulary.lookup(tokens), np.array(box)
        step = filtered(index, known, place)
        slots, _, verified = hybrid_prune(
            index.trie,
            index.quadtree,
            Layer(*index._layer()),
            step.groups,
            step.entries,
            as_labels(known),
            step.table,
            rounded(place),
            place,
            average,
        )
        assert sorted(index.store.rows.ids[slots].tolist()) == naive.search(tokens, box)
        assert slots.size <= verified <= step.entries


def test_the_cheaper_part_is_chosen() -> None:
    """Many small regions of one word, which the trie would check all; many words in one place, which it has at once."""
    rng = random.Random(8)
    spread = []
    for i in range(6_000):
        x, y = rng.random() * 100, rng.random() * 100
        spread.append(Subscription(i, frozenset({"word"}), (x, y, x + 0.01, y + 0.01)))
    both, trie = LFilter.build(spread), MBRTrie.build(spread)
    for _ in range(10):
        x, y = rng.random() * 100, rng.random() * 100
        assert (
            both.search({"word"}, (x, y, x + 1, y + 1)).tolist() == trie.search({"word"}, (x, y, x + 1, y + 1)).tolist()
        )
        assert both.counters.verified < trie.counters.verified / 10

    crowded = [Subscription(i, frozenset({"common", f"w{i}"}), (0.0, 0.0, 1.0, 1.0)) for i in range(6_000)]
    both, quadtree = LFilter.build(crowded), PTQuadtree.build(crowded)
    message = (frozenset({"common", "w5", "w77"}), (0.5, 0.5, 0.5, 0.5))
    assert both.search(*message).tolist() == quadtree.search(*message).tolist() == [5, 77]
    assert both.counters.verified <= 2
    assert quadtree.counters.verified == 6_000


def test_the_quadtree_is_asked_less_when_it_has_not_paid() -> None:
    """Its answer is the same either way, and where it pays it goes on being asked."""
    rng = random.Random(9)
    spread = []
    for i in range(6_000):
        x, y = rng.random() * 100, rng.random() * 100
        spread.append(Subscription(i, frozenset({"word"}), (x, y, x + 0.01, y + 0.01)))
    index = LFilter.build(spread)
    box = (10.0, 10.0, 20.0, 20.0)
    found = [index.search({"word"}, box).tolist() for _ in range(30)]
    assert index._asked == index._paid > 20
    verified = index.counters.verified
    index._asked, index._paid = 1e6, 0.0
    assert index.search({"word"}, box).tolist() == found[0] == found[-1] != []
    assert index._asked == 1e6
    assert index.counters.verified > verified


def test_cost_estimates_grow_with_what_they_count() -> None:
    assert lfilter.direct_cost(100, 3.0) < lfilter.direct_cost(200, 3.0) < lfilter.direct_cost(200, 4.0)
    assert (
        lfilter.pruning_cost(0, 5, 1, 100) < lfilter.pruning_cost(10, 5, 1, 100) < lfilter.pruning_cost(10, 5, 9, 100)
    )
    assert lfilter.pruning_cost(10, 5, 9, 100) < lfilter.pruning_cost(10, 500, 9, 100)
    index = LFilter.build(zipf_subscriptions(500, 3))
    costs = []
    for words in (1, 5, 50):
        tokens = index.vocabulary.lookup(f"w{i}" for i in range(words))
        box = rounded(np.array([0.0, 0.0, 1.0, 1.0]))
        pairs = np.zeros((256, 2), np.int32)
        message = as_labels(tokens)
        costs.append(lfilter.trie_cost(index.trie, message, box, pairs)[0])
    assert costs == sorted(costs)
    assert search_both.signatures, "answers come from the kernel"


@pytest.mark.parametrize("kind", [MBRTrie, PTQuadtree, LFilter])
def test_the_layer_is_built_anew_as_it_fills_and_empties(
    kind: type[MBRTrie] | type[PTQuadtree] | type[LFilter],
) -> None:
    first, later = zipf_subscriptions(900, 51), zipf_subscriptions(1_500, 52, first=5_000)
    index, naive = kind.build(first), NaiveTextual(first)
    asked = zipf_messages(10, 6, side=0.2)
    sizes = set()
    for subscription in later:
        index.insert(subscription)
        naive.insert(subscription)
        sizes.add(index.order.size)
    assert len(sizes) > 1
    index._check()
    assert [index.search(*m).tolist() for m in asked] == [naive.search(*m) for m in asked]
    for subscription in [*later, *first[:850]]:
        index.remove(subscription.id)
        naive.remove(subscription.id)
    index._check()
    assert index.order.size < 1_200
    assert [index.search(*m).tolist() for m in asked] == [naive.search(*m) for m in asked]


def test_senseless_options_and_torn_files_are_refused() -> None:
    with pytest.raises(InvalidValue, match="probe"):
        MBRTrie(probe="both")
    with pytest.raises(InvalidValue, match="leaf"):
        PTQuadtree(leaf=0)
    some = zipf_subscriptions(50, 1)
    trie, quadtree = MBRTrie.build(some), PTQuadtree.build(some)
    torn = trie._arrays()
    for name in ("order", "layer.mbrs"):
        with pytest.raises(CorruptFile):
            trie._restore({**torn, name: torn[name][:-1]})
    torn = quadtree._arrays()
    for name in ("layer.entries", "layer.groups"):
        with pytest.raises(CorruptFile):
            quadtree._restore({**torn, name: torn[name][:-1]})
