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


@given(
    st.text()
    | st.binary()
    | st.dictionaries(
        st.sampled_from(
            ["type", "id", "filter", "notification", "ref", "subscription", "session", "token", "bounds", "rate"]
        ),
        st.sampled_from(["hello", "subscribe", "publish", "explain", "unsubscribe", "status", "view", "receivers"])
        | st.none()
        | st.integers()
        | st.lists(st.integers())
        | st.text(),
    ).map(json.dumps)
)
def test_whatever_is_said_is_answered(text):
    action = talk().receive(text)
    assert isinstance(action, conversation.Action)


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
