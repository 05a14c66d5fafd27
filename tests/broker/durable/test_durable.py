"""Durable publishing and subscriptions at one core: acknowledged means on disk, and what is on disk is delivered."""

from __future__ import annotations

import itertools
import json

import pytest

from contrada.broker.protocol.messages import (
    Credit,
    Deliver,
    DurableQuery,
    Error,
    Grant,
    Keep,
    NotificationId,
    Reply,
    Store,
    Subscribe,
    SubscribeDurable,
    Unsubscribe,
)
from contrada.broker.protocol.wire import Code, DurableAction, Full, Policy
from contrada.broker.sessions.sessions import Identity
from contrada.broker.stored import store
from contrada.broker.stored.limits import DurableLimits
from contrada.broker.stored.rows import Row
from tests.broker.durable.fake_journal import DurableTop, answers, stored
from tests.broker.table_top import ALL, TableTop, body, delivered, equals

A, B, C = b"alice", b"bob", b"carol"


def test_without_a_disk_durable_requests_are_refused_with_the_reason():
    top = TableTop()
    top.connect(A)
    DurableTop.store(top, A, 1, 5)
    heard = DurableTop.follow(top, A, 1, "desk", 5)
    assert answers(heard) == {1: Code.STORAGE, 2_000_001: Code.STORAGE}
    assert all("--data" in m.reason for m in heard if isinstance(m, Error))
    top.say(A, DurableQuery(2, DurableAction.LIST))
    assert answers(top.heard(A)) == {2: Code.STORAGE}


def test_a_durable_publish_is_acknowledged_only_after_the_commit_that_has_it():
    top = DurableTop()
    top.connect(A)
    top.hold()
    top.store(A, 1, 5)
    top.store(A, 2, 6, 7)
    assert answers(top.heard(A)) == {}
    top.store(A, 3, 8)  # while the first commit is under way: it waits for the next
    assert answers(top.heard(A)) == {}
    job, done = top.jobs.pop(0)
    job()
    done()
    assert answers(top.heard(A)) == {1: 1, 2: 2}
    top.commit()
    assert answers(top.heard(A)) == {3: 4}
    assert top.journal.commits == 2


def test_volatile_subscribers_get_what_is_published_durably_and_volatile_publishers_wait_for_no_disk():
    top = DurableTop()
    top.connect(A, B)
    top.subscribe(B, 1, 5)
    top.hold()
    top.store(A, 1, 5)
    assert delivered(top.heard(B)) == [(1, (1,))]
    top.publish(A, 2, 5)
    assert answers(top.heard(A)) == {2: 2}
    assert delivered(top.heard(B)) == [(2, (1,))]


def test_a_failing_disk_refuses_with_its_reason_and_takes_up_again():
    top = DurableTop()
    top.connect(A, B)
    top.follow(B, 1, "desk", 5)
    top.journal.failing = "No space left on device"
    top.store(A, 1, 5)
    heard = top.heard(A)
    assert answers(heard) == {1: Code.STORAGE}
    assert "No space left on device" in next(m.reason for m in heard if isinstance(m, Error))
    top.store(A, 2, 5)  # at once: the disk is not even asked
    assert answers(top.heard(A)) == {2: Code.STORAGE}
    assert stored(top.heard(B)) == []
    top.journal.failing = ""
    top.now += 2
    top.store(A, 3, 5)
    assert answers(top.heard(A)).keys() == {3}
    assert len(stored(top.heard(B))) == 1
    assert top.core.counters["storage_refused"] == 2


def test_a_key_is_accepted_once_also_after_a_restart_and_only_of_its_publisher():
    top = DurableTop()
    top.connect(A, B)
    top.follow(B, 1, "desk", 5)
    top.store(A, 1, 5, key="k")
    top.store(A, 2, 5, key="k")
    assert answers(top.heard(A)) == {1: 1, 2: 1}
    top.store(B, 3, 5, key="k")
    heard = top.heard(B)
    assert answers(heard) == {3: 2}
    assert [entry.id.sequence for entry in stored(heard)] == [1, 2]
    after = top.restart()
    after.connect(A)
    after.store(A, 9, 5, key="k")
    assert answers(after.heard(A)) == {9: 1}


def test_a_repetition_of_what_is_on_its_way_is_answered_with_it():
    top = DurableTop()
    top.connect(A, B)
    top.hold()
    top.store(A, 1, 5, key="k")
    top.store(A, 2, 5, key="k")
    assert answers(top.heard(A)) == {}
    top.commit()
    assert answers(top.heard(A)) == {1: 1, 2: 1}
    top.journal.failing = "EIO"
    top.store(A, 3, 5, key="other")
    top.store(A, 4, 5, key="other")
    top.turn()
    top.commit()
    assert answers(top.heard(A)) == {3: Code.STORAGE, 4: Code.STORAGE}
    top.journal.failing = ""
    top.now += 2
    top.store(A, 5, 5, key="other")  # it was refused: now it may be accepted
    top.turn()
    top.commit()
    assert answers(top.heard(A)).keys() == {5}


def test_a_bad_notification_gives_its_key_back():
    top = DurableTop()
    top.connect(A)
    top.say(A, Store(1, (b"nonsense",), "k"))
    assert answers(top.heard(A)) == {1: Code.BAD_NOTIFICATION}
    top.store(A, 2, 5, key="k")
    assert answers(top.heard(A)) == {2: 1}


def test_keys_are_remembered_within_their_window():
    top = DurableTop(durable=DurableLimits(keys=2))
    top.connect(A)
    for number, key in enumerate("abc", 1):
        top.store(A, number, 5, key=key)
    top.turn()
    top.heard(A)
    top.store(A, 8, 5, key="c")
    top.store(A, 9, 5, key="a")
    assert answers(top.heard(A)) == {8: 3, 9: 4}


def test_a_durable_subscription_gets_what_was_published_while_its_client_or_the_broker_was_away():
    top = DurableTop()
    top.connect(A, B)
    assert answers(top.follow(B, 1, "desk", 5)) == {2_000_001: 1}
    top.gone.add(B)
    top.store(A, 1, 5, 6, 5)
    top.publish(A, 2, 5)
    assert answers(top.heard(A)) == {1: 1, 2: 4}
    after = top.restart()
    after.connect(A, C)
    after.store(A, 3, 5)
    after.turn()
    entries = stored(after.follow(C, 7, "desk", 5))
    assert [entry.body for entry in entries] == [body(a=5, n=0), body(a=5, n=2), body(a=5, n=0), body(a=5, n=0)]
    assert [entry.attempt for entry in entries] == [1] * 4
    assert all(a.position < b.position for a, b in itertools.pairwise(entries))
    assert entries[0].time == 1_000_000_000_000


def test_what_is_acknowledged_is_not_delivered_again_and_the_rest_is_said_to_be_redelivered():
    top = DurableTop()
    top.connect(A, B)
    top.follow(B, 1, "desk", 5)
    top.store(A, 1, 5, 5, 5, 5)
    first, second, third, fourth = stored(top.heard(B))
    top.done(B, 1, second.position, second.position)
    top.done(B, 1, 0, first.position)
    top.say(B, Unsubscribe(9, 1))
    assert answers(top.heard(B)) == {9: 0}
    again = stored(top.follow(B, 2, "desk", 5))
    assert [(entry.id, entry.attempt) for entry in again] == [(third.id, 2), (fourth.id, 2)]
    top.tick(1.0)
    after = top.restart()
    after.connect(B)
    again = stored(after.follow(B, 1, "desk", 5))
    assert [(entry.id, entry.attempt) for entry in again] == [(third.id, 3), (fourth.id, 3)]
    after.done(B, 1, 0, fourth.position)
    after.tick(1.0)
    after = after.restart()
    after.connect(B)
    assert stored(after.follow(B, 1, "desk", 5)) == []


def test_credit_bounds_what_is_sent():
    top = DurableTop()
    top.connect(A, B)
    top.follow(B, 1, "desk", 5, credit=2)
    top.store(A, 1, 5, 5, 5)
    assert len(stored(top.heard(B))) == 2
    top.say(B, Credit((Grant(1, 5),)))
    assert len(stored(top.heard(B))) == 1


def test_another_session_takes_a_durable_subscription_over():
    top = DurableTop()
    top.connect(A, B, C)
    top.follow(B, 1, "desk", 5)
    assert answers(top.follow(C, 1, "desk", 5)) == {2_000_001: 1}
    assert answers(top.heard(B)) == {2_000_001: Code.DUPLICATE}
    top.store(A, 1, 5)
    top.turn()
    assert stored(top.heard(B)) == []
    assert len(stored(top.heard(C))) == 1


def test_a_durable_subscription_belongs_to_its_key_and_asks_for_one_thing():
    top = DurableTop()
    for name in ("alice", "bob"):
        top.identities[name] = Identity(name, ALL)
    for client, user in ((A, "alice"), (B, "bob")):
        top.connect(client, user=user)
    ask = SubscribeDurable(1, 1, "desk", equals("a", 5), "", 10)
    top.say(A, ask, user="alice")
    assert answers(top.heard(A)) == {1: 1}
    top.say(B, ask, user="bob")
    assert answers(top.heard(B)) == {1: Code.UNAUTHORISED}
    top.say(A, SubscribeDurable(2, 2, "desk", equals("a", 6), "", 10), user="alice")
    assert answers(top.heard(A)) == {2: Code.DUPLICATE}


@pytest.mark.parametrize("since", ["all", "id", "time"])
def test_since_replays_what_the_journal_has_to_a_new_subscription(since):
    top = DurableTop()
    top.connect(A, B)
    top.store(A, 1, 5, 6)
    top.turn()
    top.wall += 100
    top.store(A, 2, 5)
    top.turn()
    top.wall += 100
    top.store(A, 3, 5)
    top.turn()
    point = {"all": "all", "id": NotificationId("b-1", 1), "time": int((1_000_000 + 50) * 1e6)}[since]
    top.follow(B, 1, "desk", 5, since=point)
    top.store(A, 4, 5)
    found = [entry.id.sequence for entry in stored([*top.heard(B)])]
    top = top.restart()
    top.connect(B)
    found = [entry.id.sequence for entry in stored(top.follow(B, 1, "desk", 5))]
    assert found == {"all": [1, 3, 4, 5], "id": [3, 4, 5], "time": [3, 4, 5]}[since]


def followed_from_the_beginning() -> DurableTop:
    """A notification is stored, and a subscription to all that was is under way: commits wait."""
    top = DurableTop()
    top.connect(A, B)
    top.store(A, 1, 5)
    top.turn()
    top.hold()
    top.follow(B, 1, "desk", 5, since="all")
    return top


def test_what_is_published_while_a_subscription_is_made_comes_behind_the_replay():
    top = followed_from_the_beginning()
    top.store(A, 2, 5)
    heard = top.heard(B)
    assert answers(heard) == {}
    for _ in range(10):
        top.commit()
        top.turn()
    heard = top.heard(B)
    assert answers(heard) == {2_000_001: 1}
    assert [entry.id.sequence for entry in stored(heard)] == [1, 2]


def test_a_subscription_that_was_not_confirmed_is_not_there_after_a_crash():
    top = followed_from_the_beginning()
    job, done = top.jobs.pop(0)  # its row is on disk, its replay is not
    job()
    done()
    after = top.restart()
    after.connect(B)
    assert answers([*after.follow(B, 1, "desk", 5, since="all"), *after.heard(B)]) == {2_000_001: 1}
    assert after.core.durable.state.next_number == 3
    after.tick(1)
    assert len(after.core.durable.state.by_number) == 1


def test_too_many_attempts_make_a_dead_letter_that_can_be_read():
    top = DurableTop(durable=DurableLimits(attempts=2))
    top.connect(A, B)
    top.follow(B, 1, "desk", 5)
    top.store(A, 1, 5)
    for id in (2, 3, 4):
        top.heard(B)
        top.say(B, Unsubscribe(id, id - 1))
        entries = stored(top.follow(B, id, "desk", 5))
        assert [entry.attempt for entry in entries] == ([2] if id == 2 else [])
    top.tick(1.0)
    after = top.restart()
    after.connect(B)
    after.say(B, DurableQuery(9, DurableAction.DEAD, "desk"))
    (reply,) = (m for m in after.heard(B) if isinstance(m, Reply))
    (letter,) = reply.document["letters"]
    assert json.loads(letter["notification"]) == {"a": 5, "n": 0}
    assert "2 times" in letter["reason"]
    assert after.core.durable.state.by_number[1].queue.first is None


def test_a_full_subscription_refuses_or_drops_and_counts():
    top = DurableTop()
    top.connect(A, B)
    top.follow(B, 1, "strict", 5, credit=0, keep=Keep(notifications=2))
    top.follow(B, 2, "loose", 6, credit=0, keep=Keep(notifications=2, when_notifications=Full.DROP_OLDEST))
    top.store(A, 1, 5, 5)
    top.store(A, 2, 5)
    heard = top.heard(A)
    assert answers(heard) == {1: 1, 2: Code.LIMIT}
    assert any("'strict'" in m.reason for m in heard if isinstance(m, Error))
    top.done(B, 1, 0, 1 << 40)
    top.store(A, 7, 5, 5, 5)  # as a whole, or not at all
    assert answers(top.heard(A)) == {7: Code.LIMIT}
    top.store(A, 8, 5, 5)
    assert answers(top.heard(A)) == {8: 3}
    top.publish(A, 3, 5)  # who does not ask for durability is not refused: it is dropped
    assert answers(top.heard(A)) == {3: 5}
    top.store(A, 4, 6, 6, 6, 6)
    assert answers(top.heard(A)) == {4: 6}
    top.tick(1.0)
    strict, loose = top.core.durable.state.by_number.values()
    assert (len(strict.queue), strict.dropped) == (2, 1)
    assert (len(loose.queue), loose.dropped) == (2, 2)
    top.turn()
    top.tick(1.0)
    after = top.restart()
    assert [(len(each.queue), each.dropped) for each in after.core.durable.state.by_number.values()][1] == (2, 2)


@pytest.mark.parametrize("when", [Full.DROP_OLDEST, Full.DEAD_LETTER])
def test_what_is_too_old_is_dropped_or_buried(when):
    top = DurableTop()
    top.connect(A, B)
    top.follow(B, 1, "desk", 5, credit=0, keep=Keep(age=60, when_age=when))
    top.store(A, 1, 5)
    top.turn()
    top.wall += 40
    top.store(A, 2, 5)
    top.turn()
    top.wall += 40
    top.tick(1.0)
    (desk,) = top.core.durable.state.by_number.values()
    assert len(desk.queue) == 1
    assert (desk.dropped, len(desk.dead)) == ((1, 0) if when is Full.DROP_OLDEST else (0, 1))


def test_an_abandoned_subscription_ends_and_one_can_be_removed():
    top = DurableTop(durable=DurableLimits(abandoned=100))
    top.connect(A, B)
    top.follow(B, 1, "desk", 5)
    top.follow(B, 2, "other", 5)
    top.say(B, DurableQuery(7, DurableAction.REMOVE, "other"))
    heard = top.heard(B)
    assert answers(heard) == {2_000_002: Code.UNKNOWN}
    top.gone.add(B)
    top.store(A, 1, 5)
    top.turn()
    top.wall += 50
    top.tick(1.0)
    assert [each.name for each in top.core.durable.state.by_number.values()] == ["desk"]
    top.wall += 100
    top.tick(1.0)
    top.turn()
    assert not top.core.durable.state.by_number
    assert not top.restart().core.durable.state.by_number


def test_checkpoints_say_everything_again_and_what_is_before_them_may_go():
    top = DurableTop(data_bytes=1, data_seconds=1)
    top.connect(A, B)
    top.follow(B, 1, "desk", 5)
    top.follow(B, 2, "absent", 7, credit=0)
    top.store(A, 1, 5, key="k")
    top.store(A, 2, 7, 7)
    entries = stored(top.heard(B))
    top.done(B, 1, 0, entries[-1].position)
    for round in range(4):
        top.store(A, 10 + round, 6)
        top.turn()
        top.core.durable.upkeep.checkpoint()
        top.turn()
        top.wall += 10
        top.tick(1.5)
    assert top.journal.first > 1
    after = top.restart()
    after.connect(A, B)
    assert stored(after.follow(B, 1, "desk", 5)) == []
    assert len(stored(after.follow(B, 2, "absent", 7))) == 2
    after.store(A, 1, 5, key="k")
    assert answers(after.heard(A)) == {1: 1}


def test_a_backlog_that_is_not_in_memory_is_read_from_the_journal():
    top = DurableTop()
    top.connect(A, B)
    top.follow(B, 1, "desk", 5, credit=0)
    for number in range(5):
        top.store(A, number + 1, 5, 5)
        top.turn()
    after = top.restart()
    after.connect(B)
    assert len(stored(after.follow(B, 1, "desk", 5))) == 10
    damaged = top.restart()
    second = sorted(damaged.journal.entries)[2]
    damaged.journal.entries[second] = b"\xc1"
    damaged.connect(B)
    assert len(stored(damaged.follow(B, 1, "desk", 5))) == 8
    assert damaged.core.counters["durable_damaged"] == 2


def test_a_new_subscription_first_gets_the_last_values_that_match_it():
    top = DurableTop(durable=DurableLimits(retained=2, retained_age=100))
    top.connect(A, B)
    for request, (key, value) in enumerate((("x", 5), ("y", 5), ("x", 5), ("z", 6)), 1):
        top.store(A, request, value, retain=key)
        top.turn()
    top = top.restart()
    top.connect(A, B)
    top.say(B, Subscribe(1, 1, equals("a", 5), Policy.BLOCK, 10))
    heard = [*top.heard(B), *top.heard(B)]
    assert delivered(heard) == [(3, (1,))]  # of two keys at most, y changed longest ago
    assert isinstance(heard[0], Deliver)
    assert answers(heard) == {1: 0}
    top.store(A, 9, 5)
    assert len(delivered(top.heard(B))) == 1
    entries = stored([*top.follow(B, 2, "desk", 5), *top.heard(B)])
    assert [entry.id.sequence for entry in entries] == [3]
    top.store(A, 10, 5, retain="x")
    assert len(stored(top.heard(B))) == 1
    top.wall += 200
    top.tick(1.0)
    assert len(top.core.durable.state.retained) == 0


def test_a_last_value_that_is_forgotten_stays_so_whatever_the_disk_does_meanwhile():
    top = DurableTop()
    top.connect(A, B)
    top.store(A, 1, 5, retain="x")
    top.turn()
    top.hold()
    top.store(A, 2, 6, retain="x")  # on its way to the disk,
    top.say(A, DurableQuery(3, DurableAction.FORGET, "x"))  # and so is this, behind it
    top.turn()
    rows = [row for step in top.core.durable.state.checkpoint() for row in step]
    assert not [row for row in rows if row[0] == Row.RETAINED]  # no checkpoint says again what is being forgotten
    top.commit()
    assert "x" not in top.core.durable.state.retained
    after = top.restart()
    assert "x" not in after.core.durable.state.retained
    after.connect(A)
    after.store(A, 4, 7, retain="x")
    after.turn()
    assert "x" in after.restart().core.durable.state.retained
    after.heard(A)
    after.journal.failing = "no room"
    after.say(A, DurableQuery(5, DurableAction.FORGET, "x"))
    after.turn()
    assert answers(after.heard(A)) == {5: Code.STORAGE}
    assert "x" in after.core.durable.state.retained
    assert "x" in dict(after.core.durable.state.retained.restated())


def test_a_client_that_comes_back_while_its_backlog_is_read_loses_nothing(monkeypatch):
    monkeypatch.setattr(store, "CACHE_BYTES", 1)
    top = DurableTop()
    top.connect(A, B)
    top.follow(A, 1, "desk", 5, credit=0)
    for request in range(1, 7):
        top.store(B, request, 5)
        top.heard(B)
    top.hold()
    top.say(A, Credit((Grant(1, 3),)))
    top.turn()
    job, done = top.jobs.pop()  # the first three are being read
    job()
    done()
    top.turn()
    assert len(stored(top.heard(A))) == 3
    top.say(A, Credit((Grant(1, 3),)))
    top.turn()  # now the others are,
    top.follow(A, 2, "desk", 5, credit=100)  # and the client begins again
    top.commit()
    top.turn()
    top.commit()
    assert top.core.counters["durable_damaged"] == 0
    assert len(top.core.durable._by_name["desk"].queue) == 6
