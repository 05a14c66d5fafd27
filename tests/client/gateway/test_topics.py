"""Topics as filters, and messages as notifications, against what the standard says."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import parse
from contrada.broker.protocol.messages import NotificationId
from contrada.client.arguments import encode_notification
from contrada.client.gateway.mqtt.topics import (
    check_pattern,
    matches,
    message_of_notification,
    message_of_values,
    notification_of_message,
    plain_message,
    topic_query,
)
from contrada.client.gateway.problems import Problem
from contrada.client.notification import Draft, Notification
from contrada.errors import CodecError, InvalidValue

LEVELS = st.sampled_from(["a", "b", "", "ab", "$x", 'q"'])
TOPICS = st.lists(LEVELS, min_size=1, max_size=4).map("/".join).filter(bool)
PATTERNS = (
    st.tuples(st.lists(LEVELS | st.just("+"), min_size=1, max_size=4), st.booleans())
    .map(lambda made: "/".join([*made[0], *(["#"] if made[1] else [])]))
    .filter(bool)
)


def naive(pattern: str, topic: str) -> bool:
    """The standard's rules by recursion, level by level."""

    def rest(wanted: list[str], there: list[str]) -> bool:
        if wanted == ["#"]:
            return True
        if not wanted or not there:
            return not wanted and not there
        return wanted[0] in ("+", there[0]) and rest(wanted[1:], there[1:])

    if topic[0] == "$" and pattern[0] in "+#":
        return False
    return rest(pattern.split("/"), topic.split("/"))


@given(PATTERNS | st.just("#"), TOPICS)
def test_a_topic_filter_takes_what_the_standard_says(pattern, topic):
    query = topic_query(pattern)
    taken = parse(query.filter).matches({"topic": topic}) and query.takes(topic)
    assert taken == naive(pattern, topic)
    assert matches(check_pattern(pattern), topic) == naive(pattern, topic)


@pytest.mark.parametrize("pattern", ["", "a/#/b", "a+", "#b", "a/b#", "\0", "$share/g/a"])
def test_what_is_no_topic_filter_is_refused(pattern):
    with pytest.raises((InvalidValue, Problem)):
        topic_query(pattern)


def test_filters_come_by_topic_or_by_property():
    assert topic_query("$filter/wind > 90").filter == "wind > 90"
    both = parse(topic_query("a/#", [("filter", "wind > 90 or wind < 3")]).filter)
    assert both.matches({"topic": "a/b", "wind": 91})
    assert both.matches({"topic": "a", "wind": 1})
    assert not both.matches({"topic": "b", "wind": 91})
    assert not both.matches({"topic": "a/b", "wind": 50})
    with pytest.raises(InvalidValue, match="twice"):
        topic_query("a", [("filter", "x > 1"), ("filter", "x > 2")])


@pytest.mark.parametrize(
    "payload", ["hello", "21.5", "true", "", "007", "1e400", '"x"', "[1]", "null", "NaN", "99999999999999999999"]
)
def test_texts_and_numbers_come_out_as_they_went_in(payload):
    assert message_of_values(notification_of_message("a/b", payload.encode()))[:2] == (b"a/b", payload.encode())


def test_most_messages_are_written_quickly_and_as_any_other():
    for values in ({"topic": "a", "x": 1, "y": "z"}, {"topic": "a", "x": True, "payload": 1.5}):
        body = encode_notification(values)
        assert plain_message(body) == message_of_values(values)[:2]
    for values in ({"topic": "a", "payload": "x"}, {"topic": "a/+", "x": 1, "y": 1}, {"x": 1, "y": 2}, {"topic": "a"}):
        assert plain_message(encode_notification(values)) is None


def test_objects_are_attributes():
    got = notification_of_message("a/b", b'{"wind": {"speed": 3}, "x": null}')
    assert got == {"wind.speed": 3, "topic": "a/b"}
    assert message_of_values(got)[:2] == (b"a/b", b'{"wind.speed":3}')
    assert message_of_values({"topic": "a/+", "n": 1})[:2] == (b"contrada", b'{"topic":"a/+","n":1}')


@pytest.mark.parametrize(("topic", "payload"), [("", b"x"), ("a/#", b"x"), ("a", b"{"), ("a", b'{"t": [[1]]}')])
def test_what_is_no_message_is_refused(topic, payload):
    with pytest.raises((CodecError, Problem)):
        notification_of_message(topic, payload)


def arrived(draft: dict[str, Any]) -> Notification:
    return Notification(NotificationId("b", 1), "", encode_notification(draft))


def test_bytes_travel_beside_the_attributes_unread():
    for payload in (b"\xff\x00", b"plain", b"{]"):
        draft = notification_of_message("a", payload, [("attributes", '{"wind": {"speed": 3}}')])
        assert (dict(draft), draft.payload) == ({"wind.speed": 3, "topic": "a"}, payload)
        assert message_of_notification(arrived(draft), 5) == (b"a", payload, '{"wind.speed":3}')
        told = json.loads(message_of_notification(arrived(draft), 4).payload)
        assert told == {"wind.speed": 3, "payload": {"base64": b64encode(payload).decode()}}
    alone = notification_of_message("a", b"\xff")
    assert message_of_notification(arrived(alone), 4) == (b"a", b"\xff", "")
    written = arrived(Draft({"topic": "a"}, {"any": ["JSON", None]}))
    assert message_of_notification(written, 5) == (b"a", b'{"any": ["JSON", null]}', "")
    with pytest.raises(CodecError):
        notification_of_message("a", b"x", [("attributes", "[]")])


@given(TOPICS, st.binary(max_size=40))
def test_any_message_is_a_notification_or_refused(topic, payload):
    try:
        notification = notification_of_message(topic, payload)
    except CodecError:
        return
    message = message_of_notification(arrived(notification), 5)
    assert message.topic == topic.encode()
    assert plain_message(arrived(notification).encoded) in (None, message[:2])
    if isinstance(notification, Draft):
        assert message.payload == payload
