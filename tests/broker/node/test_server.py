"""The whole broker in this process, with the real table and codec, against filters evaluated one by one."""

from __future__ import annotations

import random

import pytest

from contrada import Broker, ContradaError, ForwardingTable, GeoText, Point, Region, parse
from contrada.broker.protocol.messages import Ack, Error, Explain, NotificationId, Publish, Subscribe, Unsubscribe
from contrada.broker.protocol.wire import Code, Policy
from contrada.forwarding.codec.msgpack import encode_filter, encode_notification
from tests.broker.processes import Dealer

FILTERS = [
    "wind > 90",
    "wind > 20 and wind <= 90 or alert exists",
    'name prefix "st" and wind != 50',
    'name in ["storm", "calm"]',
    "area overlaps POLYGON((0 0, 10 0, 10 10, 0 10)) and wind > 10",
    "area inside BOX(0 0, 50 50)",
    "at inside BOX(0 0, 5 5)",
    'post matches {"storm", "warning"} within BOX(0 0, 20 20)',
    "alert = true",
]


def some_notification(rng):
    n = {"wind": rng.choice([5, 20, 50, 90, 90.5, 120]), "name": rng.choice(["storm", "stillness", "calm", ""])}
    if rng.random() < 0.5:
        x, y = rng.uniform(0, 20), rng.uniform(0, 20)
        n["area"] = Region([(x, y), (x + 8, y), (x + 8, y + 8), (x, y + 8)])
    if rng.random() < 0.5:
        n["at"] = Point(rng.uniform(0, 10), rng.uniform(0, 10))
    if rng.random() < 0.3:
        n["post"] = GeoText(rng.choice(["storm warning today", "all calm"]), at=(rng.uniform(0, 30), 3.0))
    if rng.random() < 0.3:
        n["alert"] = rng.random() < 0.5
    return n


@pytest.fixture(scope="module")
def served():
    table = ForwardingTable()  # compiles what the filters need before anybody waits for it
    table.add_many(enumerate(FILTERS))
    rng = random.Random(1)
    table.match_many([some_notification(rng) for _ in range(50)])
    with Broker(listen="tcp://127.0.0.1:*", id="home", shutdown_timeout=0.5) as broker:
        yield broker


def test_deliveries_equal_the_naive_evaluation_while_subscriptions_change(served, context):
    rng = random.Random(7)
    subscriber, publisher = Dealer(context, served.url), Dealer(context, served.url)
    alive: dict[int, object] = {}
    expected: list[tuple[int, int]] = []
    request = 1000
    for step in range(60):
        request += 1
        if alive and rng.random() < 0.3:
            id = rng.choice(list(alive))
            assert isinstance(subscriber.ask(Unsubscribe(request, id)), Ack)
            del alive[id]
        else:
            text = rng.choice(FILTERS)
            message = Subscribe(request, step, (encode_filter(parse(text)),), Policy.BLOCK, 10**6)
            assert isinstance(subscriber.ask(message), Ack)
            alive[step] = parse(text)
        batch = [some_notification(rng) for _ in range(rng.randrange(1, 20))]
        ack = publisher.ask(Publish(request, tuple(map(encode_notification, batch))))
        first = ack.entries[0].sequence
        for offset, notification in enumerate(batch):
            expected += [(first + offset, id) for id, f in alive.items() if f.matches(notification)]
        subscriber.until_delivered(len(expected))
        assert sorted(subscriber.delivered) == sorted(expected)
    assert len(expected) > 100


def test_explain_names_the_constraint_that_failed(served, context):
    client = Dealer(context, served.url)
    client.ask(Subscribe(1, 5, (encode_filter(parse('wind > 90 and name = "storm"')),), Policy.BLOCK, 10))
    ack = client.ask(Publish(2, (encode_notification({"wind": 95, "name": "calm"}),)))
    reply = client.ask(Explain(3, NotificationId("home", ack.entries[0].sequence), 0, 5))
    assert reply.document["fate"] == "no-match"
    assert "storm" in str(reply.document["filters"])


def test_what_the_codec_refuses_is_refused_with_its_reason(served, context):
    client = Dealer(context, served.url)
    for message, code in [
        (Subscribe(1, 1, (b"\x93",), Policy.BLOCK, 1), Code.BAD_FILTER),
        (Publish(2, (b"\x81\xa1a\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",)), Code.BAD_NOTIFICATION),
        (Publish(3, (b"\xdf\xff\xff\xff\xff",)), Code.BAD_NOTIFICATION),
        (Publish(4, (b"\x91" * 5000,)), Code.BAD_NOTIFICATION),
    ]:
        answer = client.ask(message)
        assert isinstance(answer, Error)
        assert answer.code == code
        assert answer.reason


def test_brokers_start_stop_and_report(tmp_path):
    broker = Broker(listen=f"ipc://{tmp_path}/b", metrics="127.0.0.1:0", shutdown_timeout=0.5)
    assert broker.metrics_url is None
    with broker as same:
        assert same is broker
        assert broker.url == f"ipc://{tmp_path}/b"
        assert broker.metrics_url.startswith("http://127.0.0.1:")
        assert broker.id.startswith("b-")
    assert broker.metrics_url is None
    broker.stop()
    Broker().stop()  # never started, still closed
    with pytest.raises(ContradaError, match="insecure"):
        Broker(listen="tcp://0.0.0.0:*")
    with pytest.raises(ContradaError, match="unknown setting"):
        Broker(color="red")
