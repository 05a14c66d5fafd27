"""msgpack and JSON: what is written reads back, and whatever else is read raises `CodecError` and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.codec.json import (
    filter_from_json,
    filter_to_json,
    notification_from_json,
    notification_to_json,
)
from contrada.forwarding.codec.limits import NO_LIMITS, Limits
from contrada.forwarding.codec.msgpack import (
    decode_filter,
    decode_notification,
    decode_value,
    encode_filter,
    encode_notification,
    encode_value,
)
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.filter import Filter, Predicate
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.language.values import kind_of
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.textual.geotext import GeoText
from tests.forwarding import strategies as given_

if TYPE_CHECKING:
    from collections.abc import Callable

any_notifications = given_.notifications(given_.any_names, given_.any_values)
any_filters = given_.filters(given_.constraints(given_.any_names, given_.any_scalars, given_.any_strings, similar=True))
any_predicates = given_.predicates(any_filters)

DECODERS: list[Callable[[bytes], object]] = [
    decode_notification,
    decode_filter,
    decode_value,
    notification_from_json,
    filter_from_json,
]


def same(a: object, b: object) -> bool:
    """Equal, and of the same type: 1, 1.0 and True differ on the wire, and so do a Box and its polygon."""
    return type(a) is type(b) and a == b


@given(any_notifications)
def test_notifications_read_back(notification: dict[str, Any]) -> None:
    for read in (
        decode_notification(encode_notification(notification)),
        notification_from_json(notification_to_json(notification)),
    ):
        assert read.keys() == notification.keys()
        assert all(same(read[name], value) for name, value in notification.items())


@given(given_.any_values)
def test_values_read_back(value: object) -> None:
    assert same(decode_value(encode_value(value)), value)


@given(any_predicates | any_filters)
def test_filters_read_back(expression: Filter | Predicate) -> None:
    assert decode_filter(encode_filter(expression)) == expression
    assert filter_from_json(filter_to_json(expression)) == expression


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(form: Any) -> None:
    assert decode_notification(form(encode_notification({"x": 1}))) == {"x": 1}
    assert decode_filter(form(encode_filter(parse("x = 1")))) == parse("x = 1")


@pytest.mark.parametrize("wrong", [None, 3, "text", [1]])
def test_what_is_no_buffer_is_refused(wrong: Any) -> None:
    with pytest.raises(CodecError):
        decode_notification(wrong)
    with pytest.raises(CodecError):
        decode_filter(wrong)


def test_order_of_filters_is_kept() -> None:
    predicate = parse("z = 1 or a = 1 or m = 1")
    assert decode_filter(encode_filter(predicate)).filters == predicate.filters


def test_json_is_geojson() -> None:
    notification = {
        "where": Point(1, 2),
        "area": Box(0, 0, 2, 1),
        "post": GeoText("iPad sale", at=(1, 2)),
        "when": datetime(2026, 11, 16, 9, 30, tzinfo=UTC),
    }
    assert json.loads(notification_to_json(notification)) == {
        "where": {"type": "Point", "coordinates": [1, 2]},
        "area": {
            "type": "Polygon",
            "coordinates": [[[0, 0], [2, 0], [2, 1], [0, 1], [0, 0]]],
            "bbox": [0, 0, 2, 1],
        },
        "post": {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [1, 2]},
            "properties": {"keywords": ["ipad", "sale"]},
        },
        "when": {"type": "Time", "time": "2026-11-16T09:30:00Z"},
    }
    assert json.loads(filter_to_json(parse("x > 1 or y exists"))) == [
        [{"name": "x", "op": ">", "value": 1}],
        [{"name": "y", "op": "exists"}],
    ]


def refuses_all(data: bytes) -> None:
    """No decoder raises anything but CodecError; what one accepts is sound."""
    for decode in DECODERS:
        try:
            read = decode(data)
        except CodecError:
            continue
        if isinstance(read, dict):
            encode_notification(read)
        elif isinstance(read, Filter | Predicate):
            assert decode_filter(encode_filter(read)) == read
        else:
            kind_of(read)


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    refuses_all(data)


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(given_.notifications().map(encode_notification) | given_.predicates().map(encode_filter)))
    for _ in range(draw(st.integers(1, 4))):
        if data:
            at = draw(st.integers(0, len(data) - 1))
            end = draw(st.integers(at, min(at + 3, len(data))))
            data[at:end] = draw(st.binary(max_size=3))
    return bytes(data)


@given(mutations())
@settings(max_examples=300)
def test_mutated_messages(data: bytes) -> None:
    refuses_all(data)


json_trees = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["Point", "Polygon", "Feature", "=", "in"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "coordinates", "geometry", "properties", "keywords", "bbox", "time", "name", "op", "value"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_trees)
def test_documents_of_other_shapes(document: object) -> None:
    refuses_all(json.dumps(document).encode())
    refuses_all(json.dumps({"x": document}).encode())
    try:
        packed = msgpack.packb(document)
    except OverflowError:
        return
    refuses_all(packed)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000,
        b"\x81\xa1a" * 100_000,
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x02",
        b"\xdb\xff\xff\xff\xff",
        b"1" * 10_000,
        b"\x81\xa1a" + b"1e999",
        b"\xff\xfe",
        b"\x81\xa2\xff\xfe\x01",
        b"\x81\xa1a\xa2\xff\xfe",
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\\ud800"}',
        b'{"\\ud800": 1}',
    ],
)
def test_bombs_and_broken_text(data: bytes) -> None:
    for decode in DECODERS:
        if decode is decode_value and data[:1] == b"1":
            continue  # a small integer and trailing bytes: refused below
        with pytest.raises(CodecError):
            decode(data)


def test_geotext_inside_geotext_is_not_unpacked_again_and_again() -> None:
    nested = msgpack.packb([msgpack.ExtType(1, bytes(16)), ["a"]])
    for _ in range(2_000):
        nested = msgpack.packb([msgpack.ExtType(4, nested), ["a"]])
    with pytest.raises(CodecError, match="not a value"):
        decode_notification(msgpack.packb({"x": msgpack.ExtType(4, nested)}))


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"x": None}, "not a value"),
        ({"x": [[1]]}, "strings and numbers"),
        ({"x": {"y": 1}}, "not a value"),
        ({"x": b"a"}, "binary of 1 is not a value"),
        ({"x": float("nan")}, "not finite"),
        ({"x": float("-inf")}, "not finite"),
        ({"x": 2**63}, "64 bits"),
        ({"": 1}, "a payload is binary or JSON"),
        ({"x" * 256: 1}, "1 to 255"),
        ({b"x": 1}, "a name is a string"),
        ({1: 1}, "not allowed for map key"),
        ([], "is a map"),
        ({"x": msgpack.ExtType(99, b"")}, "ext type 99"),
        ({"x": msgpack.ExtType(1, b"1234")}, "ext type 1"),
        ({"x": msgpack.ExtType(2, bytes(17))}, "ext type 2"),
        ({"x": msgpack.ExtType(2, bytes(48))}, "vert"),
        ({"x": msgpack.ExtType(2, b"")}, "vert"),
        ({"x": msgpack.ExtType(1, b"\xff" * 16)}, "not finite"),
        ({"x": msgpack.ExtType(3, bytes(32))}, "x1 < x2"),
        ({"x": msgpack.ExtType(4, b"\x90")}, "2 parts"),
        ({"x": msgpack.ExtType(4, msgpack.packb([1, ["a"]]))}, "at a point or within a box"),
        ({"x": msgpack.ExtType(4, msgpack.packb([msgpack.ExtType(1, bytes(16)), [1]]))}, "keyword"),
        ({"x": msgpack.ExtType(4, msgpack.packb([msgpack.ExtType(1, bytes(16)), "a"]))}, "keyword"),
        ({"x": msgpack.Timestamp(2**40, 0)}, "expected form"),
    ],
)
def test_malformed_notifications_say_why(document: object, why: str) -> None:
    with pytest.raises(CodecError, match=why):
        decode_notification(msgpack.packb(document))


def test_repeated_names_are_refused() -> None:
    with pytest.raises(CodecError, match="repeated"):
        decode_notification(b"\x82\xa1a\x01\xa1a\x02")
    with pytest.raises(CodecError, match="repeated"):
        notification_from_json('{"a": 1, "a": 2}')
    wide = {f"n{i}": i for i in range(100)}
    assert decode_notification(encode_notification(wide)) == wide
    as_map32 = b"\xdf\x00\x00\x00\x64" + encode_notification(wide)[3:]
    assert decode_notification(as_map32) == wide


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({}, "array"),
        ([], "filters: none"),
        ([3], "constraints in filter 0"),
        ([[["x"]]], "a constraint is"),
        ([[["x", "=", 1, 2]]], "a constraint is"),
        ([[["x", "is", 1]]], "not an operator"),
        ([[["x", 3, 1]]], "not an operator"),
        ([[["x", [], 1]]], "not an operator"),
        ([[["", "=", 1]]], "a name"),
        ([[[3, "=", 1]]], "a name"),
        ([[["x", "="]]], "NoneType"),
        ([[["x", "=", [1]]]], "list"),
        ([[["x", "exists", 1]]], "takes no value"),
        ([[["x", "in", 1]]], "array"),
        ([[["x", "in", []]]], "values of in: none"),
        ([[["x", "in", [[1]]]]], "list"),
        ([[["x", "inside", "POLYGON((0 0, 1 0, 0 1))"]]], "region is needed"),
        ([[["x", "inside", {"type": "Point"}]]], "region is needed"),
        ([[["x", "matches", ["a"]]]], "2 parts"),
        ([[["x", "matches", [["a"], 3]]]], "region is needed"),
        ([[["x", "matches", [[], None]]]], "at least one keyword"),
        ([[["x", "matches", [[3], None]]]], "keyword"),
        ([[["x", "similar", [["a"], 3, 0.5, 0.5]]]], "at a point"),
        ([[["x", "similar", [["a"], msgpack.ExtType(1, bytes(16)), "a", 0.5]]]], "alpha"),
        ([[["x", "similar", [["a"], msgpack.ExtType(1, bytes(16)), 0.5, 7]]]], "tau"),
    ],
)
def test_malformed_filters_say_why(document: object, why: str) -> None:
    with pytest.raises(CodecError, match=why):
        decode_filter(msgpack.packb(document))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ('{"x": NaN}', "NaN"),
        ('{"x": 1e999}', "finite"),
        ('{"x": 9223372036854775808}', "64 bits"),
        ('{"x": [null]}', "strings and numbers"),
        ('{"x": [[1]]}', "strings and numbers"),
        ('{"x": {"type": "Polygon"}}', "an object with exactly"),
        ('{"x": {"type": "Time", "time": "noon"}}', "ISO 8601"),
        ('{"x": {"type": "Time", "time": "2026-11-16T00:00:00"}}', "time zone"),
        ('{"x": {"type": "Time", "time": 3}}', "a time is"),
        ('{"x": {"type": "Point", "coordinates": [1, 2, 3]}}', "array of 2 numbers"),
        ('{"x": {"type": "Point", "coordinates": [1, "2"]}}', "number"),
        ('{"x": {"type": "Point", "coordinates": [1, 2], "z": 3}}', "exactly"),
        ('{"x": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1]], [[0, 0]]]}}', "hole"),
        ('{"x": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1]]], "bbox": [0, 0, 1, 1]}}', "bbox"),
        (
            '{"x": {"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]}, "properties": {}}}',
            "keywords",
        ),
    ],
)
def test_malformed_json_says_why(text: str, why: str) -> None:
    with pytest.raises(CodecError, match=why) as caught:
        notification_from_json(text)
    assert ("attribute 'x'" in str(caught.value)) == (text.startswith('{"x"') and "NaN" not in text)


def test_a_long_pattern_of_contains_is_refused() -> None:
    """One of a megabyte, asked of as long a text that nearly has it everywhere, would be compared for minutes."""
    for longest in (attr("s").contains("é" * 128), attr("s").prefix("é" * 1000)):
        assert decode_filter(encode_filter(longest)).matches({"s": "é" * 1000})
    for text in ("é" * 129, "x" * 257):
        with pytest.raises(CodecError, match="contains a string of"):
            decode_filter(encode_filter(attr("s").contains(text)))


def test_keywords_as_earlier_versions_wrote_them_are_read_as_words() -> None:
    """They folded listed keywords and did not split them."""
    filter_ = [[["x", "matches", [["at&t", "new york"], None]]]]
    assert decode_filter(msgpack.packb(filter_)) == attr("x").matches(["at", "t", "new", "york"])
    place = msgpack.ExtType(1, bytes(16))
    similar = [[["x", "similar", [["wi-fi"], place, 0.4, 0.7]]]]
    assert decode_filter(msgpack.packb(similar)) == attr("x").similar(["wi", "fi"], at=(0, 0))
    post = {"x": msgpack.ExtType(4, msgpack.packb([place, ["at&t", "&&&", "sale"]]))}
    assert decode_notification(msgpack.packb(post)) == {"x": GeoText("at t sale", at=(0, 0))}
    with pytest.raises(CodecError, match="'&&&' has neither letters nor digits"):
        decode_filter(msgpack.packb([[["x", "matches", [["&&&"], None]]]]))
    for own in (filter_, [[["x", "matches", [["&&&"], None]]]], similar):
        assert encode_filter(decode_filter(msgpack.packb(own), NO_LIMITS)) == msgpack.packb(own)


def test_one_keyword_of_many_words_counts_as_many() -> None:
    place = msgpack.ExtType(1, bytes(16))
    words = " ".join(f"w{i}" for i in range(5000))
    with pytest.raises(CodecError, match="limit of 4096"):
        decode_notification(msgpack.packb({"x": msgpack.ExtType(4, msgpack.packb([place, [words]]))}))
    for keywords in ([words[:2000]], [f"w{i}" for i in range(257)]):
        with pytest.raises(CodecError, match="limit of 256"):
            decode_filter(msgpack.packb([[["x", "matches", [keywords, None]]]]))


def test_geotext_of_a_notification_is_bounded_together() -> None:
    """Words cost time by their number, whatever attributes they are spread over."""
    some = {f"a{i}": GeoText([f"w{n:06d}" for n in range(4096)], at=(0, 0)) for i in range(7)}
    assert decode_notification(encode_notification(some)) == some
    some["b"] = GeoText([f"w{n:06d}" for n in range(4096)], at=(0, 0))
    with pytest.raises(CodecError, match="bytes of geotext, more than the limit of 262144"):
        decode_notification(encode_notification(some))
    assert decode_notification(encode_notification(some), NO_LIMITS) == some


def test_geotext_of_a_notification_in_json_is_bounded_together() -> None:
    some = {f"a{i}": GeoText([f"w{n:06d}" for n in range(4096)], at=(0, 0)) for i in range(9)}
    assert notification_from_json(notification_to_json(some)) == some
    some["b"] = GeoText([f"w{n:06d}" for n in range(4096)], at=(0, 0))
    with pytest.raises(CodecError, match="bytes of geotext, more than the limit of 262144"):
        notification_from_json(notification_to_json(some))
    assert notification_from_json(notification_to_json(some), replace(NO_LIMITS, attributes=99)) == some
    one = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]}, "properties": {}}
    one["properties"] = {"keywords": [" ".join(f"w{n}" for n in range(4097))]}
    with pytest.raises(CodecError, match="geotext of 4097 words, more than the limit of 4096"):
        notification_from_json(json.dumps({"a": one}))


def test_limits_bound_every_size() -> None:
    region = Region([(0, 0), (3, 0), (3, 1), (2, 2), (0, 1)])
    post = GeoText("a b c", at=(0, 0))
    notification = {"x": "abcdef", "y": region, "z": post}
    data, text = encode_notification(notification), notification_to_json(notification)
    assert decode_notification(data, Limits(string_length=6, vertices=5, keywords=3, attributes=3)) == notification
    for limits in (
        Limits(size=len(data) - 1),
        Limits(string_length=5),
        Limits(vertices=4),
        Limits(keywords=2),
        Limits(attributes=2),
    ):
        with pytest.raises(CodecError):
            decode_notification(data, limits)
        with pytest.raises(CodecError):
            notification_from_json(text, limits)
    predicate = parse('a = 1 and b = 1 or c in [1, 2, 3] or d matches {"x", "y"} or e = 1')
    assert (
        decode_filter(encode_filter(predicate), Limits(filters=4, constraints=2, set_size=3, keywords=2)) == predicate
    )
    for limits in (Limits(filters=3), Limits(constraints=1), Limits(set_size=2), Limits(keywords=1)):
        with pytest.raises(CodecError):
            decode_filter(encode_filter(predicate), limits)
        with pytest.raises(CodecError):
            filter_from_json(filter_to_json(predicate), limits)


@pytest.mark.parametrize("value", [float("nan"), 2**63, [None], "\ud800", [True], datetime(2026, 1, 1)])
def test_encoding_refuses_what_no_notification_may_hold(value: object) -> None:
    for encode in (encode_notification, notification_to_json):
        with pytest.raises(InvalidValue):
            encode({"x": value})
    with pytest.raises(InvalidValue):
        encode_notification({"\ud800": 1})


def test_scalars_need_no_compiler() -> None:
    code = (
        "import sys; from contrada.forwarding.codec.msgpack import *\n"
        "from contrada.forwarding.language.text.parse import parse\n"
        "n = {'x': 1, 's': 'a', 'b': True, 'f': 1.5}\n"
        "assert decode_notification(encode_notification(n)) == n and parse('x > 0 and s prefix \"a\"').matches(n)\n"
        "assert parse('x > 0').covers(parse('x > 1')) and decode_filter(encode_filter(parse('x = 2'))).names\n"
        "from contrada.spatial.textual.geotext import GeoText; from contrada.spatial.geometry.point import Point\n"
        "p = {'p': Point(1, 2), 'g': GeoText('a', at=(1, 2))}\n"
        "assert decode_notification(encode_notification(p)) == p\n"
        "assert not {'numba', 'shapely'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
