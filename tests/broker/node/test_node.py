"""A broker process over real sockets: deliveries, slow and hostile clients, death, shutdown, metrics."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from types import SimpleNamespace

import pytest
import zmq

from contrada.broker.core.ports import Codec
from contrada.broker.node.metrics import Metrics
from contrada.broker.node.node import Node
from contrada.broker.node.settings import Settings
from contrada.broker.protocol import messages as msg
from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.wire import Code, Policy
from tests.broker.processes import PATIENCE, ROOT, Dealer, broker
from tests.broker.protocol.test_frames import BOMBS
from tests.broker.table_top import body
from tests.naive.delivery import NaiveTable, read_filter, read_notification


@pytest.fixture
def node(tmp_path):
    with broker(tmp_path, heartbeat=0.5, timeout=5.0, shutdown_timeout=0.5, metrics="127.0.0.1:0") as process:
        yield process


def test_deliveries_arrive_once_each_in_order(node, context):
    publisher, both, one = (Dealer(context, node.url) for _ in range(3))
    both.subscribe(1, "x")
    both.subscribe(2, "x")
    one.subscribe(7, "y")
    first = publisher.publish(*"xyx").entries[0].sequence
    publisher.publish("y", n=bytes(100_000))
    got = both.until_delivered(4)
    assert sorted(got) == [(first, 1), (first, 2), (first + 2, 1), (first + 2, 2)]
    assert one.until_delivered(2) == [(first + 1, 7), (first + 3, 7)]
    both.ask(msg.Unsubscribe(90, 1))
    publisher.publish("x")
    both.until_delivered(5)
    assert both.delivered[-1] == (first + 4, 2)


def test_many_clients_each_get_theirs(node, context):
    clients = [Dealer(context, node.url) for _ in range(50)]
    for number, client in enumerate(clients):
        client.subscribe(1, number % 5)
    publisher = Dealer(context, node.url)
    for _ in range(20):
        publisher.publish(*range(5))
    for client in clients:
        sequences = [sequence for sequence, _ in client.until_delivered(20)]
        assert sequences == sorted(set(sequences))


def test_hostile_frames_from_one_client_never_touch_another(node, context):
    good, publisher = Dealer(context, node.url), Dealer(context, node.url)
    good.subscribe(1, "x")
    hostile = [[bomb] for bomb in BOMBS.values()]
    hostile += [[os.urandom(size)] for size in (1, 10, 1000, 100_000)]
    hostile += [[b""] * 2000, encode(msg.Publish(1, (bytes(10_000),)))[:1], [b"\xc1" * 100] * 3]
    for number, frames in enumerate(hostile, 1):
        evil = Dealer(context, node.url)
        for _ in range(3):
            evil.socket.send_multipart(frames)
        heard = evil.hear()
        assert isinstance(heard, msg.Error)
        assert heard.code in (Code.BAD_FRAME, Code.NO_SESSION)
        publisher.publish("x")
        good.until_delivered(number)
        evil.close()


def test_a_frame_beyond_the_limit_is_cut_off_by_the_transport(tmp_path, context):
    limits = {"message_bytes": 100_000, "notification_bytes": 50_000}
    with broker(tmp_path, limits=limits) as node:
        good = Dealer(context, node.url)
        good.subscribe(1, "x")
        evil = Dealer(context, node.url)
        evil.socket.send(bytes(200_000))
        poller = zmq.Poller()
        poller.register(evil.monitor, zmq.POLLIN)
        while zmq.Event.DISCONNECTED not in zmq.Event(_next_event(evil)):
            assert poller.poll(PATIENCE * 1000)
        good.publish("x")
        assert good.until_delivered(1)


def _next_event(dealer):
    from zmq.utils.monitor import recv_monitor_message

    assert dealer.monitor.poll(PATIENCE * 1000)
    return recv_monitor_message(dealer.monitor)["event"]


def scrape(node):
    return urllib.request.urlopen(node.metrics, timeout=PATIENCE).read().decode()


def test_a_forged_name_of_a_connection_is_ignored(node, context):
    """libzmq lets its users choose no name that begins with a zero; a forger needs no libzmq."""

    def sized(name, value):
        return bytes((len(name),)) + name + len(value).to_bytes(4, "big") + value

    def command(body):
        return bytes((4, len(body))) + body

    host, _, port = node.url.removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as forger:
        greeting = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
        named = sized(b"Socket-Type", b"DEALER") + sized(b"Identity", b"\0dial-1")
        head = encode(msg.Hello(1, 1, "forger"))[0]
        forger.sendall(greeting)
        assert forger.recv(64, socket.MSG_WAITALL)
        forger.sendall(command(b"\x05READY" + named))
        assert forger.recv(64)
        forger.sendall(bytes((0, len(head))) + head)
        good = Dealer(context, node.url)
        deadline = time.monotonic() + PATIENCE
        while "contrada_bad_frames_total 1.0" not in scrape(node):
            assert time.monotonic() < deadline
    good.request += 1
    clients = good.ask(msg.Status(good.request)).document["clients"]
    assert [client["name"] for client in clients] == ["dealer"]


def test_a_turn_ends_in_time_however_long_its_messages_take(context, monkeypatch):
    node = Node(Settings(listen="tcp://127.0.0.1:*"), NaiveTable(), Codec(read_notification, read_filter), Metrics())
    try:
        client = Dealer(context, node.url, hello=False)
        for _ in range(50):
            client.say(msg.Ping(1))
        clock = itertools.count(0.0, 0.006)
        monkeypatch.setattr("contrada.broker.node.node.time.monotonic", lambda: next(clock))
        while (before := node.core.counters["received"]) < 50:
            assert node._router.poll(PATIENCE * 1000)
            node._receive()
            assert node.core.counters["received"] - before <= 2
    finally:
        node.close()


def test_a_turn_looks_at_some_of_many_failed_handshakes(monkeypatch):
    node = Node(Settings(listen="tcp://127.0.0.1:*"), NaiveTable(), Codec(read_notification, read_filter), Metrics())
    try:
        failure = int(zmq.Event.HANDSHAKE_FAILED_PROTOCOL).to_bytes(2, sys.byteorder) + bytes(4)
        endless = SimpleNamespace(recv_multipart=lambda _flags: [failure, b""])
        monkeypatch.setattr(node, "_monitor", endless)
        node._note_failures()
        assert 0 < node.core.counters["handshake_failures"] < 1000
    finally:
        node.close()


def test_too_many_bad_frames_are_banned(node, context):
    evil = Dealer(context, node.url)
    for _ in range(16):
        evil.socket.send(b"junk")
    heard = [evil.hear() for _ in range(16)]
    assert [e.code for e in heard] == [Code.BAD_FRAME] * 15 + [Code.BANNED]
    assert heard[-1].fatal


def test_a_client_killed_mid_stream_is_forgotten(node, context):
    watcher = Dealer(context, node.url)
    script = (
        "import sys, zmq\n"
        "from tests.broker.processes import Dealer\n"
        "d = Dealer(zmq.Context(), sys.argv[1])\n"
        "d.subscribe(1, 'x'); print('ready', flush=True)\n"
        "while True: d.publish('x', 'x', 'x', wait=False); d.hear()\n"
    )
    victim = subprocess.Popen([sys.executable, "-c", script, node.url], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        while watcher.ask(msg.Status(1_000)).document["totals"].get("published", 0) < 30:
            pass
        victim.send_signal(signal.SIGKILL)
        assert victim.wait(PATIENCE) == -signal.SIGKILL
    while (document := watcher.ask(msg.Status(1_001)).document)["sessions"] > 1:
        watcher.say(msg.Ping(1))
        watcher.until(msg.Pong)
    assert document["subscriptions"] == 0
    watcher.subscribe(1, "x")
    watcher.publish("x")
    assert watcher.until_delivered(1)


def test_a_silent_client_is_pinged_and_then_removed(tmp_path, context):
    with broker(tmp_path, heartbeat=0.2, timeout=1.0) as node:
        watcher, sleeper = Dealer(context, node.url), Dealer(context, node.url)
        sleeper.subscribe(1, "x")
        while watcher.ask(msg.Status(1)).document["sessions"] > 1:
            assert watcher.hear()
        heard = [_next(sleeper) for _ in range(2)]
        while not isinstance(heard[-1], msg.Error):
            heard.append(_next(sleeper))
        assert all(isinstance(m, msg.Ping) for m in heard[:-1])
        assert heard[-1].code == Code.SILENT


def _next(dealer):
    from contrada.broker.protocol.frames import decode

    assert dealer.socket.poll(PATIENCE * 1000)
    return decode(dealer.socket.recv_multipart())


def test_a_stuck_drop_oldest_consumer_changes_nothing_for_others(node, context):
    stuck = Dealer(context, node.url, rcvhwm=1, rcvbuf=4096)
    stuck.subscribe(1, "x", Policy.DROP_OLDEST, credit=10**9, queue=100)
    healthy, publisher = Dealer(context, node.url), Dealer(context, node.url)
    healthy.subscribe(1, "x", Policy.BLOCK)
    publisher.publish("x", n=bytes(100_000))
    before = node.resident_bytes()
    rounds = 1500
    for done in range(1, rounds):  # 100 kB each: far more than its socket, its connection and its queue can hold
        publisher.publish("x", n=bytes(100_000))
        if done % 100 == 0:
            healthy.until_delivered(done)
            stuck.say(msg.Ping(done))  # it reads nothing, and is there all the same
    assert len(healthy.until_delivered(rounds)) == rounds
    assert node.resident_bytes() - before < 80 << 20  # of 150 MB that were published
    report = stuck.until(msg.Dropped)
    assert report.entries[0].subscription == 1
    assert report.entries[0].total > 0


def test_a_stuck_blocking_consumer_stops_its_publisher_only(node, context):
    stuck, publisher, other = (Dealer(context, node.url) for _ in range(3))
    stuck.subscribe(1, "x", Policy.BLOCK, credit=1, queue=2)
    other.subscribe(1, "y")
    publisher.publish("x")
    publisher.publish(*"xx")
    publisher.publish("x", wait=False)
    for _ in range(50):
        other.publish("y")
    assert len(other.until_delivered(50)) == 50
    document = other.ask(msg.Status(1_000)).document
    assert {c["session"]: c["unacknowledged"] for c in document["clients"]}[publisher.welcome.session] == 1
    stuck.say(msg.Credit((msg.Grant(1, 10),)))
    stuck.until_delivered(4)
    publisher.hear()


def test_a_slow_consumer_with_disconnect_is_told_why(node, context):
    slow, publisher = Dealer(context, node.url), Dealer(context, node.url)
    slow.subscribe(1, "x", Policy.DISCONNECT, credit=1, queue=5)
    publisher.publish(*"xxxxxxxxxx")
    heard = slow.hear()
    while not isinstance(heard, msg.Error):
        heard = slow.hear()
    assert (heard.code, heard.fatal) == (Code.SLOW_CONSUMER, True)


def test_sigterm_flushes_and_says_goodbye(tmp_path, context):
    with broker(tmp_path, shutdown_timeout=20.0) as node:
        subscriber, publisher = Dealer(context, node.url), Dealer(context, node.url)
        subscriber.subscribe(1, "x", credit=10)
        for _ in range(10):
            publisher.publish(*["x"] * 100)
        node.popen.send_signal(signal.SIGTERM)
        while len(subscriber.delivered) < 1000:
            before = len(subscriber.delivered)
            subscriber.hear()
            if gained := len(subscriber.delivered) - before:
                subscriber.say(msg.Credit((msg.Grant(1, gained),)))
        subscriber.until(msg.Bye)
        publisher.until(msg.Bye)
        assert node.popen.wait(PATIENCE) == 0
        assert len(subscriber.delivered) == 1000
        assert node.events()[-1]["event"] == "stopped"
        node.popen.poll = lambda: None  # it ended on purpose


def test_sigterm_does_not_wait_for_ever(tmp_path, context):
    with broker(tmp_path, shutdown_timeout=0.5) as node:
        subscriber = Dealer(context, node.url)
        subscriber.subscribe(1, "x", credit=0)
        subscriber.publish("x")
        node.popen.send_signal(signal.SIGTERM)
        assert node.popen.wait(PATIENCE) == 0
        subscriber.until(msg.Bye)
        node.popen.poll = lambda: None


def test_metrics_tell_what_happened(node, context):
    client = Dealer(context, node.url)
    client.subscribe(1, "x", Policy.DROP_OLDEST, credit=1, queue=2)
    client.publish(*"xxxxxy")
    client.socket.send(b"junk")
    while not isinstance(client.hear(), msg.Error):
        pass
    with urllib.request.urlopen(node.metrics, timeout=PATIENCE) as response:
        lines = response.read().decode().splitlines()
    metrics = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    expected = {
        "contrada_published_total": 6,
        "contrada_delivered_total": 1,
        'contrada_dropped_total{policy="drop-oldest"}': 2,
        "contrada_bad_frames_total": 1,
        "contrada_sessions": 1,
        "contrada_subscriptions": 1,
        "contrada_filters": 1,
        "contrada_queued": 2,
        "contrada_longest_queue": 2,
        "contrada_match_seconds_count": 1,
        "contrada_match_batch_size_sum": 6,
    }
    assert {name: float(metrics[name]) for name in expected} == expected


def test_status_and_explain_over_the_wire(node, context):
    client = Dealer(context, node.url)
    client.subscribe(1, "x")
    sequence = client.publish("x", "y").entries[0].sequence
    document = client.ask(msg.Status(100)).document
    assert document["clients"][0]["name"] == "dealer"
    fates = [
        client.ask(msg.Explain(200 + n, msg.NotificationId(client.welcome.broker, sequence + n), 0, 1)).document["fate"]
        for n in range(2)
    ]
    assert fates == ["delivered", "no-match"]
    assert isinstance(client.ask(msg.Explain(300, msg.NotificationId("elsewhere", 1), 0, 1)), msg.Error)


def test_logs_are_json_lines_with_facts(node, context):
    client = Dealer(context, node.url)
    client.socket.send(b"junk")
    client.hear()
    events = {event["event"]: event for event in node.events()}
    assert events["listening"]["url"] == node.url
    assert events["session opened"]["client"] == "dealer"
    assert events["bad frame"]["level"] == "warning"


def test_publishing_is_acknowledged_and_large_bodies_travel_whole(node, context):
    client = Dealer(context, node.url)
    client.subscribe(1, "x")
    sizes = (0, 8_100, 8_300, 70_000, 900_000)
    for request, size in enumerate(sizes, 50):
        client.ask(msg.Publish(request, (body(a="x", blob=bytes(size)),)))
    assert len(client.until_delivered(len(sizes))) == len(sizes)
    assert isinstance(client.ask(msg.Status(99)), msg.Reply)
