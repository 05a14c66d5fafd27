"""The MQTT door: its packets and session without I/O, then stock clients before a real broker."""

from __future__ import annotations

import asyncio
import json
import queue
import shutil
import socket
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.client.arguments import encode_notification
from contrada.client.gateway.problems import Problem
from contrada.client.gateway.settings import GatewaySettings
from contrada.client.gateway.tokens import ANYBODY, make_token
from contrada.errors import ProtocolError

mqtt5 = pytest.importorskip("mqtt5", reason="the gateway's libraries are not installed: contrada[gateway]")
paho = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: stock clients not tried")

from contrada.client.gateway.mqtt import codec, session, topics  # noqa: E402  # after what may be missing
from tests.client.gateway.conftest import running  # noqa: E402  # after what may be missing

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = GatewaySettings(mqtt="127.0.0.1:0")
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0+#$"), min_size=1, max_size=8)


def new_session() -> session.Session:
    made = session.Session(SETTINGS, lambda token: ANYBODY, "new")
    made.receive(mqtt5.ConnectPacket("me"))
    return made


# ---------------------------------------------------------------------- packets


def old(data: bytes) -> bytes:
    """A packet of version 5 without properties as one of version 3.1.1: the inverse of what the codec does."""
    kind, body = data[0] >> 4, codec._body_at(data)
    if kind == codec.CONNECT:
        name_end = body + 13 + int.from_bytes(data[body + 11 : body + 13], "big")
        rest = data[name_end + 1 :] if data[body + 7] & 4 else data[name_end:]
        return codec._framed(
            data[0], data[body : body + 6] + b"\4" + data[body + 7 : body + 10] + data[body + 11 : name_end] + rest
        )
    if kind == codec.PUBLISH:
        return codec._without_properties(data, body, codec._publish_head(data, body))
    if kind in (codec.SUBSCRIBE, codec.UNSUBSCRIBE):
        return codec._framed(data[0], data[body : body + 2] + data[body + 3 :])
    return data


@given(TEXTS, TEXTS, st.binary(max_size=300), st.booleans(), st.integers(1, 65535), st.data())
def test_the_older_version_reads_as_the_newer(topic, client_id, payload, has_will, number, data):
    will = mqtt5.Will(topic, payload=payload) if has_will else None
    sent = [
        mqtt5.ConnectPacket(client_id, username="u", password=b"p", will=will, keep_alive=7),
        mqtt5.PublishPacket(topic, payload),
        mqtt5.PublishPacket(topic, payload, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=number),
        mqtt5.SubscribePacket(
            number, [mqtt5.TopicFilter(topic, max_qos=mqtt5.QoS.AT_LEAST_ONCE, retain_as_published=False)]
        ),
        mqtt5.UnsubscribePacket(number, [topic]),
        mqtt5.PingReqPacket(),
        mqtt5.DisconnectPacket(),
    ]
    stream = b"".join(old(each.write()) for each in sent)
    reader = codec.Reader(10_000)
    cut = data.draw(st.integers(0, len(stream)))
    got = reader.feed(stream[:cut]) + reader.feed(stream[cut:])
    assert reader.version == 4
    assert [written(each) for each in got] == [each.write() for each in sent]


@given(TEXTS, st.binary(max_size=300))
def test_a_plain_publish_is_what_the_library_reads(topic, payload):
    packet = mqtt5.PublishPacket(topic, payload)
    for version in (4, 5):
        reader = codec.Reader(10_000)
        reader.version = version
        (plain,) = reader.feed(codec.publish_bytes(topic.encode(), payload, version))
        assert plain == codec.PlainPublish(packet.topic, bytes(packet.payload))
    reader.version = 5
    (other,) = reader.feed(mqtt5.PublishPacket(topic, payload, user_properties=[("a", "b")]).write())
    assert other.user_properties == [("a", "b")]


def written(one: Any) -> bytes:
    """A packet that was read, as the library writes it."""
    data: bytes = (mqtt5.PublishPacket(*one) if isinstance(one, codec.PlainPublish) else one).write()
    return data


def test_answers_are_written_in_both_versions():
    acknowledged = mqtt5.SubAckPacket(
        7, [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE, mqtt5.SubAckReasonCode.NOT_AUTHORIZED]
    )
    assert codec.write(acknowledged, 4) == b"\x90\x04\x00\x07\x00\x80"
    assert codec.write(acknowledged, 5) == acknowledged.write()
    refused = mqtt5.ConnAckPacket(reason_code=mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, reason_str="no")
    assert codec.write(refused, 4) == b"\x20\x02\x00\x04"
    assert codec.write(mqtt5.DisconnectPacket(), 4) == b""
    assert codec.write(mqtt5.PingRespPacket(), 4) == b"\xd0\x00"
    assert codec.write(mqtt5.PubAckPacket(9), 4) == b"\x40\x02\x00\x09"
    assert codec.write(mqtt5.UnsubAckPacket(9, [mqtt5.UnsubAckReasonCode.SUCCESS]), 4) == b"\xb0\x02\x00\x09"
    assert codec.publish_bytes(b"a", b"x" * 200, 5) == mqtt5.PublishPacket("a", b"x" * 200).write()
    assert codec.write(mqtt5.PublishPacket("a", b"x"), 4) == codec.publish_bytes(b"a", b"x", 4) == b"\x30\x04\x00\x01ax"


@given(
    st.lists(st.binary(max_size=60), max_size=4),
    st.sampled_from([b"", mqtt5.ConnectPacket("me").write(), old(mqtt5.ConnectPacket("me").write())]),
)
def test_whatever_comes_is_packets_or_a_protocol_error(chunks, first):
    reader, made = codec.Reader(1000), session.Session(SETTINGS, lambda token: ANYBODY, "new")
    try:
        for chunk in (first, *chunks):
            for one in reader.feed(chunk):
                assert all(isinstance(action, session.Action) for action in made.receive(one))
    except ProtocolError:
        return


@given(st.binary(min_size=1, max_size=1), st.integers(0, 200), st.binary(max_size=3))
def test_a_damaged_packet_is_a_protocol_error_or_another_packet(byte, at, more):
    whole = bytearray(
        mqtt5.SubscribePacket(3, [mqtt5.TopicFilter("a/b")], user_properties=[("filter", "x > 1")]).write() + more
    )
    whole[at % len(whole)] = byte[0]
    for version in (4, 5):
        reader = codec.Reader(1000)
        reader.version = version
        try:
            reader.feed(bytes(whole))
        except ProtocolError:
            continue


CONNECTED = mqtt5.ConnectPacket("me").write()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (CONNECTED[:9] + b"\3" + CONNECTED[10:], "reserved flag"),
        (mqtt5.ConnectPacket("a\0b").write(), "U\\+0000"),
        (mqtt5.ConnectPacket("me", will=mqtt5.Will("t\0", payload=b"x")).write(), "U\\+0000"),
        (CONNECTED[:8] + b"\6" + CONNECTED[9:], "level 6"),
        (b"\x10\x0f\0\6MQIsdp\3\2\0\0\0\1x", "level 3"),
    ],
)
def test_what_the_standard_forbids_is_a_protocol_error(data, why):
    with pytest.raises(ProtocolError, match=why) as caught:
        codec.Reader(1000).feed(data)
    if isinstance(caught.value, codec.OtherVersion):
        assert caught.value.answer in (b"\x20\2\0\1", b"\x20\3\0\x84\0")


def test_what_is_before_a_malformed_packet_is_read():
    reader = codec.Reader(1000)
    connect, publish = reader.feed(CONNECTED + mqtt5.PublishPacket("a", b"x").write() + b"\x80\0")
    assert isinstance(connect, mqtt5.ConnectPacket)
    assert publish == codec.PlainPublish("a", b"x")
    assert reader.fault is not None


def test_too_large_a_packet_is_refused_before_it_has_come():
    reader = codec.Reader(100)
    with pytest.raises(ProtocolError, match="at most 100"):
        reader.feed(b"\x10\xff\x7f")


# ---------------------------------------------------------------------- the session


def test_what_is_not_carried_is_refused_with_its_reason():
    twice = new_session().receive(mqtt5.PublishPacket("a", b"x", qos=mqtt5.QoS.EXACTLY_ONCE, packet_id=1))
    assert twice[0].message.reason_code == mqtt5.DisconnectReasonCode.QOS_NOT_SUPPORTED
    bad = new_session().receive(mqtt5.PublishPacket("a", b"{]"))
    assert bad[0].message.reason_code == mqtt5.DisconnectReasonCode.PAYLOAD_FORMAT_INVALID
    bad = new_session().receive(mqtt5.PublishPacket("a", b"{]", qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=1))
    assert bad[0].message.reason_code == mqtt5.PubAckReasonCode.PAYLOAD_FORMAT_INVALID
    bad = new_session().receive(codec.PlainPublish("a/+", b"x"))
    assert bad[0].message.reason_code == mqtt5.DisconnectReasonCode.TOPIC_NAME_INVALID
    bad = new_session().receive(mqtt5.PublishPacket("a", b"x", retain=True))
    assert bad[0].message.reason_code == mqtt5.DisconnectReasonCode.RETAIN_NOT_SUPPORTED
    filters = [mqtt5.TopicFilter("$share/g/a"), mqtt5.TopicFilter("$filter/x >"), mqtt5.TopicFilter("a")]
    (wanted,) = new_session().receive(mqtt5.SubscribePacket(1, filters))
    shared, fine = wanted.wanted[0], wanted.wanted[2]
    codes = mqtt5.SubAckReasonCode
    granted = session.subscribed(1, [shared, Problem("bad-filter", "no"), 1, 0]).reason_codes
    assert granted == [codes.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED, codes.TOPIC_FILTER_INVALID, 1, 0]
    assert (fine.query.filter, fine.quality) == ('topic = "a"', 0)


@pytest.mark.parametrize(
    "data",
    [
        b"\x82\3\0\1\0",  # SUBSCRIBE
        b"\x82\7\0\0\0\0\1a\0",
        b"\xa2\3\0\1\0",  # UNSUBSCRIBE
        b"\xa2\6\0\0\0\0\1a",
        b"\x32\7\0\1a\0\0\0x",  # PUBLISH
    ],
)
def test_packets_have_numbers_and_topic_filters(data):
    reader = codec.Reader(1000)
    _, packet = reader.feed(CONNECTED + data)
    *_, end = new_session().receive(packet)
    assert isinstance(end, session.Close)
    assert "without a" in end.why


def test_those_who_are_not_let_in_hear_why():
    codes = mqtt5.ConnAckReasonCode
    full = session.Session(SETTINGS, lambda token: ANYBODY, "new", full="too many")
    assert full.receive(mqtt5.ConnectPacket("me"))[0].message.reason_code == codes.SERVER_BUSY
    for will, code in (
        (mqtt5.Will("a", qos=mqtt5.QoS.EXACTLY_ONCE), codes.QUALITY_NOT_SUPPORTED),
        (mqtt5.Will("a", retain=True), codes.RETAIN_NOT_SUPPORTED),
        (mqtt5.Will("a", payload=b"{]"), codes.PAYLOAD_FORMAT_INVALID),
    ):
        made = session.Session(SETTINGS, lambda token: ANYBODY, "new")
        assert made.receive(mqtt5.ConnectPacket("me", will=will))[0].message.reason_code == code
    older = session.Session(SETTINGS, lambda token: ANYBODY, "new")
    older.version = 4
    assert older.receive(mqtt5.ConnectPacket(""))[0].message.reason_code == codes.CLIENT_ID_NOT_VALID


def test_how_long_a_session_is_kept():
    longest = int(SETTINGS.session_expiry)
    for version, clean, asked, granted in (
        (5, True, 0, 0), (5, False, 60, 60), (5, False, 2**32 - 1, longest), (4, True, 0, 0), (4, False, 0, longest),
    ):  # fmt: skip
        made = session.Session(SETTINGS, lambda token: ANYBODY, "new")
        made.version = version
        made.receive(mqtt5.ConnectPacket("me", clean_start=clean, session_expiry_interval=asked))
        assert made.expiry == granted
        told = made.welcome(present=True)
        assert told.session_present
        assert told.session_expiry_interval == (granted if version == 5 and asked != granted else None)
    made = new_session()
    assert "prolonged" in made.receive(mqtt5.DisconnectPacket(session_expiry_interval=9))[0].message.reason_str
    made = session.Session(SETTINGS, lambda token: ANYBODY, "new")
    made.receive(mqtt5.ConnectPacket("me", session_expiry_interval=60))
    made.receive(mqtt5.DisconnectPacket(session_expiry_interval=9))
    assert made.expiry == 9


def test_topic_aliases_stand_for_topics():
    made = new_session()
    (first,) = made.receive(mqtt5.PublishPacket("a", b"1", topic_alias=2))
    (second,) = made.receive(mqtt5.PublishPacket("", b"2", topic_alias=2))
    assert first.notification["topic"] == second.notification["topic"] == "a"
    unknown = made.receive(mqtt5.PublishPacket("", b"2", topic_alias=3))
    assert unknown[0].message.reason_code == mqtt5.DisconnectReasonCode.TOPIC_ALIAS_INVALID


def test_a_will_is_for_those_who_leave_without_a_word():
    made = session.Session(SETTINGS, lambda token: ANYBODY, "new")
    made.receive(mqtt5.ConnectPacket("me", will=mqtt5.Will("gone", payload=b"me")))
    will = made.take_will()
    assert will is not None
    assert will.notification == {"payload": "me", "topic": "gone"}
    assert made.take_will() is None
    made = session.Session(SETTINGS, lambda token: ANYBODY, "new")
    made.receive(mqtt5.ConnectPacket("me", will=mqtt5.Will("gone", payload=b"me")))
    made.receive(mqtt5.DisconnectPacket())
    assert made.take_will() is None


# ---------------------------------------------------------------------- stock clients


@contextmanager
def door(**settings: Any) -> Iterator[int]:
    """A broker and a gateway in a thread; the port of its MQTT door."""
    ports: queue.Queue[int] = queue.Queue()
    stop: list[Any] = []

    async def serve() -> None:
        async with running(http=None, mqtt="127.0.0.1:0", **settings) as (gateway, _):
            over = asyncio.Event()
            stop.extend((asyncio.get_running_loop(), over))
            ports.put(int(gateway.mqtt_url.rpartition(":")[2]))
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield ports.get(timeout=30)
    finally:
        stop[0].call_soon_threadsafe(stop[1].set)
        thread.join(30)


class Stock:
    """A paho client that keeps what it is told."""

    def __init__(self, port: int, version: int, *, will: tuple[str, str] | None = None, password: str = "") -> None:
        self.told: queue.Queue[Any] = queue.Queue()
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=version)
        if will is not None:
            self.client.will_set(*will)
        if password:
            self.client.username_pw_set("me", password)
        self.client.on_connect = lambda c, u, flags, reason, p: self.told.put(("connected", reason))
        self.client.on_subscribe = lambda c, u, mid, reasons, p: self.told.put(("subscribed", reasons))
        self.client.on_publish = lambda c, u, mid, reason, p: self.told.put(("published", reason))
        self.client.on_message = lambda c, u, message: self.told.put((message.topic, message.payload))
        self.client.on_disconnect = lambda c, u, flags, reason, p: self.told.put(("disconnected", reason))
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def hears(self, wanted: str) -> Any:
        while True:
            kind, what = self.told.get(timeout=30)
            if kind == wanted:
                return what

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.parametrize("version", [paho.MQTTv311, paho.MQTTv5])
def test_a_stock_client_publishes_and_subscribes(version):
    with door() as port:
        reader, writer = Stock(port, version), Stock(port, version)
        assert not reader.hears("connected").is_failure
        reader.client.subscribe([("ship/+/wind", 0), ("$filter/wind > 90", 1)])
        assert [reason.value for reason in reader.hears("subscribed")] == [0, 0]
        writer.client.publish("ship/7/wind", "12.5")
        assert reader.hears("ship/7/wind") == b"12.5"
        writer.client.publish("storm", json.dumps({"wind": 120, "at": {"x": 1}}), qos=1)
        assert not writer.hears("published").is_failure
        assert json.loads(reader.hears("storm")) == {"wind": 120, "at.x": 1}
        reader.client.subscribe("$filter/wind >")
        assert [reason.is_failure for reason in reader.hears("subscribed")] == [True]
        reader.client.unsubscribe("ship/+/wind")
        writer.client.publish("ship/7/wind", "13")
        writer.client.publish("storm", '{"wind": 121}')
        assert json.loads(reader.hears("storm")) == {"wind": 121}
        reader.close()
        writer.close()


def test_the_user_property_filter_narrows_any_topic():
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    with door() as port:
        client = Stock(port, paho.MQTTv5)
        client.hears("connected")
        properties = Properties(PacketTypes.SUBSCRIBE)
        properties.UserProperty = ("filter", "wind > 90")
        client.client.subscribe("storm/#", properties=properties)
        client.hears("subscribed")
        for topic, wind in (("storm/1", 80), ("calm", 99), ("storm/2", 99)):
            client.client.publish(topic, json.dumps({"wind": wind}))
        assert client.hears("storm/2") == b'{"wind":99}'
        client.close()


def test_a_will_is_published_when_a_client_is_cut():
    with door() as port:
        reader = Stock(port, paho.MQTTv311)
        reader.hears("connected")
        reader.client.subscribe("gone")
        reader.hears("subscribed")
        dying = Stock(port, paho.MQTTv311, will=("gone", "ship 7"))
        dying.hears("connected")
        dying.client.loop_stop()
        dying.client.socket().shutdown(socket.SHUT_RDWR)
        assert reader.hears("gone") == b"ship 7"
        reader.close()


def test_tokens_are_passwords(tmp_path):
    token, _ = make_token(tmp_path, "reader", ["subscribe"])
    with door(tokens=str(tmp_path)) as port:
        stranger = Stock(port, paho.MQTTv5, password="nonsense")
        assert stranger.hears("connected").value == 134
        stranger.client.loop_stop()
        reader = Stock(port, paho.MQTTv5, password=token)
        assert not reader.hears("connected").is_failure
        reader.client.publish("a", "x", qos=1)
        assert reader.hears("published").value == 135
        reader.close()


def test_the_same_client_id_takes_over():
    with door() as port:
        sockets = []
        for _ in range(2):
            connection = socket.create_connection(("127.0.0.1", port), timeout=30)
            connection.sendall(mqtt5.ConnectPacket("same").write())
            assert connection.recv(100)[0] == 0x20
            sockets.append(connection)
        assert bytes((int(mqtt5.DisconnectReasonCode.SESSION_TAKEN_OVER),)) in sockets[0].recv(1000)
        for connection in sockets:
            connection.close()


def test_a_silent_client_is_told_and_cut():
    with door() as port, socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(mqtt5.ConnectPacket("quiet", keep_alive=1).write())
        data = b""
        while chunk := connection.recv(1000):
            data += chunk
        assert bytes((int(mqtt5.DisconnectReasonCode.KEEP_ALIVE_TIMEOUT),)) in data


@pytest.mark.parametrize("version", ["311", "5"])
def test_mosquitto_s_clients_work_unmodified(version):
    if shutil.which("mosquitto_sub") is None:
        pytest.skip("mosquitto-clients are not installed (apt-get install mosquitto-clients): not tried")
    with door() as port:
        at = ["-h", "127.0.0.1", "-p", str(port), "-V", version]
        wanted = "$filter/wind > 90 and area overlaps POLYGON((0 0, 10 0, 10 10, 0 10))"
        topics = ["-t", wanted, "-t", "plain/#"]
        listening = subprocess.Popen(
            ["stdbuf", "-oL", "mosquitto_sub", *at, *topics, "-C", "2", "-W", "30", "-d"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert listening.stdout is not None
        with listening, listening.stdout as heard:
            assert any(line.startswith("Subscribed") for line in heard)
            area = '{"type": "Polygon", "coordinates": [[[5, 5], [20, 5], [20, 20], [5, 5]]]}'
            for topic, text in (("storm", f'{{"wind": 120, "area": {area}}}'), ("plain/x", "hello")):
                subprocess.run(["mosquitto_pub", *at, "-t", topic, "-m", text], check=True, timeout=30)
            said = heard.read()
        assert listening.returncode == 0
        assert '"wind":120' in said
        assert "hello" in said


PLAIN = st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.text(max_size=9), st.none())


@given(st.text(max_size=9), st.dictionaries(st.text(max_size=9), PLAIN, max_size=5))
def test_what_is_encoded_at_once_is_what_is_read_and_encoded(topic, values):
    payload = json.dumps(values).encode()
    encoded = topics.encoded_of_message(topic, payload)
    if encoded is not None:
        assert encoded == encode_notification(topics.notification_of_message(topic, payload))


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=200), st.binary(max_size=20_000)), max_size=5),
    st.sampled_from((4, 5)),
)
def test_plain_messages_are_read_and_written_alike_in_any_slices(messages, version):
    sent = [(topic.encode(), payload) for topic, payload in messages]
    written = b"".join(codec.publish_bytes(topic, payload, version) for topic, payload in sent)
    for size in (len(written) or 1, 7000):
        reader = codec.Reader(1 << 20)
        reader.version = version
        read = [each for at in range(0, len(written), size) for each in reader.feed(written[at : at + size])]
        assert [(each.topic.encode(), each.payload) for each in read] == sent
