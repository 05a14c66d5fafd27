"""Reading encoded notifications in compiled code: what it reads is what the codec and `encode_notifications` make."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import ForwardingTable, GeoText, Point, Region, parse
from contrada.errors import CodecError
from contrada.forwarding.batches.bodies import read_plain
from contrada.forwarding.batches.encode import encode_notifications
from contrada.forwarding.codec.msgpack import decode_notification, encode_notification
from contrada.forwarding.kernels.memory.names import NameIndex
from contrada.forwarding.state.numbering import NameNumbering
from tests.forwarding import strategies as given_

if TYPE_CHECKING:
    from collections.abc import Sequence

KNOWN = ("a", "b", "é", "name" * 60, "東京")
NUMBERS = {name: number for number, name in enumerate(KNOWN, 1)}
NAMES = NameIndex([None, *KNOWN]).names
names = st.sampled_from(KNOWN) | given_.any_names
plain = given_.notifications(names, given_.any_scalars)
anything = given_.notifications(names, given_.any_values)

pytestmark = pytest.mark.usefixtures("every_matching")


def read(bodies: Sequence[bytes]) -> list[int]:
    """Read the bodies in compiled code; the places that it left. The others must be as the codec has them."""
    batch, values, widest, left = read_plain(bodies, NAMES)
    others = [decode_notification(body) for place, body in enumerate(bodies) if place not in set(left)]
    expected, objects, most = encode_notifications(others, NUMBERS)
    for ours, theirs in zip(batch, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
    assert (values.names, values.kinds, [*values.values]) == (objects.names, objects.kinds, objects.values)
    assert widest == most
    return list(left)


@given(st.lists(plain, max_size=6))
def test_plain_notifications_are_read(notifications: list[dict[str, Any]]) -> None:
    bodies = [encode_notification(each) for each in notifications]
    rare = [n for n, body in enumerate(bodies) if b"\xc7\x0c\xff" in body]  # times before 1970 or after 2514
    assert read(bodies) == rare


@given(st.lists(anything, max_size=6))
def test_others_are_left(notifications: list[dict[str, Any]]) -> None:
    left = read([encode_notification(each) for each in notifications])
    for place, each in enumerate(notifications):
        if any(isinstance(value, (Region, GeoText)) for value in each.values()):
            assert place in left


@given(anything, st.data())
@settings(max_examples=300)
def test_damaged_bodies_are_never_read_as_something_else(notification: dict[str, Any], data: st.DataObject) -> None:
    body = bytearray(encode_notification(notification))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    sound = encode_notification({"a": 1})
    for damaged in (bytes(body), bytes(body[:cut]), bytes(body[cut:]), bytes(body) + b"\0"):
        read([sound, damaged, sound])  # decodes what was read, which raises if the codec refuses it


@given(st.binary(max_size=40))
@settings(max_examples=300)
def test_noise_is_left_unless_the_codec_reads_it(noise: bytes) -> None:
    read([noise, b"\x81" + noise, b"\x81\xa1a" + noise])


def one(value: bytes) -> bytes:
    return b"\x81\xa1a" + value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x80\x00",
        b"\x81",
        b"\x82\xa1a\x01\xa1a\x02",  # a repeated name
        b"\x82\xa1z\x01\xa1z\x02",  # which nobody asks for
        b"\x81\xa0\x01",  # no name
        b"\x81\xd9\x00\x01",
        b"\x81\x01\x01",
        b"\xde\x00\x41" + b"\xa1a\x01" * 65,
        one(b"\xcf" + b"\xff" * 8),  # 2**64 - 1
        one(b"\xcb" + struct.pack(">d", float("inf"))),
        one(b"\xcb" + struct.pack(">d", float("-inf"))),
        one(b"\xcb" + struct.pack(">d", float("nan"))),
        one(b"\xcb\x00\x00"),
        one(b"\xa2\xc3"),
        one(b"\xa2\xc3("),  # a lead byte without what follows
        one(b"\xa2\xc0\x80"),  # overlong
        one(b"\xa3\xe0\x80\x80"),
        one(b"\xa3\xed\xa0\x80"),  # a surrogate
        one(b"\xa4\xf4\x90\x80\x80"),  # beyond U+10FFFF
        one(b"\xa1\x80"),
        one(b"\xc0"),
        one(b"\xc4\x01a"),
        one(b"\x90"),
        one(b"\x80"),
        one(b"\xd7\xff" + (1_000_000_000 << 34).to_bytes(8)),  # a full second of nanoseconds
        one(b"\xd8\x01" + struct.pack("<dd", 1e101, 0.0)),
        one(b"\xd8\x01" + struct.pack("<dd", 0.0, float("nan"))),
        one(b"\xd8\x01" + struct.pack("<dd", 1e-101, 0.0)),
        one(b"\xd8\x02" + bytes(16)),
        one(b"\x01\x01"),
    ],
)
def test_left(body: bytes) -> None:
    assert read([body]) == [0]


@pytest.mark.parametrize(
    "value",
    [
        *(number for power in (7, 8, 15, 16, 31, 32, 63) for number in (2**power - 1, -(2**power))),
        *(2**power for power in (7, 8, 15, 16, 31, 32)),
        *(length * "x" for length in (0, 31, 32, 255, 256, 30_000)),
        "\U0010ffff\ud7ff\ue000é\0",
        -0.0,
        5e-324,
        Point(-0.0, 1e-100),
        Point(1e100, -1e100),
        msgpack.Timestamp(2**34 - 1, 999_999_999).to_datetime(),
        msgpack.Timestamp(2**32 - 1, 0).to_datetime(),
    ],
)
def test_read(value: Any) -> None:
    assert read([encode_notification({"a": value, "unknown": value})]) == []


def test_other_forms_of_the_same_values_are_read() -> None:
    """msgpack has several: a publisher need not write the shortest."""
    forms = (b"\xcc\x01", b"\xcd\0\x01", b"\xce\0\0\0\x01", b"\xcf" + bytes(7) + b"\x01", b"\xd3" + b"\xff" * 8)
    forms += (b"\xd9\x01x", b"\xda\0\x01x", b"\xd7\xff" + bytes(7) + b"\x01")
    assert read([*map(one, forms), b"\xde\0\x01\xd9\x01a\x01"]) == []


def test_names_come_and_go() -> None:
    numbering = NameNumbering()
    numbers = {name: numbering.number(name) for name in ("a", "b", "ü" * 100)}
    assert numbering.names.rows.shape[0] > 3
    for generation in range(40):
        for n in range(5):
            numbers[f"{generation}.{n}"] = numbering.number(f"{generation}.{n}")
        numbering._check()
        for name in (f"{generation - 1}.{n}" for n in range(5) if generation):
            numbering.release(numbers.pop(name))
        numbering._check()
        bodies = [encode_notification({name: True}) for name in (*numbers, "0.0", "none")]
        batch = read_plain(bodies, numbering.names)[0]
        expected = encode_notifications([decode_notification(body) for body in bodies], numbers)[0]
        assert np.array_equal(batch.rows, expected.rows)
        assert np.array_equal(batch.ends, expected.ends)


@given(st.lists(given_.notifications(given_.names, given_.values) | st.binary(max_size=5), max_size=12))
def test_matching_bodies_is_matching_what_they_hold(given: list[dict[str, Any] | bytes]) -> None:
    table = ForwardingTable()
    for interface, text in enumerate(("a exists", "b > 1 or c = true", 'a prefix "a"', "c inside BOX(0 0, 4 4)")):
        table.add(interface, parse(text))
    table.add(4, parse("a intersects BOX(0 0, 4 4) and b exists"))
    bodies = [each if isinstance(each, bytes) else encode_notification(each) for each in given]
    answers, refused = table.match_bodies(bodies)
    assert len(answers) == len(bodies)
    for place, body in enumerate(bodies):
        if place in refused:
            with pytest.raises(CodecError) as caught:
                decode_notification(body)
            assert str(refused[place]) == str(caught.value)
            assert answers[place] == set()
        else:
            assert answers[place] == table.match(decode_notification(body))
