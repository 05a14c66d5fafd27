"""The HTTP door before a real broker: publishing, streams, problems, roles, origins, shutdown."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from contrada.client.gateway.tokens import make_token

pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")

from contrada.client.gateway.http import server

LINES = {"Content-Type": "application/x-ndjson"}
BOMB = gzip.compress(b"\n" * 10_000_000)
POST_BEGUN = (
    b"POST /v1/notifications HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{"
)
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


async def next_event(response: Any, wanted: str = "message") -> Any:
    """The data of the next Server-Sent Event of a kind."""
    kind, data = "message", None
    async for raw in response.content:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: "):
            data = json.loads(line[6:])
        elif not line:
            if kind == wanted and data is not None:
                return data
            kind, data = "message", None
    raise AssertionError("the stream ended")


def run(scenario: Any) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_what_is_posted_reaches_a_stream(gateway_running):
    async def scenario():
        async with gateway_running() as (_, http):
            async with http.get("/v1/subscribe", params={"filter": "wind > 90"}) as stream:
                assert stream.content_type == "text/event-stream"
                subscribed = await next_event(stream, "subscribed")
                async with http.post(
                    "/v1/notifications", json=[{"wind": 80}, {"wind": 120, "a": {"b": None, "c": 1}}]
                ) as answer:
                    ids = (await answer.json())["ids"]
                got = await next_event(stream)
                assert got == {"id": ids[1], "publisher": "gateway", "notification": {"wind": 120, "a.c": 1}}
                query = {"notification": ids[0], "subscription": str(subscribed["subscription"])}
                async with http.get("/v1/explain", params=query) as answer:
                    assert (await answer.json())["fate"] == "no-match"
                async with http.get("/v1/subscriptions") as answer:
                    (only,) = (await answer.json())["subscriptions"]
                    assert (only["filter"], only["delivered"], only["door"]) == ("wind > 90", 1, "sse")
                async with http.get("/v1/status") as answer:
                    assert (await answer.json())["gateway"]["published"] == 2
            async with http.get("/metrics") as answer:
                assert "contrada_gateway_published_total 2.0" in await answer.text()

    run(scenario)


@pytest.mark.parametrize(
    ("kind", "body", "count"),
    [
        ("application/json", b'{"n": 1}', 1),
        (
            "application/geo+json",
            b'{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"n":1},"geometry":null}]}',
            1,
        ),
        ("application/x-ndjson", b'{"n": 1}\n\n{"n": 2}\n[{"n": 3}, {"n": 4}]', 4),
        ("application/cloudevents+json", b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":{"n":1}}', 1),
        ("application/cloudevents-batch+json", b'[{"specversion":"1.0","id":"1","source":"s","type":"t"}]', 1),
    ],
)
def test_every_form_is_taken(gateway_running, kind, body, count):
    async def scenario():
        async with gateway_running() as (_, http):
            async with http.post("/v1/notifications", data=body, headers={"Content-Type": kind}) as answer:
                document = await answer.json()
                assert (answer.status, document["published"], len(document["ids"])) == (200, count, count)
            async with http.post("/v1/notifications?ids=false", data=body, headers={"Content-Type": kind}) as answer:
                assert await answer.json() == {"published": count}

    run(scenario)


@pytest.mark.parametrize(
    ("method", "path", "options", "status", "members"),
    [
        (
            "POST",
            "/v1/notifications",
            {"data": b'{"n":1}\n{"n":[[]]}\n', "headers": LINES},
            400,
            {"line": 2, "published": 1},
        ),
        ("POST", "/v1/notifications", {"data": b"{\n", "headers": LINES}, 400, {"line": 1, "published": 0}),
        ("POST", "/v1/notifications", {"data": b"x" * 600, "headers": LINES}, 413, {"line": 1}),
        ("POST", "/v1/notifications", {"json": [{"n": 1}, 3]}, 400, {}),
        (
            "POST",
            "/v1/notifications",
            {"data": b'"' + b"x" * 2000 + b'"', "headers": {"Content-Type": "application/json"}},
            413,
            {},
        ),
        ("POST", "/v1/notifications", {"data": b"n=1"}, 415, {}),
        ("POST", "/v1/notifications", {"data": BOMB, "headers": {**LINES, "Content-Encoding": "gzip"}}, 415, {}),
        ("GET", "/v1/subscribe", {"params": {"filter": "n > 1", "window": "-1"}}, 400, {}),
        ("GET", "/v1/subscribe", {}, 400, {}),
        ("GET", "/v1/subscribe", {"params": {"filter": "wind >"}}, 400, {"type": "/docs/problems#bad-filter"}),
        ("GET", "/v1/subscribe", {"params": {"filter": "n > 1", "policy": "pray"}}, 400, {}),
        ("GET", "/v1/subscribe", {"params": {"filter": "n > 1", "window": "999999"}}, 429, {}),
        ("GET", "/v1/subscribe", {"params": {"filter": "n > 1", "last-event-id": "x"}}, 501, {}),
        ("GET", "/v1/subscribe", {"params": {"filter": "n > 1", "durabel": "desk"}}, 400, {}),
        ("GET", "/v1/status?durable=true", {}, 400, {}),
        ("POST", "/v1/notifications?durable=1", {"json": {"n": 1}}, 400, {}),
        ("POST", "/v1/notifications?dureable=true", {"json": {"n": 1}}, 400, {}),
        ("GET", "/v1/explain", {"params": {"notification": "x"}}, 400, {}),
        ("GET", "/v1/explain", {"params": {"notification": "b-1:1", "subscription": "1"}}, 404, {}),
        ("GET", "/nowhere", {}, 404, {}),
        ("DELETE", "/v1/status", {}, 405, {}),
        ("GET", "/healthz", {"headers": {"Host": "evil.example"}}, 403, {}),
        ("GET", "/healthz", {"headers": {"Origin": "https://evil.example"}}, 403, {}),
        ("GET", "/v1/status", {"headers": {"Authorization": "Basic eA=="}}, 401, {}),
    ],
)
def test_problems_say_what_and_where(gateway_running, method, path, options, status, members):
    async def scenario():
        limits = {"line_bytes": 500, "body_bytes": 1000}
        async with gateway_running(**limits) as (_, http), http.request(method, path, **options) as answer:
            document = await answer.json(content_type="application/problem+json")
            assert answer.status == document["status"] == status
            assert document["detail"]
            assert members.items() <= document.items()
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]

    run(scenario)


def test_a_browser_may_come_back_to_any_stream(gateway_running):
    """Browsers send the last id of any stream when they come back, and give up for good on an answer but 200."""

    async def scenario():
        async with gateway_running() as (_, http):
            headers = {"Last-Event-ID": "b-1:7"}
            async with http.get("/v1/subscribe", params={"filter": "n > 1"}, headers=headers) as stream:
                assert stream.status == 200
                await next_event(stream, "subscribed")
                await (await http.post("/v1/notifications", json={"n": 2})).release()
                assert (await next_event(stream))["notification"] == {"n": 2}

    run(scenario)


def test_lines_are_published_as_they_come(gateway_running):
    """One at a time, while the request goes on; and those that came whole stand if it is cut."""
    head = b"POST /v1/notifications HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"

    async def scenario():
        query = {"filter": "n >= 0"}
        async with gateway_running() as (gateway, http), http.get("/v1/subscribe", params=query) as stream:
            await next_event(stream, "subscribed")
            _, writer = await asyncio.open_connection("127.0.0.1", int(gateway.http_url.rpartition(":")[2]))
            writer.write(head + b"Content-Length: 100\r\n\r\n")
            for n in range(3):
                writer.write(b'{"n": %d}\n' % n)
                assert (await next_event(stream))["notification"] == {"n": n}
            writer.write(b'{"n": 3}\n{"n": ')
            writer.close()
            assert (await next_event(stream))["notification"] == {"n": 3}

    run(scenario)


def test_what_strangers_send_is_a_line_of_the_log(gateway_running, caplog):
    caplog.set_level("INFO")

    async def scenario():
        async with gateway_running() as (gateway, http):
            port = int(gateway.http_url.rpartition(":")[2])
            for begun, half in ((b"GET /healthz HTTP/1.1\n\n", False), (POST_BEGUN, True)):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(begun)
                if half:
                    writer.write_eof()
                await reader.read()
                writer.close()
            async with http.get("/healthz") as answer:
                assert answer.status == 200

    run(scenario)
    assert not [record for record in caplog.records if record.exc_info]
    assert [record.levelname for record in caplog.records if "no HTTP" in record.getMessage()] == ["INFO"]


def test_tokens_open_what_their_roles_allow(gateway_running, tmp_path):
    reader, _ = make_token(tmp_path, "reader", ["subscribe"])
    writer, _ = make_token(tmp_path, "writer", ["publish", "admin"])

    async def scenario():
        async with gateway_running(tokens=str(tmp_path)) as (_, http):
            for token, path, wanted in (
                (None, "/v1/status", 401),
                ("nonsense", "/v1/status", 401),
                (reader, "/v1/status", 403),
                (writer, "/v1/status", 200),
                (None, "/metrics", 401),
                (writer, "/v1/subscribe?filter=n>1", 403),
                (None, "/healthz", 200),
            ):
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                async with http.get(path, headers=headers) as answer:
                    assert answer.status == wanted, path

    run(scenario)


def test_who_sends_no_whole_request_is_cut_off(gateway_running, monkeypatch):
    monkeypatch.setattr(server, "_SILENCE", 0.2)

    async def scenario():
        async with gateway_running() as (gateway, _):
            for begun in (b"GET /healthz HTTP/1.1\r\nHost: 127", b"", POST_BEGUN):
                reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.http_url.rpartition(":")[2]))
                writer.write(begun)
                answer = await reader.read()
                assert (b"400 Bad Request" in answer and b"not whole" in answer) == (begun is POST_BEGUN)
                writer.close()

    run(scenario)


def test_strangers_cannot_take_all_connections(gateway_running, tmp_path):
    token, _ = make_token(tmp_path, "desk")

    async def scenario():
        async with gateway_running(tokens=tmp_path, connections=10) as (_, http), http.ws_connect("/v1/socket"):
            async with http.get("/v1/socket", headers=UPGRADE) as second:
                assert second.status == 429
            async with http.ws_connect("/v1/socket", headers={"Authorization": f"Bearer {token}"}) as known:
                await known.send_json({"type": "hello", "token": token})
                assert (await known.receive_json())["name"] == "desk"

    run(scenario)


def test_pages_of_the_settings_origins_are_let_in(gateway_running):
    async def scenario():
        origin = "https://map.example"
        async with gateway_running(origins=[origin]) as (_, http):
            async with http.get("/healthz", headers={"Origin": origin}) as answer:
                assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, origin)
            async with http.options("/v1/notifications", headers={"Origin": origin}) as answer:
                assert "POST" in answer.headers["Access-Control-Allow-Methods"]

    run(scenario)


def test_streams_end_when_the_gateway_stops(gateway_running):
    async def scenario():
        async with gateway_running() as (gateway, http):
            async with http.get("/v1/subscribe", params={"filter": "n > 1"}) as stream:
                await next_event(stream, "subscribed")
                closing = asyncio.ensure_future(gateway.close())
                assert "stopping" in (await next_event(stream, "bye"))["why"]
                await closing
            assert not gateway.streams

    run(scenario)


@pytest.mark.parametrize(("policy", "wanted"), [("drop-oldest", "dropped"), ("disconnect", "problem")])
def test_a_slow_stream_loses_by_its_policy_and_is_told(gateway_running, policy, wanted):
    async def scenario():
        async with gateway_running() as (gateway, http):
            query = {"filter": "n >= 0", "window": "1", "queue": "1", "policy": policy}
            async with http.get("/v1/subscribe", params=query) as stream:
                await next_event(stream, "subscribed")
                notifications = [{"n": n, "text": "x" * 50_000} for n in range(10)]
                for _ in range(20):  # more than the sockets between us hold
                    await gateway.publish(notifications)
                told = await next_event(stream, wanted)
                assert told["dropped"] > 0 if wanted == "dropped" else "slow consumer" in told["detail"]

    run(scenario)


def test_a_limit_of_connections_is_kept(gateway_running):
    async def scenario():
        query = {"filter": "n > 1"}
        async with gateway_running(connections=1) as (_, http), http.get("/v1/subscribe", params=query) as stream:
            await next_event(stream, "subscribed")
            async with http.get("/v1/subscribe", params=query) as second:
                assert second.status == 429

    run(scenario)


def test_the_documents_name_every_route(gateway_running):
    from contrada.client.gateway.http.documents import asyncapi, openapi

    async def scenario():
        async with gateway_running() as (_, http):
            for path, operations in openapi()["paths"].items():
                for method in operations:
                    async with http.request(method.upper(), path) as answer:
                        assert answer.status not in (404, 405), path
            async with http.get("/v1/asyncapi.json") as answer:
                assert await answer.json() == json.loads(json.dumps(asyncapi()))
            async with http.get("/v1/openapi.json") as answer:
                assert (await answer.json())["openapi"] == "3.1.0"

    run(scenario)


def test_payloads_come_and_go(gateway_running):
    async def scenario() -> None:
        async with gateway_running() as (_, http), http.get("/v1/subscribe", params={"filter": "n > 0"}) as stream:
            async for line in stream.content:
                if line == b"event: subscribed\n":
                    break
            sent = [
                (b"\x89PNG", {"Contrada-Notification": '{"n": 1}', "Content-Type": "image/png"}, {}),
                (b'["any", null]', {"Contrada-Notification": '{"n": 2}', "Content-Type": "application/json"}, {}),
                (
                    b'{"notification": {"n": 3}, "payload": {"base64": "AAE="}}\n',
                    {"Content-Type": "application/jsonl"},
                    {"envelope": "true"},
                ),
            ]
            for body, headers, query in sent:
                async with http.post("/v1/notifications", data=body, headers=headers, params=query) as answer:
                    assert answer.status == 200, await answer.text()
            got = []
            async for line in stream.content:
                if line.startswith(b'data: {"id"'):
                    got.append(json.loads(line[6:])["payload"])
                    if len(got) == 3:
                        break
            assert got == [{"base64": "iVBORw=="}, ["any", None], {"base64": "AAE="}]
            headers = {"Contrada-Notification": "nonsense", "Content-Type": "image/png"}
            async with http.post("/v1/notifications", data=b"x", headers=headers) as answer:
                assert answer.status == 400

    asyncio.run(asyncio.wait_for(scenario(), 60))
