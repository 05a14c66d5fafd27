"""Clients that say anything that the protocol has words for, in any order: nobody else is the worse for it.

Messages of every type are made of few names and numbers, so that they meet one another: acknowledgements of what was
delivered and of what was not, keys that come again, subscriptions that are taken over, the past asked for by its ids.
Disks fail in between, connections go, brokers start again. Whatever it is, it is a refusal at most.
"""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import ForwardingTable, parse
from contrada.broker.core.core import Core
from contrada.broker.core.ports import Codec
from contrada.broker.node.settings import Settings
from contrada.broker.protocol import messages as m
from contrada.broker.protocol import wire
from contrada.broker.protocol.frames import encode
from contrada.broker.stored.limits import DurableLimits
from contrada.broker.stored.rows import POSITION_BITS
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification, encode_filter, encode_notification
from tests.broker import strategies
from tests.broker.core.test_mishaps import filters as any_filters
from tests.broker.core.test_mishaps import notifications as any_notifications
from tests.broker.durable.fake_journal import DurableTop, FakeJournal
from tests.broker.table_top import TableTop

CLIENTS = (b"p", b"q", b"r")
FILTERS = [encode_filter(parse(text)) for text in ("x > 0", "x exists", "x > 2 and y exists", "not x = 3", 's has "a"')]
BODIES = [encode_notification(each) for each in ({"x": 1}, {"x": 3, "y": 2}, {"y": 1}, {}, {"s": {"a"}})]
names = st.sampled_from(["d", "e", "desk", "k"])
numbers = st.one_of(st.integers(1, 6), st.integers(1, 6), st.sampled_from([0, 2**31, wire.MAX_INTEGER]))
requests = st.integers(1, wire.MAX_INTEGER)
subscriptions = st.one_of(st.integers(1, 4), st.sampled_from([0, wire.MAX_SUBSCRIPTION]))
filters = st.one_of(st.sampled_from(FILTERS), st.sampled_from(FILTERS), any_filters)
bodies = st.one_of(st.sampled_from(BODIES), st.sampled_from(BODIES), any_notifications)
positions = st.one_of(
    st.builds(lambda entry, place: entry << POSITION_BITS | place, st.integers(0, 9), st.integers(0, 5)),
    st.integers(0, wire.MAX_INTEGER),
)
ids = st.builds(m.NotificationId, st.sampled_from(["b-1", "b-2", ""]), numbers.filter(bool))
sinces = st.one_of(st.none(), st.just("all"), ids, st.sampled_from([0, 10**12, wire.MAX_INTEGER]))
policies, fulls = st.sampled_from(wire.Policy), st.sampled_from(wire.Full)
late = st.sampled_from([wire.Full.DROP_OLDEST, wire.Full.DEAD_LETTER])
keeps = st.builds(m.Keep, numbers, fulls, numbers, fulls, numbers, late, numbers)


def one_or_two(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, min_size=1, max_size=2).map(tuple)


SAID: dict[type, st.SearchStrategy[Any]] = {
    m.Hello: st.builds(m.Hello, st.integers(1, 2), st.integers(2, 9), names),
    m.Subscribe: st.builds(m.Subscribe, requests, subscriptions, one_or_two(filters), policies, numbers, numbers),
    m.SubscribeDurable: st.one_of(
        st.builds(
            m.SubscribeDurable, requests, subscriptions, names, one_or_two(filters), st.just(""), numbers, sinces, keeps
        ),
        st.builds(m.SubscribeDurable, requests, subscriptions, names, st.just(()), names, numbers, sinces, keeps),
    ),
    m.Unsubscribe: st.builds(m.Unsubscribe, requests, subscriptions),
    m.Publish: st.builds(m.Publish, requests, one_or_two(bodies)),
    m.Store: st.one_of(
        st.builds(m.Store, requests, one_or_two(bodies)),
        st.builds(m.Store, requests, bodies.map(lambda each: (each,)), names, st.one_of(st.just(""), names)),
    ),
    m.Acknowledge: st.builds(
        m.Acknowledge, one_or_two(st.builds(m.Acknowledgement, subscriptions, positions, positions))
    ),
    m.Credit: st.builds(m.Credit, one_or_two(st.builds(m.Grant, subscriptions, requests))),
    m.DurableQuery: st.builds(m.DurableQuery, requests, st.sampled_from(wire.DurableAction), names, positions),
    m.Attach: st.builds(m.Attach, requests, subscriptions, names, policies, numbers, numbers),
    m.Advertise: st.builds(m.Advertise, requests, subscriptions, one_or_two(filters)),
    m.Unadvertise: st.builds(m.Unadvertise, requests, subscriptions),
    m.IndexLoad: st.builds(m.IndexLoad, requests, st.sampled_from(["", "/", "/nowhere", "\0"]), names),
    m.IndexAdd: st.builds(m.IndexAdd, requests, names, names, filters),
    m.IndexRemove: st.builds(m.IndexRemove, requests, names),
    m.Status: st.builds(m.Status, requests),
    m.Explain: st.builds(m.Explain, requests, ids, numbers, subscriptions),
    m.ListSubscriptions: st.builds(m.ListSubscriptions, requests, numbers),
    m.ListReceivers: st.builds(m.ListReceivers, requests, one_or_two(ids)),
    m.Ping: st.builds(m.Ping, numbers),
    m.Pong: st.builds(m.Pong, numbers),
    m.Bye: st.builds(m.Bye, names),
    m.Link: st.builds(m.Link, names, st.booleans(), numbers),
}
said = st.one_of(*SAID.values(), strategies.messages)
clients = st.sampled_from(CLIENTS)
events = st.one_of(
    st.tuples(st.just("say"), clients, said),
    st.tuples(st.just("say"), clients, said),
    st.tuples(st.just("say"), clients, said),
    st.tuples(st.sampled_from(["connect", "go", "fill"]), clients, st.none()),
    st.tuples(st.sampled_from(["tick", "fail", "heal", "restart"]), clients, st.none()),
)


class Hostile(DurableTop):
    """A durable core with the table and the codec of a broker."""

    def __init__(self, journal: FakeJournal | None = None, **options: Any) -> None:
        TableTop.__init__(self, **options)
        codec = Codec(decode_notification, decode_filter)
        durable = DurableLimits(subscriptions=3, notifications=6, keys=4)
        settings = Settings(bad_frames=10**9, durable=durable, **options)
        table: ForwardingTable[int] = ForwardingTable()
        self.core = Core(settings, table, codec, self.identities.get, id="b-1")
        self.settings = options
        self.journal = journal or FakeJournal()
        self.wall = 1_000_000.0
        self.jobs = []
        self.core.durable.open(self.journal, lambda: self.wall)

    def restart(self) -> Hostile:
        after = Hostile(self.journal.crash(), **self.settings)
        after.wall = self.wall + 1
        return after


def act(top: Hostile, what: str, client: bytes, message: Any) -> Hostile:
    if what == "say":
        top.raw(client, *encode(message))
    elif what == "connect":
        top.full.discard(client)
        top.raw(client, *encode(m.Hello(1, wire.VERSION, "evil")))
    elif what == "go":
        top.gone.add(client)
    elif what == "fill":
        top.full.add(client)
    elif what == "tick":
        top.now += 1.0
        top.wall += 1.0
        top.core.tick(top.now)
    elif what == "fail":
        top.journal.failing = "the disk is full"
    elif what == "heal":
        top.journal.failing = ""
        top.gone.clear()
    elif what == "restart":
        assert top.core.counters["internal_errors"] == 0
        top = top.restart()
        for each in CLIENTS:
            top.raw(each, *encode(m.Hello(1, wire.VERSION, "evil")))
    top.turn()
    top.core._check()
    return top


def test_every_message_that_clients_may_say_is_among_them():
    heard = set(Hostile().core._clients.handlers)
    assert heard <= {*SAID}
    assert {*SAID} <= {*get_args(m.Message)}


@settings(max_examples=60)
@given(st.lists(events, max_size=30))
def test_whatever_clients_say_is_a_refusal_at_most(script):
    top = Hostile()
    for client in CLIENTS:
        top.raw(client, *encode(m.Hello(1, wire.VERSION, "evil")))
    for what, client, message in script:
        top = act(top, what, client, message)
    assert top.core.counters["internal_errors"] == 0
    top.journal.failing = ""
    top.now += 60.0  # whatever was refused for a while
    top.wall += 60.0
    top.core.tick(top.now)
    top.turn()
    top.inbox.clear()
    top.full.clear()
    top.gone.clear()
    top.raw(b"good", *encode(m.Hello(1, wire.VERSION, "good")))
    top.raw(b"good", *encode(m.Subscribe(1, 1, (FILTERS[0],), wire.Policy.DROP_OLDEST, 10)))
    top.raw(b"good", *encode(m.Publish(2, (BODIES[0],))))
    for _ in range(5):
        top.turn()
    heard = top.inbox[b"good"]
    assert any(isinstance(each, m.Deliver) for each in heard), heard
    assert top.core.counters["internal_errors"] == 0
