"""Hypothesis strategies for every message of the protocol."""

from __future__ import annotations

from hypothesis import strategies as st

from contrada.broker.protocol import messages as m
from contrada.broker.protocol import wire

names = st.text(max_size=20)
some = st.text(min_size=1, max_size=20)
positive = st.integers(1, wire.MAX_INTEGER)
counts = st.integers(0, wire.MAX_INTEGER)
subscriptions = st.integers(0, wire.MAX_SUBSCRIPTION)
bodies = st.one_of(st.binary(max_size=40), st.integers(8190, 8200).map(bytes))
seconds = st.floats(0.001, 1e6)
ids = st.builds(m.NotificationId, st.text(max_size=20), positive)
limits = st.builds(m.Limits, *([positive] * len(m.Limits._fields)))
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


since = st.one_of(st.none(), st.just("all"), ids, counts)
full = st.sampled_from(wire.Full)
late = st.sampled_from([wire.Full.DROP_OLDEST, wire.Full.DEAD_LETTER])
keeps = st.builds(m.Keep, counts, full, counts, full, counts, late, counts)


def few(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(strategy, min_size=1, max_size=4).map(tuple)


messages = st.one_of(
    st.tuples(st.integers(1, 65_535), st.integers(1, 65_535), names).map(
        lambda t: m.Hello(min(t[:2]), max(t[:2]), t[2])
    ),
    st.builds(
        m.Welcome,
        st.integers(1, 65_535),
        names,
        positive,
        names,
        st.frozensets(st.sampled_from(wire.Role)),
        seconds,
        seconds,
        limits,
    ),
    st.builds(m.Subscribe, positive, subscriptions, few(st.binary()), st.sampled_from(wire.Policy), counts, counts),
    st.builds(m.Unsubscribe, positive, subscriptions),
    st.builds(m.Publish, positive, few(bodies)),
    st.builds(m.Deliver, few(st.builds(m.Delivered, ids, names, bodies, few(subscriptions)))),
    st.builds(m.Ack, few(st.builds(m.Acked, positive, counts))),
    st.builds(m.Credit, few(st.builds(m.Grant, subscriptions, positive))),
    st.builds(m.Ping, counts),
    st.builds(m.Pong, counts),
    st.builds(m.Error, counts, st.sampled_from(wire.Code), st.text(), st.booleans()),
    st.builds(m.Bye, st.text()),
    st.builds(m.Dropped, few(st.builds(m.Drop, subscriptions, positive, positive))),
    st.builds(m.Status, positive),
    st.builds(m.Explain, positive, ids, counts, subscriptions),
    st.builds(m.ListSubscriptions, positive, counts),
    st.builds(m.ListReceivers, positive, few(ids)),
    st.builds(m.Reply, positive, st.dictionaries(st.text(), plain, max_size=4)),
    st.builds(m.Advertise, positive, subscriptions, few(st.binary())),
    st.builds(m.Unadvertise, positive, subscriptions),
    st.builds(m.Attach, positive, subscriptions, some, st.sampled_from(wire.Policy), counts, counts),
    st.builds(m.IndexLoad, positive, st.text(max_size=40), names),
    st.builds(m.IndexAdd, positive, some, some, st.binary(max_size=40)),
    st.builds(m.IndexRemove, positive, some),
    st.builds(m.Link, names, st.booleans(), counts),
    st.builds(m.Store, positive, few(bodies)),
    st.builds(m.Store, positive, bodies.map(lambda body: (body,)), names, names),
    st.builds(m.SubscribeDurable, positive, subscriptions, some, few(st.binary()), st.just(""), counts, since, keeps),
    st.builds(m.SubscribeDurable, positive, subscriptions, some, st.just(()), some, counts, since, keeps),
    st.builds(m.Acknowledge, few(st.builds(m.Acknowledgement, subscriptions, counts, counts))),
    st.builds(
        m.DeliverDurable, subscriptions, few(st.builds(m.Stored, ids, names, bodies, positive, positive, counts))
    ),
    st.builds(m.DurableQuery, positive, st.sampled_from(wire.DurableAction), names, counts),
)
