"""The decoder accepts exactly what the encoder writes, and nothing it is given costs more than it weighs."""

from __future__ import annotations

import struct
import tracemalloc
from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.protocol import wire
from contrada.broker.protocol.frames import decode, encode
from contrada.broker.protocol.messages import (
    Bye,
    Deliver,
    Delivered,
    Error,
    Hello,
    Limits,
    NotificationId,
    Ping,
    Publish,
    Subscribe,
)
from contrada.broker.sessions.batch import Batch, deliver_frames
from contrada.errors import ProtocolError
from tests.broker.strategies import messages


@given(messages)
def test_every_message_survives_the_wire(message):
    encoded = encode(message)
    assert all(type(frame) is bytes for frame in encoded)
    decoded = decode(encoded)
    assert decoded == message
    assert encode(decoded) == encoded


@given(st.lists(st.binary(max_size=200), max_size=4))
def test_random_bytes_raise_the_one_error(raw):
    with suppress(ProtocolError):
        decode(raw)


@given(messages, st.data())
def test_damaged_messages_raise_the_one_error_or_decode_to_a_message(message, data):
    encoded = encode(message)
    which = data.draw(st.integers(0, len(encoded) - 1))
    frame = bytearray(encoded[which])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(frame) - 1)))
        action = data.draw(st.sampled_from(["flip", "cut", "insert", "delete"]))
        if action == "flip" and frame:
            frame[at] ^= data.draw(st.integers(1, 255))
        elif action == "cut":
            del frame[at:]
        elif action == "insert":
            frame[at:at] = data.draw(st.binary(min_size=1, max_size=5))
        elif frame:
            del frame[at]
    encoded[which] = bytes(frame)
    try:
        decoded = decode(encoded)
    except ProtocolError:
        return
    assert decode(encode(decoded)) == decoded


@given(messages, st.integers(0, 3))
def test_surplus_and_missing_attachments_are_refused(message, extra):
    encoded = encode(message)
    with pytest.raises(ProtocolError):
        decode([*encoded, b"x" * (wire.INLINE_BYTES + 1)])
    for missing in range(1, len(encoded)):
        with pytest.raises(ProtocolError):
            decode(encoded[:missing])


@given(messages, st.integers(-1, 20), st.one_of(st.none(), st.binary(), st.booleans(), st.floats(), st.text()))
def test_fields_of_the_wrong_type_are_refused_or_meant(message, position, value):
    head, *attachments = encode(message)
    fields = list(msgpack.unpackb(head))
    if 0 < position < len(fields):
        fields[position] = value
    else:
        fields.append(value)
    with suppress(ProtocolError):
        decode([msgpack.packb(fields), *attachments])


BOMBS = {
    "deep arrays": b"\x91" * 100_000,
    "deep maps": b"\x81\xa1a" * 100_000,
    "deep and wide arrays": (b"\xdc" + struct.pack(">H", 2049)) * 30_000,
    "an array that claims 4 billion": b"\xdd\xff\xff\xff\xff" + b"\xc0" * 1000,
    "a map that claims 4 billion": b"\x92\x10\xdf\xff\xff\xff\xff" + b"\xc0" * 1000,
    "a string that claims 4 GB": b"\x92\x01\xdb\xff\xff\xff\xff",
    "binary that claims 4 GB": b"\x92\x01\xc6\xff\xff\xff\xff",
    "an extension that claims 4 GB": b"\x92\x01\xc9\xff\xff\xff\xff\x05",
    "a bad timestamp": b"\x92\x09\xc7\x0c\xff" + b"\xff" * 12,
    "many empty arrays": b"\xdc\x08\x01" + b"\x90" * 2049,
    "unhashable map key": b"\x92\x10\x81\x90\x01",
    "not UTF-8": b"\x92\x0c\xa2\xff\xfe",
    "a lone surrogate": b"\x92\x0c\xa3\xed\xa0\x80",
    "trailing bytes": b"\x92\x09\x01\x01",
    "a bool for an integer": b"\x92\x09\xc3",
    "a float for an integer": b"\x92\x09\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00",
    "an integer beyond the limit": b"\x92\x09\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    "nothing": b"",
    "an empty array": b"\x90",
    "an unknown type": b"\x91\x7f",
}


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_heads_are_refused_in_proportion_to_their_length(name):
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode([BOMBS[name]])
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_limits_are_inclusive():
    limits = Limits(message_bytes=200, notification_bytes=100, batch=2)
    assert decode(encode(Publish(1, (bytes(100),))), limits)
    for refused in (Publish(1, (bytes(101),)), Publish(1, (b"", b"", b"")), Publish(1, (bytes(100), bytes(100)))):
        with pytest.raises(ProtocolError, match=r"limit|array of 1 to 2"):
            decode(encode(refused), limits)


def test_an_envelope_is_packed_once_for_all_receivers():
    id = NotificationId("b-1", 7)
    for body in (b"abc", bytes(100_000)):
        batch = Batch(id.broker, (id.sequence,), "alice", (body,))
        one, two = deliver_frames([(batch, (1,))]), deliver_frames([(batch, tuple(range(20)))])
        assert decode(one) == Deliver((Delivered(id, "alice", body, (1,)),))
        assert decode(two) == Deliver((Delivered(id, "alice", body, tuple(range(20))),))
        if len(body) > wire.INLINE_BYTES:
            assert one[1] is two[1] is body


def test_reasons_are_cut_to_fit():
    reason = decode(encode(Error(0, wire.Code.LIMIT, "é" * 5000))).reason
    assert len(reason.encode()) <= wire.REASON_BYTES
    assert reason.endswith("é…")
    assert decode(encode(Bye("\ud800"))) == Bye("?")


def test_the_reasons_say_what_is_wrong():
    cases = {
        msgpack.packb([1, "mqtt", 1, 1, ""]): "another protocol",
        msgpack.packb([1, "contrada", 2, 1, ""]): "newest must be an integer from 2",
        msgpack.packb([3, 1, 1, [b""], "drop-newest", 1, 0]): "policy must be one of block, drop-oldest, disconnect",
        msgpack.packb([9]): "PING has 1 fields, not 0",
    }
    for head, reason in cases.items():
        with pytest.raises(ProtocolError, match=reason):
            decode([head])


def test_messages_of_different_types_are_never_equal():
    assert Ping(1) != Hello(1, 1, "")
    with pytest.raises(AttributeError):
        Ping(1).nonce = 2


def test_notification_ids_are_written_and_read():
    for id in (NotificationId("b-1", 7), NotificationId("a:b", 1)):
        assert NotificationId.parse(str(id)) == id
    for text in ("", "b", "b:", ":7", "b:-1", "b:²"):
        with pytest.raises(ValueError, match="BROKER:SEQUENCE"):
            NotificationId.parse(text)


def test_subscribe_has_defaults_that_travel():
    message = Subscribe(1, 2, (b"f",), wire.Policy.BLOCK, 0)
    assert decode(encode(message)) == message
