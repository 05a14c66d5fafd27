"""The broker's behaviour, message by message, without a socket."""

from __future__ import annotations

import msgpack
import pytest

from contrada.broker.core.matching import BESIDE_BYTES
from contrada.broker.core.recent import ENTRY_BYTES, Recent
from contrada.broker.protocol import messages as msg
from contrada.broker.protocol import wire
from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.wire import Code, Policy, Role
from contrada.broker.sessions.session import Sent
from contrada.broker.sessions.sessions import Identity
from tests.broker.table_top import ALL, TableTop, acked, body, delivered, dropped, equals
from tests.naive.delivery import read_filter
from tests.naive.recording import NaiveRecording

A, B, C = b"alice", b"bob", b"carol"


def errors(messages):
    return [(m.request, m.code, m.fatal) for m in messages if isinstance(m, msg.Error)]


def test_hello_is_answered_with_limits_and_a_name():
    top = TableTop()
    top.say(A, msg.Hello(1, 7, "alice"))
    (welcome,) = top.heard(A)
    assert welcome == msg.Welcome(3, "b-1", 1, "alice", ALL, 2.0, 10.0, msg.Limits())
    top.say(B, msg.Hello(1, 1))
    assert top.heard(B)[0].publisher == "client-2"


@pytest.mark.parametrize(("oldest", "newest"), [(4, 9), (65_535, 65_535)])
def test_no_common_version_is_refused_in_words(oldest, newest):
    top = TableTop()
    top.say(A, msg.Hello(oldest, newest))
    (error,) = top.heard(A)
    assert (error.code, error.fatal) == (Code.VERSION, True)
    assert f"the client {oldest} to {newest}" in error.reason


def test_nothing_happens_before_hello():
    top = TableTop()
    for message in (
        msg.Ping(1),
        msg.Publish(1, (body(a=1),)),
        msg.Subscribe(1, 1, equals("a", 1), Policy.BLOCK, 1),
        msg.Bye(),
    ):
        top.say(A, message)
        assert errors(top.heard(A)) == [(0, Code.NO_SESSION, True)]
    assert not top.core.sessions.by_number


def test_a_notification_reaches_those_who_asked_and_no_one_else():
    top = TableTop()
    top.connect(A, B, C)
    top.subscribe(B, 1, "x")
    top.subscribe(C, 1, "y")
    top.publish(A, 1, "x", "z", "y", "x")
    assert delivered(top.heard(B)) == [(1, (1,)), (4, (1,))]
    assert delivered(top.heard(C)) == [(3, (1,))]
    assert top.heard(A) == [msg.Ack((msg.Acked(1, 1),))]


def test_one_entry_names_all_subscriptions_of_a_client():
    top = TableTop()
    top.connect(A, B)
    for id in (3, 1, 2):
        top.subscribe(B, id, "x")
    top.publish(A, 1, "x")
    (deliver,) = top.heard(B)
    assert isinstance(deliver, msg.Deliver)
    (entry,) = deliver.entries
    assert sorted(entry.subscriptions) == [1, 2, 3]
    assert (entry.publisher, entry.body, entry.id) == ("alice", body(a="x", n=0), msg.NotificationId("b-1", 1))


def test_more_subscriptions_than_an_entry_can_name_are_split():
    top = TableTop()
    top.connect(A, B)
    for id in range(wire.LIST_LENGTH + 5):
        top.say(B, msg.Subscribe(id + 1, id, equals("a", "x"), Policy.BLOCK, 5))
    top.heard(B)
    top.publish(A, 1, "x")
    entries = delivered(top.heard(B))
    assert [len(ids) for _, ids in entries] == [wire.LIST_LENGTH, 5]
    assert sorted(id for _, ids in entries for id in ids) == list(range(wire.LIST_LENGTH + 5))


def test_messages_take_effect_in_order_of_arrival_within_one_turn():
    top = TableTop()
    top.connect(A)
    top.say(
        A,
        msg.Publish(1, (body(a="x"),)),
        msg.Subscribe(2, 1, equals("a", "x"), Policy.BLOCK, 10),
        msg.Publish(3, (body(a="x"),)),
        msg.Unsubscribe(4, 1),
        msg.Publish(5, (body(a="x"),)),
    )
    heard = top.heard(A)
    assert delivered(heard) == [(2, (1,))]
    assert sorted(acked(heard)) == [1, 2, 3, 4, 5]
    in_order = [m.entries[0].request if isinstance(m, msg.Ack) else "deliver" for m in heard]
    assert in_order[:3] == [2, "deliver", 4]


def test_requests_are_refused_with_their_number_and_a_reason():
    top = TableTop(limits=msg.Limits(subscriptions=2, queue=10))
    top.connect(A)
    top.subscribe(A, 1, "x")
    wrong = [
        (msg.Subscribe(1, 1, equals("a", 1), Policy.BLOCK, 1), Code.DUPLICATE),
        (msg.Subscribe(2, 2, (b"\xc1",), Policy.BLOCK, 1), Code.BAD_FILTER),
        (msg.Subscribe(3, 2, equals("a", 1) + equals("no", 1), Policy.BLOCK, 1), Code.BAD_FILTER),
        (msg.Subscribe(4, 2, equals("a", 1), Policy.BLOCK, 1, 11), Code.LIMIT),
        (msg.Unsubscribe(5, 7), Code.UNKNOWN),
        (msg.Publish(6, (b"\xc1",)), Code.BAD_NOTIFICATION),
        (msg.Publish(7, (body(a="x"), b"\x01")), Code.BAD_NOTIFICATION),
        (msg.Explain(8, msg.NotificationId("b-1", 1), 0, 1), Code.UNKNOWN),
        (msg.Explain(9, msg.NotificationId("b-1", 1), 44, 1), Code.UNKNOWN),
    ]
    for message, code in wrong:
        top.say(A, message)
        assert errors(top.heard(A)) == [(message.request, code, False)]
    top.subscribe(A, 2, "y")
    top.say(A, msg.Subscribe(10, 3, equals("a", 1), Policy.BLOCK, 1))
    assert errors(top.heard(A)) == [(10, Code.LIMIT, False)]
    assert len(top.table.interfaces) == 2


def test_a_batch_is_accepted_whole_or_not_at_all():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(B, 1, "x")
    top.say(A, msg.Publish(1, (body(a="x"), b"junk", body(a="x"))))
    (error,) = top.heard(A)
    assert "notification 1 of 3" in error.reason
    assert top.heard(B) == []
    top.publish(A, 2, "x")
    assert top.heard(A) == [msg.Ack((msg.Acked(2, 1),))]


def test_what_is_refused_gets_no_number_and_keeps_no_place_in_the_window():
    top = TableTop(limits=msg.Limits(window=3))
    top.connect(A, B)
    top.subscribe(B, 1, "x")
    for request in range(1, 7, 2):
        top.publish(A, request, "x", "y")
        top.say(A, msg.Publish(request + 1, (b"junk",)))
        heard = top.heard(A)
        assert errors(heard) == [(request + 1, Code.BAD_NOTIFICATION, False)]
        assert msg.Ack((msg.Acked(request, request),)) in heard
    assert delivered(top.heard(B)) == [(1, (1,)), (3, (1,)), (5, (1,))]
    assert [top.core.counters[name] for name in ("published", "refused")] == [6, 3]


def test_publications_of_a_turn_are_delivered_as_if_they_came_one_by_one():
    """Several of one client are handed out together, unless a queue may hold one of them back."""
    together, apart = TableTop(), TableTop()
    for top in (together, apart):
        top.connect(A, B, C)
        top.subscribe(B, 1, "x", credit=100)
        top.subscribe(C, 1, "y", credit=2, queue=1)
        for request, values in enumerate(("x", "xyx", "y", "x", "y", "y", "x"), 1):
            top.publish(A, request, *values)
            if top is apart:
                top.turn()
    for client in (B, C):
        assert delivered(together.heard(client)) == delivered(apart.heard(client))
    assert acked(together.heard(A)) == acked(apart.heard(A)) == [1, 2, 3, 4, 5, 7]


def test_many_and_long_notifications_are_cut_into_messages():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(B, 1, "x", credit=10_000)
    top.publish(A, 1, *(1000 * "x"))
    top.publish(A, 2, *(1000 * "x"))
    top.say(A, msg.Publish(3, tuple(body(a="x", n="n" * 5000) for _ in range(50))))
    heard = top.heard(B)
    assert [sequence for sequence, _ in delivered(heard)] == [*range(1, 2051)]
    assert max(len(message.entries) for message in heard) <= wire.LIST_LENGTH
    assert max(sum(map(len, encode(message))) for message in heard) < 200_000


def test_roles_are_held_to():
    top = TableTop()
    top.identities |= {
        "p": Identity("pub", frozenset({Role.PUBLISH})),
        "s": Identity("sub", frozenset({Role.SUBSCRIBE})),
        "n": Identity("nobody", frozenset()),
    }
    top.connect(A, user="p")
    top.connect(B, user="s")
    top.connect(C, user="n")
    subscribe, publish = msg.Subscribe(1, 1, equals("a", 1), Policy.DROP_OLDEST, 9), msg.Publish(2, (body(a=1),))
    allowed = {A: publish, B: subscribe}
    for client, user in ((A, "p"), (B, "s"), (C, "n")):
        ids = (msg.NotificationId("b-1", 1),)
        for message in (subscribe, publish, msg.Status(3), msg.ListSubscriptions(4), msg.ListReceivers(5, ids)):
            top.say(client, message, user=user)
            heard = top.heard(client)
            if allowed.get(client) == message:
                assert acked(heard) == [message.request]
            else:
                assert errors(heard) == [(message.request, Code.UNAUTHORISED, False)]
                assert "needs the role" in heard[0].reason
    top.say(B, msg.Explain(9, msg.NotificationId("b-1", 1), 1, 1), user="s")
    assert errors(top.heard(B)) == [(9, Code.UNAUTHORISED, False)]
    top.say(B, msg.Subscribe(10, 2, equals("a", 1), Policy.BLOCK, 9), user="s")  # it would hold back publishers
    assert errors(top.heard(B)) == [(10, Code.UNAUTHORISED, False)]


def test_an_unknown_key_is_told_so():
    top = TableTop()
    top.say(A, msg.Hello(1, 1, "mallory"), user="unknown-key")
    (error,) = top.heard(A)
    assert (error.code, error.fatal) == (Code.UNAUTHORISED, True)
    assert "unknown-key" in error.reason


def test_the_publisher_is_the_keys_name_and_a_session_belongs_to_its_key():
    top = TableTop()
    top.identities |= {"k": Identity("trusted", ALL), "m": Identity("mallory", frozenset())}
    top.connect(B)
    top.subscribe(B, 1, "x")
    top.connect(A, user="k")
    top.say(A, msg.Publish(1, (body(a="x"),)), user="k")
    (deliver,) = top.heard(B)
    assert deliver.entries[0].publisher == "trusted"
    top.heard(A)
    top.say(A, msg.Publish(2, (body(a="x"),)), user="m")
    assert {e[1] for e in errors(top.heard(A))} == {Code.NO_SESSION}
    assert top.heard(B) == []


def test_a_second_hello_starts_afresh():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(A, 1, "x")
    top.connect(A)
    top.publish(B, 1, "x")
    assert top.heard(A) == []
    assert len(top.core.sessions.by_number) == 2


# -- flow control ------------------------------------------------------------------------------------------


def test_credit_is_spent_and_granted():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(B, 1, "x", credit=2)
    top.publish(A, 1, *"xxxxx")
    assert delivered(top.heard(B)) == [(1, (1,)), (2, (1,))]
    assert acked(top.heard(A)) == [1]
    top.say(B, msg.Credit((msg.Grant(1, 1), msg.Grant(9, 5))))
    assert delivered(top.heard(B)) == [(3, (1,))]
    top.say(B, msg.Credit((msg.Grant(1, wire.MAX_INTEGER),)), msg.Credit((msg.Grant(1, wire.MAX_INTEGER),)))
    assert delivered(top.heard(B)) == [(4, (1,)), (5, (1,))]


def test_drop_oldest_keeps_the_newest_and_reports_every_loss():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(B, 1, "x", Policy.DROP_OLDEST, credit=1, queue=2)
    top.publish(A, 1, *"xxxxxx")
    heard = top.heard(B)
    assert delivered(heard) == [(1, (1,))]
    top.tick()
    assert dropped(top.heard(B)) == [(1, 3, 3)]
    top.publish(A, 2, "x")
    assert acked(top.heard(A)) == [1, 2]
    top.say(B, msg.Credit((msg.Grant(1, 10),)))
    heard = top.heard(B)
    assert dropped(heard) == [(1, 1, 4)]
    assert delivered(heard) == [(6, (1,)), (7, (1,))]
    assert [type(m).__name__ for m in heard] == ["Dropped", "Deliver"]


def test_disconnect_ends_only_the_slow_session():
    top = TableTop()
    top.connect(A, B, C)
    top.subscribe(B, 1, "x", Policy.DISCONNECT, credit=0, queue=2)
    top.subscribe(C, 1, "x", Policy.DISCONNECT, credit=9, queue=2)
    top.publish(A, 1, *"xxx")
    (error,) = top.heard(B)
    assert (error.code, error.fatal) == (Code.SLOW_CONSUMER, True)
    assert "subscription 1" in error.reason
    assert len(delivered(top.heard(C))) == 3
    assert acked(top.heard(A)) == [1]
    assert len(top.core.sessions.by_number) == 2


def test_block_holds_back_exactly_the_publishers_that_fill_the_queue():
    top = TableTop()
    top.connect(A, B, C)
    top.subscribe(C, 1, "x", Policy.BLOCK, credit=0, queue=2)
    top.publish(A, 1, *"xx")
    assert acked(top.heard(A)) == [1]
    top.publish(A, 2, "x")
    top.publish(A, 3, "y")
    top.publish(B, 1, "y")
    assert acked(top.heard(A)) == [3]
    assert acked(top.heard(B)) == [1]
    top.publish(B, 2, "x")
    assert acked(top.heard(B)) == []
    top.say(C, msg.Credit((msg.Grant(1, 1),)))
    assert delivered(top.heard(C)) == [(1, (1,))]
    assert acked(top.heard(A)) == []
    top.say(C, msg.Credit((msg.Grant(1, 1),)))
    top.turn()
    assert acked(top.heard(A)) == [2]
    assert acked(top.heard(B)) == [2]


@pytest.mark.parametrize("end", ["unsubscribe", "bye", "gone", "silent", "stuck"])
def test_held_publishers_are_let_go_when_the_blocking_consumer_leaves(end):
    top = TableTop(block_timeout=5.0)
    top.connect(A, C)
    top.subscribe(C, 1, "x", Policy.BLOCK, credit=0, queue=1)
    top.publish(A, 1, *"xxx")
    assert acked(top.heard(A)) == []
    if end == "unsubscribe":
        top.say(C, msg.Unsubscribe(9, 1))
    elif end == "bye":
        top.say(C, msg.Bye())
    elif end == "gone":
        top.gone.add(C)
        top.say(C, msg.Ping(1))
    else:
        for _ in range(5 if end == "stuck" else 11):
            top.say(A, msg.Ping(1))
            if end == "stuck":
                top.say(C, msg.Ping(1))
            top.tick(1.0)
    top.turn()
    assert acked(top.heard(A)) == [1]
    if end == "stuck":
        assert errors(top.heard(C)) == [(0, Code.SLOW_CONSUMER, True)]


def test_a_publisher_beyond_its_window_is_ended_and_memory_stays_bounded():
    top = TableTop(limits=msg.Limits(window=5))
    top.connect(A, C)
    top.subscribe(C, 1, "x", Policy.BLOCK, credit=0, queue=1)
    top.publish(A, 1, *"xxxxx")
    assert errors(top.heard(A)) == []
    top.publish(A, 2, "y")
    assert errors(top.heard(A)) == [(0, Code.FLOW, True)]


def test_a_full_connection_is_left_alone_until_it_takes_more():
    top = TableTop()
    top.connect(A, B, C)
    for client in (B, C):
        top.subscribe(client, 1, "x", Policy.DROP_OLDEST, credit=100, queue=2)
    top.full.add(B)
    for request in range(1, 6):
        top.publish(A, request, "x")
        top.turn()
    assert len(delivered(top.heard(C))) == 5
    assert acked(top.heard(A)) == [1, 2, 3, 4, 5]
    assert top.heard(B) == []
    top.full.clear()
    top.turn()
    heard = top.heard(B)
    assert delivered(heard) == [(1, (1,)), (4, (1,)), (5, (1,))]
    assert dropped(heard) == [(1, 2, 2)]


def test_a_client_that_never_reads_its_answers_is_ended():
    top = TableTop()
    top.connect(A)
    top.full.add(A)
    for _ in range(5000):
        top.say(A, msg.Ping(1))
    top.turn()
    assert not top.core.sessions.by_number


def test_a_slow_consumer_that_reads_again_still_hears_why_it_was_ended():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(B, 1, "x", Policy.DISCONNECT, credit=100, queue=2)
    top.full.add(B)
    for request in range(1, 7):
        top.publish(A, request, "x")
        top.turn()
    assert [s.connection for s in top.core.sessions.by_number.values()] == [A]
    assert top.core.congested
    top.full.clear()
    heard = top.heard(B)
    assert delivered(heard) == [(1, (1,))]  # what was on its way,
    assert isinstance(heard[-1], msg.Error)  # and behind it the reason
    assert (heard[-1].code, heard[-1].fatal) == (Code.SLOW_CONSUMER, True)
    assert not top.core.congested


def test_last_words_are_not_kept_for_ever_nor_without_bound():
    top = TableTop(bad_frames=1000)
    top.full.add(A)
    for _ in range(500):
        top.say(A, msg.Ping(1))  # a stranger that is told to say HELLO, and never listens
        top.turn()
    ((_, unheard),) = top.core.sessions._unsaid.values()
    assert len(unheard) <= 17
    top.tick(top.core.settings.timeout)
    assert not top.core.congested
    top.say(A, msg.Ping(1))
    top.turn()
    top.gone.add(A)
    top.turn()
    assert not top.core.congested


def test_who_says_hello_after_its_session_was_ended_hears_both_in_order():
    top = TableTop(limits=msg.Limits(window=2))
    top.connect(A)
    top.publish(A, 1, "x", "x", "x")
    top.say(A, msg.Hello(1, 1, "a"))
    ended, welcome = top.heard(A)
    assert isinstance(ended, msg.Error)
    assert (ended.code, ended.fatal) == (Code.FLOW, True)
    assert isinstance(welcome, msg.Welcome)


def test_stuck_clients_are_not_tried_at_every_turn():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(B, 1, "x", credit=1000)
    top.full.add(B)
    top.publish(A, 1, "x")
    top.turn()
    tried = []

    def send(connection, frames):
        tried.append(connection)
        return Sent.FULL if connection == B else Sent.OK

    for request in range(2, 100):
        top.publish(A, request, "y")
        top.core.turn(top.now)
        top.core.flush(send)
    assert tried.count(B) <= 1
    assert tried.count(A) == 98
    top.now = top.core.retry_at
    top.core.turn(top.now)
    top.core.flush(send)
    assert tried.count(B) <= 2
    top.core._check()


def test_what_explain_remembers_is_bounded_by_its_receivers_too():
    recent = Recent(count=10_000, size=1 << 20)
    for sequence in range(1000):
        everybody = set(range(2000))
        recent.remember(("b", (sequence,), "p", (b"x",), (everybody,), 1 + ENTRY_BYTES * len(everybody)))
        recent._check()
    assert len(recent) * 2000 * ENTRY_BYTES <= 1 << 20
    top = TableTop()
    top.connect(A)
    for id in range(50):
        top.subscribe(A, id, "x")
    top.publish(A, 1, "x")
    top.turn()
    assert top.core.delivery.recent._bytes > 50 * ENTRY_BYTES


def test_explain_remembers_the_latest_of_a_batch_that_is_too_large_for_it():
    """Whatever a publisher sends in one turn is one batch, and may alone be more than is remembered."""
    recent = Recent(count=100, size=1 << 20)
    for count in (101, 1000):
        recent.remember(("b", range(1, count + 1), "p", (b"x",) * count, ({7},) * count, count * (1 + ENTRY_BYTES)))
        recent._check()
        assert len(recent) > 80
        assert recent.find(msg.NotificationId("b", count)) == ("p", b"x", {7})
    everybody = set(range(200))
    recent.remember(("b", range(1, 101), "p", (b"y",) * 100, (everybody,) * 100, 100 * (1 + 200 * ENTRY_BYTES)))
    recent._check()
    assert len(recent) * 200 * ENTRY_BYTES > 1 << 19
    assert recent.find(msg.NotificationId("b", 100)) == ("p", b"y", everybody)


def test_a_session_s_filters_are_bounded_in_bytes_and_given_back():
    small = len(equals("a", "x")[0])
    top = TableTop(filter_bytes=3 * small)
    top.connect(A)
    for id in (1, 2, 3):
        top.subscribe(A, id, "x")
    top.say(A, msg.Subscribe(10, 4, equals("a", "x"), Policy.BLOCK, 1))
    top.say(A, msg.Advertise(11, 1, equals("a", "x")))
    heard = top.heard(A)
    assert errors(heard) == [(10, Code.LIMIT, False), (11, Code.LIMIT, False)]
    top.say(A, msg.Unsubscribe(12, 2), msg.Subscribe(13, 4, equals("a", "x"), Policy.BLOCK, 1))
    assert acked(top.heard(A)) == [12, 13]


def test_what_explain_answers_is_bounded():
    top = TableTop()
    top.connect(A)
    long = "x" * 5_000
    top.say(A, msg.Subscribe(1, 1, equals("a", long) * 1024, Policy.BLOCK, 1))
    top.publish(A, 2, "y")
    top.heard(A)
    sequence = top.core.delivery.sequence - 1
    top.say(A, msg.Explain(3, msg.NotificationId("b-1", sequence), 0, 1))
    (reply,) = top.heard(A)
    assert reply.document["fate"] == "no-match"
    assert len(reply.document["filters"]) == 100
    assert sum(map(len, encode(reply))) < 1 << 20


# -- liveness ----------------------------------------------------------------------------------------------


def test_silence_is_pinged_then_ended():
    top = TableTop(heartbeat=1.0, timeout=3.0)
    top.connect(A)
    top.subscribe(A, 1, "x")
    top.tick(0.5)
    assert top.heard(A) == []
    top.tick(0.5)
    assert [type(m) for m in top.heard(A)] == [msg.Ping]
    top.tick(0.5)
    assert top.heard(A) == []
    top.say(A, msg.Pong(0))
    top.tick(1.0)
    assert [type(m) for m in top.heard(A)] == [msg.Ping]
    top.tick(1.0)
    assert [type(m) for m in top.heard(A)] == [msg.Ping]
    top.tick(1.0)
    assert errors(top.heard(A)) == [(0, Code.SILENT, True)]
    assert not top.core.subscriptions.by_interface
    assert not top.table.interfaces


def test_a_broker_that_was_busy_for_long_blames_nobody():
    top = TableTop(heartbeat=1.0, timeout=3.0)
    top.connect(A)
    top.tick(0.5)
    top.tick(60.0)
    assert [type(m) for m in top.heard(A)] == [msg.Ping]
    assert len(top.core.sessions.by_number) == 1


def test_pings_are_answered():
    top = TableTop()
    top.connect(A)
    top.say(A, msg.Ping(42))
    assert top.heard(A) == [msg.Pong(42)]


def test_bye_is_answered_behind_what_was_on_its_way():
    top = TableTop()
    top.connect(A)
    top.subscribe(A, 1, "x")
    top.publish(A, 1, "x")
    top.say(A, msg.Bye("done"))
    assert [type(m).__name__ for m in top.heard(A)] == ["Deliver", "Ack", "Bye"]
    assert not top.core.sessions.by_number


def test_a_stopping_broker_delivers_refuses_and_says_goodbye():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(B, 1, "x", credit=1)
    top.publish(A, 1, *"xx")
    top.core.stop(top.now)
    top.turn()
    assert acked(top.heard(A)) == [1]
    assert delivered(top.heard(B)) == [(1, (1,))]
    for message in (msg.Publish(2, (body(a=1),)), msg.Subscribe(3, 1, equals("a", 1), Policy.BLOCK, 1)):
        top.say(A, message)
        assert errors(top.heard(A)) == [(message.request, Code.SHUTTING_DOWN, False)]
    top.say(C, msg.Hello(1, 1))
    assert errors(top.heard(C)) == [(0, Code.SHUTTING_DOWN, True)]
    top.say(B, msg.Credit((msg.Grant(1, 1),)))
    assert delivered(top.heard(B)) == [(2, (1,))]
    top.core.goodbye()
    assert [type(m) for m in top.heard(A)] == [msg.Bye]
    assert [type(m) for m in top.heard(B)] == [msg.Bye]


# -- hostile frames ----------------------------------------------------------------------------------------


def test_bad_frames_are_answered_counted_and_then_banned():
    top = TableTop(bad_frames=3, ban=10.0)
    top.connect(A, B)
    top.subscribe(B, 1, "x")
    for _ in range(2):
        top.raw(A, b"junk")
        assert errors(top.heard(A)) == [(0, Code.BAD_FRAME, False)]
    top.publish(B, 1, "x")
    assert len(delivered(top.heard(B))) == 1
    top.raw(A, b"junk")
    assert errors(top.heard(A)) == [(0, Code.BANNED, True)]
    top.say(A, msg.Hello(1, 1))
    assert top.heard(A) == []
    assert top.core.counters["bad_frames"] == 3
    for _ in range(6):
        top.say(B, msg.Ping(1))
        top.tick(2.0)
    top.say(A, msg.Hello(1, 1))
    assert isinstance(top.heard(A)[0], msg.Welcome)


def test_a_stranger_with_junk_is_answered_and_banned_too():
    top = TableTop(bad_frames=2)
    top.raw(A, b"")
    top.raw(A)
    top.raw(A, b"x", b"y")
    assert errors(top.heard(A)) == [(0, Code.BAD_FRAME, False), (0, Code.BANNED, True)]


def test_a_message_that_only_brokers_send_is_a_bad_frame():
    top = TableTop()
    top.connect(A)
    top.say(A, msg.Ack((msg.Acked(1),)))
    (error,) = top.heard(A)
    assert error.reason == "ACK is for the broker to send"


def test_a_refused_message_is_answered_under_its_request_number():
    top = TableTop(limits=msg.Limits(notification_bytes=100))
    top.connect(A)
    top.raw(A, *encode(msg.Publish(77, (bytes(200),))))
    (error,) = top.heard(A)
    assert (error.request, error.code) == (77, Code.BAD_FRAME)
    assert "limit is 100" in error.reason
    top.raw(A, msgpack.packb([wire.SUBSCRIBE, 78]))
    assert errors(top.heard(A)) == [(78, Code.BAD_FRAME, False)]


# -- the operator's questions ------------------------------------------------------------------------------


def test_status_counts_what_happened():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(B, 1, "x", Policy.DROP_OLDEST, credit=1, queue=1)
    top.publish(A, 1, *"xxxy")
    top.turn()
    top.say(A, msg.Status(5))
    (reply,) = [m for m in top.heard(A) if isinstance(m, msg.Reply)]
    document = reply.document
    assert reply.request == 5
    assert (document["broker"], document["sessions"], document["subscriptions"]) == ("b-1", 2, 1)
    assert document["totals"]["published"] == 4
    assert document["totals"]["delivered"] == 1
    assert document["totals"]["dropped"] == 1
    clients = {client["name"]: client for client in document["clients"]}
    assert clients["bob"]["queued"] == 1
    assert clients["bob"]["dropped"] == 1
    assert clients["alice"]["published"] == 4


def test_explain_tells_every_fate():
    top = TableTop()
    top.connect(A, B)
    top.publish(A, 1, "x")
    top.subscribe(B, 1, "x", Policy.DROP_OLDEST, credit=1, queue=1)
    top.publish(A, 2, *"xxxy")
    top.turn()
    top.heard(A)
    fates = {}
    for sequence in range(1, 6):
        top.say(A, msg.Explain(10 + sequence, msg.NotificationId("b-1", sequence), 2, 1))
        (reply,) = top.heard(A)
        fates[sequence] = reply.document["fate"]
    assert fates == {1: "too-early", 2: "delivered", 3: "dropped", 4: "queued", 5: "no-match"}
    assert reply.document["filters"] == [{"constraint": "a = x", "held": False}]
    top.say(B, msg.Explain(1, msg.NotificationId("b-1", 2), 0, 1))
    assert [m.document["matched"] for m in top.heard(B) if isinstance(m, msg.Reply)] == [True]


def test_subscriptions_are_listed_page_by_page():
    top = TableTop()
    top.connect(A, B)
    for number in range(1, 451):
        top.subscribe((A, B)[number % 2], number, f"x{number}")
    top.heard(A)
    listed, pages, after = [], 0, 0
    while True:
        top.say(A, msg.ListSubscriptions(1000, after))
        (reply,) = top.heard(A)
        listed += reply.document["subscriptions"]
        pages, after = pages + 1, reply.document["next"]
        if not after:
            break
    assert pages == 3
    assert [each["subscription"] for each in listed] == list(range(1, 451))
    assert [each["interface"] for each in listed] == sorted({each["interface"] for each in listed})
    assert {(each["client"], each["session"]) for each in listed} == {("alice", 1), ("bob", 2)}
    assert all(each["all_filters"] and len(each["filters"]) == 1 for each in listed)


def test_receivers_are_those_that_explain_tells_of():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(A, 1, "x")
    top.subscribe(B, 1, "x")
    top.subscribe(B, 2, "y")
    top.publish(A, 1, *"xyz")
    top.turn()
    top.heard(A)
    ids = tuple(msg.NotificationId("b-1", number) for number in (1, 2, 3, 99))
    top.say(A, msg.ListReceivers(7, ids))
    (reply,) = top.heard(A)
    assert reply.document["receivers"] == {
        "b-1:1": {"interfaces": [1, 2], "count": 2},
        "b-1:2": {"interfaces": [3], "count": 1},
        "b-1:3": {"interfaces": [], "count": 0},
    }
    top.say(B, msg.Unsubscribe(8, 1))
    top.heard(B)
    top.say(A, msg.ListReceivers(9, ids[:1]))
    assert top.heard(A)[0].document["receivers"]["b-1:1"]["interfaces"] == [1]


def test_rates_are_per_second():
    top = TableTop()
    top.connect(A, B)
    top.subscribe(B, 1, "x")
    top.publish(A, 1, *"xxxxxxxxxx")
    top.turn()
    top.tick(2.0)
    assert top.core.rates == {"published": 5.0, "delivered": 5.0}


def test_the_recording_of_a_batch_in_which_a_session_ends():
    """Two publications of one turn, and a slow consumer that the first of them disconnects."""
    top = TableTop()
    recording = top.core.delivery.recording = NaiveRecording()
    top.connect(b"pub", b"slow", b"quick")
    top.subscribe(b"slow", 1, "x", Policy.DISCONNECT, credit=1, queue=1)
    top.subscribe(b"quick", 2, "x")
    top.publish(b"pub", 1, *"xxxx")
    top.publish(b"pub", 2, *"xx")
    top.turn()
    slow, quick = sorted(recording.routed)
    assert recording.live.keys() == {quick}
    assert (len(recording.routed[slow]), len(recording.routed[quick])) == (1, 6)
    recording._check(top.core)


def test_explain_says_of_a_subscription_that_it_has_ended():
    top = TableTop()
    top.connect(b"a", b"b")
    number = next(s.number for s in top.core.sessions.by_number.values() if s.name == "b")
    top.subscribe(b"b", 1, "x")
    top.subscribe(b"b", 2, "x")
    top.say(b"b", msg.Unsubscribe(5, 1))

    def asked(session, subscription):
        top.say(b"a", msg.Explain(9, msg.NotificationId("b-1", 1), session, subscription))
        return next(m.reason for m in top.heard(b"a") if isinstance(m, msg.Error))

    assert asked(number, 1) == f"subscription 1 of session {number} has ended"
    assert asked(number, 7) == f"session {number} has no subscription 7"
    top.say(b"b", msg.Bye())
    assert asked(number, 2) == f"subscription 2 of session {number} has ended"
    assert asked(number, 7) == f"session {number} has ended, and its subscriptions with it"
    assert asked(99, 1) == "session 99 has no subscription 1"


def test_who_subscribes_while_another_thread_reads_the_table_does_not_wait():
    top = TableTop()
    asked = []
    top.core.matching.beside = lambda job, done: asked.append((job, done))
    for client in (A, B, C):
        top.say(client, msg.Hello(1, 1, client.decode()))
    top.say(C, msg.Subscribe(1, 1, equals("a", "x"), Policy.BLOCK, 10))
    top.say(A, msg.Publish(1, (body(a="x", padding="x" * BESIDE_BYTES),)))
    top.turn()
    (interface,) = top.core.delivery.receivers
    top.heard(B)
    top.say(B, msg.Ping(5), msg.Subscribe(2, 1, equals("a", "x"), Policy.BLOCK, 10), msg.Ping(6))
    top.say(C, msg.Bye())
    assert [type(message) for message in top.heard(B)] == [msg.Pong, msg.Ack, msg.Pong]
    assert len(asked) == 1
    assert interface in top.core.table.match_bodies([body(a="x")])[0][0], "its filters leave the table later"
    top.say(B, msg.Publish(3, (body(a="x"),)))
    assert [type(message) for message in top.heard(B)] == [msg.Deliver, msg.Ack], "newcomers match"
    top.say(B, msg.Publish(4, (body(a="y", padding="x" * BESIDE_BYTES),)))
    top.turn()
    assert len(asked) == 1, "one at a time"
    assert top.core.table.newcomers == 1
    job, done = asked.pop()
    job()
    done()
    assert acked(top.heard(A)) != []
    top.turn()
    assert top.core.table.newcomers == 0
    job, done = asked.pop()
    job()
    done()
    top.turn()
    assert acked(top.heard(B)) != []
    (found,) = top.core.table.match_bodies([body(a="x")])[0]
    assert found == {receiver for receiver in top.core.delivery.receivers if receiver != interface}
    assert not top.core.busy


# -- nobody waits long for what others do: what a turn does is counted


def test_strangers_are_heard_by_and_by_and_those_who_are_known_at_once():
    top = TableTop()
    top.connect(A)
    top.core.strangers.at_once = 3
    top.core.strangers.begin_turn()
    strangers = [b"stranger%d" % n for n in range(10)]
    for stranger in strangers:
        top.say(stranger, msg.Hello(1, 1, "s"), msg.Ping(1))
    top.say(A, msg.Ping(7))
    greeted = []
    while not greeted or greeted[-1] < len(strangers):
        top.turn()
        assert top.inbox.pop(A, [msg.Pong(7)]) == [msg.Pong(7)]
        greeted.append(len(top.core.sessions.by_number) - 1)
        assert greeted[-1] == len(strangers) or top.core.busy
    steps = [after - before for before, after in zip([0, *greeted], greeted, strict=False)]
    assert max(steps) <= 6  # what came in this turn, and what waited
    assert len(steps) > 3
    while top.core.strangers:
        top.turn()
    for stranger in strangers:
        assert [type(m) for m in top.heard(stranger)] == [msg.Welcome, msg.Pong]


def test_frames_that_are_none_are_answered_by_and_by_and_a_ban_ends_that():
    top = TableTop(bad_frames=2)
    top.core.strangers.at_once = 1
    top.core.strangers.begin_turn()
    for _ in range(6):
        top.raw(B, b"nonsense")
        top.core.refuse(b"\1own name", top.now)
    turns = 0
    while top.core.strangers:
        top.turn()
        turns += 1
    assert turns == 11
    assert errors(top.heard(B)) == [(0, Code.BAD_FRAME, False), (0, Code.BANNED, True)]
    assert top.core.counters["bad_frames"] == 4


def test_more_than_strangers_may_leave_waiting_is_heard_whatever_the_turn():
    top = TableTop()
    top.core.strangers.at_once = 0
    top.core.strangers.begin_turn()
    top.say(B, msg.Hello(1, 1, "b"))
    for n in range(5):
        top.raw(b"c%d" % n, bytes(1 << 20))
    assert B in top.core.sessions.by_connection
    top.core.strangers._check()


def test_a_tick_looks_after_some_sessions_in_each_turn():
    top = TableTop()
    clients = [b"client%d" % n for n in range(50)]
    top.connect(*clients)
    top.core.heartbeats.most = 8
    top.tick(3.0)
    asked = []
    while top.core.heartbeats:
        asked.append(sum(len(top.inbox[client]) for client in clients))
        assert top.core.busy
        top.turn()
    assert max(after - before for before, after in zip([0, *asked], asked, strict=False)) <= 8
    assert all(top.heard(client) == [msg.Ping(0)] for client in clients)
    assert not top.core.busy


def test_many_filters_are_read_some_at_a_step():
    top = TableTop()
    top.connect(A, B)
    read = []
    top.core.codec = top.core.subscriptions.codec = top.core.codec._replace(
        filter=lambda encoded: read.append(encoded) or read_filter(encoded)
    )
    top.core.work.seconds = 0.0
    top.say(A, msg.Subscribe(1, 1, equals("a", "x") * 1000, Policy.BLOCK, 10))
    before = 0
    while len(read) < 1000:
        assert len(read) - before <= 64
        before = len(read)
        top.turn()
    while top.core.busy:
        top.turn()
    assert acked(top.heard(A)) == [1]
