"""Set values and `has`, nested attributes, absence, and payloads: what people send, through table, codec and client."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Broker, Client, ForwardingTable, attr, parse
from contrada.errors import CodecError, FilterSyntaxError, InvalidValue
from contrada.forwarding.codec.json import notification_from_json, notification_to_json
from contrada.forwarding.codec.msgpack import decode_notification, encode_notification, payload_of
from contrada.forwarding.language.set_value import SetValue
from contrada.forwarding.language.values import NESTED, check_notification
from tests.forwarding.strategies import sets


def test_what_has_asks_for() -> None:
    ice = parse('tags has "ice"')
    assert ice == attr("tags").has("ice")
    assert ice.matches({"tags": ["ice", 3]})
    assert not ice.matches({"tags": []})
    assert not ice.matches({"tags": "ice"})
    assert parse('tags has any ["ice", 3]').matches({"tags": [3.0]})
    assert parse('tags has all ["ice", 3]') == attr("tags").has("ice", 3)
    assert parse('not tags has all ["ice", 3]') == parse('tags not has "ice" or tags not has 3')
    assert parse('tags not has any ["ice", 3]').matches({"tags": []})
    assert parse("tags exists").matches({"tags": []})
    assert not parse("tags has 1").matches({"tags": ["1"]})


def test_covers_and_conflicts() -> None:
    assert parse('t has any ["a", "b"]').covers(parse('t has "a" and t has "c"'))
    assert not parse('t has "a"').covers(parse('t has any ["a", "b"]'))
    assert parse('t has "a"').covers(parse('t has any ["a", "b"] and t not has "b"'))
    assert parse('t not has "a"').conflicts(parse('t has "a"'))
    assert parse('t not has "a"').covers(parse('t not has any ["a", "b"]'))


@pytest.mark.parametrize("text", ["t has true", "t has any []", "t has POINT(1 2)", "t has any [true]", "t has"])
def test_what_no_set_has_is_refused(text: str) -> None:
    with pytest.raises(FilterSyntaxError):
        parse(text)


@given(sets)
def test_sets_travel(value: SetValue) -> None:
    assert decode_notification(encode_notification({"t": value})) == {"t": value}
    assert notification_from_json(notification_to_json({"t": value})) == {"t": value}
    assert check_notification({"t": list(value)}) == check_notification({"t": set(value)}) == {"t": value}


def test_nested_attributes_have_dotted_names_and_null_is_absence() -> None:
    nested = {"engine": {"rpm": 900, "oil": {"hot": True}, "gear": None}, "x": None, "tags": ["a"]}
    flat = {"engine.rpm": 900, "engine.oil.hot": True, "tags": SetValue(["a"])}
    assert check_notification(nested) == decode_notification(encode_notification(nested)) == flat
    assert notification_from_json('{"engine": {"rpm": 900, "oil": {"hot": true}, "gear": null}, "tags": ["a"]}') == flat
    table = ForwardingTable[str]()
    table.add("I", "engine.rpm > 800 and not x exists and not engine.gear exists")
    assert table.match(nested) == table.match(flat) == {"I"}
    with pytest.raises(InvalidValue, match="twice"):
        check_notification({"a": {"b.c": 1, "b": {"c": 2}}})
    deep: dict[str, object] = {"x": 1}
    for _ in range(NESTED + 1):
        deep = {"n": deep}
    with pytest.raises(InvalidValue, match="nested more than"):
        check_notification(deep)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.binary(max_size=300) | json_values.filter(lambda value: value is not None), st.integers(0, 5))
def test_payloads_travel_unread(payload: object, count: int) -> None:
    attributes = {f"a{n}": n for n in range(count)}
    body = encode_notification(attributes, payload)
    assert decode_notification(body) == attributes
    assert payload_of(body) == payload
    assert payload_of(encode_notification(attributes)) is None
    table = ForwardingTable[str]()
    table.add("I", "true")
    table.add("J", "a0 = 0")
    bodies = [body] * 20  # enough for compiled code to read them
    expected = {"I", "J"} if count else {"I"}
    assert table.match_bodies(bodies) == ([expected] * 20, {})


def test_what_is_no_payload_is_refused() -> None:
    with pytest.raises(InvalidValue, match="payload"):
        encode_notification({}, object())
    for wrong in (b"\x81\xa0\x01", b"\x81\xa0\xc7\x01\x05\x00"):
        with pytest.raises(CodecError):
            decode_notification(wrong)
        table = ForwardingTable[str]()
        table.add("I", "true")
        assert len(table.match_bodies([wrong] * 20)[1]) == 20


def test_a_subscriber_gets_the_payload() -> None:
    with Broker() as broker, Client(broker.url) as client:
        posts = client.subscribe('tags has "ice"')
        client.publish({"tags": ["ice"], "at": {"km": 3}}, payload=b"\x00\xff")
        client.publish({"tags": ["ice", "snow"]}, payload={"text": ["any", {"json": 1}]})
        client.publish({"tags": ["snow"]}, payload=b"no")
        client.publish({"tags": ["ice"]})
        got = [posts.get(timeout=5) for _ in range(3)]
        assert [n.payload for n in got] == [b"\x00\xff", {"text": ["any", {"json": 1}]}, None]
        assert dict(got[0]) == {"tags": SetValue(["ice"]), "at.km": 3}
