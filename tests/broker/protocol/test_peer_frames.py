"""Messages between brokers survive the wire, damage raises the one error, and splitting changes nothing."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.protocol import peer_messages as peer
from contrada.broker.protocol import wire
from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.messages import Limits, Ping
from contrada.broker.protocol.peer_frames import decode_peer, encode_peer, forward_frames, split
from contrada.broker.routing.flow import FlowState
from contrada.broker.sessions.batch import Batch
from contrada.errors import ProtocolError
from tests.broker.strategies import bodies, few, messages, names

flows = st.sampled_from(peer.Flow)
keys = st.binary(min_size=peer.KEY_BYTES, max_size=peer.KEY_BYTES)
filters = st.lists(st.binary(max_size=40), max_size=6, unique=True).map(tuple)
states = st.builds(peer.LinkState, names, st.integers(0, 2**62), st.frozensets(names, max_size=4), st.integers(0, 1000))


def replace_of(flow, filters, more):
    buckets = {peer.bucket_of(peer.filter_key(encoded)) for encoded in filters} | more
    return peer.Replace(flow, tuple(sorted(buckets)), filters)


runs = st.lists(st.tuples(st.integers(1, 2**63 - 1), bodies), min_size=1, max_size=4).flatmap(
    lambda pairs: st.builds(
        peer.Run,
        names,
        names,
        st.integers(1, 255),
        st.just(tuple(sequence for sequence, _ in pairs)),
        st.just(tuple(body for _, body in pairs)),
    )
)
positive = st.integers(1, 2**63 - 1)


def carry_of(round, runs, first):
    count = sum(len(run.bodies) for run in runs)
    return peer.Carry(round, tuple(range(first, first + 3 * count, 3)), runs)


peer_messages = st.one_of(
    st.builds(peer.LinkStates, few(states)),
    st.builds(
        peer.Digest,
        flows,
        st.lists(st.integers(0, 2**128 - 1), min_size=peer.BUCKETS, max_size=peer.BUCKETS).map(tuple),
    ),
    st.builds(replace_of, flows, filters, st.frozensets(st.integers(0, peer.BUCKETS - 1))),
    st.builds(peer.Change, flows, filters, st.lists(keys, max_size=4).map(tuple)),
    st.builds(peer.Forward, few(runs)),
    st.builds(carry_of, st.integers(1, 2**63 - 1), few(runs), st.integers(1, 2**60)),
    st.builds(peer.Carried, few(st.tuples(positive, positive))),
    st.builds(peer.Decline, positive, st.text(max_size=40)),
    st.builds(peer.Known, st.integers(0, 2**63 - 1)),
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
    if isinstance(decoded, peer.LinkStates | peer.Digest | peer.Replace | peer.Change | peer.Forward):
        assert decode_peer(encode_peer(decoded)) == decoded


HOSTILE = {
    "an array of a billion": b"\xdd\x00\x00\x00\x02\x21\xdd\x3b\x9a\xca\x00",
    "a digest of one bucket": msgpack.packb([wire.DIGEST, "subscriptions", [bytes(16)]]),
    "a digest of short numbers": msgpack.packb([wire.DIGEST, "subscriptions", [b""] * peer.BUCKETS]),
    "an unknown flow": msgpack.packb([wire.CHANGE, "other", [], []]),
    "a key of 15 bytes": msgpack.packb([wire.CHANGE, "subscriptions", [], [bytes(15)]]),
    "bucket 64": msgpack.packb([wire.REPLACE, "subscriptions", [64], []]),
    "a bucket twice": msgpack.packb([wire.REPLACE, "subscriptions", [1, 1], []]),
    "a filter outside the buckets": msgpack.packb([wire.REPLACE, "subscriptions", [], [b"x"]]),
    "a sequence nobody can outbid": msgpack.packb([wire.LINK_STATES, [["b", 2**63 - 1, [], 100, 0, 0]]]),
    "neighbours out of order": msgpack.packb([wire.LINK_STATES, [["b", 1, ["z", "a"], 100, 0, 0]]]),
    "a state without an incarnation": msgpack.packb([wire.LINK_STATES, [["b", 1, [], 100]]]),
    "no hops": msgpack.packb([wire.FORWARD, ["b", "p", 0, [1], [b""]]]),
    "too many hops": msgpack.packb([wire.FORWARD, ["b", "p", 256, [1], [b""]]]),
    "a run without bodies": msgpack.packb([wire.FORWARD, ["b", "p", 1, [1]]]),
    "an empty run": msgpack.packb([wire.FORWARD, ["b", "p", 1, [], []]]),
    "a body without a number": msgpack.packb([wire.FORWARD, ["b", "p", 1, [1], [b"", b""]]]),
    "a number for the runs": msgpack.packb([wire.FORWARD, 7]),
    "text for the bodies": msgpack.packb([wire.FORWARD, ["b", "p", 1, [1], "x"]]),
    "too many in all": msgpack.packb([wire.FORWARD, *[["b", "p", 1, [1] * 600, [b""] * 600]] * 2]),
    "an empty forward": msgpack.packb([wire.FORWARD]),
    "a boolean for a number": msgpack.packb([wire.FORWARD, ["b", "p", 1, [True], [b""]]]),
    "number zero": msgpack.packb([wire.FORWARD, ["b", "p", 1, [0], [b""]]]),
}


@pytest.mark.parametrize("head", HOSTILE.values(), ids=HOSTILE)
def test_hostile_heads_are_refused(head):
    with pytest.raises(ProtocolError):
        decode_peer([head])


def test_limits_hold_for_peers_too():
    limits = Limits(message_bytes=10_000, notification_bytes=100)
    with pytest.raises(ProtocolError, match="the limit is 10000"):
        decode_peer(encode_peer(peer.Change(peer.Flow.SUBSCRIPTIONS, (b"x" * 5000, b"y" * 5000), ())), limits)
    with pytest.raises(ProtocolError, match="the limit is 100"):
        decode_peer(encode_peer(peer.Forward((peer.Run("b", "p", 1, (1,), (bytes(101),)),))), limits)
    with pytest.raises(ProtocolError, match="attachments"):
        decode_peer([*encode_peer(peer.Change(peer.Flow.SUBSCRIPTIONS, (), ())), b"x"])
    assert decode_peer(encode(Ping(3)), limits) == Ping(3)


@given(few(runs))
def test_forwards_are_joined_from_the_envelopes_of_deliveries(runs):
    entries = [
        (Batch(run.origin, (sequence,), run.publisher, (body,), run.hops - 1), [0])
        for run in runs
        for sequence, body in zip(run.sequences, run.bodies, strict=True)
    ]
    joined = decode_peer(forward_frames(entries)).runs
    assert [(*run[:3], *pair) for run in joined for pair in zip(*run[3:], strict=True)] == [
        (*run[:3], *pair) for run in runs for pair in zip(*run[3:], strict=True)
    ]
    assert all(a[:3] != b[:3] for a, b in pairwise(joined)), "neighbours that could be one run are"


@given(peer_messages, st.integers(1, 200))
def test_splitting_has_the_same_effect_and_never_a_gap(message, size):
    parts = list(split(message, size))
    if isinstance(message, peer.LinkStates):
        assert tuple(state for part in parts for state in part.states) == message.states
    elif not isinstance(message, peer.Replace | peer.Change):
        assert parts == [message]
    else:
        whole, piecewise = FlowState(message.flow), FlowState(message.flow)
        before = (b"one", b"two", b"three", *getattr(message, "filters", ())[:2])
        for state in (whole, piecewise):
            for encoded in before:
                state.asked.add(peer.filter_key(encoded), encoded)
        take(whole, message)
        kept = set(whole.asked) & {peer.filter_key(encoded) for encoded in before}
        overlong = isinstance(message, peer.Replace) and any(isinstance(part, peer.Change) for part in parts)
        for part in parts:
            take(piecewise, part)
            assert kept <= set(piecewise.asked) or overlong
        assert set(piecewise.asked) == set(whole.asked) or _removes_what_it_adds(message)


def take(state: FlowState, message: peer.Replace | peer.Change) -> None:
    state.take_replace(message) if isinstance(message, peer.Replace) else state.take_change(message)


def test_a_bucket_longer_than_a_message_travels_in_pieces():
    filters = tuple(
        body for n in range(1000) if peer.bucket_of(peer.filter_key(body := b"%d" % n + bytes(400_000))) == 3
    )
    message = peer.Replace(peer.Flow.SUBSCRIPTIONS, (3,), filters)
    parts = list(split(message))
    held = FlowState(peer.Flow.SUBSCRIPTIONS)
    for part in parts:
        assert sum(map(len, encode_peer(part))) < 2 << 20
        take(held, decode_peer(encode_peer(part)))
    assert len(parts) > 2
    assert set(held.asked) == {peer.filter_key(encoded) for encoded in filters}


def _removes_what_it_adds(message) -> bool:
    return isinstance(message, peer.Change) and bool({peer.filter_key(f) for f in message.add} & set(message.remove))


def test_a_hundred_thousand_filters_travel_in_pieces():
    wanted = {peer.filter_key(b"%d" % n): b"%d" % n for n in range(100_000)}
    message = peer.Replace(peer.Flow.SUBSCRIPTIONS, tuple(range(peer.BUCKETS)), tuple(wanted.values()))
    held = FlowState(peer.Flow.SUBSCRIPTIONS)
    parts = list(split(message))
    for part in parts:
        held.take_replace(decode_peer(encode_peer(part)))
    assert len(parts) > 1
    assert set(held.asked) == wanted.keys()
