"""MQTT sessions: what outlives a connection, quality 1, retained messages and wills; by hand and by stock clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import socket
import subprocess
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Broker, Client
from contrada.broker.protocol.messages import NotificationId
from contrada.client.notification import DurableNotification

mqtt5 = pytest.importorskip("mqtt5", reason="the gateway's libraries are not installed: contrada[gateway]")
paho = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: stock clients not tried")

from contrada.client.gateway.mqtt.outgoing import Outgoing  # noqa: E402  # mqtt5 may not be there
from contrada.client.gateway.mqtt.sessions import KeptSession, Sessions  # noqa: E402  # mqtt5 may not be there
from tests.client.gateway.conftest import WEB  # noqa: E402  # aiohttp may not be there
from tests.client.gateway.test_mqtt import door  # noqa: E402  # mqtt5 may not be there

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 30
ONCE = mqtt5.QoS.AT_LEAST_ONCE
SOCKETS: list[socket.socket] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while SOCKETS:
        SOCKETS.pop().close()


class Raw:
    """A client by hand: packets out, packets in."""

    def __init__(self, port: int, name: str = "ship", **options: Any) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._buffer = b""
        SOCKETS.append(self._socket)
        self.send(mqtt5.ConnectPacket(name, **options))
        self.connected = self.read()

    def send(self, packet: Any) -> None:
        self._socket.sendall(packet.write())

    def read(self) -> Any:
        while True:
            whole = _length(self._buffer)
            if whole is not None and whole <= len(self._buffer):
                packet, _ = mqtt5.read(memoryview(self._buffer[:whole]))
                self._buffer = self._buffer[whole:]
                return packet
            chunk = self._socket.recv(65536)
            assert chunk, "the gateway has closed the connection"
            self._buffer += chunk

    def subscribe(self, *patterns: str, quality: Any = ONCE, **options: Any) -> list[int]:
        filters = [mqtt5.TopicFilter(pattern, max_qos=quality, **options) for pattern in patterns]
        self.send(mqtt5.SubscribePacket(7, filters))
        self.came: list[Any] = []
        while not isinstance(answer := self.read(), mqtt5.SubAckPacket):
            self.came.append(answer)
        return [int(code) for code in answer.reason_codes]

    def publish(self, topic: str, payload: bytes, **options: Any) -> Any:
        """Publish by quality 1; the acknowledgement."""
        self.send(mqtt5.PublishPacket(topic, payload, qos=ONCE, packet_id=9, **options))
        self.came = []
        while not isinstance(answer := self.read(), mqtt5.PubAckPacket):
            self.came.append(answer)
        return answer

    def message(self) -> Any:
        packet = self.read()
        assert isinstance(packet, mqtt5.PublishPacket), packet
        return packet

    def quiet(self) -> bool:
        """Whether nothing is on its way: the answer to a PINGREQ is the next that comes."""
        self.send(mqtt5.PingReqPacket())
        return isinstance(self.read(), mqtt5.PingRespPacket)

    def cut(self) -> None:
        """Gone without a word."""
        self._socket.close()

    def leave(self, **options: Any) -> None:
        self.send(mqtt5.DisconnectPacket(**options))
        assert self._socket.recv(10) == b""
        self._socket.close()


def _length(buffer: bytes) -> int | None:
    value = shift = 0
    for at, byte in enumerate(buffer[1:5], 1):
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return at + 1 + value
        shift += 7
    return None


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data=tmp_path) as made:
        yield made


def names(client: Client) -> list[str]:
    return [each["name"] for each in client.durable_subscriptions()["subscriptions"]]


def nobody_is_there(client: Client) -> bool:
    """Whether the gateway has noticed of all sessions that their clients are gone."""
    return not any(each["attached"] for each in client.durable_subscriptions()["subscriptions"])


def until(what: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# ---------------------------------------------------------------------- by hand


def test_what_was_not_acknowledged_comes_again_under_its_number(broker):
    with door(broker=broker) as port, Client(broker.url) as client:
        ship = Raw(port, clean_start=True, session_expiry_interval=600)
        assert not ship.connected.session_present
        assert ship.subscribe("harbour/#", "calm") == [1, 1]
        desk = Raw(port, "desk")
        for wind in (80, 90):
            assert int(desk.publish("harbour/7", b"%d" % wind).reason_code) == 0
        first, second = ship.message(), ship.message()
        assert [bytes(first.payload), bytes(second.payload)] == [b"80", b"90"]
        assert not first.duplicate
        ship.send(mqtt5.PubAckPacket(first.packet_id))
        assert ship.quiet()
        ship.cut()
        until(lambda: nobody_is_there(client))  # else it is sent what is new, and sent that again
        desk.publish("harbour/7", b"100")
        ship = Raw(port, session_expiry_interval=600)
        assert ship.connected.session_present
        again, third = ship.message(), ship.message()
        assert (bytes(again.payload), again.packet_id, again.duplicate) == (b"90", second.packet_id, True)
        assert (bytes(third.payload), third.duplicate) == (b"100", False)
        assert third.packet_id != again.packet_id
        for each in (again, third):
            ship.send(mqtt5.PubAckPacket(each.packet_id))
        assert ship.quiet()
        ship.leave()
        ship = Raw(port, session_expiry_interval=600)
        assert ship.connected.session_present
        assert ship.quiet()
        ship.leave(session_expiry_interval=0)


def test_a_session_ends_when_it_is_time_and_takes_what_it_had_along(broker):
    with door(broker=broker) as port, Client(broker.url) as client:
        ship = Raw(port, session_expiry_interval=1)
        ship.subscribe("a")
        assert len(names(client)) == 1
        ship.cut()
        until(lambda: not names(client))
        ship = Raw(port, session_expiry_interval=600)
        assert not ship.connected.session_present
        ship.subscribe("a", "b", "$filter/x > 1")
        assert len(names(client)) == 3
        ship.send(mqtt5.UnsubscribePacket(3, ["b", "c"]))
        assert [int(code) for code in ship.read().reason_codes] == [0, 17]
        assert len(names(client)) == 2
        ship.cut()
        ship = Raw(port, clean_start=True)
        assert not ship.connected.session_present
        assert not names(client)
        ship.subscribe("a")
        ship.leave()
        until(lambda: not names(client))


def test_no_more_is_on_its_way_than_the_client_takes(broker):
    with door(broker=broker) as port:
        ship = Raw(port, receive_max=2)
        ship.subscribe("a")
        desk = Raw(port, "desk")
        for number in range(5):
            desk.publish("a", b"%d" % number)
        got = [ship.message(), ship.message()]
        assert ship.quiet()
        for number in range(2, 5):
            ship.send(mqtt5.PubAckPacket(got[-2].packet_id))
            got.append(ship.message())
            assert bytes(got[-1].payload) == b"%d" % number
        ship.cut()
        small = Raw(port, "small", max_packet_size=60)
        small.subscribe("a")
        desk.publish("a", b"x" * 100)
        desk.publish("a", b"fits")
        assert bytes(small.message().payload) == b"fits"


def test_few_are_on_their_way_to_who_acknowledges_nothing(broker):
    with door(broker=broker) as port, Client(broker.url) as client:
        ship = Raw(port)
        ship.subscribe("a")
        client.publish_many([{"topic": "a", "payload": number} for number in range(50)], durable=True)
        got = [ship.message() for _ in range(20)]
        assert ship.quiet()
        ship.send(mqtt5.PubAckPacket(got[0].packet_id))
        assert bytes(ship.message().payload) == b"20"
        assert ship.quiet()


def test_retained_messages_have_the_flag_and_can_be_deleted(broker):
    handling = mqtt5.RetainHandling
    with door(broker=broker) as port:
        desk = Raw(port, "desk")
        desk.publish("a", b"old", retain=True)
        desk.publish("b", b"other", retain=True)
        for quality in (mqtt5.QoS.AT_MOST_ONCE, ONCE):
            ship = Raw(port, clean_start=True)
            ship.subscribe("a", quality=quality)
            kept = (ship.came or [ship.message()])[0]
            assert (bytes(kept.payload), kept.retain, int(kept.qos)) == (b"old", True, int(quality))
            if quality == ONCE:
                ship.send(mqtt5.PubAckPacket(kept.packet_id))
            desk.publish("a", b"new", retain=True)
            live = ship.message()
            assert (bytes(live.payload), live.retain) == (b"new", False)
            desk.publish("a", b"old", retain=True)
            ship.message()
            for again, wanted in ((handling.SEND_IF_SUBSCRIPTION_NOT_EXISTS, 0), (handling.SEND_NEVER, 0),
                                  (handling.SEND_ALWAYS, 1)):  # fmt: skip
                ship.subscribe("a", quality=quality, retain_handling=again)
                if wanted and not [each for each in ship.came if each.retain]:
                    assert ship.message().retain
                elif not wanted:
                    assert not [each for each in ship.came if each.retain]
            ship.cut()
        ship = Raw(port, "never", clean_start=True)
        ship.subscribe("b", quality=ONCE, retain_handling=handling.SEND_NEVER)
        assert ship.quiet()
        assert int(desk.publish("a", b"", retain=True).reason_code) == 0
        ship = Raw(port, "late", clean_start=True)
        ship.subscribe("#", quality=mqtt5.QoS.AT_MOST_ONCE)
        assert [bytes(each.payload) for each in (ship.came or [ship.message()])] == [b"other"]
        assert ship.quiet()


def test_a_client_that_asks_not_to_does_not_hear_itself(broker):
    with door(broker=broker) as port:
        ship, desk = Raw(port), Raw(port, "desk")
        for quality in (mqtt5.QoS.AT_MOST_ONCE, ONCE):
            ship.subscribe("a", quality=quality, no_local=True)
            ship.publish("a", b"mine")
            ship.send(mqtt5.PublishPacket("a", b"mine, too"))
            desk.publish("a", b"yours")
            heard = (ship.came or [ship.message()])[0]
            assert bytes(heard.payload) == b"yours"
            assert ship.quiet()


def test_a_long_filter_for_many_topics_is_refused_before_it_is_read(broker):
    with door(broker=broker) as port:
        client = Raw(port)
        text = "n = 1" + " or n = 1" * 5_000
        filters = [mqtt5.TopicFilter(f"t/{number}") for number in range(100)]
        client.send(mqtt5.SubscribePacket(7, filters, user_properties=[("filter", text)]))
        refused = client.read()
        assert isinstance(refused, mqtt5.DisconnectPacket)
        assert "subscribe to fewer" in refused.reason_str


def test_who_makes_many_sessions_loses_no_one_else_s():
    async def scenario() -> None:
        stub: Any = SimpleNamespace(settings=SimpleNamespace(connections=5, token_sessions=100, session_bytes=1000))
        sessions = Sessions(stub)
        for key in [("alice", "ship"), *(("mallory", str(number)) for number in range(20)), ("bob", "post")]:
            await sessions.put_down(KeptSession(key), 60, None)
        assert len(sessions) == 5
        for key in (("alice", "ship"), ("bob", "post"), ("mallory", "19")):
            assert (await sessions.take_up(key, clean=False))[1], key

    asyncio.run(scenario())


def test_a_will_waits_for_those_who_come_back(broker):
    with door(broker=broker) as port:
        desk = Raw(port, "desk")
        desk.subscribe("gone", quality=mqtt5.QoS.AT_MOST_ONCE)
        will = mqtt5.Will("gone", payload=b"ship", will_delay_interval=600, retain=True, qos=ONCE)
        ship = Raw(port, session_expiry_interval=1200, will=will)
        ship.cut()
        ship = Raw(port, session_expiry_interval=1200, will=will)
        assert ship.connected.session_present
        assert desk.quiet()
        ship.leave(session_expiry_interval=1)  # without a will: it said so
        ship = Raw(port, session_expiry_interval=1, will=will)
        ship.cut()  # the session is over before the delay is, and that is when it is published
        assert bytes(desk.message().payload) == b"ship"
        late = Raw(port, "late")
        late.subscribe("gone", quality=mqtt5.QoS.AT_MOST_ONCE)
        assert (late.came or [late.message()])[0].retain
        soon = mqtt5.Will("gone", payload=b"soon", will_delay_interval=1)
        Raw(port, session_expiry_interval=600, will=soon).cut()
        assert bytes(desk.message().payload) == b"soon"


def test_what_waited_is_there_after_the_gateway_was_started_again(broker):
    with Client(broker.url) as client:
        with door(broker=broker) as port:
            ship = Raw(port, session_expiry_interval=600)
            ship.subscribe("a")
            other = Raw(port, "other ship/7", session_expiry_interval=600)
            other.subscribe("a")
        client.publish({"topic": "a", "payload": "while away"})
        with door(broker=broker) as port:
            ship = Raw(port, session_expiry_interval=600)
            assert not ship.connected.session_present
            ship.subscribe("a")
            assert bytes((ship.came or [ship.message()])[0].payload) == b"while away"
            assert len(names(client)) == 2
            Raw(port, "other ship/7", clean_start=True)
            assert len(names(client)) == 1


def test_without_a_disk_subscriptions_are_kept_but_nothing_waits():
    with door() as port:
        ship = Raw(port, session_expiry_interval=600)
        assert ship.subscribe("a") == [0]
        ship.cut()
        desk = Raw(port, "desk")
        desk.publish("a", b"lost")
        ship = Raw(port, session_expiry_interval=600)
        assert ship.connected.session_present
        assert ship.quiet()
        desk.publish("a", b"heard")
        assert bytes(ship.message().payload) == b"heard"


# ---------------------------------------------------------------------- numbers of quality 1


@given(st.lists(st.tuples(st.sampled_from("nnnaair"), st.integers(0, 5), st.sampled_from("pq")), max_size=60))
def test_numbers_are_used_once_at_a_time_and_come_again(steps):
    """Against a plain list of what is out: nothing is acknowledged for another, and no two share a number."""

    async def run() -> None:
        acknowledged: list[int] = []
        outgoing = Outgoing({}, 4)
        out: dict[int, tuple[str, int]] = {}  # number: pattern, position
        interrupted: dict[tuple[str, int], int] = {}
        position = 0
        for what, choice, pattern in steps:
            if what == "n" and len(out) < 4:
                again = [key for key in interrupted if key[0] == pattern]
                if again:
                    wanted = again[choice % len(again)][1]
                    number = await outgoing.number(pattern, sent(wanted, 2, acknowledged))
                    assert number == interrupted.pop((pattern, wanted))
                else:
                    position += 1
                    wanted = position
                    number = await outgoing.number(pattern, sent(wanted, 1, acknowledged))
                assert 1 <= number <= 65_535
                assert number not in out
                assert number not in interrupted.values()
                out[number] = pattern, wanted
            elif what == "a" and out:
                number = sorted(out)[choice % len(out)]
                outgoing.acknowledge(number)
                assert acknowledged[-1] == out.pop(number)[1]
            elif what == "i":
                outgoing.interrupt(pattern)
                for number in [number for number, (of, _) in out.items() if of == pattern]:
                    interrupted[out.pop(number)] = number
            elif what == "r":
                before = outgoing.sent()
                outgoing = Outgoing(before, 4)
                interrupted |= {key: number for number, key in out.items()}
                out.clear()
                assert {(of, id.sequence): number for (of, id), number in before.items()} == interrupted
            outgoing.acknowledge(60_000)  # a number that stands for nothing
            outgoing._check()

    asyncio.run(run())


def sent(position: int, attempt: int, acknowledged: list[int]) -> DurableNotification:
    def acknowledge(at: int, _run: bool) -> None:
        acknowledged.append(at)

    return DurableNotification(acknowledge, NotificationId("b", position), "", b"\x80", position, attempt, 0)


# ---------------------------------------------------------------------- stock clients


@pytest.mark.parametrize("version", [paho.MQTTv311, paho.MQTTv5])
def test_paho_finds_what_waited(broker, version):
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    def client(name: str, got: list[Any]) -> Any:
        made = paho.Client(
            paho.CallbackAPIVersion.VERSION2, name, protocol=version,
            **({} if version == paho.MQTTv5 else {"clean_session": False}),
        )  # fmt: skip
        made.on_connect = lambda c, u, flags, reason, p: got.append(("connected", flags.session_present))
        made.on_subscribe = lambda c, u, mid, reasons, p: got.append(("subscribed", [r.value for r in reasons]))
        made.on_message = lambda c, u, message: got.append((message.qos, message.payload))
        kept = {}
        if version == paho.MQTTv5:
            kept = {"clean_start": False, "properties": Properties(PacketTypes.CONNECT)}
            kept["properties"].SessionExpiryInterval = 600
        made.connect("127.0.0.1", port, **kept)
        made.loop_start()
        return made

    with door(broker=broker) as port:
        got: list[Any] = []
        ship = client("ship", got)
        until(lambda: ("connected", False) in got)
        ship.subscribe("harbour/#", 1)
        until(lambda: ("subscribed", [1]) in got)
        ship.disconnect()
        ship.loop_stop()
        desk = client("desk", [])
        for number in range(3):
            desk.publish("harbour/7", f"storm {number}", qos=1).wait_for_publish(PATIENCE)
        got.clear()
        ship = client("ship", got)
        until(lambda: len(got) == 4)
        assert sorted(got[:1]) == [("connected", True)]
        assert [each for each in got if each[0] == 1] == [(1, b"storm %d" % n) for n in range(3)]
        for each in (ship, desk):
            each.disconnect()
            each.loop_stop()


def test_aiomqtt_finds_what_waited(broker):
    aiomqtt = pytest.importorskip("aiomqtt", reason="aiomqtt is not installed: not tried")

    async def run(port: int) -> list[Any]:
        where = {"hostname": "127.0.0.1", "port": port, "timeout": PATIENCE}
        async with aiomqtt.Client(identifier="ship", clean_session=False, **where) as ship:
            await ship.subscribe("$filter/wind > 90", qos=1)
        async with aiomqtt.Client(identifier="desk", **where) as desk:
            for wind in (80, 100, 120):
                await desk.publish("storm", json.dumps({"wind": wind}), qos=1)
        got = []
        async with aiomqtt.Client(identifier="ship", clean_session=False, **where) as ship:
            async with asyncio.timeout(PATIENCE):
                async for message in ship.messages:
                    got.append((message.qos, json.loads(message.payload)["wind"]))
                    if len(got) == 2:
                        return got
        return got

    with door(broker=broker) as port:
        assert asyncio.run(run(port)) == [(1, 100), (1, 120)]


@pytest.mark.parametrize("version", ["311", "5"])
def test_mosquitto_s_clients_find_what_waited(broker, version):
    if shutil.which("mosquitto_sub") is None:
        pytest.skip("mosquitto-clients are not installed (apt-get install mosquitto-clients): not tried")
    with door(broker=broker) as port:
        at = ["-h", "127.0.0.1", "-p", str(port), "-V", version]
        kept = [*at, "-i", "ship", "-c", "-q", "1", "-t", "a/#", *(["-x", "600"] if version == "5" else [])]

        def run(*words: str) -> str:
            return subprocess.run(words, check=True, timeout=PATIENCE, text=True, stdout=subprocess.PIPE).stdout

        run("mosquitto_sub", *kept, "-E")  # subscribes, and leaves
        for text in ("one", "two"):
            run("mosquitto_pub", *at, "-q", "1", "-t", "a/b", "-m", text)
        assert run("mosquitto_sub", *kept, "-C", "2", "-W", "30").split() == ["one", "two"]
        run("mosquitto_pub", *at, "-q", "1", "-r", "-t", "kept", "-m", "last")
        wanted = [*at, "-t", "kept", "-W", "30", "-C", "1"]
        assert run("mosquitto_sub", *wanted, "-F", "%r %p").split() == ["1", "last"]
        run("mosquitto_pub", *at, "-q", "1", "-r", "-n", "-t", "kept")
        run("mosquitto_pub", *at, "-q", "1", "-r", "-t", "other", "-m", "there")
        assert run("mosquitto_sub", *wanted, "-t", "other", "-F", "%t").split() == ["other"]


@pytest.mark.xdist_group("browser")  # one worker installs what node needs
@pytest.mark.parametrize("version", ["4", "5"])
def test_mqtt_js_finds_what_waited(broker, node, version):
    with door(broker=broker) as port:
        words = [node, "browser/mqtt_session.mjs", f"mqtt://127.0.0.1:{port}", version]
        done = subprocess.run(words, cwd=WEB, text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {"granted": [1], "present": True, "got": [["a/b", "one", 1], ["a/b", "two", 1]]}


# ---------------------------------------------------------------------- anything in any order


def some_packet(rng: random.Random) -> bytes:
    """A packet that is well-formed, whether or not it has a place where it comes."""
    qualities = [mqtt5.QoS.AT_MOST_ONCE, ONCE, mqtt5.QoS.EXACTLY_ONCE]
    topic, number = rng.choice(["a", "a/b", "$x", "b"]), rng.randrange(1, 5)
    quality = rng.choice(qualities)
    payload = rng.choice([b"", b"1", b"{}", b'{"wind": 120}', b"\xff\0", b"{", b'{"area": {"type": "Polygon"}}'])
    made: Any
    kind = rng.randrange(9)
    if kind == 0:
        will = mqtt5.Will(topic, payload=payload, qos=quality, retain=rng.random() < 0.5, will_delay_interval=number)
        expiry = rng.choice([0, 1, 600, 2**32 - 1])
        made = mqtt5.ConnectPacket(
            rng.choice(["x", "y", ""]), clean_start=rng.random() < 0.5, session_expiry_interval=expiry,
            will=rng.choice([None, will]), receive_max=rng.choice([1, 65535]), max_packet_size=rng.choice([None, 30]),
        )  # fmt: skip
    elif kind in (1, 2):
        id = None if quality == qualities[0] else number
        alias = rng.choice([None, None, 1, 99])
        properties = rng.choice([[], [("attributes", '{"n": 1}')], [("attributes", "[")]])
        made = mqtt5.PublishPacket(
            topic, payload, qos=quality, packet_id=id, retain=rng.random() < 0.3, topic_alias=alias,
            user_properties=properties,
        )  # fmt: skip
    elif kind in (3, 4):
        pattern = rng.choice(["a", "a/#", "+/b", "#", "$filter/wind > 90", "$filter/wind >", "$share/g/a"])
        options = {"no_local": rng.random() < 0.3, "retain_handling": mqtt5.RetainHandling(rng.randrange(3))}
        made = mqtt5.SubscribePacket(number, [mqtt5.TopicFilter(pattern, max_qos=quality, **options)])
    elif kind == 5:
        made = mqtt5.UnsubscribePacket(number, [rng.choice(["a", "a/#", "#"])])
    elif kind == 6:
        made = mqtt5.PubAckPacket(number)
    elif kind == 7:
        made = rng.choice([mqtt5.PingReqPacket(), mqtt5.PubRelPacket(number), mqtt5.PubCompPacket(number)])
    else:
        made = mqtt5.DisconnectPacket(session_expiry_interval=rng.choice([None, 0, 5]))
    data: bytes = made.write()
    return data


def test_packets_in_any_order_cost_the_others_nothing(broker):
    """Two connections say anything, in any order and under the same ids, while a third goes on as it should."""
    rng = random.Random(20)
    with door(broker=broker) as port:
        good = Raw(port, "good")
        good.subscribe("mark", quality=ONCE)
        for number in range(60):
            other = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            SOCKETS.append(other)
            expiry = rng.choice([0, 600])
            talk = [mqtt5.ConnectPacket(rng.choice("xy"), session_expiry_interval=expiry).write()]
            talk += [some_packet(rng) for _ in range(rng.randrange(1, 12))]
            with contextlib.suppress(OSError):  # it may have been cut off by then
                other.sendall(b"".join(talk))
            if number % 3 == 0:
                other.close()
            assert int(good.publish("mark", b"%d" % number).reason_code) == 0
            message = (good.came or [good.message()])[0]
            assert bytes(message.payload) == b"%d" % number
            good.send(mqtt5.PubAckPacket(message.packet_id))
        assert good.quiet()
