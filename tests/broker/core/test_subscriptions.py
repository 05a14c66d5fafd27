"""Subscriptions with a fake of whoever is told what is wanted."""

from __future__ import annotations

import pytest

from contrada.broker.core.newcomers import OpenTable
from contrada.broker.core.ports import Codec, Refusal
from contrada.broker.core.subscriptions import Subscriptions
from contrada.broker.protocol.messages import Subscribe, Unsubscribe
from contrada.broker.protocol.wire import Code, Policy
from contrada.broker.turn.leftovers import Leftovers
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification, encode_filter
from contrada.forwarding.language.text.parse import parse
from tests.broker.core.parts import Bench, FakeInterest
from tests.client.reference import ReferenceTable


def done(steps):
    """Take all steps."""
    for _ in steps:
        pass


class Parts(Bench):
    def __init__(self, *, awake=True):
        super().__init__()
        self.table = ReferenceTable()
        self.matching._table = OpenTable(self.table)
        self.interest = FakeInterest(awake=awake)
        self.leftovers = Leftovers(lambda error: self.mishaps.note("leftovers", error))
        self.subscriptions = Subscriptions(
            self.settings,
            self.table,
            Codec(decode_notification, decode_filter),
            self.sessions,
            self.delivery,
            self.matching,
            self.interest,
            self.leftovers,
            self.mishaps,
        )

    def subscribe(self, session, id, *texts):
        encoded = tuple(encode_filter(parse(text)) for text in texts)
        done(self.subscriptions.subscribe(session, Subscribe(id, id, encoded, Policy.BLOCK, 10)))
        return encoded

    def check(self):
        self.leftovers.work()
        self.subscriptions._check()
        self.delivery._check()
        return len(self.table.filters), self.interest.wanted.total()


def test_what_is_wanted_is_told_as_it_came_and_withdrawn_with_the_subscription():
    parts = Parts()
    session = parts.open(b"one")
    parts.subscribe(session, 1, "x > 1 or y > 2", "z = 3")
    parts.subscribe(session, 2, "z = 3")
    assert parts.check() == (4, 4)
    assert max(parts.interest.wanted.values()) == 2, "the same bytes are the same filter"
    parts.subscriptions.unsubscribe(session, Unsubscribe(9, 1))
    assert parts.check() == (1, 1)
    parts.sessions.remove(session)
    assert parts.check() == (0, 0)
    assert not parts.matching.muted
    assert not parts.counters["internal_errors"]


def test_who_begins_to_listen_is_told_everything_so_far():
    parts = Parts(awake=False)
    session = parts.open(b"one")
    parts.subscribe(session, 1, "x > 1 or y > 2")
    parts.subscribe(session, 2, "z = 3")
    parts.subscriptions.unsubscribe(session, Unsubscribe(9, 2))
    assert parts.check() == (2, 0)
    parts.interest.awake = True
    for tell in parts.interest.woken:
        done(tell())
    assert parts.check() == (2, 2)
    parts.sessions.remove(session)
    assert parts.check() == (0, 0)


def test_a_refused_subscription_leaves_nothing():
    parts = Parts()
    session = parts.open(b"one")
    good = encode_filter(parse("x > 1"))
    with pytest.raises(Refusal) as refused:
        done(parts.subscriptions.subscribe(session, Subscribe(1, 1, (good, b"\xc1"), Policy.BLOCK, 10)))
    assert refused.value.code is Code.BAD_FILTER
    assert parts.check() == (0, 0)
    assert not session.receivers
    assert not session.filter_bytes
