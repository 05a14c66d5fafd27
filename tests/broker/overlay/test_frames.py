"""Messages between brokers survive the wire, damage raises the one error, and splitting changes nothing."""

from __future__ import annotations

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.broker import wire
from contrada.broker.frames import Envelope, encode
from contrada.broker.messages import Limits, NotificationId, Ping
from contrada.broker.overlay.filter_set import FilterSet, bucket_of, filter_key
from contrada.broker.overlay.frames import decode_peer, encode_peer, forward_frames, split
from contrada.broker.overlay.link import FlowState
from contrada.broker.overlay.messages import (
    BUCKETS,
    KEY_BYTES,
    Change,
    Digest,
    Flow,
    Forward,
    Forwards,
    LinkState,
    LinkStates,
    Replace,
)
from contrada.errors import ProtocolError
from tests.broker.strategies import bodies, few, ids, messages, names

flows = st.sampled_from(Flow)
keys = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)
filters = st.lists(st.binary(max_size=40), max_size=6, unique=True).map(tuple)
states = st.builds(LinkState, names, st.integers(0, 2**62), st.frozensets(names, max_size=4), st.integers(0, 1000))


def replace_of(flow, filters, more):
    buckets = {bucket_of(filter_key(encoded)) for encoded in filters} | more
    return Replace(flow, tuple(sorted(buckets)), filters)


peer_messages = st.one_of(
    st.builds(LinkStates, few(states)),
    st.builds(Digest, flows, st.lists(st.integers(0, 2**128 - 1), min_size=BUCKETS, max_size=BUCKETS).map(tuple)),
    st.builds(replace_of, flows, filters, st.frozensets(st.integers(0, BUCKETS - 1))),
    st.builds(Change, flows, filters, st.lists(keys, max_size=4).map(tuple)),
    st.builds(Forwards, few(st.builds(Forward, ids, names, st.integers(1, 255), bodies))),
)


@given(peer_messages)
def test_every_message_survives_the_wire(message):
    encoded = encode_peer(message)
    decoded = decode_peer(encoded)
    assert decoded == message
    assert encode_peer(decoded) == encoded


@given(messages)
def test_a_link_also_carries_what_clients_and_brokers_say(message):
    assert decode_peer(encode(message)) == message


@given(st.lists(st.binary(max_size=200), max_size=4))
def test_random_bytes_raise_the_one_error(raw):
    with suppress(ProtocolError):
        decode_peer(raw)


@given(peer_messages, st.data())
def test_damaged_messages_raise_the_one_error_or_decode_to_a_message(message, data):
    encoded = encode_peer(message)
    frame = bytearray(encoded[0])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(frame) - 1)))
        frame[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    encoded[0] = bytes(frame)
    try:
        decoded = decode_peer(encoded)
    except ProtocolError:
        return
    if isinstance(decoded, LinkStates | Digest | Replace | Change | Forwards):
        assert decode_peer(encode_peer(decoded)) == decoded


HOSTILE = {
    "an array of a billion": b"\xdd\x00\x00\x00\x02\x21\xdd\x3b\x9a\xca\x00",
    "a digest of one bucket": msgpack.packb([wire.DIGEST, "subscriptions", [bytes(16)]]),
    "a digest of short numbers": msgpack.packb([wire.DIGEST, "subscriptions", [b""] * BUCKETS]),
    "an unknown flow": msgpack.packb([wire.CHANGE, "other", [], []]),
    "a key of 15 bytes": msgpack.packb([wire.CHANGE, "subscriptions", [], [bytes(15)]]),
    "bucket 64": msgpack.packb([wire.REPLACE, "subscriptions", [64], []]),
    "a bucket twice": msgpack.packb([wire.REPLACE, "subscriptions", [1, 1], []]),
    "a filter outside the buckets": msgpack.packb([wire.REPLACE, "subscriptions", [], [b"x"]]),
    "a sequence nobody can outbid": msgpack.packb([wire.LINK_STATES, [["b", 2**63 - 1, [], 100]]]),
    "neighbours out of order": msgpack.packb([wire.LINK_STATES, [["b", 1, ["z", "a"], 100]]]),
    "no hops": msgpack.packb([wire.FORWARD, ["b", 1, "p", b""], 0]),
    "an envelope alone": msgpack.packb([wire.FORWARD, ["b", 1, "p", b""]]),
    "an empty forward": msgpack.packb([wire.FORWARD]),
    "a boolean for a number": msgpack.packb([wire.FORWARD, ["b", True, "p", b""], 1]),
}


@pytest.mark.parametrize("head", HOSTILE.values(), ids=HOSTILE)
def test_hostile_heads_are_refused(head):
    with pytest.raises(ProtocolError):
        decode_peer([head])


def test_limits_hold_for_peers_too():
    limits = Limits(message_bytes=10_000, notification_bytes=100)
    with pytest.raises(ProtocolError, match="the limit is 10000"):
        decode_peer(encode_peer(Change(Flow.SUBSCRIPTIONS, (b"x" * 5000, b"y" * 5000), ())), limits)
    with pytest.raises(ProtocolError, match="the limit is 100"):
        decode_peer(encode_peer(Forwards((Forward(NotificationId("b", 1), "p", 1, bytes(101)),))), limits)
    with pytest.raises(ProtocolError, match="attachments"):
        decode_peer([*encode_peer(Change(Flow.SUBSCRIPTIONS, (), ())), b"x"])
    assert decode_peer(encode(Ping(3)), limits) == Ping(3)


@given(few(st.builds(Forward, ids, names, st.integers(1, 255), bodies)))
def test_forwards_are_joined_from_the_envelopes_of_deliveries(forwards):
    entries = [(Envelope(f.id.broker, f.id.sequence, f.publisher, f.body, f.hops - 1), [0]) for f in forwards]
    assert decode_peer(forward_frames(entries)) == Forwards(forwards)


@given(peer_messages, st.integers(1, 200))
def test_splitting_has_the_same_effect_and_never_a_gap(message, size):
    parts = list(split(message, size))
    if isinstance(message, LinkStates):
        assert tuple(state for part in parts for state in part.states) == message.states
    elif not isinstance(message, Replace | Change):
        assert parts == [message]
    else:
        whole, piecewise = FlowState(message.flow), FlowState(message.flow)
        before = (b"one", b"two", b"three", *getattr(message, "filters", ())[:2])
        for state in (whole, piecewise):
            for encoded in before:
                state.held.add(filter_key(encoded), encoded)
        take = FlowState.take_replace if isinstance(message, Replace) else FlowState.take_change
        take(whole, message)
        kept = set(whole.held) & {filter_key(encoded) for encoded in before}
        for part in parts:
            take(piecewise, part)
            assert kept <= set(piecewise.held)
        assert set(piecewise.held) == set(whole.held) or _removes_what_it_adds(message)


def _removes_what_it_adds(message) -> bool:
    return isinstance(message, Change) and bool({filter_key(f) for f in message.add} & set(message.remove))


def test_a_hundred_thousand_filters_travel_in_pieces():
    wanted = FilterSet()
    for n in range(100_000):
        wanted.add(filter_key(b"%d" % n), b"%d" % n)
    message = Replace(Flow.SUBSCRIPTIONS, tuple(range(BUCKETS)), tuple(wanted.within(range(BUCKETS)).values()))
    held = FlowState(Flow.SUBSCRIPTIONS)
    parts = list(split(message))
    for part in parts:
        held.take_replace(decode_peer(encode_peer(part)))
    assert len(parts) > 1
    assert held.held.digest == wanted.digest
