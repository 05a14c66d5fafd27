"""What operators and the live map ask: the broker's subscriptions, who got what, views, the recording; and manners."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from contrada import Client, Region
from contrada.broker.protocol.messages import NotificationId
from contrada.client.gateway.forms.rendering import Renderer
from contrada.client.gateway.http.bodies import LineReader
from contrada.client.gateway.problems import TITLES
from contrada.client.gateway.tokens import make_token
from contrada.client.notification import Notification
from contrada.forwarding.codec.msgpack import encode_notification
from tests.client.gateway.conftest import running
from tests.client.gateway.test_http import next_event, run
from tests.client.reference import make_broker

aiohttp = pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")


def test_everybody_s_subscriptions_have_shapes_and_receivers_are_known():
    async def scenario():
        async with running() as (gateway, http):
            with Client(gateway.subscriber.url, name="desk") as desk:
                desk.subscribe("area intersects POLYGON((0 0, 4 0, 4 4)) and wind > 10")
                other = desk.subscribe("wind > 100")
                async with http.get("/v1/subscriptions", params={"of": "broker"}) as answer:
                    document = await answer.json()
                first, second = document["subscriptions"]
                assert (first["client"], document["next"]) == ("desk", 0)
                (shape,) = first["shapes"]
                assert shape["attribute"] == "area"
                assert shape["geometry"]["type"] == "Polygon"
                assert second["shapes"] == []
                id = str(desk.publish({"wind": 50, "area": Region([(1, 1), (2, 1), (2, 2)])}))
                async with http.get("/v1/receivers", params={"notification": id}) as answer:
                    receivers = (await answer.json())["receivers"]
                assert receivers == {id: {"interfaces": [first["interface"]], "count": 1}}
                query = {"notification": id, "subscription": str(other.id), "session": str(second["session"])}
                async with http.get("/v1/explain", params=query) as answer:
                    explained = await answer.json()
                (verdict,) = explained["filters"][0]["verdicts"]
                assert (verdict["constraint"], verdict["held"]) == ("wind > 100", False)
                async with http.ws_connect("/v1/socket") as socket:
                    await socket.send_json({"type": "receivers", "notifications": [id], "ref": 1})
                    assert (await socket.receive_json())["receivers"] == receivers
            for query in ({"of": "moon"}, {"of": "broker", "after": "x"}):
                async with http.get("/v1/subscriptions", params=query) as answer:
                    assert answer.status == 400

    run(scenario)


def test_a_view_bounds_what_a_page_gets():
    async def scenario():
        async with running() as (_, http), http.ws_connect("/v1/socket") as socket:
            await socket.send_json({"type": "subscribe", "id": "m", "filter": "n exists", "bounds": [0, 0, 10, 10]})
            assert (await socket.receive_json())["type"] == "subscribed"

            def at(x: float, n: int) -> dict[str, object]:
                return {"n": n, "p": {"type": "Point", "coordinates": [x, 5]}}

            async def publish(*notifications: dict[str, object]) -> None:
                async with http.post("/v1/notifications", json=list(notifications)) as answer:
                    assert answer.status == 200

            await publish(at(5, 1), at(50, 2), at(7, 3))
            message = await socket.receive_json()
            assert [item["notification"]["n"] for item in message["items"]] == [1, 3]
            await socket.send_json({"type": "view", "id": "m", "bounds": [40, 0, 60, 10], "rate": 50})
            assert (await socket.receive_json())["type"] == "viewing"
            await publish(at(5, 4), at(50, 5))
            message = await socket.receive_json()
            while message["type"] == "skipped":
                message = await socket.receive_json()
            assert [item["notification"]["n"] for item in message["items"]] == [5]
            async with http.get("/v1/subscriptions") as answer:
                (only,) = (await answer.json())["subscriptions"]
            assert (only["delivered"], only["skipped"]) == (3, 2)

    run(scenario)


def test_a_recording_can_be_looked_back_on(tmp_path):
    async def scenario():
        with make_broker(record=tmp_path / "log") as broker:
            from contrada.client.gateway.gateway import Gateway
            from contrada.client.gateway.settings import GatewaySettings

            settings = GatewaySettings(http="127.0.0.1:0", recording=tmp_path / "log")
            async with (
                Gateway(broker.url, settings) as gateway,
                aiohttp.ClientSession(gateway.http_url) as http,
            ):
                before = time.time_ns() // 1000
                bodies = [{"n": n, "p": {"type": "Point", "coordinates": [n, 0]}} for n in range(40)]
                for start in range(0, 40, 10):
                    async with http.post("/v1/notifications", json=bodies[start : start + 10]) as answer:
                        ids = (await answer.json())["ids"]
                span = {"to": 0}
                while span["to"] < before:  # the recorder writes a little later
                    async with http.get("/v1/recording") as answer:
                        span = await answer.json()
                query = {"from": str(span["from"]), "to": str(span["to"] + 1), "bounds": "0,0,34,1", "limit": "20"}
                found = []
                while True:
                    async with http.get("/v1/recording/notifications", params=query) as answer:
                        document = await answer.json()
                    found += document["items"]
                    if not document["next"]:
                        break
                    query["from"] = str(document["next"])
                numbers = [item["notification"]["n"] for item in found]
                assert numbers == sorted(numbers)
                assert set(numbers) | set(range(30, 40)) >= set(range(35))
                assert max(numbers, default=0) <= 34
                assert all(isinstance(item["time"], int) for item in found)
                assert ids
        async with running() as (_, http):
            async with http.get("/v1/recording") as answer:
                assert await answer.json() == {"recording": False}
            async with http.get("/v1/recording/notifications", params={"from": "0", "to": "1"}) as answer:
                assert answer.status == 501

    run(scenario)


def test_only_admins_see_others(tmp_path):
    token, _ = make_token(tmp_path, "reader", ["subscribe"])

    async def scenario():
        async with running(tokens=tmp_path) as (_, http):
            for path in ("subscriptions?of=broker", "receivers?notification=a:1", "recording", "status"):
                async with http.get(f"/v1/{path}", headers={"Authorization": f"Bearer {token}"}) as answer:
                    assert answer.status == 403, path
                async with http.get(f"/v1/{path}") as answer:
                    assert answer.status == 401, path

    run(scenario)


def test_problems_types_lead_somewhere():
    async def scenario():
        async with running() as (_, http):
            async with http.get("/v1/receivers") as answer:
                problem = await answer.json()
            path, _, kind = problem["type"].partition("#")
            async with http.get(path) as answer:
                text = await answer.text()
            assert kind in text.split()
            assert all(each in text for each in TITLES)

    run(scenario)


def test_large_documents_and_filters_are_read_by_another_thread(monkeypatch):
    """What takes long to read, regions of thousands of vertices, must not hold up those who have short questions."""
    from contrada.client.gateway import gateway as gateway_module
    from contrada.client.gateway.http import server, websocket

    readers = []

    def noting(function):
        def noted(*arguments):
            readers.append(threading.current_thread() is threading.main_thread())
            return function(*arguments)

        return noted

    monkeypatch.setattr(gateway_module, "parse", noting(gateway_module.parse))
    monkeypatch.setattr(server, "read_body", lambda *given, **named: _late(given, named, readers))
    monkeypatch.setattr(websocket.Conversation, "receive", noting(websocket.Conversation.receive))

    async def scenario():
        async with running() as (_, http), http.ws_connect("/v1/socket") as socket:
            for text in ("x" * 10, "x" * 40_000):
                async with http.post("/v1/notifications", json={"text": text}) as answer:
                    assert answer.status == 200
            for count in (1, 1000):
                many = " or ".join(f"n = {number}" for number in range(count))
                await socket.send_json({"type": "subscribe", "id": f"{count}", "filter": many})
                assert (await socket.receive_json())["type"] == "subscribed"

    run(scenario)
    assert readers == [True, False, True, True, False]


def _late(given, named, readers):
    """The notifications of a body, and a note of the thread that asks for them."""
    from contrada.client.gateway.http.bodies import read_body

    readers.append(threading.current_thread() is threading.main_thread())
    yield from read_body(*given, **named)


def test_what_is_kept_of_rendered_notifications_is_bounded_in_characters():
    renderer = Renderer()
    for number in range(1, 200):
        body = encode_notification({"text": "x" * 100_000})
        renderer.text(Notification(NotificationId("b", number), "p", body))
    assert sum(map(len, renderer._kept.values())) < 10_000_000


def test_a_line_in_many_small_chunks_is_one_line():
    reader = LineReader("area", 1000)
    found = []
    for byte in b'{"n": 1}\n\n{"n": 2}\n{"n"':
        found += [each for some in reader.feed(bytes((byte,))) for each in reader.read(some)]
    assert found == [{"n": 1}, {"n": 2}]
    assert list(reader.feed(b": 3}")) == []
    found += reader.read(reader.end())
    assert found[2:] == [{"n": 3}]
    assert reader.line == 4


def test_others_get_a_turn_between_lines_even_if_all_are_empty():
    reader = LineReader("area", 1000)
    runs = list(reader.feed(b"\n" * 1000 + b'{"n": 1}\n'))
    assert max(map(len, runs)) == 256
    assert [each for some in runs for each in reader.read(some)] == [{"n": 1}]
    assert reader.line == 1001


def test_a_large_document_is_handed_over_piece_by_piece(monkeypatch):
    async def scenario():
        async with running() as (gateway, http):
            sizes = []
            begin = gateway.begin_publishing

            async def noted(notifications, **options):
                sizes.append(len(notifications))
                return await begin(notifications, **options)

            monkeypatch.setattr(gateway, "begin_publishing", noted)
            async with http.post("/v1/notifications", json=[{"n": number} for number in range(3000)]) as answer:
                assert (await answer.json())["published"] == 3000
            assert sum(sizes) == 3000
            assert max(sizes) == 256

    run(scenario)


def test_a_stream_tells_what_a_rate_skipped():
    async def scenario():
        async with running() as (_, http):
            query = {"filter": "n exists", "rate": "1"}
            async with http.get("/v1/subscribe", params=query) as stream:
                await next_event(stream, "subscribed")

                async def publish() -> None:
                    while True:
                        async with http.post("/v1/notifications", json=[{"n": n} for n in range(20)]):
                            pass

                publishing = asyncio.create_task(publish())
                skipped = await next_event(stream, "skipped")
                publishing.cancel()
                assert skipped["skipped"] > 0

    run(scenario)


def test_nothing_that_a_page_says_offends_the_broker():
    """All pages share one session at the broker, which cuts off who sends what no client sends: none may be able to."""

    async def scenario():
        async with running() as (_, http), http.ws_connect("/v1/socket") as socket:
            many = " or ".join(f"n = {number}" for number in range(3000))
            said = [
                {"type": "subscribe", "id": "a", "filter": many},
                {"type": "subscribe", "id": "b", "filter": "x in [" + ",".join(map(str, range(60_000))) + "]"},
                {"type": "subscribe", "id": "c", "filter": "n > 1", "queue": 2**31},
                {"type": "explain", "notification": "b:1", "subscription": 2**33},
                {"type": "explain", "notification": "b" * 5000 + ":1", "subscription": 1},
                {"type": "explain", "notification": "b:0", "subscription": 1},
                {"type": "explain", "notification": "b:" + "9" * 5000, "subscription": 1},
                {"type": "explain", "notification": "\ud800:1", "subscription": 1},
                {"type": "receivers", "notifications": ["b:0", "\udfff:1"]},
                {"type": "receivers", "notifications": [":"]},
            ]
            for message in said:
                await socket.send_json(message)
                assert (await socket.receive_json())["type"] == "error", message
            async with http.get("/v1/status") as answer:
                status = await answer.json()
            assert status["broker"]["totals"]["bad_frames"] == 0
            assert status["gateway"]["reconnects"] == 0

    run(scenario)
