"""Delivery with a fake source and plain receivers: no subscriptions, no links."""

from __future__ import annotations

from unittest.mock import Mock

from contrada.broker.core.matching import BESIDE_BYTES
from contrada.broker.core.publication import Publication
from contrada.broker.core.receiver import Receiver
from contrada.broker.protocol.messages import Credit, Grant
from contrada.broker.protocol.wire import Policy
from tests.broker.core.parts import Bench, FakeSource
from tests.broker.table_top import body, delivered


def receiver(bench, session, id, value, *, credit=10, limit=10, policy=Policy.BLOCK):
    interface = bench.delivery.new_interface()
    made = Receiver(session, id, interface, policy, credit=credit, limit=limit, limit_bytes=10**6, since=1)
    session.receivers[id] = bench.delivery.receivers[interface] = made
    bench.table.add(interface, ("a", value))
    return made


def submit(bench, source, request, *values):
    bodies = tuple(body(a=value) for value in values)
    bench.matching.submit(Publication(source, request, bodies, sum(map(len, bodies))))


def test_notifications_go_to_the_receivers_that_they_match_and_are_acknowledged():
    bench = Bench()
    session, publisher = bench.open(b"sub"), bench.open(b"pub")
    receiver(bench, session, 1, "x")
    receiver(bench, session, 2, "y")
    source = FakeSource(publisher)
    submit(bench, source, 10, "x", "y", "z")
    bench.matching.match_some()
    assert delivered(bench.flush()[b"sub"]) == [(10, (1,)), (11, (2,))]
    assert source.acknowledged == [10]


def test_nothing_goes_back_to_the_interface_that_it_came_from():
    bench = Bench()
    session = bench.open(b"sub")
    mine = receiver(bench, session, 1, "x")
    receiver(bench, session, 2, "x")
    source = FakeSource(bench.open(b"pub"))
    source.interface = mine.interface
    submit(bench, source, 1, "x")
    bench.matching.match_some()
    assert delivered(bench.flush()[b"sub"]) == [(1, (2,))]


def test_a_full_blocking_queue_withholds_the_acknowledgement_until_there_is_credit():
    bench = Bench()
    session, publisher = bench.open(b"sub"), bench.open(b"pub")
    receiver(bench, session, 1, "x", credit=0, limit=1)
    source = FakeSource(publisher)
    submit(bench, source, 1, "x", "x")
    bench.matching.match_some()
    assert source.acknowledged == []
    bench.delivery.grant(session, Credit((Grant(1, 5),)))
    bench.delivery.drain()
    assert source.acknowledged == [1]
    assert delivered(bench.flush()[b"sub"]) == [(1, (1,)), (2, (1,))]


def test_what_cannot_be_read_is_refused_by_its_source_and_the_rest_goes_on():
    bench = Bench()
    session, publisher = bench.open(b"sub"), bench.open(b"pub")
    receiver(bench, session, 1, "x")
    source = FakeSource(publisher)
    bench.matching.submit(Publication(source, 1, (b"\xc1",), 1))
    submit(bench, source, 2, "x")
    bench.matching.match_some()
    assert (source.refused, source.acknowledged) == ([1], [2])


def test_matchers_add_to_what_the_table_found_in_order():
    bench = Bench()
    session, publisher = bench.open(b"sub"), bench.open(b"pub")
    one = receiver(bench, session, 1, "nothing")
    seen = []

    class Everything:
        def find(self, bodies):
            return len(bodies)

        def merge(self, found, more):
            seen.append((more, [set(each) for each in found]))
            return [{*each, one.interface} for each in found]

    bench.matching.matchers += [Everything(), Everything()]
    submit(bench, FakeSource(publisher), 1, "x")
    bench.matching.match_some()
    assert seen == [(1, [set()]), (1, [{one.interface}])]
    assert delivered(bench.flush()[b"sub"]) == [(1, (1,))]


def test_an_interface_that_is_leaving_matches_nothing():
    bench = Bench()
    session, publisher = bench.open(b"sub"), bench.open(b"pub")
    one = receiver(bench, session, 1, "x")
    bench.matching.muted.add(one.interface)
    submit(bench, FakeSource(publisher), 1, "x")
    bench.matching.match_some()
    assert bench.flush() == {}


class Slow(Bench):
    """A bench on which matching a byte takes a millisecond, and a turn should last ten."""

    def __init__(self):
        super().__init__()
        self.time = 0.0
        self.matched = []
        self.matching._now = lambda: self.time
        self.matching.seconds = 0.01
        self.matching.slice_bytes = 64
        find = self.table.match_bodies

        def slow(bodies):
            self.time += sum(map(len, bodies)) / 1000
            self.matched.append(len(bodies))
            return find(bodies)

        self.table.match_bodies = slow


def test_what_takes_longer_than_a_turn_is_matched_in_slices_of_each_source_in_turn():
    bench = Slow()
    session = bench.open(b"sub")
    receiver(bench, session, 1, "x", credit=1000)
    much, little = FakeSource(bench.open(b"much")), FakeSource(bench.open(b"little"))
    for request in range(1, 51):
        submit(bench, much, request, "x", "y", "x")
    submit(bench, little, 900, "x")
    turns = 0
    while not little.acknowledged:
        bench.matching.match_some()
        bench.matching._check()
        turns += 1
    assert turns <= 3
    assert len(much.acknowledged) < 40
    assert not bench.matching.match_before(much.session)
    assert bench.matching.match_before(little.session)
    while bench.matching.pending:
        bench.matching.match_some()
        bench.matching._check()
    assert much.acknowledged == [*range(1, 51)]
    assert sum(bench.matched) == 151
    assert max(bench.matched[2:]) <= 4, "it has learnt how long it takes"


def test_a_publication_is_matched_by_parts_and_handed_out_whole():
    bench = Slow()
    session = bench.open(b"sub")
    receiver(bench, session, 1, "x", credit=1000)
    source = FakeSource(bench.open(b"pub"))
    submit(bench, source, 1, *["x", "y"] * 20)
    turns = 0
    while bench.matching.pending:
        assert bench.flush() == {}
        bench.matching.match_some()
        bench.matching._check()
        turns += 1
    assert turns > 5
    assert [number for number, _ in delivered(bench.flush()[b"sub"])] == [*range(1, 41, 2)]
    assert source.acknowledged == [1]


def test_a_part_that_cannot_be_read_refuses_the_whole():
    bench = Slow()
    source = FakeSource(bench.open(b"pub"))
    bodies = (*(body(a="x") for _ in range(40)), b"\xc1")
    bench.matching.submit(Publication(source, 1, bodies, sum(map(len, bodies))))
    while bench.matching.pending:
        bench.matching.match_some()
        bench.matching._check()
    assert (source.refused, source.acknowledged) == ([1], [])


def test_what_very_many_receive_is_handed_out_over_turns_and_in_order(monkeypatch):
    monkeypatch.setattr("contrada.broker.core.matching.MANY", 1000)
    bench = Bench()
    session, publisher = bench.open(b"sub"), bench.open(b"pub")
    bench.matching.seconds = 0.5
    ticks = iter(range(10**9))
    bench.matching._now = lambda: next(ticks) / 10
    for id in range(300):
        receiver(bench, session, id, "x", credit=1000)
    source, other = FakeSource(publisher), FakeSource(bench.open(b"other"))
    submit(bench, source, 1, *["x"] * 10)
    submit(bench, source, 11, "x")
    submit(bench, other, 1000, "y")
    turns = 0
    while bench.matching.pending:
        bench.matching.match_some()
        bench.matching._check()
        bench.delivery._check()
        turns += 1
        if not source.acknowledged:
            assert not bench.matching.match_before(publisher)
    assert turns > 3
    assert source.acknowledged == [1, 11]
    assert other.acknowledged == [1000]
    got = delivered(bench.flush()[b"sub"])
    assert sorted(got, key=lambda entry: entry[0]) == got
    assert sum(len(ids) for _, ids in got) == 300 * 11


def test_what_is_handed_out_over_turns_is_numbered_and_recorded_when_it_is_matched(monkeypatch):
    monkeypatch.setattr("contrada.broker.core.matching.MANY", 100)
    bench = Bench()
    session, publisher = bench.open(b"sub"), bench.open(b"pub")
    bench.matching.seconds = 0.2
    ticks = iter(range(10**9))
    bench.matching._now = lambda: next(ticks) / 10
    mine = [receiver(bench, session, id, "x", credit=1000) for id in range(300)]
    bench.delivery.recording = recording = Mock()
    source = FakeSource(publisher)
    submit(bench, source, 1, "x", "x")
    submit(bench, source, 3, "x")
    bench.matching.match_some()
    interfaces = {each.interface for each in mine}
    assert [call.args[1] for call in recording.accepted.call_args_list] == [1, 3]
    assert [set(found) for call in recording.accepted.call_args_list for found in call.args[4]] == [interfaces] * 3
    assert source.acknowledged == []
    last = max(mine, key=lambda each: [*interfaces].index(each.interface))
    del session.receivers[last.id], bench.delivery.receivers[last.interface]
    bench.delivery.end(last)
    while bench.matching.pending:
        bench.matching.match_some()
        bench.matching._check()
    assert source.acknowledged == [1, 3]
    lost = [call.args for call in recording.dropped.call_args_list]
    assert [(interface, number) for interface, _, ids in lost for _, number in ids] == [
        (last.interface, number) for number in (1, 2, 3)
    ]
    assert sum(len(ids) for _, ids in delivered(bench.flush()[b"sub"])) == 299 * 3


class Beside(Bench):
    """A bench on which another thread matches what is heavy, when it is told to."""

    def __init__(self):
        super().__init__()
        self.asked = []
        self.matching.beside = lambda job, done: self.asked.append((job, done))

    def answer(self):
        job, done = self.asked.pop(0)
        job()
        done()
        self.matching._check()


def large(value):
    return body(a=value, padding="x" * BESIDE_BYTES)


def test_a_heavy_notification_is_matched_beside_and_only_its_own_source_waits():
    bench = Beside()
    session, publisher, other = bench.open(b"sub"), bench.open(b"pub"), bench.open(b"other")
    receiver(bench, session, 1, "x", credit=1000)
    mine, others = FakeSource(publisher), FakeSource(other)
    bodies = (body(a="x"), large("x"), large("y"), body(a="x"))
    bench.matching.submit(Publication(mine, 1, bodies, sum(map(len, bodies))))
    submit(bench, mine, 5, "x")
    submit(bench, others, 100, "x")
    while bench.matching.ready:
        bench.matching.match_some()
        bench.matching._check()
    assert (mine.acknowledged, others.acknowledged) == ([], [100])
    assert bench.table.lent
    assert not bench.matching.match_before(publisher)
    assert bench.matching.match_before(other)
    answers = 0
    while bench.asked:
        bench.answer()
        answers += 1
        while bench.matching.ready:
            bench.matching.match_some()
            bench.matching._check()
    assert answers == 2
    assert mine.acknowledged == [1, 5]
    assert not bench.table.lent
    assert bench.matching.pending == 0
    assert [number for number, _ in delivered(bench.flush()[b"sub"])] == [100, 1, 2, 4, 5]


def test_what_fails_beside_is_refused_and_the_rest_goes_on():
    bench = Beside()
    source = FakeSource(bench.open(b"pub"))
    bench.matching.submit(Publication(source, 1, (large("x"),), BESIDE_BYTES + 20))
    submit(bench, source, 2, "x")
    bench.matching.match_some()
    find = bench.table.match_lent
    bench.table.match_lent = Mock(side_effect=RuntimeError)
    bench.answer()
    bench.table.match_lent = find
    while bench.matching.pending:
        bench.matching.match_some()
    assert (source.refused, source.acknowledged) == ([1], [2])
    assert bench.counters["internal_errors"] == 1


def test_an_interface_that_leaves_meanwhile_gets_nothing():
    bench = Beside()
    session = bench.open(b"sub")
    one = receiver(bench, session, 1, "x")
    source = FakeSource(bench.open(b"pub"))
    bench.matching.submit(Publication(source, 1, (large("x"),), BESIDE_BYTES + 20))
    bench.matching.match_some()
    bench.matching.muted.add(one.interface)
    bench.answer()
    while bench.matching.pending:
        bench.matching.match_some()
    assert source.acknowledged == [1]
    assert bench.flush() == {}
