"""Work over several turns: steps, what waits behind them, other threads, and everybody's turn."""

from __future__ import annotations

import msgpack

from contrada.broker.core.ports import Codec
from contrada.broker.protocol.messages import Ping, Pong, Publish, Subscribe
from contrada.broker.protocol.wire import Policy
from contrada.broker.turn.work import LATER, Work
from tests.broker.table_top import TableTop, acked, body, delivered, equals
from tests.naive.delivery import read_filter, read_notification


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def made(**options):
    done, failed, jobs = [], [], []

    def hear(key, message):
        if isinstance(message, str):
            done.append((key, message))
            return None
        return message

    work = Work(hear, lambda key, _message, error: failed.append((key, str(error))), **options)
    return work, done, failed, jobs


def steps(done, name, count, what=None):
    for number in range(count):
        done.append((name, number))
        yield what


def test_clients_take_turns_and_postponed_messages_follow_in_order():
    work, done, failed, _ = made(seconds=2.0, clock=Clock())
    work.start("a", "m", steps(done, "a", 3))
    work.start("b", "m", steps(done, "b", 2))
    assert work.postpone("a", "later", 5) == 5
    turns = 0
    while work:
        work.work()
        work._check()
        turns += 1
    assert done == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("a", "later")]
    assert turns > 2
    assert not failed
    assert not work.tasks


def test_what_waits_for_another_turn_is_not_asked_again_in_this_one():
    work, done, _, _ = made()
    work.start("a", "m", steps(done, "a", 3, LATER))
    work.work()
    assert len(done) == 2
    assert work
    work.work()
    assert len(done) == 3


def test_what_another_thread_computes_is_what_the_step_gets_or_raises():
    work, done, failed, jobs = made()
    work.beside = lambda job, finished: jobs.append((job, finished))

    def ask(function):
        done.append((yield function))

    work.start("good", "m", ask(lambda: 7))
    work.start("bad", "m", ask(lambda: 1 // 0))
    assert not work
    work.work()
    assert done == []
    for job, finished in jobs:
        job()
        finished()
    work.work()
    work._check()
    assert done == [7]
    assert failed == [("bad", "integer division or modulo by zero")]
    assert not work.tasks


def test_steps_of_a_client_that_is_gone_are_closed_also_if_they_end_it_themselves():
    work, done, _, jobs = made()
    work.beside = lambda job, finished: jobs.append((job, finished))

    def until_closed(name, *asked):
        try:
            yield from asked
            work.cancel(name)
            yield
            done.append("never")
        finally:
            done.append(name)

    work.start("waits", "m", until_closed("waits", None))
    work.start("computes", "m", until_closed("computes", lambda: 1))
    work.start("itself", "m", until_closed("itself"))
    assert done == ["itself"]
    work.cancel("waits")
    work.cancel("computes")
    for job, finished in jobs:
        job()
        finished()
    work.work()
    work._check()
    assert done == ["itself", "waits", "computes"]
    assert not work


class Costly(TableTop):
    """A core for which every filter longer than some bytes is read beside the loop, when `read` says so."""

    def __init__(self):
        super().__init__()
        codec = Codec(read_notification, read_filter, lambda filters: sum(map(len, filters)) > 50)
        self.core.subscriptions.codec = codec
        self.jobs = []
        self.core.work.beside = lambda job, done: self.jobs.append((job, done))
        self.connect(b"big", b"other")

    def read(self):
        for job, done in self.jobs:
            job()
            done()
        self.jobs.clear()


def big(request, value="x"):
    return Subscribe(request, request, equals("a", value) + equals("pad", "y" * 100), Policy.BLOCK, 10)


def test_who_waits_for_a_large_filter_is_its_client_alone_and_in_order():
    top = Costly()
    top.say(b"big", big(1), Publish(2, (body(a="x"),)), Ping(3))
    top.say(b"other", Subscribe(1, 1, equals("a", "x"), Policy.BLOCK, 10), Publish(2, (body(a="x"),)))
    assert top.heard(b"big") == [Pong(3)], "heartbeats do not wait"
    heard = top.heard(b"other")
    assert sorted(acked(heard)) == [1, 2]
    assert len(delivered(heard)) == 1
    while top.core.work.tasks:
        top.read()
        top.turn()
    heard = top.heard(b"big")
    assert acked(heard) == [1, 2]
    assert [subscriptions for _, subscriptions in delivered(heard)] == [(1,)], "its own, which came after"
    assert len(delivered(top.heard(b"other"))) == 1


def test_a_client_that_leaves_while_its_filter_is_read_leaves_nothing():
    top = Costly()
    top.say(b"big", big(1))
    top.gone.add(b"big")
    session = next(s for s in top.core.sessions.by_number.values() if s.connection == b"big")
    top.core.sessions.remove(session)
    top.read()
    top.turn()
    assert not top.table.interfaces
    assert not top.core.matching.muted
    assert not top.core.work.tasks


def test_more_than_a_client_may_let_wait_ends_its_session():
    top = Costly()
    top.core._most_postponed = 2000
    top.say(b"big", big(1), *(Publish(n, (msgpack.packb({"a": "z" * 100}),)) for n in range(2, 10)))
    top.turn()
    assert b"big" not in top.core.sessions.by_connection
    assert not top.core.work.tasks
