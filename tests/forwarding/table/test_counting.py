"""Filters that are counted: what is posted, which short cuts are taken (never by the clock), and when `auto` counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.kernels.match.verifying import C_MET, C_VERIFIED
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.state.matching import DEFAULT_MATCHING, MATCHING
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from tests.forwarding.strategies import filters, notifications
from tests.naive.table import NaiveTable

if TYPE_CHECKING:
    from pathlib import Path


def counting(**settings: Any) -> ForwardingTable[str]:
    return ForwardingTable(matching="counting", **settings)


def met(table: ForwardingTable[Any], notification: dict[str, Any]) -> int:
    """How many postings one notification meets."""
    table.match(notification)
    before = table._memory.counted
    table.match(notification)
    return int((table._memory.counted - before)[C_MET])


def test_every_constraint_is_posted() -> None:
    table = counting()
    table.add(
        "I",
        'x > 3 and x < 9 and y != 4 and s prefix "a" and k in [1, 2, 3] and e exists and area overlaps BOX(0 0, 1 1)',
    )
    table._check()
    stats = table.stats()
    assert (stats.constraints, stats.postings, stats.counted) == (7, 9, 1)  # `in` under each member
    assert [len(tree) for tree in table._types[layout.REGION]._trees.values()] == [1]
    table.add("J", "x > 3")
    assert table.stats().counted == 1  # one constraint is all there is to count


def test_in_counts_once_and_constraints_on_one_value_count_each() -> None:
    table = counting(simplify=False)
    table.add("I", "x in [1, 2] and x in [2, 3] and x = 2 and x >= 2 and x != 5")
    table.add("J", "x in [1, 2, 3] and y = 1")
    assert table.match({"x": 2}) == {"I"}
    assert table.match({"x": 1}) == table.match({"x": 3}) == set()
    assert table.match({"x": 3, "y": 1}) == {"J"}
    assert table.match({"x": 2, "y": 1}) == {"I", "J"}


def test_a_value_that_is_refused_is_not_counted() -> None:
    table = counting(simplify=False)
    table.add("I", "x != 4 and x != 5 and y != true and x > 0")
    assert table.match({"x": 3, "y": False}) == {"I"}
    for other in ({"x": 4, "y": False}, {"x": 5, "y": False}, {"x": 3, "y": True}, {"x": "3", "y": False}, {"x": 3}):
        assert table.match(other) == set()


def test_what_lacks_a_name_is_not_looked_at() -> None:
    table = counting()
    for i in range(50):
        table.add(f"I{i}", f"x > 3 and name{i} exists")
    assert table.match({"x": 4}) == set()
    assert table._memory.counted[C_VERIFIED] == 0
    assert table.match({"x": 4, "name7": 1}) == {"I7"}


@pytest.mark.parametrize("matching", MATCHING)
def test_when_all_interfaces_have_matched_that_is_the_end(matching: str) -> None:
    table: ForwardingTable[int] = ForwardingTable(matching=matching, simplify=False)
    table.add_many([(i % 5, f"x > {i / 1000} and y < {i}") for i in range(5000)])
    table.add_many([(i % 5, f"rare > {i}") for i in range(5)])
    alone = met(table, {"x": 9, "y": 0})
    assert table.match({"x": 9, "y": 0, "rare": 9}) == {0, 1, 2, 3, 4}
    if matching == "counting":
        assert met(table, {"x": 9, "y": 0, "rare": 9}) <= 5  # the name of the fewest constraints comes first
        assert alone > 5000
    elif matching == "selective":
        assert alone < 1000


def test_filters_that_are_asked_for_are_all_found_whatever_interfaces_match() -> None:
    table = counting(simplify=False)
    ids = [table.add("I", f"x > {i} and y > {i}")[0] for i in range(20)]
    assert table.match_filters({"x": 30, "y": 10}) == ids[:10]
    assert table.match({"x": 30, "y": 10}) == {"I"}


@given(
    st.lists(st.tuples(st.integers(0, 2), filters()), max_size=12), st.lists(notifications(), min_size=1, max_size=6)
)
def test_the_answers_are_the_same(pairs: list[tuple[int, Filter]], batch: list[Any]) -> None:
    naive = NaiveTable()
    tables: list[ForwardingTable[int]] = [ForwardingTable(matching=each, geotext_index="scan") for each in MATCHING]
    for table in tables:
        ids = table.add_many(pairs)
    for (interface, each), id in zip(pairs, ids, strict=True):
        naive.add(interface, each, id)
    for table in tables:
        assert table.match_many(batch) == [naive.match(each) for each in batch]
        assert table.match_many_filters(batch) == [naive.match_filters(each) for each in batch]


def test_it_is_kept_in_files(tmp_path: Path) -> None:
    assert ForwardingTable().stats().matching == DEFAULT_MATCHING
    for matching in MATCHING:
        table: ForwardingTable[str] = ForwardingTable(matching=matching)
        table.add("I", "x > 3 and y < 4 and area inside BOX(0 0, 9 9)")
        table.save(tmp_path / matching)
        loaded = ForwardingTable.load(tmp_path / matching)
        assert loaded.stats() == table.stats()
        assert loaded.alike().stats().matching == matching
        loaded.add("J", "x > 3 and y < 3")
        loaded._check()
        assert loaded.match({"x": 4, "y": 0, "area": Box(1, 1, 2, 2)}) == {"I", "J"}
        loaded.remove_interface("I")
        loaded._check()


@pytest.mark.parametrize(
    ("place", "value"),
    [(layout.S_MATCHING, 7), (layout.S_MATCHING, -1), (layout.S_INTERFACES, 9), (layout.S_COUNTED, 0)],
)
def test_a_forged_setting_is_refused(tmp_path: Path, place: int, value: int) -> None:
    table = counting()
    table.add("I", "x > 3 and y < 4")
    table._memory.state[place] = value
    table.save(tmp_path / "table")
    with pytest.raises(CorruptFile):
        ForwardingTable.load(tmp_path / "table")


def test_a_forged_number_of_constraints_is_refused(tmp_path: Path) -> None:
    table = counting()
    (row,) = table.add("I", "x > 3 and y < 4")
    table._memory.index.filters[row, layout.F_ACCESS] += 1 << 8
    table.save(tmp_path / "table")
    with pytest.raises(CorruptFile):
        ForwardingTable.load(tmp_path / "table")


@pytest.mark.parametrize("matching", ["sff", "", None, 1, ["auto"]])
def test_other_names_are_refused(matching: Any) -> None:
    with pytest.raises(InvalidValue, match="choose one of"):
        ForwardingTable(matching=matching)


def test_auto_counts_where_no_constraint_is_selective() -> None:
    table: ForwardingTable[int] = ForwardingTable(simplify=False)
    table.add_many([(i, f"x < {i} and y > {i}") for i in range(200)])
    table.add_many([(i, f"x < {i} and y > {i} and s = {i}") for i in range(200)])
    table.add_many([(i, f"a < {i} and b < {i} and c < {i} and d < {i} and e < {i}") for i in range(200)])
    assert table.stats().counted >= 190  # the first few are posted when little is known
    assert table.stats().counted <= 210
    table._check()


def test_auto_turns_round_when_most_interfaces_match() -> None:
    rng = np.random.default_rng(1)
    table: ForwardingTable[int] = ForwardingTable(simplify=False)
    table.add_many([(i % 4, parse(f"x < {v} and y > {v}")) for i, v in enumerate(rng.integers(0, 100, 2000).tolist())])
    before = table.stats().counted
    assert before > 1900
    for _ in range(200):
        assert table.match({"x": 1, "y": 99}) == {0, 1, 2, 3}
    assert table.stats().counted == 0
    table._check()
    for _ in range(400):
        assert table.match({"x": 200, "y": 99}) == set()
    assert table.stats().counted >= before
    assert table.stats().matching == "auto"
    table._check()


def test_auto_counts_filters_of_regions_where_much_is_left_after_matching() -> None:
    """A box that many points are in, and a threshold: as much is left to be decided as a search would find."""
    rng = np.random.default_rng(2)
    corners = (rng.random((1500, 2)) * 500).tolist()
    made = [
        Filter([Constraint("area", "intersects", Box(x, y, x + 500, y + 500)), Constraint(f"n{i % 8}", "<", i % 90)])
        for i, (x, y) in enumerate(corners)
    ]
    table = ForwardingTable[int](simplify=False)
    table.add_many(enumerate(made))
    asked = [
        {"area": Point(*(rng.random(2) * 1000).tolist()), **{f"n{k}": int(rng.integers(100)) for k in range(8)}}
        for _ in range(40)
    ]
    expected = [{i for i, each in enumerate(made) if each.matches(notification)} for notification in asked]
    assert table.stats().counted == 0
    for _ in range(45):
        assert table.match_many(asked) == expected
    assert table._memory.state[layout.S_MATCHING] == layout.SEARCHING
    assert table.stats().counted == len(made)
    assert table.stats().matching == "auto"
    table._check()
    for id in range(1, 1500, 2):
        table.remove(id)
    assert table.match_many(asked) == [{i for i in each if i % 2} for each in expected]
