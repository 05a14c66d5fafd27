"""Topics as filters, and notifications as messages. No I/O.

    a/b                              topic = "a/b"
    a/#                              topic = "a" or topic prefix "a/"
    a/+/c                            topic prefix "a/" and topic suffix "/c", and then level by level at the gateway
    $filter/wind > 90                the text behind it, whatever the topic
    a/#, user property filter=…      both

A payload that is a JSON object is attributes; any other text is the attribute `payload` (a JSON number or boolean as
such), so that `mosquitto_pub -m hello` arrives as `hello`; bytes that are no text travel beside the attributes, unread.
The topic is the attribute `topic`. With the user property `attributes`, a JSON object, that has the attributes, and the
message's payload travels beside them whatever it is. The same way they come to subscribers of version 5; those of 3.1.1
get the attributes with such a payload as the member `payload`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contrada.client.gateway.forms.attributes import notification_of
from contrada.client.gateway.forms.flat import attributes_of, dump_plain, encode_flat, load_flat
from contrada.client.gateway.forms.rendering import attributes_bytes, attributes_text, payload_text
from contrada.client.gateway.problems import Problem
from contrada.client.notification import Draft
from contrada.errors import InvalidValue
from contrada.forwarding.codec.json import load_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contrada.client.notification import Encoded, Notification

PREFIX: Final = "$filter/"
ATTRIBUTES: Final = "attributes"
"""The user property that has the attributes of a message whose payload travels unread."""
_LONGEST: Final = 65_535  # bytes of a user property
_FORBIDDEN: Final = frozenset("+#\0")
NO_TOPIC: Final = "contrada"
"""The topic of what was published without one."""


class TopicQuery(NamedTuple):
    """What a topic filter asks of the broker, and what is left to look at."""

    filter: str
    levels: tuple[str, ...]  # to be compared with the topic's; empty if the filter says it all

    def takes(self, topic: str) -> bool:
        """Whether a topic that the filter let through is meant."""
        return not self.levels or matches(self.levels, topic)


def topic_query(pattern: str, properties: list[tuple[str, str]] | None = None) -> TopicQuery:
    """What a subscription's topic filter and user properties ask for; `InvalidValue` says what is wrong."""
    texts = [text for name, text in properties or () if name == "filter"]
    if len(texts) > 1:
        raise InvalidValue("the user property `filter` is there twice")
    if pattern.startswith("$share/"):
        raise Problem("not-available", "shared subscriptions are not carried")
    if pattern.startswith(PREFIX):
        text = pattern.removeprefix(PREFIX)
        return TopicQuery(_both(text, texts[0]) if texts else text, ())
    topic, levels = _of_topic(pattern)
    if not texts:
        return TopicQuery(topic, levels)
    return TopicQuery(_both(topic, texts[0]), levels)


def matches(levels: tuple[str, ...], topic: str) -> bool:
    """Whether a topic filter, level by level, takes a topic: what the MQTT standard says, section 4.7."""
    parts = topic.split("/")
    if topic.startswith("$") and levels[0] in ("+", "#"):
        return False
    for number, level in enumerate(levels):
        if level == "#":
            return True
        if number >= len(parts) or level not in ("+", parts[number]):
            return False
    return len(parts) == len(levels)


def check_pattern(pattern: str) -> tuple[str, ...]:
    """The levels of a topic filter; `InvalidValue` if it is none."""
    levels = tuple(pattern.split("/"))
    if not pattern or "\0" in pattern:
        raise InvalidValue("a topic filter has at least one character, and no NUL")
    for number, level in enumerate(levels):
        if level == "#" and number < len(levels) - 1:
            raise InvalidValue(f"{pattern!r:.80}: # is the last level, and nowhere else")
        if len(level) > 1 and ("+" in level or "#" in level):
            raise InvalidValue(f"{pattern!r:.80}: + and # stand for whole levels")
    return levels


def _of_topic(pattern: str) -> tuple[str, tuple[str, ...]]:
    levels = check_pattern(pattern)
    wild = [number for number, level in enumerate(levels) if level in ("+", "#")]
    if not wild:
        return f"topic = {_quoted(pattern)}", ()
    head = "/".join(levels[: wild[0]])
    if wild == [len(levels) - 1] and levels[-1] == "#" and head:
        return f"topic = {_quoted(head)} or topic prefix {_quoted(head + '/')}", ()
    tail = "/".join(levels[wild[-1] + 1 :])
    if head and levels[wild[0]] == "#":
        head = head.removesuffix("/")
    wanted = [f"topic prefix {_quoted(head + ('/' if levels[wild[0]] == '+' else ''))}"] if head else []
    if tail:
        wanted.append(f"topic suffix {_quoted('/' + tail)}")
    return " and ".join(wanted) or "topic exists", levels


def _both(topic: str, text: str) -> str:
    """The conjunction of two filter texts, of which each may be a disjunction; the parser bounds the outcome."""
    from contrada.forwarding.language.text.parse import parse

    parse(text)  # by itself: "x = 1) or (y = 2" is no filter
    return f"({topic}) and ({text})"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def notification_of_message(
    topic: str, payload: bytes, properties: Sequence[tuple[str, str]] | None = None
) -> dict[str, Any]:
    """The notification that a message is; a `Problem` or `CodecError` says why it is none."""
    if _topic_bytes(topic) is None:
        shown = f"{topic!r:.80}"
        raise Problem("bad-request", f"{shown} is no topic to publish to: it is empty, very long, or has + or # in it")
    for name, text in properties or ():
        if name == ATTRIBUTES:
            return Draft({**notification_of(load_json(text)), "topic": topic}, payload or None)
    if payload[:1] == b"{" and (flat := load_flat(payload)) is not None:
        flat["topic"] = topic
        return flat
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return Draft({"topic": topic}, payload)
    if text[:1] in ("{", " ", "\n", "\r", "\t") and text.lstrip()[:1] == "{":
        notification = notification_of(load_json(text))
    else:
        notification = notification_of({"payload": _scalar(text)}) if text else {}
    return {**notification, "topic": topic}


def encoded_of_message(topic: str, payload: bytes) -> Encoded | None:
    """The notification that a message of several plain attributes is, encoded; None: see `notification_of_message`."""
    if payload[:1] != b"{" or _topic_bytes(topic) is None or (flat := load_flat(payload)) is None:
        return None
    flat["topic"] = topic
    return encode_flat(flat)


def _scalar(text: str) -> object:
    """A number or boolean, or else the text as it is."""
    if len(text) > 40 or not text.isascii():
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    sane = type(value) is bool or (type(value) in (int, float) and abs(value) < 2**63 and json.dumps(value) == text)
    return value if sane else text


class Message(NamedTuple):
    """What a notification is for a subscriber: its topic and payload, and attributes that go as a user property."""

    topic: bytes
    payload: bytes
    attributes: str = ""


def message_of_notification(notification: Notification, version: int) -> Message:
    """A notification as a message of a version."""
    flat = attributes_of(notification.encoded)
    payload = notification.payload if flat is None else None
    if payload is None:
        return message_of_values(notification.values_by_name if flat is None else flat)
    topic, rest = _split(notification.values_by_name)
    data = payload if isinstance(payload, bytes) else json.dumps(payload, ensure_ascii=False).encode()
    if not rest:
        return Message(topic, data)
    text = attributes_text(rest)
    if version == 5 and len(text.encode()) <= _LONGEST:
        return Message(topic, data, text)
    return Message(topic, f"{text[:-1]}{payload_text(payload)}}}".encode())


def plain_message(encoded: bytes) -> tuple[bytes, bytes] | None:
    """The topic and payload of an encoded notification of several plain attributes, which most are; or None."""
    flat = attributes_of(encoded)
    if flat is None:
        return None
    given = flat.pop("topic", None)
    topic = _topic_bytes(given) if type(given) is str else None
    return None if topic is None or len(flat) < 2 else (topic, dump_plain(flat))


def message_of_values(values: Mapping[str, Any]) -> Message:
    """Attributes without a payload beside them as a message."""
    topic, rest = _split(values)
    if not rest:
        return Message(topic, b"")
    if len(rest) == 1 and "payload" in rest and type(rest["payload"]) in (str, int, float, bool):
        value = rest["payload"]
        return Message(topic, (value if type(value) is str else json.dumps(value)).encode())
    return Message(topic, attributes_bytes(rest))


def _split(values: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """The topic, and the other attributes."""
    rest = dict(values)
    given = rest.pop("topic", None)
    topic = _topic_bytes(given) if type(given) is str else None
    return (NO_TOPIC.encode(), dict(values)) if topic is None else (topic, rest)


@lru_cache(maxsize=4096)
def _topic_bytes(topic: str) -> bytes | None:
    """A topic that messages may have, as bytes."""
    encoded = topic.encode()
    return encoded if 0 < len(encoded) < 65_536 and not _FORBIDDEN.intersection(topic) else None
