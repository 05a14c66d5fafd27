"""Work left over for later turns, alone and as a broker uses it."""

from __future__ import annotations

from contrada.broker.protocol.messages import Bye, Hello, NotificationId, Publish, Welcome
from contrada.broker.turn.leftovers import Leftovers
from tests.broker.table_top import TableTop, acked, body, delivered


def leftovers(**options):
    errors = []
    return Leftovers(errors.append, **options), errors


def test_items_are_done_in_order_a_few_at_a_time_and_the_end_is_told():
    queue, errors = leftovers(most=3)
    done = []
    queue.put(done.append, range(4), lambda: done.append("end"))
    queue.put(done.append, "ab")
    pieces = []
    while queue:
        before = len(done)
        queue.work()
        pieces.append(done[before:])
    assert pieces == [[0, 1, 2], [3, "end", "a", "b"], []]
    assert not errors


def test_an_item_that_raises_is_reported_and_passed_over():
    queue, errors = leftovers()
    done = []

    def work(item):
        done.append(item)
        if item == 1:
            raise KeyError(item)

    queue.put(work, range(3), lambda: done.append("end"))
    queue.work()
    assert done == [0, 1, 2, "end"]
    assert [type(error) for error in errors] == [KeyError]
    assert not queue


def test_no_item_begins_after_its_time_but_one_always_does():
    now = [0.0]
    queue, _ = leftovers(most=100, seconds=1.0, clock=lambda: now[0])
    done = []

    def slow(item):
        now[0] += 0.4
        done.append(item)

    queue.put(slow, range(10))
    queue.work()
    assert done == [0, 1, 2]
    queue.seconds = 0.0
    queue.work()
    assert done == [0, 1, 2, 3]


def test_a_client_that_leaves_is_gone_at_once_and_its_filters_go_by_and_by():
    top = TableTop()
    top.connect(b"many", b"pub", b"other")
    top.subscribe(b"other", 1, "x")
    for id in range(20):
        top.subscribe(b"many", id, "x")
    top.core.leftovers.most = 4
    top.say(b"many", Bye())
    top.publish(b"pub", 1, "x")
    assert delivered(top.heard(b"many")) == []
    assert len(top.table.interfaces) == 21
    assert top.core.busy
    assert len(top.core.subscriptions.by_interface) == 1
    found = top.core.delivery.recent.find(_last(top))
    assert len(found.matched) == 1  # who is leaving does not count as matched
    top.say(b"many", Hello(1, 1, "again"))
    assert isinstance(top.heard(b"many")[0], Welcome)
    top.subscribe(b"many", 7, "x")
    top.publish(b"pub", 2, "x")
    assert [subscriptions for _, subscriptions in delivered(top.heard(b"many"))] == [(7,)]
    turns = 0
    while top.core.leftovers:
        top.turn()
        turns += 1
    assert 5 <= turns <= 15
    assert len(top.table.interfaces) == 2
    assert not top.core.matching.muted


def _last(top):
    broker, sequences, *_ = top.core.delivery.recent._batches[-1]
    return NotificationId(broker, sequences[-1])


def test_those_who_waited_for_a_client_that_leaves_are_let_go_at_once():
    top = TableTop()
    top.connect(b"slow", b"pub")
    top.subscribe(b"slow", 1, "x", credit=0, queue=1)
    top.publish(b"pub", 1, "x", "x")
    assert acked(top.heard(b"pub")) == []
    top.core.leftovers.most = 0
    top.say(b"slow", Bye())
    assert acked(top.heard(b"pub")) == [1]
    top.say(b"pub", Publish(2, (body(a="x"),)))
    assert acked(top.heard(b"pub")) == [2]


def test_steps_are_taken_a_few_at_a_time_and_those_that_raise_are_over():
    queue, errors = leftovers(most=2)
    done = []

    def steps(name, broken=False):
        for number in range(3):
            if broken and number:
                raise KeyError(name)
            done.append((name, number))
            yield

    queue.go_through(steps("a", broken=True), lambda: done.append("end of a"))
    queue.go_through(steps("b"), lambda: done.append("end of b"))
    most = 0
    while queue:
        before = len(done)
        queue.work()
        most = max(most, len(done) - before)
    assert done == [("a", 0), "end of a", ("b", 0), ("b", 1), ("b", 2), "end of b"]
    assert most <= 4
    assert [type(error) for error in errors] == [KeyError]
