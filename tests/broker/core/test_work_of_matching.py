"""What a notification costs, not how long it is, decides whether the loop matches it, and nobody else waits for it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.broker.core.matching import BESIDE_WORK, SLICE_WORK
from contrada.broker.core.publication import Publication
from contrada.spatial import allowance
from tests.broker.core.parts import Bench, FakeSource
from tests.broker.core.test_delivery import Beside, receiver, submit
from tests.broker.table_top import body, delivered

DEAR = b"dear"
TOO_DEAR = b"too dear"


class Dear(Beside):
    """A bench on which some notifications take more work than the loop may do, and some more than anybody may."""

    def __init__(self) -> None:
        super().__init__()
        self.tries: Counter[int] = Counter()  # on the loop, by the number of notifications
        find, self.beside = self.table._table.match_bodies, False

        def match_bodies(bodies):
            if not self.beside:
                self.tries[len(bodies)] += 1
            for each in bodies:
                cost = 2 * BESIDE_WORK if TOO_DEAR in each else 2 * SLICE_WORK if DEAR in each else SLICE_WORK // 64
                allowance.spend(cost)
            return find(bodies)

        self.table._table.match_bodies = match_bodies

    def answer(self):
        self.beside = True
        try:
            super().answer()
        finally:
            self.beside = False

    def work(self):
        while self.matching.ready:
            self.matching.match_some()
            self.matching._check()


def test_a_dear_notification_is_tried_once_and_then_matched_beside():
    bench = Dear()
    session, publisher, other = bench.open(b"sub"), bench.open(b"pub"), bench.open(b"other")
    receiver(bench, session, 1, "x", credit=1000)
    mine, others = FakeSource(publisher), FakeSource(other)
    bench.matching.submit(Publication(mine, 1, (body(a="x", b="dear"),), 10))
    submit(bench, mine, 2, "x")
    bench.matching.match_some()
    submit(bench, others, 100, "x")
    bench.work()
    assert (mine.acknowledged, others.acknowledged) == ([], [100])
    assert bench.table.lent
    assert not bench.matching.match_before(publisher)
    bench.answer()
    bench.work()
    assert mine.acknowledged == [1, 2]
    assert [number for number, _ in delivered(bench.flush()[b"sub"])] == [100, 1, 2]


def test_what_is_dear_together_is_matched_in_fewer_at_once():
    bench = Dear()
    receiver(bench, bench.open(b"sub"), 1, "x", credit=1000)
    source = FakeSource(bench.open(b"pub"))
    for request in range(200):
        submit(bench, source, request + 1, "x")
    bench.work()
    assert source.acknowledged == [*range(1, 201)]
    assert bench.tries[200] == 1
    assert not bench.asked
    assert sum(count for each, count in bench.tries.items() if each > 64) == 1, "tried in vain"


def test_what_is_too_dear_for_anybody_is_refused_with_the_reason():
    bench = Dear()
    source = FakeSource(bench.open(b"pub"))
    bench.matching.submit(Publication(source, 1, (body(a="x", b="too dear"),), 10))
    submit(bench, source, 2, "x")
    bench.work()
    bench.answer()
    bench.work()
    assert (source.refused, source.acknowledged) == ([1], [2])
    assert bench.counters["internal_errors"] == 0


def test_without_another_thread_everything_is_matched_at_once():
    bench = Bench()
    receiver(bench, bench.open(b"sub"), 1, "x")
    find = bench.table._table.match_bodies

    def match_bodies(bodies):
        allowance.spend(2 * BESIDE_WORK)
        return find(bodies)

    bench.table._table.match_bodies = match_bodies
    source = FakeSource(bench.open(b"pub"))
    submit(bench, source, 1, "x")
    bench.matching.match_some()
    assert source.acknowledged == [1]


@pytest.mark.parametrize("together", [True, False])
def test_heavy_notifications_of_several_sources_are_matched_in_turn(together):
    bench = Dear()
    receiver(bench, bench.open(b"sub"), 1, "x", credit=1000)
    flood, other = FakeSource(bench.open(b"flood")), FakeSource(bench.open(b"other"))
    dear = body(a="x", b="dear")
    for request in range(1, 6):
        bench.matching.submit(Publication(flood, request, (dear,), len(dear)))
        if not together:
            bench.work()
    bench.matching.submit(Publication(other, 100, (dear,), len(dear)))
    bench.work()
    answers = 0
    while not other.acknowledged:
        bench.answer()
        bench.work()
        answers += 1
    assert answers <= 2


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.sampled_from(["x", "y", "dear", "too dear"]), min_size=1, max_size=20))
    ),
    st.randoms(use_true_random=False),
)
def test_whatever_is_dear_all_are_answered_and_each_source_in_order(publications, rng):
    bench = Dear()
    receiver(bench, bench.open(b"sub"), 1, "x", credit=10_000, limit=10_000)
    sources = [FakeSource(bench.open(name)) for name in (b"p", b"q", b"r")]
    for source in sources:
        source.joins = False  # it numbers by requests
    asked, refused, wanted = ({source: [] for source in sources} for _ in range(3))
    for request, (number, values) in enumerate(publications, 1):
        source = sources[number]
        bodies = tuple(body(a="y" if value == "y" else "x", b=value) for value in values)
        bench.matching.submit(Publication(source, 100 * request, bodies, sum(map(len, bodies))))
        if "too dear" in values:
            refused[source].append(100 * request)
        else:
            asked[source].append(100 * request)
            wanted[source] += [100 * request + place for place, value in enumerate(values) if value != "y"]
        if rng.random() < 0.5:
            bench.matching.match_some()
        if bench.asked and rng.random() < 0.3:
            bench.answer()
    while bench.matching.pending:
        bench.work()
        if bench.asked:
            bench.answer()
    for source in sources:
        assert source.acknowledged == asked[source]
        assert source.refused == refused[source]
    found = [number for number, _ in delivered(bench.flush().get(b"sub", []))]
    assert sorted(found) == sorted(number for numbers in wanted.values() for number in numbers)
    for source in sources:
        mine = {*wanted[source]}
        assert [number for number in found if number in mine] == wanted[source]
