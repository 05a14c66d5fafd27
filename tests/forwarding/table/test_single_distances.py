"""One point at a time and distance constraints: by one entry into compiled code, and as a scan decides."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Box, ForwardingTable, Line, Point, Region, attr, parse
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.kernels.match.single import CELLS_HERE, MOST_TREES, TREES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contrada.forwarding.language.filter import Filter

SMALL = st.integers(0, 12)
PLACES = st.builds(Point, SMALL, SMALL)
SHAPES = st.one_of(
    PLACES,
    st.builds(lambda x, y, w, h: Box(x, y, x + w, y + h), SMALL, SMALL, st.integers(1, 6), st.integers(1, 6)),
    st.builds(lambda x, y: Region([(x, y), (x + 4, y), (x, y + 3)]), SMALL, SMALL),
    st.builds(lambda x, y: Line([(x, y), (x + 4, y + 3), (x + 8, y)]), SMALL, SMALL),
)


@st.composite
def fences(draw: st.DrawFn) -> Filter:
    """A distance or a relation, alone or with something else; numbers are whole, so that many are ties."""
    pos, shape, length = (
        attr(draw(st.sampled_from(("pos", "goal")))),
        draw(SHAPES),
        draw(st.sampled_from((0, 1, 2.5, 5))),
    )
    made = pos.beyond(length, of=shape) if draw(st.booleans()) and length else pos.within(length, of=shape)
    if isinstance(shape, Region) and draw(st.booleans()):
        made = pos.intersects(shape)
    more = draw(st.sampled_from((None, attr("x") == 1, attr("x") > 1, attr("goal").exists())))
    return made if more is None else made & more


@pytest.fixture(autouse=True, scope="module")
def _no_long_way() -> Iterator[None]:
    """Whatever is asked here is answered by compiled code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ForwardingTable, "_interfaces_of", lambda _table, given: pytest.fail(f"the long way: {given}"))
        yield


@pytest.mark.usefixtures("every_matching")
@given(
    st.lists(fences(), min_size=1, max_size=40),
    st.lists(st.tuples(PLACES, st.none() | PLACES, st.integers(0, 2)), min_size=1, max_size=8),
    st.sets(st.integers(0, 39)),
)
def test_answers_are_those_of_a_scan(filters: list[Filter], values: list[Any], removed: set[int]) -> None:
    table: ForwardingTable[int] = ForwardingTable()
    ids = [id for number, each in enumerate(filters) for id in table.add(number, each)]
    notifications = [
        {"pos": pos, "x": x} if goal is None else {"pos": pos, "goal": goal, "x": x} for pos, goal, x in values
    ]
    there = {*range(len(filters))}
    for gone in (set(), removed & there):
        for number in gone:
            table.remove(ids[number])
        there -= gone
        for each in notifications:
            expected = {number for number in there if filters[number].matches(each)}
            assert table.match(each) == expected
            assert table.match_bodies([encode_notification(each)]) == ([expected], {})
    table._check()


def circles(count: int, side: int = 60) -> list[tuple[int, Filter]]:
    """Circles on whole numbers."""
    rows = np.random.default_rng(18).integers(0, (side, side, 6), (count, 3)).tolist()
    return [(number, attr("pos").within(r, of=Point(x, y))) for number, (x, y, r) in enumerate(rows)]


def expected(pairs: list[tuple[int, Filter]], value: dict[str, object]) -> set[int]:
    return {number for number, each in pairs if each.matches(value)}


def places(count: int, side: int = 64) -> list[dict[str, object]]:
    """Points of which many are at exactly the distance of some circle."""
    rows = np.random.default_rng(19).integers(-2, side, (count, 2)).tolist()
    return [{"pos": Point(x, y)} for x, y in rows]


def has_grid(table: ForwardingTable[Any]) -> bool:
    """Whether compiled code looks points up in a grid."""
    return bool(table._singles[0]._where[TREES, 1] & CELLS_HERE)


def test_a_grid_is_made_and_dropped_by_changes(tmp_path: Path) -> None:
    pairs = [(number, each) for number, each in circles(300) if "within 0" not in str(each)]
    table = ForwardingTable.packed(pairs)
    values = places(120)
    wanted = [expected(pairs, each) for each in values]
    assert [table.match(each) for each in values] == wanted
    assert has_grid(table)
    assert [table.match(each) for each in values] == wanted
    (new,) = table.add(-1, attr("pos").within(5, of=Point(0, 0)))
    assert table.match({"pos": Point(3, 4)}) >= {-1}
    assert not has_grid(table)
    table.remove(new)
    assert -1 not in table.match({"pos": Point(3, 4)})
    assert [table.match(each) for each in values] == wanted
    assert has_grid(table)
    table.remove_interface(pairs[0][0])
    assert [table.match(each) for each in values] == [each - {pairs[0][0]} for each in wanted]
    table._check()
    again = ForwardingTable.packed([(str(number), each) for number, each in pairs])
    again.save(tmp_path / "table")
    loaded = ForwardingTable.load(tmp_path / "table")
    assert [loaded.match(each) for each in values] == [{*map(str, each)} for each in wanted]
    assert has_grid(loaded)
    loaded.add("new", attr("pos").within(5, of=Point(0, 0)))
    assert "new" in loaded.match({"pos": Point(3, 4)})
    assert "new" not in loaded.match({"pos": Point(3, 5)})


def test_a_grid_that_batches_have_made() -> None:
    pairs = circles(200)
    table = ForwardingTable.packed(pairs)
    values = places(40)
    wanted = [expected(pairs, each) for each in values]
    assert table.match(values[0]) == wanted[0]
    for _ in range(10):
        table.match_pairs(values)
    assert [table.match(each) for each in values] == wanted


def test_ties_and_what_is_just_beyond_them() -> None:
    table = ForwardingTable()
    table.add("near", "pos within 5 of POINT(0 0)")
    table.add("far", "pos beyond 5 of POINT(0 0)")
    table.add("box", "pos within 5 of BOX(10 10, 20 20)")
    table.add("late", "x = 1 and pos within 5 of POINT(0 0)")
    table.add("none", "x = 2 and pos within 5 of POINT(0 0)")
    for _ in range(100):
        assert table.match({"pos": Point(3, 4), "x": 1}) == {"near", "late"}
        assert table.match({"pos": Point(3.0000000000000004, 4), "x": 1}) == {"far"}
        assert table.match({"pos": Point(7, 6)}) == {"far", "box"}
        assert table.match({"pos": Point(6.999999999999999, 6)}) == {"far"}


def test_more_attributes_than_are_known_at_once() -> None:
    table: ForwardingTable[int] = ForwardingTable()
    for i in range(MOST_TREES):
        table.add(i, attr(f"pos{i}").within(2, of=Point(0, 0)))
        assert table.match({f"pos{j}": Point(1, 1) for j in range(i + 1)}) == {*range(i + 1)}
    for i in range(MOST_TREES):
        table.remove_interface(i)
        assert table.match({f"pos{j}": Point(1, 1) for j in range(MOST_TREES)}) == {*range(i + 1, MOST_TREES)}


def test_covered_filters_come_back() -> None:
    table = ForwardingTable()
    (wide,) = table.add("one", "pos within 9 of POINT(0 0)")
    table.add("one", "pos within 2 of POINT(5 0)")
    table.add("two", "pos within 1 of POINT(5 0)")
    assert table.match({"pos": Point(5, 1)}) == {"one", "two"}
    table.remove(wide)
    assert table.match({"pos": Point(5, 1)}) == {"one", "two"}
    assert table.match({"pos": Point(5, 2)}) == {"one"}
    assert table.match({"pos": Point(0, 0)}) == set()


def test_what_names_and_values_rule_out_is_not_decided() -> None:
    table: ForwardingTable[int] = ForwardingTable()
    table.add_many([(n, attr("pos").within(5, of=Point(n % 3, 0)) & (attr(f"a{n}") == n)) for n in range(50)])
    assert table.match({"pos": Point(1, 1)}) == set()
    assert table.match({"pos": Point(1, 1), "a7": 7}) == {7}
    assert table.match({"pos": Point(1, 9), "a7": 7}) == set()


def test_threads_match_one_by_one_while_circles_change() -> None:
    pairs = circles(200)
    table: ForwardingTable[int] = ForwardingTable.packed(pairs)
    values = places(30)
    wanted = [expected(pairs, each) for each in values]
    done = threading.Event()
    wrong: list[Any] = []

    def match() -> None:
        while not done.is_set():
            found = [{each for each in table.match(value) if each >= 0} for value in values]
            if found != wanted:
                wrong.append(found)

    threads = [threading.Thread(target=match) for _ in range(3)]
    for thread in threads:
        thread.start()
    for round in range(20):
        ids = [
            table.add(-1 - n, attr(f"pos{round % 3}" if n % 2 else "pos").within(n, of=Point(n, 0)))[0]
            for n in range(1, 40)
        ]
        for id in ids:
            table.remove(id)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    table._check()


def test_work_is_bounded() -> None:
    """What takes long is left, and answered all the same."""
    corners = [(x, (x % 2) * 1e-3) for x in range(4000)]
    comb = parse(f"pos within 1 of LINESTRING({', '.join(f'{x} {y}' for x, y in corners)})")
    table = ForwardingTable.packed([("comb", comb)])
    assert table.match({"pos": Point(5, 0.5)}) == {"comb"}
    assert table.match({"pos": Point(5, 1.5)}) == set()
