"""Filters that are tried before all are searched, and those decided by rounds: against the twin, and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.forwarding.kernels.match.verifying import C_PAIRS, SIFTED
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.set_value import SetValue
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.state.matching import MATCHING
from contrada.forwarding.table import matcher
from contrada.forwarding.table.table import ForwardingTable
from contrada.forwarding.types import trying
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from tests.forwarding.strategies import filters, notifications
from tests.naive.table import NaiveTable

shaped = filters().filter(lambda f: any("area" in str(c) or "BOX" in str(c) or "POLYGON" in str(c) for c in f))


@given(
    st.sampled_from(MATCHING),
    st.lists(st.tuples(st.integers(0, 1), st.one_of(filters(), shaped)), min_size=1, max_size=20),
    st.lists(notifications(), min_size=1, max_size=6),
    st.data(),
)
def test_the_answers_are_those_of_the_twin(matching: str, pairs: list[Any], batch: list[Any], data: Any) -> None:
    table: ForwardingTable[int] = ForwardingTable(matching=matching, geotext_index="scan")
    naive = NaiveTable()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trying, "WORTH", -1.0)
        patch.setattr(trying, "EACH", 1)
        patch.setattr(matcher, "_MANY_LATE", 0)
        patch.setattr(trying.Costs, "choose", lambda costs: data.draw(st.sampled_from([*costs._ways])))
        patch.setattr(trying.Costs, "is_cheaper", lambda *_: data.draw(st.booleans()))
        table._memory.trying.searched = data.draw(st.sampled_from([0.0, 3.0, 1e6]))
        for interface, each in pairs:
            naive.add(interface, each, table.add(interface, each))
            if data.draw(st.booleans()):
                assert table.match_many(batch) == [naive.match(each) for each in batch]
            if len(naive.filters) > 2 and data.draw(st.booleans()):
                id = data.draw(st.sampled_from(sorted(naive.filters)))
                table.remove(id)
                naive.remove(id)
        for _ in range(2):
            assert table.match_many(batch) == [naive.match(each) for each in batch]
            assert table.match_many_filters(batch) == [naive.match_filters(each) for each in batch]


def crowd(count: int, interfaces: int) -> tuple[ForwardingTable[int], list[dict[str, Any]], NaiveTable]:
    """Large regions in few interfaces: a search relates most of them."""
    rng = np.random.default_rng(5)
    table: ForwardingTable[int] = ForwardingTable(simplify=False)
    naive = NaiveTable()
    corners = rng.random((count, 2)) * 40
    expressions = []
    for i, (x, y) in enumerate(corners.tolist()):
        ring = f"POLYGON(({x} {y}, {x + 60} {y + 5}, {x + 50} {y + 60}, {x + 5} {y + 50}))"
        expressions.append((i % interfaces, parse(f"a overlaps {ring} and b overlaps {ring}")))
    for (interface, each), ids in zip(expressions, table.add_many(expressions), strict=True):
        naive.add(interface, each, ids)
    places = (rng.random((12, 2)) * 40).tolist()
    shapes = [parse(f"a inside POLYGON(({x} {y}, {x + 55} {y + 9}, {x + 30} {y + 50}))") for x, y in places]
    return table, [{"a": f.constraints[0].value, "b": f.constraints[0].value} for f in shapes], naive


def test_few_are_looked_at_where_interfaces_match() -> None:
    table, batch, naive = crowd(3000, 2)
    for _ in range(4):
        assert [table.match(each) for each in batch] == [naive.match(each) for each in batch]
    memory = table._memory.trying
    assert memory.searched + memory.late > trying.WORTH
    assert memory.tried < (memory.searched + memory.late) / 4
    (kind,) = table._types.values()
    before = kind.decided
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trying.Costs, "choose", lambda _: trying.TRIED)
        for each in batch:
            table.match(each)
    assert kind.decided == before  # nothing was searched for


def test_an_interface_without_a_match_is_decided_too() -> None:
    table, batch, _ = crowd(1500, 1)
    table.add_many([(7, attr("a").inside(Box(900 + i, 900, 901 + i, 901)) & attr("b").exists()) for i in range(1500)])
    for _ in range(3):
        assert [table.match(each) for each in batch] == [{0}] * len(batch)
    table.add(7, attr("a").intersects(Box(0, 0, 60, 60)))
    assert [table.match(each) for each in batch] == [{0, 7}] * len(batch)


Cost = st.floats(1e-3, 2e-2)


@given(
    st.lists(st.tuples(Cost, Cost, Cost), min_size=1, max_size=4),
    st.sampled_from([1, 8, 64]),
    st.integers(0, 99),
)
def test_what_is_chosen_costs_little_more_than_the_better(traffic: list[Any], size: int, seed: int) -> None:
    costs = trying.Costs(range(3))
    rng = np.random.default_rng(seed)
    for each_way in traffic:  # it is another one every 3,000 calls
        paid = [0.0, 0.0, 0.0, 0.0]
        for call, luck in enumerate(rng.uniform(0.8, 1.2, 3_000).tolist()):
            chosen = costs.choose()
            took = [each * size * luck for each in each_way]
            costs.note(chosen, took[chosen], size)
            if call >= 1_000:  # until then the other may not have been looked at
                for which, seconds in enumerate((*took, took[chosen])):
                    paid[which] += seconds
        assert paid[3] <= 1.1 * min(paid[:3])


def test_the_first_call_of_a_way_is_no_measure() -> None:
    costs = trying.Costs((False, True))
    for _ in range(2):
        costs.note(False, 1e-3, 1)
    costs.note(True, 60.0, 1)  # compiling
    for _ in range(40):
        chosen = costs.choose()
        costs.note(chosen, 1e-4 if chosen else 1e-3, 1)
    assert costs.choose()


def test_of_filters_of_several_regions_few_are_related() -> None:
    """Counting evaluates as many relations as filters are possible by their MBRs, not as constraints are."""
    rng = np.random.default_rng(3)
    naive, table = NaiveTable(), ForwardingTable[int](matching="counting", simplify=False)
    corners = rng.random((600, 4)) * 30
    for i, (x, y, u, v) in enumerate(corners.tolist()):
        one = f"POLYGON(({x} {y}, {x + 60} {y + 5}, {x + 50} {y + 60}, {x + 5} {y + 50}))"
        other = f"POLYGON(({u} {v}, {u + 9} {v}, {u} {v + 9}))"
        each = parse(f"a overlaps {one} and a inside {other}")
        naive.add(i, each, table.add(i, each))
    shapes = [parse(f"a inside POLYGON(({x} {y}, {x + 15} {y + 1}, {x + 3} {y + 9}))") for x, y in corners[:40, :2]]
    batch = [{"a": f.constraints[0].value} for f in shapes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trying, "WORTH", 100)
        patch.setattr(trying.Costs, "choose", lambda costs: costs._ways[0])
        assert table.match_many(batch) == [naive.match(each) for each in batch]
        patch.setattr(trying.Costs, "choose", lambda _: SIFTED)
        (kind,) = table._types.values()
        before, pairs = kind.decided, int(table._memory.counted[C_PAIRS])
        assert table.match_many(batch) == [naive.match(each) for each in batch]
    assert kind.decided == before
    assert table._memory.counted[C_PAIRS] - pairs < before / 4


def test_where_tries_do_not_pay_they_are_seldom_made() -> None:
    costs = trying.Costs((False, True))
    tries = 0
    for _ in range(10_000):
        chosen = costs.choose()
        tries += chosen
        costs.note(chosen, 2e-3 if chosen else 1e-3, 1)
    assert 0 < tries < 600


def test_nothing_is_tried_where_searches_are_cheap() -> None:
    table: ForwardingTable[int] = ForwardingTable()
    table.add_many([(i % 2, attr("a").intersects(Box(i, i, i + 1, i + 1))) for i in range(2000)])
    for i in range(300):
        assert table.match({"a": Point(i + 0.5, i + 0.5)}) == {i % 2}
    assert table._memory.trying.tried == 0.0


def test_sets_of_notifications_that_are_done_are_not_looked_up() -> None:
    table, batch, naive = crowd(1200, 2)
    wanted = parse('tags has "ice"')
    naive.add(2, wanted, table.add(2, wanted))
    tagged = [{**each, "tags": SetValue(["ice"] if i % 2 else ["rain"])} for i, each in enumerate(batch)]
    for _ in range(4):
        assert table.match_many(tagged) == [naive.match(each) for each in tagged]
    assert table._memory.trying.tried > 0
