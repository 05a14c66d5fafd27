"""Which constraint a filter is posted under: counted by the filters that matching looks at, never by the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from contrada.forwarding.kernels.match.verifying import C_REFUSED, C_VERIFIED
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.table.changer import AT_ONCE
from contrada.forwarding.table.table import ForwardingTable
from contrada.forwarding.types.plain import PlainType
from contrada.forwarding.types.shares import Sampler
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COUNT = 2_000
EVENTS = 200


class Workload:
    """Boxes of one size in a square of side 1,000, each with one of some kinds; events of points."""

    def __init__(self, side: float, kinds: int, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.corners = rng.random((COUNT, 2)) * (1000 - side)
        self.side = side
        self.kinds = rng.integers(kinds, size=COUNT)
        self.places = rng.random((EVENTS, 2)) * 1000
        self.wanted = rng.integers(kinds, size=EVENTS)

    @property
    def filters(self) -> list[tuple[int, Filter]]:
        return [
            (i, in_box(x, y, self.side, int(kind)))
            for i, ((x, y), kind) in enumerate(zip(self.corners.tolist(), self.kinds, strict=True))
        ]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [
            {"area": Point(x, y), "kind": int(kind)}
            for (x, y), kind in zip(self.places.tolist(), self.wanted, strict=True)
        ]

    @property
    def answers(self) -> list[set[int]]:
        return [
            {*np.flatnonzero(self._around(place) & (self.kinds == kind)).tolist()}
            for place, kind in zip(self.places, self.wanted, strict=True)
        ]

    def _around(self, place: Any) -> Any:
        inside = (self.corners <= place) & (place <= self.corners + self.side)
        return inside.all(axis=1)

    @property
    def better(self) -> int:
        """Filters met under the better of the two accesses, by all events."""
        areas = sum(int(self._around(place).sum()) for place in self.places)
        return min(areas, sum(int((self.kinds == kind).sum()) for kind in self.wanted))


def in_box(x: float, y: float, side: float, kind: int) -> Filter:
    area = Constraint("area", Operator.INTERSECTS, Box(x, y, x + side, y + side))
    return Filter([area, Constraint("kind", Operator.EQ, kind)])


def verified(table: ForwardingTable, events: Sequence[Any]) -> int:
    """How many filters are looked at, or found by searches in vain, for some events, one by one."""
    before = table._memory.counted
    for event in events:
        table.match(event)
    return int((table._memory.counted - before)[[C_VERIFIED, C_REFUSED]].sum())


@pytest.mark.parametrize("way", ["bulk", "packed", "one by one", "sorted"])
@pytest.mark.parametrize(
    ("side", "kinds"), [(0.1, 2), (0.1, 2000), (1, 20), (10, 20), (10, 200), (100, 2), (100, 2000)]
)
def test_what_is_looked_at_is_what_the_better_access_meets(way: str, side: float, kinds: int) -> None:
    work = Workload(side, kinds)
    pairs = work.filters
    if way == "sorted":  # all of a kind, from left to right: what is known at first is all of one corner
        pairs.sort(key=lambda pair: (work.kinds[pair[0]], work.corners[pair[0]][0]))
    if way == "packed":
        table = ForwardingTable.packed(pairs)
    else:
        table = ForwardingTable()
        if way == "bulk":
            table.add_many(pairs)
        else:
            for interface, each in pairs:
                table.add(interface, each)
    assert verified(table, work.events) <= 2 * work.better + 2 * EVENTS
    assert table.match_many(work.events) == work.answers
    table._check()


def test_large_areas_after_small_ones() -> None:
    """Were all posted as the first ones had to be, nine in a hundred of all filters would be looked at each time."""
    table = ForwardingTable()
    small, large = Workload(1, 1000, seed=2), Workload(300, 1000, seed=3)
    table.add_many(small.filters)
    table.add_many(large.filters)
    assert verified(table, large.events) <= 2 * (small.better + large.better) + 4 * EVENTS
    table._check()


def test_areas_where_everything_happens_are_found_by_their_kind() -> None:
    """Their size says that they are hit once in a million; hits as they happen say otherwise."""
    table = ForwardingTable()
    far = Workload(1, 200)
    table.add_many(far.filters)
    table.add_many((i, in_box(500, 500, 1 + i / COUNT, i % 200)) for i in range(COUNT))
    events = [{"area": Point(500.5, 500.5), "kind": i % 200} for i in range(EVENTS)]
    first = verified(table, events[:10])
    assert first >= 10 * COUNT
    for _ in range(100):
        table.match_many(events)
    assert verified(table, events) <= 2 * EVENTS * (COUNT // 200 + 2)
    assert table.match(events[7]) == {i for i in range(COUNT) if i % 200 == 7}
    table._check()


def test_areas_where_nothing_happens_are_found_by_the_tree() -> None:
    """Their size says that they are hit often; what is decided of them in vain says otherwise."""
    table = ForwardingTable()
    table.add_many((i, in_box(i % 7, i % 11, 300 + i / COUNT, i % 20)) for i in range(COUNT))
    table.add("far", in_box(900, 900, 1, 0))
    events = [{"area": Point(800 + i % 50, 800), "kind": i % 20} for i in range(EVENTS)]
    for _ in range(200):
        table.match_many(events)
    assert verified(table, events) <= 4 * EVENTS
    table._check()


@pytest.fixture
def ill_posted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[ForwardingTable, Workload]:
    """A table as files of earlier versions have it: no region is in a tree."""
    work = Workload(1, 20)
    with monkeypatch.context() as patch:
        patch.setattr(PlainType, "shares", lambda self, handles: np.zeros(len(handles)))
        table = ForwardingTable()
        table.add_many((str(i), each) for i, each in work.filters)
    table.save(tmp_path / "table")
    return ForwardingTable.load(tmp_path / "table"), work


def test_a_table_that_only_matches_mends_its_accesses(ill_posted: tuple[ForwardingTable, Workload]) -> None:
    table, work = ill_posted
    before = verified(table, work.events)
    assert before > EVENTS * COUNT / 20 / 2
    answers = [{str(i) for i in answer} for answer in work.answers]
    for _ in range(120):
        assert table.match_many(work.events) == answers
    assert verified(table, work.events) <= 2 * work.better + 6 * EVENTS
    table._check()


def test_a_match_moves_a_few_filters_at_most(
    ill_posted: tuple[ForwardingTable, Workload], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, work = ill_posted
    moves = count_moves(table, monkeypatch)
    wasted = verified(table, work.events)
    assert 0 < max(moves) <= AT_ONCE
    assert sum(moves) <= wasted // 64, "moves are paid for by what was looked at in vain"


def count_moves(table: ForwardingTable, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many filters each reconsideration from now on moves, as it happens."""
    moves: list[int] = []
    reconsider = table._changer.reconsider

    def counted(*arguments: Any) -> tuple[int, int]:
        outcome = reconsider(*arguments)
        moves.append(outcome[0])
        return outcome

    monkeypatch.setattr(table._changer, "reconsider", counted)
    return moves


def test_waste_that_no_access_spares_is_looked_into_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Workload(300, 2)
    table = ForwardingTable()
    table.add_many(work.filters)
    moves = count_moves(table, monkeypatch)
    looked_at = sum(verified(table, work.events) for _ in range(3))
    assert sum(moves) <= 8
    assert len(moves) <= 12 + looked_at / 20_000


def test_keywords_that_every_text_has_lose_to_a_kind() -> None:
    table = ForwardingTable()
    text = attr("text")
    table.add_many((i, text.matches([f"word{i}", "the"]) & (attr("kind") == i % 20)) for i in range(COUNT))
    events = [{"text": GeoText([f"word{i}" for i in range(COUNT)] + ["the"], at=(0, 0)), "kind": 7}] * 40
    assert verified(table, events[:1]) == COUNT
    for _ in range(50):
        answers = table.match_many(events)
    assert answers[0] == {i for i in range(COUNT) if i % 20 == 7}
    assert verified(table, events[:1]) <= 2 * COUNT // 20
    table._check()


def test_a_sample_is_one_in_so_many_and_in_step_with_nothing() -> None:
    sampler = Sampler(32)
    places = [place for _ in range(1000) for place in sampler.chosen(64)]
    assert 1_500 < len(places) < 2_500
    assert len({*places}) == 64


def test_readers_are_not_waited_for() -> None:
    table = ForwardingTable()
    table._lock.enter()
    assert not table._lock.try_write()
    table._lock.leave()
    assert table._lock.try_write()
    assert not table._lock.try_write()
    table._lock.written()
    with table._lock.writing():
        assert not table._lock.try_write()


def test_an_estimate_is_kept_beside_the_operand() -> None:
    table = ForwardingTable()
    table.add("I", in_box(0, 0, 10, 1))
    table.add("J", in_box(0, 0, 1, 1))
    with table._lock.writing():
        table._changer.reconsider(np.arange(1, table._memory.state[layout.S_FILTERS]))  # as when more have come
    operands = table._memory.index.operands[: table._memory.state[layout.S_OPERANDS]]
    shares = operands[operands[:, layout.O_TAG] & 255 == layout.REGION][:, layout.O_LEN] / layout.SHARES
    small, large = sorted(shares.tolist())
    assert 0.01 <= small <= 0.1, "a hundredth of the universe, and more as values are thought to have a size"
    assert round(large, 4) == 1


def test_what_a_search_finds_is_refused_by_its_kind_unseen() -> None:
    """All are found by their region; few but those of the kind are looked at, and the others count as found in vain."""
    near = [(i, in_box(i / COUNT, 0, 10, i % 50)) for i in range(COUNT)]
    table = ForwardingTable.packed([*near, *((f"far {i}", in_box(500 + i, 500 + i, 10, i % 50)) for i in range(100))])
    assert table.match({"area": Point(5, 5), "kind": 7}) == {i for i in range(COUNT) if i % 50 == 7}
    counted = table._memory.counted
    assert COUNT // 50 <= counted[C_VERIFIED] <= COUNT // 4
    assert counted[C_VERIFIED] + counted[C_REFUSED] == COUNT


def test_filters_are_posted_under_the_rarer_relation() -> None:
    """Of two large regions each: hardly a value equals one, lies in it or has it inside, and most overlap it."""
    rng = np.random.default_rng(3)

    def large() -> Box:
        x, y = (rng.random(2) * 400).tolist()
        width, height = (400 + rng.random(2) * 200).tolist()
        return Box(x, y, x + width, y + height)

    table = ForwardingTable[int](matching="selective")
    rare = ("equals", "inside", "contains")
    table.add_many(
        (i, Filter([Constraint("area", "overlaps", large()), Constraint("area", rare[i % 3], large())]))
        for i in range(300)
    )
    index = table._memory.index
    words = [int(index.words[index.filters[row, layout.F_CODE]]) >> 4 for row in range(1, 301)]
    handles = index.operands[words, layout.O_KEY]
    operators = [table._types[layout.REGION].constraint(handle, "area").op for handle in handles.tolist()]
    assert operators.count(Operator.OVERLAPS) < 30
    query = {"area": large()}
    assert table.match(query) == {i for i in range(300) if table.filter(i + 1).matches(query)}
