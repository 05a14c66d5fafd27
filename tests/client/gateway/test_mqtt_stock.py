"""MQTT.js and hostile sockets at the MQTT door; paho's and mosquitto's clients are in `test_mqtt`."""

from __future__ import annotations

import json
import random
import socket
import subprocess

import pytest

mqtt5 = pytest.importorskip("mqtt5", reason="the gateway's libraries are not installed: contrada[gateway]")
pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: stock clients not tried")

from contrada.client.gateway.gateway import Gateway  # noqa: E402  # aiohttp may not be there
from contrada.errors import Refused  # noqa: E402  # in its place
from tests.client.gateway.conftest import WEB  # noqa: E402  # aiohttp may not be there
from tests.client.gateway.test_mqtt import door  # noqa: E402  # mqtt5 may not be there


@pytest.mark.xdist_group("browser")  # one worker installs what node needs
@pytest.mark.parametrize("version", ["4", "5"])
def test_mqtt_js_works_unmodified(node, version):
    with door() as port:
        words = [node, "browser/mqtt.mjs", f"mqtt://127.0.0.1:{port}", version]
        done = subprocess.run(words, cwd=WEB, text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["granted"] == [0, 0]
    assert [(topic, payload) for topic, payload in told["got"] if topic != "storm/2"] == [
        ("plain/a", "hello"),
        ("plain/b", "42"),
    ]
    assert ["storm/2", '{"wind":120}'] in told["got"]


def test_hostile_sockets_cost_the_others_nothing():
    """Garbage, halves and floods on many connections, while one that behaves goes on publishing and receiving."""
    rng = random.Random(20)
    connect = mqtt5.ConnectPacket("x").write()
    many = b"".join(b"\0\1a\0" for _ in range(50_000))
    flood = b"\x82" + length(2 + 1 + len(many)) + b"\0\1\0" + many
    hostile = [
        b"\xff" * 100,
        connect[:7],
        connect + b"\xc0\0" * 20_000,
        connect + flood,
        connect + connect,
        connect + b"\x30\xff\xff\xff\x7f",
        connect + b"\x32\x05\0\1\xff\0\0",
        b"GET / HTTP/1.1\r\n\r\n",
        *(connect + rng.randbytes(rng.randrange(1, 300)) for _ in range(40)),
        *(rng.randbytes(rng.randrange(1, 300)) for _ in range(40)),
    ]
    with door() as port, socket.create_connection(("127.0.0.1", port), timeout=30) as good:
        good.sendall(mqtt5.ConnectPacket("good").write())
        assert good.recv(1000)[0] == 0x20
        good.sendall(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t")]).write())
        assert good.recv(1000)[0] == 0x90
        others = []
        for number, data in enumerate(hostile):
            other = socket.create_connection(("127.0.0.1", port), timeout=30)
            other.sendall(data)
            others.append(other)
            good.sendall(mqtt5.PublishPacket("t", b"%d" % number).write())
            heard = b""
            while b"t\0%d" % number not in heard:
                chunk = good.recv(1000)
                assert chunk, f"cut off after {data[:40]!r}"
                heard += chunk
        for other in others:
            other.close()


def length(number: int) -> bytes:
    """A number as MQTT writes lengths."""
    found = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        found.append(low | (0x80 if number else 0))
        if not number:
            return bytes(found)


@pytest.mark.parametrize(
    ("error", "version", "wanted"),
    [
        (Refused("the disk is full", code="storage"), 4, b""),  # to be sent again: this version's PUBACK cannot say no
        (Refused("the disk is full", code="storage"), 5, b"\x40"),
        (Refused("no", code="bad-notification"), 4, b"\x40"),  # as often as it is sent
    ],
)
def test_the_older_version_does_not_acknowledge_what_may_be_taken_later(monkeypatch, error, version, wanted):
    async def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Gateway, "publish", refuse)
    with door() as port, socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"\x10\x0d\0\4MQTT\4\2\0\0\0\1x" if version == 4 else mqtt5.ConnectPacket("x").write())
        assert connection.recv(1000)[:1] == b"\x20"
        packet = mqtt5.PublishPacket("t", b"1", qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=7)
        connection.sendall(b"\x32\6\0\1t\0\x071" if version == 4 else packet.write())
        assert connection.recv(1000)[:1] == wanted


def test_a_connection_hears_what_is_wrong_with_what_is_behind_its_connect():
    with door() as port:
        for data, wanted in (
            (mqtt5.ConnectPacket("x").write() + b"\x80\0", b"\xe0"),
            (b"\x10\x0d\0\4MQTT\3\2\0\0\0\1x", b"\x20\2\0\1"),
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(data)
                heard = b""
                while chunk := connection.recv(1000):
                    heard += chunk
            assert wanted in heard


def test_quality_1_is_on_disk_and_retained_messages_come_first(tmp_path):
    from contrada import Broker, Client

    with Broker(data=tmp_path) as broker, Client(broker.url) as desk:
        desk.subscribe("true", durable="desk").close()
        with door(broker=broker) as port:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(mqtt5.ConnectPacket("x").write())
                connected, _ = mqtt5.read(memoryview(connection.recv(1000)))
                assert connected.retain_available
                for number, retain in ((1, False), (2, True)):
                    packet = mqtt5.PublishPacket(
                        "storm/7", b'{"wind": 120}', qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=number, retain=retain
                    )
                    connection.sendall(packet.write())
                    acknowledged, _ = mqtt5.read(memoryview(connection.recv(1000)))
                    assert acknowledged.packet_id == number
                    assert int(acknowledged.reason_code) == 0
            late = desk.subscribe("wind > 100")
            assert late.get(timeout=30)["topic"] == "storm/7"  # the last value
    with Broker(data=tmp_path) as broker, Client(broker.url) as desk:
        found = desk.subscribe("true", durable="desk")
        assert [found.get(timeout=30)["wind"] for _ in range(2)] == [120, 120]
