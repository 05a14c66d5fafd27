"""Sessions without anything that is subscribed or delivered."""

from __future__ import annotations

from contrada.broker.protocol.messages import Bye, Error, Hello, Ping, Welcome
from contrada.broker.protocol.wire import Code
from tests.broker.core.parts import CLIENT, Bench


def test_everybody_is_told_that_a_session_ended_once_and_however_it_does():
    bench = Bench()
    ended = []
    bench.sessions.ended.append(ended.append)
    one, two, three = (bench.open(name) for name in (b"one", b"two", b"three"))
    bench.sessions.close(one, Bye())
    bench.sessions.end(two, Code.FLOW, "too much")
    bench.sessions.attempt("something", three, lambda: 1 // 0)
    assert ended == [one, two, three]
    assert not bench.sessions.by_connection
    sent = bench.flush()
    assert [type(m) for m in sent[b"one"]] == [Bye]
    assert [m.code for m in sent[b"two"] + sent[b"three"]] == [Code.FLOW, Code.INTERNAL]


def test_a_listener_that_fails_does_not_keep_the_others_from_hearing():
    bench = Bench()
    ended = []
    bench.sessions.ended += [lambda _session: 1 // 0, ended.append]
    session = bench.open(b"one")
    bench.sessions.remove(session)
    assert ended == [session]
    assert bench.counters["internal_errors"] == 1


def test_a_greeting_begins_a_session_unless_the_broker_shuts_down():
    bench = Bench()
    assert bench.sessions.greet(b"one", None, Hello(1, 1, "alice"), CLIENT).publisher == "alice"
    bench.sessions.accepting = False
    assert bench.sessions.greet(b"two", None, Hello(1, 1, "bob"), CLIENT) is None
    sent = bench.flush()
    assert [type(m) for m in sent[b"one"]] == [Welcome]
    assert [m.code for m in sent[b"two"]] == [Code.SHUTTING_DOWN]


def test_silence_is_asked_about_and_then_ends_a_session():
    bench = Bench(heartbeat=2.0, timeout=10.0)
    session = bench.open(b"one")
    bench.clock.now = 2.0
    bench.sessions.keep_alive(session)
    assert [type(m) for m in bench.flush()[b"one"]] == [Ping]
    bench.clock.now = 10.0
    bench.sessions.keep_alive(session)
    assert [m.code for m in bench.flush()[b"one"] if isinstance(m, Error)] == [Code.SILENT]


def test_of_many_bad_frames_some_are_logged_and_all_are_counted(caplog):
    bench = Bench()
    for number in range(1000):
        bench.sessions.bad_frame(b"%d" % number, None, "no frame", 0)
    assert bench.counters["bad_frames"] == 1000
    assert 10 < len(caplog.records) < 100
    caplog.clear()
    bench.sessions.tick(1.0)
    bench.sessions.bad_frame(b"another", None, "no frame", 0)
    assert [record.getMessage() for record in caplog.records] == ["bad frame"]


def test_a_full_connection_is_tried_again_and_is_not_in_the_backlog_meanwhile():
    bench = Bench()
    session = bench.open(b"one")
    bench.full.add(b"one")
    bench.sessions.backlog[session] = None
    bench.sessions.answer(session, Ping(1))
    assert bench.flush() == {}
    assert bench.sessions.congested
    assert not bench.sessions.backlog
    bench.full.clear()
    bench.clock.now = bench.sessions.retry_at
    assert bench.flush() == {b"one": [Ping(1)]}
    assert not bench.sessions.congested
