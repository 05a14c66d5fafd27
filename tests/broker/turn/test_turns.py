"""The loop's stopwatch: how long a turn took, and which of its steps is to blame."""

from __future__ import annotations

from contrada.broker.protocol.messages import Publish, Reply, Status, Subscribe
from contrada.broker.protocol.wire import Policy
from contrada.broker.turn.turns import Turns
from tests.broker.table_top import TableTop, body, equals


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_step_is_charged_its_own_time_without_those_within_it():
    clock = Clock()
    turns = Turns(clock)
    seen = []
    turns.observe = seen.append
    turns.begin()
    turns.enter()
    clock.now += 1
    turns.enter()
    clock.now += 3
    turns.leave("matching", 7)
    clock.now += 1
    turns.leave("SUBSCRIBE", 9)
    turns.end(clock.now)
    assert seen == [5.0]
    assert turns.worst.seconds == 5.0
    assert turns.worst.step == (3.0, "matching", 7)
    turns.begin()
    turns.enter()
    clock.now += 4
    turns.leave("PUBLISH", 1)
    turns.end(clock.now)
    assert turns.worst.step.what == "matching"
    assert turns.document(10.0)["worst_ago"] == 5.0


def test_a_turn_that_was_cut_short_leaves_nothing_behind():
    clock = Clock()
    turns = Turns(clock)
    turns.begin()
    turns.enter()
    turns.begin()
    clock.now += 1
    turns.end(clock.now)
    assert turns.worst == (1.0, 1.0, (0.0, "nothing", 0))


def test_matching_is_blamed_on_the_heaviest_publisher_not_on_who_comes_next():
    top = TableTop()
    top.connect(b"light", b"heavy", b"sub")
    clock = Clock()
    turns = top.core.turns = top.core.matching.turns = Turns(clock)
    match = top.core.table.match_bodies

    def slow(bodies):
        clock.now += sum(map(len, bodies))
        return match(bodies)

    top.core.table.match_bodies = slow
    turns.begin()
    top.say(b"light", Publish(1, (body(a="x"),)))
    top.say(b"heavy", Publish(1, (body(a="x", long="y" * 1000),)))
    top.say(b"sub", Subscribe(1, 1, equals("a", "x"), Policy.BLOCK, 10))
    top.turn()
    turns.end(clock.now)
    assert turns.worst.step.what == "matching"
    heavy = next(s.number for s in top.core.sessions.by_number.values() if s.name == "heavy")
    assert turns.worst.step.session == heavy
    top.say(b"sub", Status(2))
    (reply,) = (m for m in top.heard(b"sub") if isinstance(m, Reply))
    assert reply.document["turns"]["worst_step"] == "matching"
    assert reply.document["turns"]["worst_session"] == heavy
