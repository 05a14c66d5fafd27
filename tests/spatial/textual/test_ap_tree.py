"""The AP-tree's own structure: partitions, cells, drift and rebuilds; and the ranked-key tree's directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import CorruptFile, InvalidValue
from contrada.spatial.textual.partition_tree.ap_tree import APTree
from contrada.spatial.textual.partition_tree.nodes import (
    DIRECTORY,
    KEYWORD,
    QUERY,
    ROOT,
    SPATIAL,
    WEIGHT,
    children,
    kind_of,
)
from contrada.spatial.textual.partition_tree.partition import (
    cut_cost,
    dp_cuts,
    even_cuts,
    grid_cost,
    grid_lines,
    heuristic_cuts,
    strip_of,
)
from contrada.spatial.textual.partition_tree.rk_tree import RankedKeyTree
from contrada.spatial.textual.partition_tree.update import divergence
from contrada.spatial.textual.protocol import Subscription
from tests.naive.keyword_cuts import least_cost
from tests.naive.textual import NaiveTextual
from tests.spatial.textual.workloads import messages, subscription_lists, zipf_messages, zipf_subscriptions

if TYPE_CHECKING:
    from contrada.spatial.textual.partition_tree.tree import PartitionTree

SMALL = {"leaf": 2, "fanout": 9, "rebuild": 60}  # deep trees from few subscriptions
VARIANTS = [
    SMALL,
    {"leaf": 3, "fanout": 4, "cuts": "dp"},
    {"leaf": 2, "fanout": 16, "first": "keyword"},
    {"leaf": 2, "fanout": 25, "first": "space", "drift": 0.0},
    {"leaf": 3, "first": "trie"},
]
DEEP = [*((APTree, options) for options in VARIANTS), (RankedKeyTree, SMALL), (RankedKeyTree, VARIANTS[3])]
Message = tuple[frozenset[str], tuple[float, float, float, float]]

masses = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=14)


def kinds(tree: PartitionTree) -> list[int]:
    """How many nodes there are of each kind."""
    counts, stack = [0, 0, 0, 0], [int(tree._arena[ROOT])]
    while stack:
        p = stack.pop()
        if p:
            counts[kind_of(tree._arena, p)] += 1
            if kind_of(tree._arena, p) != QUERY:
                first, n = children(tree._arena, p)
                stack += tree._arena[first : first + n].tolist()
    return counts


def assert_same(tree: PartitionTree, naive: NaiveTextual, asked: list[Message]) -> None:
    for tokens, box in asked:
        assert tree.search(tokens, box).tolist() == naive.search(tokens, box)


@settings(max_examples=200)
@given(masses, st.integers(1, 6))
def test_dynamic_programming_is_optimal_and_the_heuristic_between_it_and_even_cuts(
    masses: list[tuple[int, int]], cuts: int
) -> None:
    weights, chances = np.array([m[0] for m in masses], float), np.array([m[1] for m in masses], float)
    optimal, local, even = (
        dp_cuts(weights, chances, cuts),
        heuristic_cuts(weights, chances, cuts),
        even_cuts(weights, cuts),
    )
    for first in (optimal, local, even):
        assert first[0] == 0
        assert (np.diff(first) > 0).all()
        assert first[-1] < weights.size
        assert first.size == min(cuts, weights.size)
    assert cut_cost(weights, chances, optimal) == least_cost(weights.tolist(), chances.tolist(), cuts)
    assert cut_cost(weights, chances, optimal) <= cut_cost(weights, chances, local)
    assert cut_cost(weights, chances, local) <= cut_cost(weights, chances, even)


def test_equal_weights_are_optimal_when_subscriptions_and_messages_agree() -> None:
    """The special case of Section IV-B: with p/w constant, cuts of equal weight are the best."""
    weights = np.ones(120)
    for cuts in (dp_cuts(weights, weights / 120, 8), heuristic_cuts(weights, weights / 120, 8)):
        assert cuts.tolist() == list(range(0, 120, 15))


@given(st.lists(st.tuples(*[st.integers(0, 40)] * 4), min_size=2, max_size=30), st.integers(2, 5))
def test_grid_cost_is_the_definition(corners: list[tuple[int, int, int, int]], side: int) -> None:
    boxes = np.array([(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in corners], float)
    xs = grid_lines(boxes[:, 0].copy(), boxes[:, 2].copy(), side)
    ys = grid_lines(boxes[:, 1].copy(), boxes[:, 3].copy(), side)
    assert xs.size < side
    assert (np.diff(xs) > 0).all()
    cost = pairs = 0.0
    for column in range(xs.size + 1):
        for row in range(ys.size + 1):
            weight = hits = 0
            for x1, y1, x2, y2 in boxes:
                x, y = (x1 + x2) / 2, (y1 + y2) / 2
                weight += strip_of(xs, x1) <= column <= strip_of(xs, x2) and strip_of(ys, y1) <= row <= strip_of(ys, y2)
                hits += strip_of(xs, x) == column and strip_of(ys, y) == row
            cost += weight * hits
            pairs += weight
    assert grid_cost(boxes, xs, ys) == (pytest.approx(cost / len(boxes)), pairs)


@pytest.mark.parametrize(("kind", "options"), DEEP)
@settings(max_examples=40)
@given(subscriptions=subscription_lists(), asked=st.lists(messages, min_size=1, max_size=8))
def test_deep_trees_on_hostile_input(
    kind: type[PartitionTree], options: dict[str, object], subscriptions: list[Subscription], asked: list[Message]
) -> None:
    half = len(subscriptions) // 2
    tree, naive = kind.build(subscriptions[:half], **options), NaiveTextual(subscriptions)
    for subscription in subscriptions[half:]:
        tree.insert(subscription)
    tree._check()
    assert_same(tree, naive, asked)
    for subscription in subscriptions[::2]:
        tree.remove(subscription.id)
        naive.remove(subscription.id)
    tree._check()
    assert_same(tree, naive, asked)


@pytest.mark.parametrize(("kind", "options"), DEEP)
def test_deep_trees_through_a_long_history(kind: type[PartitionTree], options: dict[str, object]) -> None:
    first, later = zipf_subscriptions(900, 1), zipf_subscriptions(900, 2, words=1_000, first=10_000, side=0.4)
    asked = [*zipf_messages(20, 3), *zipf_messages(8, 4, tokens=150), *zipf_messages(15, 5, side=0.5)]
    tree, naive = kind.build(first, **options), NaiveTextual(first)
    assert min(kinds(tree)[:DIRECTORY]) > 0, "all kinds of nodes"
    assert_same(tree, naive, asked)
    for gone, come in zip(first, later, strict=True):
        tree.insert(come)
        naive.insert(come)
        tree.remove(gone.id)
        naive.remove(gone.id)
    tree._check()
    assert tree.rebuilt > 0
    assert_same(tree, naive, asked)
    for come in later:
        tree.remove(come.id)
    tree._check()
    assert kinds(tree) == [0, 0, 0, 1 if kind is RankedKeyTree else 0]


def test_partitions_adapt_to_what_tells_subscriptions_apart() -> None:
    """Fig. 2: by keywords where regions coincide, by space where keywords do."""
    box = (0.4, 0.4, 0.6, 0.6)
    same_place = APTree.build(Subscription(i, frozenset({f"w{i % 300}", f"v{i % 7}"}), box) for i in range(3_000))
    places = [(x / 60, y / 50) for x in range(60) for y in range(50)]
    same_words = APTree.build(
        Subscription(i, frozenset({"w", "v"}), (x, y, x + 0.01, y + 0.01)) for i, (x, y) in enumerate(places)
    )
    assert kinds(same_place)[SPATIAL] == 0 < kinds(same_place)[KEYWORD]
    assert kinds(same_words)[KEYWORD] == 0 < kinds(same_words)[SPATIAL]


def test_a_shared_prefix_does_not_hide_what_follows() -> None:
    """All have the same first two keywords: only the third tells them apart, and the tree gets there."""
    tree = APTree.build(Subscription(i, frozenset({"a", "b", f"c{i}"}), (0.0, 0.0, 1.0, 1.0)) for i in range(2_000))
    assert tree.search({"a", "b", "c77"}, (0.5, 0.5, 0.5, 0.5)).tolist() == [77]
    assert tree.counters.verified < 200


def test_cells_are_half_open_and_the_outermost_reach_to_infinity() -> None:
    """Points exactly on every grid line, and messages and subscriptions outside of the universe at build time."""
    subscriptions = [
        Subscription(i, frozenset({"w"}), (i % 40, i // 40, i % 40 + 1, i // 40 + 1)) for i in range(1_600)
    ]
    tree, naive = APTree.build(subscriptions, **SMALL), NaiveTextual(subscriptions)
    assert kinds(tree)[SPATIAL] > 0
    w = frozenset({"w"})
    far = [
        Subscription(9_000, w, (-1e30, -1e30, 1e30, 1e30)),
        Subscription(9_001, w, (39.0, 39.0, 1e9, 1e9)),
        Subscription(9_002, w, (-50.0, -50.0, -40.0, -40.0)),
        Subscription(9_003, w, (1e9, 1e9, 1e9, 1e9)),
    ]
    for subscription in far:
        tree.insert(subscription)
        naive.insert(subscription)
    tree._check()
    asked: list[Message] = [(w, (x / 1, y / 1, x / 1, y / 1)) for x in range(0, 41, 3) for y in range(0, 41, 3)]
    asked += [(w, box) for box in ((1e9, 1e9, 1e9, 1e9), (-45.0, -45.0, -45.0, -45.0), (-1e300, 5.0, 1e300, 6.0))]
    asked += [
        (w, (x / 2, y / 2, x / 2 + size, y / 2 + size))
        for x in range(0, 80, 9)
        for y in range(0, 80, 9)
        for size in (0.5, 7, 30)
    ]
    assert_same(tree, naive, asked)


def test_float32_never_decides_what_only_doubles_tell_apart() -> None:
    """Boxes and messages that differ by one unit in the last place of a double, all equal as float32."""
    x = 1.0 / 3.0
    above, below = float(np.nextafter(x, 1)), float(np.nextafter(x, 0))
    w = frozenset({"w"})
    edges = [
        (0.0, 0.0, below, 1.0),
        (0.0, 0.0, x, 1.0),
        (above, 0.0, 1.0, 1.0),
        (x, x, x, x),
        (below, above, below, above),
    ]
    subscriptions = [Subscription(i, w, box) for i, box in enumerate(edges * 30)]
    for options in VARIANTS:
        tree = APTree.build(subscriptions, **options)
        assert_same(
            tree, NaiveTextual(subscriptions), [(w, (a, b, a, b)) for a in (below, x, above) for b in (below, x, above)]
        )
        assert_same(tree, NaiveTextual(subscriptions), [(w, (below, x, x, above)), (w, (x, x, above, above))])


def test_divergence_tells_drift_from_noise() -> None:
    """More of the same is not drift; the same number of something else is."""
    rng = np.random.default_rng(3)

    def some(count: int, first: int, words: int) -> list[Subscription]:
        return [
            Subscription(first + i, frozenset({f"w{w}"}), (0.0, 0.0, 1.0, 1.0))
            for i, w in enumerate(rng.integers(words, size=count))
        ]

    start = some(2_000, 0, 300)
    same, other = APTree.build(start), APTree.build(start)
    for subscription in some(900, 10_000, 300):
        same.insert(subscription)
    for subscription in some(900, 10_000, 10):
        other.insert(subscription)
    assert same.rebuilt == 0 < other.rebuilt
    drift, noise = divergence(same._arena, int(same._arena[ROOT]))
    assert 0 <= drift < 0.001 + 2 * noise
    other.rebuild()
    assert divergence(other._arena, int(other._arena[ROOT])) == (0.0, 0.0), "old weights are those of now"


def test_a_large_drifted_node_is_mended_within_the_allowance() -> None:
    """One insertion never regroups more than `rebuild` subscriptions: the root stays, its grown buckets are redone."""
    w = [frozenset({f"w{i}"}) for i in range(40)]
    tree = APTree.build([Subscription(i, w[i % 40], (0.0, 0.0, 1.0, 1.0)) for i in range(2_000)], rebuild=500, leaf=20)
    root = int(tree._arena[ROOT])
    for i in range(1_500):
        x = i % 37 / 37
        tree.insert(Subscription(5_000 + i, w[i % 2], (x, x, x + 0.01, x + 0.01)))
    tree._check()
    assert tree.rebuilt > 0
    assert tree._arena[ROOT] == root
    assert tree._arena[root + WEIGHT] == 3_500
    tree.rebuild()
    tree._check()
    assert tree.search(w[0], (0.5, 0.5, 0.5, 0.5)).size == 50 + sum(
        0 <= 0.5 - i % 37 / 37 <= 0.01 for i in range(0, 1_500, 2)
    )


@pytest.mark.parametrize("kind", [APTree, RankedKeyTree])
def test_freed_blocks_are_used_again(kind: type[PartitionTree]) -> None:
    first = zipf_subscriptions(800, 7)
    tree = kind.build(first, **SMALL)
    sizes = []
    for _ in range(6):
        for subscription in first:
            tree.remove(subscription.id)
        for subscription in first:
            tree.insert(subscription)
        tree._check()
        sizes.append(tree.nbytes())
    assert sizes[-1] <= 1.2 * sizes[1]


@pytest.mark.parametrize(
    "options",
    [
        {"fanout": 1},
        {"leaf": 0},
        {"drift": -1.0},
        {"tokens": 0.0},
        {"cuts": "best"},
        {"first": "text"},
        {"rebuild": 0},
        {"leaf": "40"},
        {"leaf": True},
        {"first": ["cost"]},
        {"tokens": float("nan")},
    ],
)
def test_senseless_options_are_refused(options: dict[str, object]) -> None:
    for kind in (APTree, RankedKeyTree):
        with pytest.raises(InvalidValue, match=kind.name):
            kind(**options)


def test_a_file_with_half_an_arena_is_refused() -> None:
    tree = APTree.build(zipf_subscriptions(100, 7))
    arrays = tree._arrays()
    with pytest.raises(CorruptFile):
        tree._restore({**arrays, "arena": arrays["arena"][:-5]})


def test_a_directory_reads_one_pointer_per_token_and_grows_with_the_vocabulary() -> None:
    """Subscriptions are found through their rarest keyword alone, also when it is newer than the tree."""
    everywhere = (0.0, 0.0, 1.0, 1.0)
    tree = RankedKeyTree.build(Subscription(i, frozenset({"the", f"w{i}"}), everywhere) for i in range(3_000))
    assert tree.search({"the", "w5", "w6", "unheard"}, (0.5, 0.5, 0.5, 0.5)).tolist() == [5, 6]
    assert tree.counters.verified == 2
    assert tree.counters.nodes == 3, "the directory and two leaves"
    for i in range(3_000, 9_000):
        tree.insert(Subscription(i, frozenset({"the", f"w{i}"}), everywhere))
    tree._check()
    assert tree.search({"the", "w8999"}, (0.5, 0.5, 0.5, 0.5)).tolist() == [8_999]
    assert tree.counters.verified == 1
