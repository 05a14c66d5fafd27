"""What people send, as notifications."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Point
from contrada.client.arguments import encode_notification
from contrada.client.gateway.forms.attributes import (
    flatten,
    notification_of,
    notification_of_event,
    notification_of_headers,
    notifications_of,
    parse_document,
)
from contrada.client.gateway.forms.flat import PAYLOAD_KEY, attributes_of, dump_flat, load_flat
from contrada.errors import CodecError, ContradaError

EVENT = {"specversion": "1.0", "id": "7", "source": "/gauge", "type": "level"}
PLAIN = st.integers(-5, 5) | st.text(max_size=3) | st.booleans() | st.none()
TREES = st.recursive(PLAIN, lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3))


def paths(document: Any, prefix: str = "") -> list[tuple[str, object]]:
    """The slow twin of `flatten`: every leaf that is not null, with its path."""
    if not isinstance(document, dict):
        return [] if document is None else [(prefix[:-1], document)]
    return [leaf for name, value in document.items() for leaf in paths(value, f"{prefix}{name}.")]


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), TREES))
def test_nested_objects_are_their_leaves_under_dotted_names(document):
    assert list(flatten(document).items()) == paths(document)


def test_values_stay_whole_and_null_is_absence():
    shape = {"type": "Point", "coordinates": [1, 2]}
    got = notification_of({"engine": {"rpm": 900, "on": True}, "at": shape, "gone": None, "type": "ship"})
    assert got == {"engine.rpm": 900, "engine.on": True, "at": Point(1, 2), "type": "ship"}


def test_features_have_properties_and_a_geometry():
    feature = {
        "type": "Feature",
        "id": 3,
        "properties": {"a": {"b": 1}, "c": None},
        "geometry": {"type": "Point", "coordinates": [1, 2]},
    }
    assert notification_of(feature, "pos") == {"a.b": 1, "pos": Point(1, 2)}
    collection = {"type": "FeatureCollection", "features": [feature, {**feature, "geometry": None}]}
    assert list(notifications_of(collection)) == [{"a.b": 1, "area": Point(1, 2)}, {"a.b": 1}]
    with pytest.raises(CodecError, match="geometry="):
        notification_of(feature, "a.b")


def test_cloud_events_of_both_modes_are_alike():
    wanted = {"ce.specversion": "1.0", "ce.id": "7", "ce.source": "/gauge", "ce.type": "level", "wind": 120}
    assert notification_of_event({**EVENT, "data": {"wind": 120}}) == wanted
    assert notification_of_headers({f"ce-{name}": text for name, text in EVENT.items()}, b'{"wind": 120}') == wanted
    timed = notification_of_event({**EVENT, "time": "2026-11-18T08:00:00Z"})
    assert timed["ce.time"] == datetime(2026, 11, 18, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([1, 2], "item 0: .*object"),
        ({"tags": ["ice", None]}, "'tags': a list"),
        ({"a": {"b": 1}, "a.b": 2}, "'a.b' is there twice"),
        ({"a": {"type": "Polygon", "coordinates": []}}, "'a'"),
        ({"type": "FeatureCollection"}, "without an array"),
        ({"type": "Feature", "geometry": 3}, "geometry of a Feature"),
        (None, "not null"),
    ],
)
def test_what_is_no_notification_is_named(document, complaint):
    with pytest.raises(CodecError, match=complaint):
        list(notifications_of(document))


@pytest.mark.parametrize(
    "event",
    [
        {},
        {**EVENT, "specversion": "0.3"},
        {**EVENT, "time": "noon"},
        {**EVENT, "data_base64": "A"},
        {**EVENT, "data": {"ce.id": "9"}},
    ],
)
def test_what_is_no_cloud_event_is_refused(event):
    with pytest.raises(CodecError, match=r"CloudEvent|base64"):
        notification_of_event(event)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.text() | st.sampled_from(["type", "geometry", "properties", "coordinates", "features", "data"]),
                inner | st.sampled_from(["Feature", "Point", "FeatureCollection", "Time"]),
            )
        ),
    )
)
def test_anything_is_notifications_or_a_contrada_error(document):
    for read in (
        lambda: list(notifications_of(document)),
        lambda: list(notifications_of(document, envelope=True)),
        lambda: notification_of_event(document),
    ):
        try:
            read()
        except ContradaError:
            continue


def test_payloads_travel_beside_the_attributes():
    (draft,) = notifications_of({"notification": {"n": 1}, "payload": {"base64": "AAE="}, "id": "b/1"}, envelope=True)
    assert (dict(draft), draft.payload) == ({"n": 1}, b"\0\1")
    drafts = list(notifications_of([{"notification": {"n": 1}, "payload": [1]}, {"notification": {}}], envelope=True))
    assert drafts[0].payload == [1]
    assert drafts[1] == {}
    wrong = {"notification": {}, "payload": {"base64": 1}}
    for document in ({"n": 1}, {"notification": {"n": 1}, "other": 1}, {"notification": 1}, wrong):
        with pytest.raises(CodecError):
            list(notifications_of(document, envelope=True))
    event = notification_of_event({**EVENT, "data_base64": "AAE="})
    assert (event["ce.id"], event.payload) == (EVENT["id"], b"\0\1")
    assert notification_of_event({**EVENT, "data": ["any", "JSON"]}).payload == ["any", "JSON"]
    headers = {f"ce-{name}": value for name, value in EVENT.items() if name != "data"}
    event = notification_of_headers({**headers, "Content-Type": "image/png"}, b"\x89PNG")
    assert (event["ce.id"], event.payload) == (EVENT["id"], b"\x89PNG")


FLAT = st.dictionaries(
    st.text(max_size=3) | st.sampled_from(["type", "a:b", "x"]),
    st.integers(-(2**70), 2**70) | st.floats() | st.booleans() | st.text(max_size=4) | st.none() | st.sampled_from(
        ["Feature", "a:b", [1], {"y": 1}, 2**63, -(2**63), 2**63 - 1, 1e300, -0.0]
    ),
    max_size=4,
)  # fmt: skip


@given(FLAT, st.sampled_from([{}, {"ensure_ascii": False}, {"separators": (" , ", " : ")}]), st.data())
def test_what_is_read_quickly_is_what_is_read_slowly(document, style, data):
    text = json.dumps(document, **style).encode(errors="replace")
    if data.draw(st.booleans()) and len(text) > 2:  # a member twice, or something broken
        at = data.draw(st.integers(1, len(text) - 1))
        text = text[:at] + data.draw(st.sampled_from([b'"x":1,', b",", b" ", b'"x" :2,'])) + text[at:]
    quick = load_flat(text)
    if quick is None:
        return
    (slow,) = parse_document(text)
    assert [(name, type(value), value) for name, value in quick.items()] == [
        (name, type(value), value) for name, value in slow.items()
    ]
    written = dump_flat(quick)
    assert written is not None
    assert json.loads(written) == quick
    encoded = encode_notification(quick)
    assert attributes_of(encoded) == (quick if PAYLOAD_KEY not in encoded else None)


def test_most_is_read_quickly_and_the_rest_is_left_alone():
    assert load_flat(b'{"wind": 120, "name": "Ines", "calm": false, "x": 1.5}') is not None
    for text in (b'{"a": 1, "a": 2}', b'{"a" :1,"a":2}', b'{"a": {"b": 1}}', b'{"a": null}', b'{"a": 1e400}', b"[1]",
                 b'{"a": 99999999999999999999}', b'{"type": "Feature"}', b'{"a": "\xc3\xb6"}', b'{"": 1}'):  # fmt: skip
        assert load_flat(text) is None
    assert attributes_of(encode_notification({"n": 1}, b"beside")) is None
    assert attributes_of(encode_notification({"at": Point(1, 2)})) is None
    assert dump_flat({"at": Point(1, 2)}) is None
