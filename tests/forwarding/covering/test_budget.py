"""Covering costs no more than its budget, whatever is added, and no answer depends on it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.forwarding.codec.msgpack import costly, decode_filter, encode_filter, prepare_filters
from contrada.forwarding.covering import budget as covering_budget
from contrada.forwarding.covering.budget import CoveringBudget, OutOfBudget
from contrada.forwarding.covering.covering import covers
from contrada.forwarding.covering.covering_set import CoveringSet
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Predicate, vertices_of
from contrada.forwarding.table.table import PIECE, ForwardingTable
from contrada.forwarding.types.plugged import Settings
from contrada.forwarding.types.region import RegionType
from contrada.spatial.cr_tree.tree import CRTree
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.relations import rcc8
from contrada.spatial.relations.relate import EXACT, relate_codes
from tests import strategies
from tests.forwarding.strategies import filters, notifications
from tests.naive.table import NaiveTable

_OPERATORS = [op for op in Operator if op.mask]


class Counting(CoveringBudget):
    """Remembers all that was spent."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        super().__init__()
        self.spent = np.zeros(2, np.int64)

    def spend(self, comparisons: int, vertices: int = 0) -> None:
        super().spend(comparisons, vertices)
        self.spent += (comparisons, vertices)


class Broke(CoveringBudget):
    """Has nothing, ever."""

    __slots__ = ()

    def spend(self, comparisons: int, vertices: int = 0) -> None:
        raise OutOfBudget


def star(seed: int, vertices: int) -> Region:
    rng = np.random.default_rng(seed)
    angles = (np.arange(vertices) + rng.uniform(0, 0.9, vertices)) * (2 * np.pi / vertices)
    radii = rng.uniform(0.3, 1, vertices)
    return Region(np.column_stack([radii * np.cos(angles), radii * np.sin(angles)]))


def test_what_is_earned_is_kept_up_to_a_limit():
    budget = CoveringBudget()
    budget.spend(10, 1000)
    with pytest.raises(OutOfBudget):
        budget.spend(1, covering_budget.MOST_VERTICES)
    assert (budget.comparisons, budget.vertices) == (
        covering_budget.MOST_COMPARISONS - 10,
        covering_budget.MOST_VERTICES - 1000,
    )
    budget.earn(1000)
    assert (budget.comparisons, budget.vertices) == (covering_budget.MOST_COMPARISONS, covering_budget.MOST_VERTICES)


@pytest.mark.parametrize("holder", ["table", "set"])
def test_large_regions_of_one_interface_are_not_compared_in_pairs(holder):
    """Thirty stars over each other have 870 ordered pairs, of 6,000 vertices each."""
    budget = Counting()
    table, held = ForwardingTable(), CoveringSet[int]()
    table._changer.budget = held.budget = budget
    for seed in range(30):
        f = attr("area").intersects(star(seed, 3000))
        if holder == "table":
            table.add("one", f)
        else:
            held.add(seed, f)
    assert 0 < budget.spent[1] <= covering_budget.MOST_VERTICES + 30 * 1024
    if holder == "table":
        assert table.match({"area": Box(-0.1, -0.1, 0.1, 0.1)}) == {"one"}


def test_nested_boxes_are_found_without_looking_at_vertices():
    table = ForwardingTable()
    table._changer.budget = budget = Counting()
    for k in range(60):
        table.add("one", attr("area").inside(Box(k, k, 200 - k, 200 - k)))
    assert (table.stats().active, table.stats().covered) == (1, 59)
    assert budget.spent[1] == 0


def test_regions_far_apart_cost_next_to_nothing():
    """Of a thousand buildings hardly two have nested MBRs: nobody looks at their vertices."""
    rng = random.Random(5)
    table, held = ForwardingTable(), CoveringSet[int]()
    table._changer.budget = in_table = Counting()
    held.budget = in_set = Counting()
    for key in range(600):
        x, y = rng.uniform(0, 100), rng.uniform(0, 100)
        f = attr("area").intersects(Region([(x, y), (x + 1, y), (x + 2, y + 2), (x, y + 1)]))
        table.add("one", f)
        held.add(key, f)
    assert in_table.spent.sum() == 0
    assert in_set.spent[0] < 8 * 600
    assert in_set.spent[1] < 8 * 600


@given(st.lists(filters(), min_size=1, max_size=8), st.lists(notifications(), max_size=4))
def test_no_answer_depends_on_the_budget(given_filters, given_notifications):
    table, naive = ForwardingTable(geotext_index="scan"), NaiveTable()
    table._changer.budget = Broke()
    for each in given_filters:
        naive.add("one", each, table.add("one", each))
    for notification in given_notifications:
        assert table.match_filters(notification) == naive.match_filters(notification)


@given(filters(), filters(), st.integers(0, 30), st.integers(0, 30))
def test_a_small_budget_never_covers_more(f, g, comparisons, vertices):
    budget = CoveringBudget()
    budget.comparisons, budget.vertices = comparisons, vertices
    assert covers(f, g, budget) <= covers(f, g)
    assert budget.comparisons >= 0 <= budget.vertices


@settings(max_examples=100)
@given(strategies.regions(), strategies.regions(), st.sampled_from(_OPERATORS), st.sampled_from(_OPERATORS))
def test_a_promise_is_kept(a, b, first, second):
    """Zero and infinity are what composition says of the exact relation."""
    kept = RegionType(Settings(EXACT, "scan", None))
    one, two = (kept.handle(0, Constraint("x", op, region)) for op, region in ((first, a), (second, b)))
    kept.store_made()
    (above,) = kept.promise(two, np.array([one]), above=True).tolist()
    (beneath,) = kept.promise(one, np.array([two]), above=False).tolist()
    truth = rcc8.covers(first.mask, a, second.mask, b)
    assert above == beneath
    assert above > 0 if truth else above < np.inf
    assert kept.covers(one, two, CoveringBudget()) == truth


@given(st.integers(1, 255), st.integers(1, 255))
def test_covering_relations_are_those_with_which_composition_covers(mask1, mask2):
    found = rcc8.covering_relations(mask1, mask2)
    for k in range(8):
        assert (found >> k & 1 == 1) == (rcc8.compose(mask2, 1 << k) & ~mask1 == 0)


def test_a_predicate_is_added_in_pieces():
    table = ForwardingTable()
    small = [attr("x") == n for n in range(150)]
    large = [attr("area").inside(star(seed, 3000)) for seed in range(8)]
    assert vertices_of(large[0]) == 3000
    pieces = list(table.adding("one", Predicate([*small, *large])))
    assert [str(table.filter(id)) for piece in pieces for id in piece] == [*map(str, small), *map(str, large)]
    assert max(map(len, pieces)) <= PIECE
    assert all(len(piece) <= 5 for piece in pieces[3:])
    assert table.match({"x": 149}) == {"one"}


def test_prepared_filters_are_the_decoded_ones():
    encoded = [encode_filter(attr("area").inside(star(1, 3000))), encode_filter(attr("x") > 1)]
    assert prepare_filters(encoded) == [decode_filter(each) for each in encoded]
    assert not costly(encoded)
    assert costly(encoded * 2)


def test_a_large_query_is_related_to_each_entry_as_a_whole():
    """More edges than a leaf sorts out one by one: the answers are those of relating one by one."""
    rng = random.Random(2)
    query = star(3, 3000)
    regions = [star(seed, 40) for seed in range(20)] + [query, Box(-0.1, -0.1, 0.1, 0.1), Box(-2, -2, 2, 2)]
    for _ in range(40):
        x, y, width = rng.uniform(-1.2, 1.1), rng.uniform(-1.2, 1.1), rng.uniform(0.001, 0.4)
        regions.append(Box(x, y, x + width, y + width))
    codes = relate_codes(query, regions)
    for code in range(8):
        tree = CRTree.bulk(range(len(regions)), regions, [1 << code] * len(regions))
        assert sorted(tree.search(query).tolist()) == np.flatnonzero(codes == code).tolist()
