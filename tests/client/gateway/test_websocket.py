"""The WebSocket's conversation: its messages without I/O, and the whole of it before a real broker."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.client.gateway.http import conversation
from contrada.client.gateway.settings import GatewaySettings
from contrada.client.gateway.tokens import ANYBODY, STRANGER, make_token

pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")
SETTINGS = GatewaySettings(http="127.0.0.1:0", subscriptions=2)


def talk(visitor: Any = ANYBODY) -> conversation.Conversation:
    return conversation.Conversation(SETTINGS, visitor, lambda token: ANYBODY if token == "good" else STRANGER)


def said(talking: conversation.Conversation, **message: Any) -> Any:
    return talking.receive(json.dumps(message))


def test_ids_are_the_page_s_own_and_few():
    talking = talk()
    assert isinstance(said(talking, type="subscribe", id="a", filter="n > 1"), conversation.Subscribe)
    assert "in use" in said(talking, type="subscribe", id="a", filter="n > 1").document["problem"]["detail"]
    said(talking, type="subscribe", id="b", filter="n > 1")
    assert said(talking, type="subscribe", id="c", filter="n > 1").document["problem"]["status"] == 429
    assert said(talking, type="unsubscribe", id="a", ref=7) == conversation.Unsubscribe("a", 7)
    talking.closed("a")
    assert said(talking, type="unsubscribe", id="a").document["problem"]["status"] == 404


def test_roles_come_with_hello():
    talking = talk(STRANGER)
    assert said(talking, type="publish", notification={"n": 1}).document["problem"]["status"] == 401
    assert "publish" in said(talking, type="hello", token="good").document["roles"]
    assert said(talking, type="publish", notification={"n": 1}, ref="r") == conversation.Publish([{"n": 1}], "r")


NAMES = [
    "type",
    "id",
    "filter",
    "notification",
    "ref",
    "subscription",
    "session",
    "token",
    "bounds",
    "rate",
    "durable",
    "payload",
    "notifications",
    "up-to",
    "since",
]
TYPES = ["hello", "subscribe", "publish", "explain", "unsubscribe", "status", "view", "receivers", "ack"]


@given(
    st.text()
    | st.binary()
    | st.dictionaries(
        st.sampled_from(NAMES),
        st.sampled_from(TYPES) | st.none() | st.integers() | st.lists(st.integers()) | st.text(),
    ).map(json.dumps)
)
def test_whatever_is_said_is_answered(text):
    action = talk().receive(text)
    assert isinstance(action, conversation.Action)


def test_numbers_without_end_are_refused():
    window = talk().receive('{"type": "subscribe", "id": "s", "filter": "n > 1", "window": 1e999}')
    assert isinstance(window, conversation.Say)
    assert "whole number" in window.document["problem"]["detail"]
    ref = talk().receive('{"type": "status", "ref": 1e999}')
    assert isinstance(ref, conversation.Say)
    assert ref.document["ref"] is None


def test_half_a_character_is_an_id_like_any_other(gateway_running):
    async def scenario():
        async with gateway_running() as (_, http), http.ws_connect("/v1/socket") as socket:
            await socket.send_str('{"type": "subscribe", "id": "\\ud800", "filter": "n > 1", "ref": "\\udfff"}')
            answer = await socket.receive_json()
            assert (answer["type"], answer["id"], answer["ref"]) == ("subscribed", "\ud800", "\udfff")

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_both_ways_over_one_socket(gateway_running):
    async def scenario():
        async with gateway_running() as (_, http), http.ws_connect("/v1/socket") as socket:

            async def ask(**message: Any) -> Any:
                await socket.send_json(message)
                return await socket.receive_json()

            assert (await ask(type="subscribe", id="hot", filter="t > 30"))["type"] == "subscribed"
            assert (await ask(type="subscribe", id="any", filter="t exists"))["type"] == "subscribed"
            assert (await ask(type="subscribe", id="bad", filter="t >"))["problem"]["status"] == 400
            await socket.send_json({"type": "publish", "ref": 1, "notification": [{"t": 20}, {"t": 40}]})
            messages = [await socket.receive_json() for _ in range(3)]
            items = {
                m["id"]: [item["notification"]["t"] for item in m["items"]]
                for m in messages
                if m["type"] == "notifications"
            }
            assert items == {"hot": [40], "any": [20, 40]}
            (published,) = [m for m in messages if m["type"] == "published"]
            explained = await ask(type="explain", notification=published["ids"][0], id="hot")
            assert explained["explanation"]["fate"] == "no-match"
            assert (await ask(type="unsubscribe", id="hot", ref="x")) == {
                "type": "unsubscribed",
                "ref": "x",
                "id": "hot",
            }
            assert (await ask(type="status"))["gateway"]["subscriptions"] == 1

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_token_may_come_with_the_first_message(gateway_running, tmp_path):
    token, _ = make_token(tmp_path, "desk", ["subscribe"])

    async def scenario():
        async with gateway_running(tokens=str(tmp_path)) as (gateway, http), http.ws_connect("/v1/socket") as socket:
            await socket.send_json({"type": "subscribe", "id": "a", "filter": "n > 1"})
            assert (await socket.receive_json())["problem"]["status"] == 401
            await socket.send_json({"type": "hello", "token": token})
            assert (await socket.receive_json())["roles"] == ["subscribe"]
            await socket.send_json({"type": "subscribe", "id": "a", "filter": "n > 1"})
            assert (await socket.receive_json())["owner"] == "desk"
            closing = asyncio.ensure_future(gateway.close())
            assert (await socket.receive()).data == 1001
            await closing

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_acknowledgements_and_payloads_are_checked():
    talking = talk()
    said(talking, type="subscribe", id="a", filter="n > 1", durable="desk")
    wanted = conversation.Acknowledge("a", ("x/1",), "", 3)
    assert said(talking, type="ack", id="a", notifications=["x/1"], ref=3) == wanted
    for wrong in (
        {},
        {"notifications": []},
        {"notifications": [1]},
        {"up-to": 7},
        {"notifications": ["x"], "up-to": "x"},
    ):
        assert said(talking, type="ack", id="a", **wrong).document["problem"]["status"] == 400
    viewed = said(talking, type="subscribe", id="b", filter="true", durable="d", rate=5)
    assert "no view" in viewed.document["problem"]["detail"]
    (draft,) = said(talking, type="publish", notification={"n": 1}, payload={"base64": "/wA="}).notifications
    assert (dict(draft), draft.payload) == ({"n": 1}, b"\xff\x00")
    (draft,) = said(talking, type="publish", notification={"n": 1}, payload=["any", None], durable=True).notifications
    assert draft.payload == ["any", None]
    for wrong in ({"payload": {"base64": "?"}}, {"notification": [{"n": 1}], "payload": 1}, {"durable": 1}):
        answer = said(talking, **{"type": "publish", "notification": {"n": 1}, **wrong})
        assert answer.document["problem"]["status"] == 400


def test_a_durable_subscription_goes_on_where_it_was_acknowledged(tmp_path, gateway_running):
    from contrada import Broker

    async def hear(socket: Any) -> dict[str, Any]:
        async with asyncio.timeout(30):
            heard: dict[str, Any] = await socket.receive_json()
            return heard

    async def hear_type(socket: Any, kind: str) -> dict[str, Any]:
        while (heard := await hear(socket))["type"] != kind:
            pass
        return heard

    async def items(socket: Any, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            found += (await hear_type(socket, "notifications"))["items"]
        return found

    async def scenario(broker: Broker) -> None:
        wish = {"type": "subscribe", "id": "s", "filter": "n > 0", "durable": "desk", "window": 3}
        async with gateway_running(broker=broker) as (_, http):
            async with http.ws_connect("/v1/socket") as page:
                await page.send_json(wish)
                assert (await hear_type(page, "subscribed"))["durable"] == "desk"
                numbers = [{"n": n} for n in range(1, 6)]
                await page.send_json({"type": "publish", "notification": numbers, "durable": True})
                got = await items(page, 3)
                assert [each["notification"]["n"] for each in got] == [1, 2, 3]
                await page.send_json({"type": "ack", "id": "s", "up-to": got[1]["id"], "ref": 1})
                assert (await hear_type(page, "acknowledged"))["acknowledged"] == 2
            async with http.ws_connect("/v1/socket") as page:
                await page.send_json(wish)
                got = await items(page, 3)
                assert [each["notification"]["n"] for each in got] == [3, 4, 5]
                assert got[0]["redelivered"]
                ids = [each["id"] for each in got]
                await page.send_json({"type": "ack", "id": "s", "notifications": [*ids, "b/99"]})
                assert (await hear_type(page, "acknowledged"))["acknowledged"] == 3
                await page.send_json({"type": "view", "id": "s"})
                assert "no view" in (await hear_type(page, "error"))["problem"]["detail"]
            async with http.ws_connect("/v1/socket") as page:
                await page.send_json(wish)
                await hear_type(page, "subscribed")
                await page.send_json({"type": "publish", "notification": {"n": 9}, "payload": {"base64": "/wA="}})
                (got_one,) = await items(page, 1)
                assert (got_one["notification"]["n"], got_one["payload"]) == (9, {"base64": "/wA="})

    with Broker(data=tmp_path) as broker:
        asyncio.run(scenario(broker))
