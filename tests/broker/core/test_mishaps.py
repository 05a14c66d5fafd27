"""Whatever raises inside a broker costs the message or session that it happened to, and nobody else."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contrada.broker.core.core import Core
from contrada.broker.core.ports import Codec
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.messages import Ack, Advertise, Attach, Bye, Error, IndexAdd, Link, Publish, Subscribe
from contrada.broker.protocol.peer_frames import encode_peer
from contrada.broker.protocol.peer_messages import Change, Flow, Forward, Replace, Run
from contrada.broker.protocol.wire import Code, Policy, Role
from contrada.broker.sessions.sessions import Identity
from contrada.errors import CodecError
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification
from tests.broker.table_top import ALL, TableTop, acked, body, delivered, equals


@pytest.fixture
def top():
    top = TableTop()
    top.connect(b"good", b"pub", b"evil")
    top.subscribe(b"good", 1, "x")
    return top


def broken(error=RuntimeError):
    def fail(*_arguments, **_options):
        raise error("a mistake of ours")

    return fail


def refusals(messages):
    return [m for m in messages if isinstance(m, Error)]


def served(top, request=900):
    """Whether a publisher and a subscriber get along."""
    top.publish(b"pub", request, "x")
    return len(delivered(top.heard(b"good"))) == 1 and request in acked(top.heard(b"pub"))


@pytest.mark.parametrize("error", [TypeError, KeyError, RecursionError, MemoryError, ZeroDivisionError])
def test_what_a_handler_raises_is_that_messages_refusal(top, caplog, error):
    top.core.subscriptions.codec = Codec(top.core.codec.notification, broken(error))
    top.say(b"evil", Subscribe(7, 1, equals("a", "x"), Policy.BLOCK, 10))
    (refused,) = refusals(top.heard(b"evil"))
    assert (refused.request, refused.code, refused.fatal) == (7, Code.INTERNAL, False)
    assert error.__name__ in refused.reason
    assert top.core.counters["internal_errors"] == 1
    (line,) = (r for r in caplog.records if r.message == "internal error")
    assert line.exc_info is not None
    assert line.doing == "SUBSCRIBE"
    assert served(top)


def test_too_many_of_them_are_banned(top):
    top.core.subscriptions.codec = Codec(top.core.codec.notification, broken())
    for request in range(1, 40):
        top.say(b"evil", Subscribe(request, 1, equals("a", "x"), Policy.BLOCK, 10))
    assert [e.code for e in refusals(top.heard(b"evil"))] == [Code.INTERNAL] * 15 + [Code.BANNED]
    assert served(top)


def test_a_subscription_that_fails_half_way_leaves_nothing_behind(top):
    add = top.table.add

    def add_some(interface, expression):
        ids = add(interface, expression)
        if expression[1] == "bad":
            raise TypeError("after it was added")
        return ids

    top.table.add = add_some
    filters = equals("a", "x") + equals("a", "y") + equals("a", "bad")
    top.say(b"evil", Subscribe(1, 1, filters, Policy.BLOCK, 10))
    assert [e.code for e in refusals(top.heard(b"evil"))] == [Code.INTERNAL]
    assert len(top.table.interfaces) == 1
    assert served(top)
    top.say(b"evil", Subscribe(2, 1, equals("a", "x"), Policy.BLOCK, 10))
    assert acked(top.heard(b"evil")) == [2]


@pytest.mark.parametrize("where", [("subscriptions", "_tell"), ("index", "_tell_name")])
def test_a_subscription_that_cannot_be_told_to_neighbours_is_undone(top, where):
    part, method = where
    setattr(getattr(top.core, part), method, broken())
    top.say(b"evil", Subscribe(1, 1, equals("a", "x"), Policy.BLOCK, 10), Attach(2, 2, "name", Policy.BLOCK, 10))
    heard = top.heard(b"evil")
    assert [e.code for e in refusals(heard)] == [Code.INTERNAL]
    assert len(top.core.subscriptions.by_interface) == 2
    assert len(acked(heard)) == 1
    assert served(top)


def test_a_publication_that_cannot_be_matched_is_found_and_refused_alone(top, caplog):
    match = top.core.table.match_bodies
    calls = []

    def fragile(bodies):
        calls.append(len(bodies))
        if any(b"poison" in each for each in bodies):
            raise OverflowError("in the middle of matching")
        return match(bodies)

    top.core.table.match_bodies = fragile
    for request in range(1, 33):
        top.publish(b"pub", request, "x", "x")
    top.say(b"evil", Publish(5, (body(a="x"), body(a="poison"), body(a="x"))))
    for request in range(33, 65):
        top.publish(b"pub", request, "x", "x")
    assert len(delivered(top.heard(b"good"))) == 128
    assert sorted(acked(top.heard(b"pub"))) == [*range(1, 65)]
    (refused,) = refusals(top.heard(b"evil"))
    assert (refused.request, refused.code) == (5, Code.INTERNAL)
    assert refused.reason.startswith("notification 1 of 3: ")
    assert len(calls) <= 2 * 8 + 2  # by halves, not one by one
    assert all(session.unacknowledged == 0 for session in top.core.sessions.by_number.values())
    assert served(top)


@pytest.mark.parametrize("together", [True, False])
def test_a_publication_that_cannot_be_handed_out_is_lost_alone(top, together):
    accept = top.core.delivery._accept

    def fragile(publication, matched):
        if any(b"poison" in each for each in publication.bodies):
            raise RuntimeError("half-way")
        return accept(publication, matched)

    top.core.delivery._accept = fragile
    top.publish(b"pub", 1, "x")
    top.say(b"evil", Publish(1, (body(a="poison"),)), *([Publish(2, (body(a="x"),))] if together else []))
    top.publish(b"pub", 2, "x")
    assert len(delivered(top.heard(b"good"))) == 2
    assert sorted(acked(top.heard(b"pub"))) == [1, 2]
    assert {e.code for e in refusals(top.heard(b"evil"))} == {Code.INTERNAL}
    assert all(
        session.unacknowledged == session.unacknowledged_bytes == 0 for session in top.core.sessions.by_number.values()
    )


def test_a_session_that_cannot_be_ticked_drained_or_sent_to_ends_alone(top):
    for doing in ("tick", "drain", "send"):
        top.connect(b"evil")
        top.subscribe(b"evil", 5, "y", credit=0)
        session = next(s for s in top.core.sessions.by_number.values() if s.connection == b"evil")
        if doing == "tick":
            session.waiting = None  # whatever is asked of it raises
            top.core.tick(top.now)
            session.waiting = {}
        elif doing == "drain":
            top.core.sessions.backlog[session] = None
            drain = top.core.delivery._drain
            top.core.delivery._drain = lambda s, session=session, drain=drain: broken()() if s is session else drain(s)
        else:
            send = top.send
            top.send = lambda c, f, send=send: broken(OSError)() if c == b"evil" else send(c, f)
            top.say(b"evil", Bye())
        assert served(top)
        if doing != "send":
            assert [e.code for e in refusals(top.inbox.pop(b"evil", []))] == [Code.INTERNAL]
        assert b"evil" not in top.core.sessions.by_connection
        top.core.delivery.__dict__.pop("_drain", None)
        top.__dict__.pop("send", None)
    assert top.core.counters["internal_errors"] >= 3


def test_a_client_whose_end_fails_is_gone_all_the_same(top):
    top.subscribe(b"evil", 1, "y", credit=0, queue=1)
    top.subscribe(b"evil", 2, "x")
    top.publish(b"pub", 1, "y", "y")
    top.turn()
    top.core.delivery.end = broken()
    top.say(b"evil", Bye())
    del top.core.delivery.end
    assert top.core.counters["internal_errors"] == 1
    assert served(top)
    assert len(top.core.subscriptions.by_interface) == 1


def test_tracebacks_are_bounded_between_two_ticks(top, caplog):
    top.core.table.match_bodies = broken()
    top.say(b"pub", Publish(1, tuple(body(a=n) for n in range(200))))
    top.turn()
    assert top.core.counters["internal_errors"] == 200
    assert len([r for r in caplog.records if r.message == "internal error"]) == 16


# What strangers may say: any msgpack at any place of a filter, a notification or a message.

names = st.sampled_from(["a", "b", ""])
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(["POINT(1 2)", "POLYGON((0 0, 1 0, 1 1))"]),
    st.binary(max_size=3),
    st.builds(msgpack.ExtType, st.integers(0, 6), st.binary(max_size=3)),
    st.builds(msgpack.ExtType, st.integers(1, 4), st.lists(st.binary(min_size=16, max_size=16)).map(b"".join)),
    st.sampled_from([msgpack.Timestamp(0), msgpack.Timestamp(2**60), msgpack.Timestamp(-(2**60))]),
)
anything = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "type", "coordinates"]), inner, max_size=2)
    ),
    max_leaves=6,
)
operators = st.sampled_from(["=", "<", "exists", "in", "prefix", "contains", "inside", "matches", "similar", "?"])
keywords = st.lists(st.one_of(st.just("ipad"), anything), max_size=3)
point = st.just(msgpack.ExtType(1, bytes(16)))
operands = st.one_of(
    anything,
    st.lists(anything, max_size=4),
    st.tuples(st.one_of(keywords, anything), anything),
    st.tuples(st.one_of(keywords, anything), st.one_of(point, anything), st.just(0.5), anything),
)
constraints = st.one_of(st.tuples(names, operators, operands), st.tuples(names, operators), anything)
filters = st.one_of(st.lists(st.lists(constraints, max_size=3), max_size=2), anything).map(msgpack.packb)
notifications = st.one_of(st.dictionaries(names, anything, max_size=3), anything).map(msgpack.packb)
KILLER = msgpack.packb([[["a", "matches", [[[1]], None]]]])


class Plain:
    """A table of filters, evaluated one by one; made of nothing that has to be compiled."""

    def __init__(self):
        self.filters = {}

    def add(self, interface, expression):
        self.filters[len(self.filters) + 1] = interface, expression
        return [len(self.filters)]

    def adding(self, interface, expression, start=0):
        yield self.add(interface, expression)

    def remove(self, id):
        del self.filters[id]

    def filter(self, id):
        return self.filters[id][1]

    def remove_interface(self, interface):
        raise KeyError(interface)

    def match_bodies(self, bodies):
        refused = {}
        for place, each in enumerate(bodies):
            try:
                decode_notification(each)
            except CodecError as error:
                refused[place] = error
        return [set() for _ in bodies], refused


def stranger(*roles):
    top = TableTop(bad_frames=10**9)
    codec = Codec(decode_notification, decode_filter)
    identity = Identity("", frozenset(roles))
    top.core = Core(Settings(), Plain(), codec, lambda _user: identity, id="b-1")
    top.connect(b"evil")
    return top


@given(filters)
@example(KILLER)
@settings(max_examples=200)
def test_no_filter_of_a_client_is_more_than_refused(encoded):
    top = stranger(*ALL)
    top.say(b"evil", Subscribe(1, 1, (encoded,), Policy.BLOCK, 1), Advertise(2, 1, (encoded,)))
    top.say(b"evil", IndexAdd(3, "id", "name", encoded))
    top.core.turn(0.0)
    top.core.flush(top.send)
    heard = top.inbox.pop(b"evil")
    assert top.core.counters["internal_errors"] == 0, heard
    assert {e.code for e in refusals(heard)} <= {Code.BAD_FILTER, Code.UNKNOWN}
    assert len(refusals(heard)) + sum(len(m.entries) for m in heard if isinstance(m, Ack)) == 3


@given(filters, notifications)
@example(KILLER, KILLER)
@settings(max_examples=200)
def test_nothing_that_a_peer_says_of_filters_and_notifications_is_more_than_refused(encoded, said):
    top = stranger(*ALL, Role.PEER)
    top.say(b"evil", Link("evil", False))
    for message in (
        Change(Flow.SUBSCRIPTIONS, (encoded,), ()),
        Replace(Flow.ADVERTISEMENTS, tuple(range(64)), (encoded,)),
        Forward((Run("far", "p", 1, (1,), (said,)),)),
    ):
        top.core.receive(b"evil", None, encode_peer(message), 0.0)
    top.core.turn(0.0)
    assert top.core.counters["internal_errors"] == 0
    assert not top.core.pending


@given(st.lists(anything, max_size=6), st.integers(0, 40), st.booleans())
@settings(max_examples=200)
def test_no_fields_of_a_message_are_more_than_refused(fields, kind, is_peer):
    top = stranger(*ALL, Role.PEER)
    if is_peer:
        top.say(b"evil", Link("evil", False))
    top.core.receive(b"evil", None, [msgpack.packb([kind, *fields])], 0.0)
    top.core.turn(0.0)
    top.core.tick(0.0)
    assert top.core.counters["internal_errors"] == 0


def test_a_predicate_above_the_limit_is_refused_with_the_limit():
    one = ["a", "=", 1]
    for count in (1025, 4097):
        top = stranger(*ALL)
        top.say(b"evil", Subscribe(1, 1, (msgpack.packb([[one]] * count),), Policy.BLOCK, 1))
        top.core.flush(top.send)
        (refused,) = refusals(top.inbox[b"evil"])
        assert refused.code == Code.BAD_FILTER
        assert str(count) in refused.reason
        assert "1024" in refused.reason
