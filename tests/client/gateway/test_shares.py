"""What one token may have of a gateway: connections, durable subscriptions, MQTT sessions; who may hold back whom."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Broker
from contrada.broker.protocol.wire import Role
from contrada.client.gateway.problems import Problem
from contrada.client.gateway.shares import Share, Shares
from contrada.client.gateway.tokens import ANYBODY, STRANGER, Visitor, make_token
from tests.client.gateway.conftest import running
from tests.client.gateway.test_http import next_event, run

mqtt5 = pytest.importorskip("mqtt5", reason="the gateway's libraries are not installed: contrada[gateway]")

from contrada.client.gateway.mqtt.session import Asked, LastWill  # noqa: E402  # mqtt5 may not be there
from contrada.client.gateway.mqtt.sessions import KeptSession, Sessions  # noqa: E402  # mqtt5 may not be there
from contrada.client.gateway.mqtt.topics import TopicQuery  # noqa: E402  # mqtt5 may not be there

VISITORS = [STRANGER, *(Visitor(name, frozenset((Role.SUBSCRIBE,))) for name in ("alice", "bob", "carol"))]


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(VISITORS))))
def test_connections_count_for_whom_they_say(moves):
    shares = Shares("connections", 2)
    connections = [Share(shares) for _ in range(6)]
    now = [STRANGER] * 6
    for number, visitor in moves:
        has = sum(each is visitor for at, each in enumerate(now) if at != number)
        if visitor is not STRANGER and has >= 2:
            with pytest.raises(Problem, match="has its 2 connections"):
                connections[number].move(visitor)
        else:
            assert connections[number].move(visitor) is visitor
            now[number] = visitor
    for each in connections:
        each.end()
    assert not shares._taken


def test_everybody_without_a_token_is_not_counted():
    shares = Shares("connections", 1)
    for _ in range(3):
        shares.take(ANYBODY)


def test_streams_and_sockets_of_one_token_have_an_end_and_others_come_in(tmp_path):
    alice, _ = make_token(tmp_path, "alice")
    bob, _ = make_token(tmp_path, "bob")

    async def scenario():
        async with running(tokens=tmp_path, token_connections=2) as (_, http):
            stream = {"path": "/v1/subscribe", "params": {"filter": "wind > 90"}}
            for_alice, for_bob = ({"Authorization": f"Bearer {token}"} for token in (alice, bob))
            async with http.get(stream["path"], params=stream["params"], headers=for_alice) as first:
                await next_event(first, "subscribed")
                async with http.ws_connect("/v1/socket") as socket:
                    await socket.send_json({"type": "hello", "token": alice})
                    assert (await socket.receive_json())["type"] == "welcome"
                    async with http.get(stream["path"], params=stream["params"], headers=for_alice) as refused:
                        assert refused.status == 429
                        assert "alice has its 2 connections" in (await refused.json())["detail"]
                    async with http.ws_connect("/v1/socket") as other:
                        await other.send_json({"type": "hello", "token": alice})
                        assert (await other.receive_json())["problem"]["status"] == 429
                        await other.send_json({"type": "hello", "token": bob})
                        assert (await other.receive_json())["name"] == "bob"
                    async with http.get(stream["path"], params=stream["params"], headers=for_bob) as another:
                        await next_event(another, "subscribed")
                await socket.close()
                async with http.ws_connect("/v1/socket", headers=for_alice) as again:
                    await again.send_json({"type": "hello", "token": alice})
                    assert (await again.receive_json())["type"] == "welcome"

    run(scenario)


def test_mqtt_says_that_a_token_has_its_share(tmp_path):
    from tests.client.gateway.test_mqtt import door
    from tests.client.gateway.test_mqtt_sessions import SOCKETS, Raw

    token, _ = make_token(tmp_path, "alice")
    with door(tokens=tmp_path, token_connections=1) as port:
        first = Raw(port, "one", username="x", password=token.encode())
        assert first.connected.reason_code == mqtt5.ConnAckReasonCode.SUCCESS
        second = Raw(port, "two", username="x", password=token.encode())
        assert second.connected.reason_code == mqtt5.ConnAckReasonCode.QUOTA_EXCEEDED
        assert "alice has its 1 connections" in second.connected.reason_str
        while SOCKETS:
            SOCKETS.pop().close()


def test_durable_subscriptions_of_one_token_have_an_end(tmp_path):
    token, _ = make_token(tmp_path / "keys", "alice")
    bob, _ = make_token(tmp_path / "keys", "bob")

    async def subscribe(http: Any, who: str, name: str) -> int:
        wanted = {"filter": "wind > 90", "durable": name}
        async with http.get("/v1/subscribe", params=wanted, headers={"Authorization": f"Bearer {who}"}) as stream:
            if stream.status == 200:
                await next_event(stream, "subscribed")
            return stream.status

    async def scenario():
        with Broker(data=tmp_path / "data") as broker:
            async with running(broker=broker, tokens=tmp_path / "keys", token_durable=2) as (_, http):
                told = [await subscribe(http, token, name) for name in ("a", "b", "c")]
                assert told == [200, 200, 429]
                assert await subscribe(http, bob, "c") == 200
            async with running(broker=broker, tokens=tmp_path / "keys", token_durable=2) as (gateway, http):
                assert await subscribe(http, token, "c") == 429  # another gateway knows it too
                await gateway.subscriber.durable_remove("gateway/alice/a")
                assert await subscribe(http, token, "c") == 200

    run(scenario)


def test_who_may_only_listen_does_not_hold_back_publishers(tmp_path):
    reader, _ = make_token(tmp_path, "reader", ["subscribe"])
    desk, _ = make_token(tmp_path, "desk", ["subscribe", "publish"])

    async def scenario():
        async with running(tokens=tmp_path) as (_, http):
            wanted = {"filter": "wind > 90", "policy": "block"}
            for token, status in ((reader, 403), (desk, 200)):
                async with http.get(
                    "/v1/subscribe", params=wanted, headers={"Authorization": f"Bearer {token}"}
                ) as stream:
                    assert stream.status == status

    run(scenario)


# ---------------------------------------------------------------------- sessions of who is away


def kept(visitor: str, client: str, size: int = 0) -> KeptSession:
    session = KeptSession((visitor, client))
    if size:
        session.asked["t"] = Asked("t", TopicQuery("x" * (size - 1), ()))
    return session


def away(**settings: Any) -> Sessions:
    limits = {"connections": 100, "token_sessions": 100, "session_bytes": 10_000, **settings}
    stub: Any = SimpleNamespace(settings=SimpleNamespace(**limits))
    return Sessions(stub)


def test_a_token_with_too_many_sessions_loses_its_oldest():
    async def scenario() -> None:
        sessions = away(token_sessions=2)
        for key in (("alice", "1"), ("bob", "1"), ("alice", "2"), ("alice", "3")):
            await sessions.put_down(kept(*key), 60, None)
        assert not (await sessions.take_up(("alice", "1"), clean=False))[1]
        for key in (("alice", "2"), ("alice", "3"), ("bob", "1")):
            assert (await sessions.take_up(key, clean=False))[1]
        assert not sessions._counts
        assert not sessions._sizes

    asyncio.run(scenario())


def test_sessions_that_are_large_make_room_of_whoever_has_most_bytes():
    async def scenario() -> None:
        sessions = away(session_bytes=1000)
        await sessions.put_down(kept("alice", "small", 200), 60, None)
        for number in range(4):
            await sessions.put_down(kept("mallory", str(number), 300), 60, None)
        assert len(sessions) == 3
        assert (await sessions.take_up(("alice", "small"), clean=False))[1]
        assert (await sessions.take_up(("mallory", "3"), clean=False))[1]

    asyncio.run(scenario())


def test_a_session_s_filters_and_will_have_a_size():
    session = kept("alice", "ship", 600)
    another = Asked("u", TopicQuery("y" * 400, ()))
    with pytest.raises(Problem, match="at most 1000 bytes"):
        session.check_room(another, 1000)
    session.check_room(another, 1001)
    session.check_room(Asked("t", TopicQuery("y" * 999, ())), 1000)  # in place of the one that is there
    session.will = LastWill({}, False, False, 0, 50)
    assert session.size == 650
