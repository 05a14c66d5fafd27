"""Durable through the gateway: published to disk, streams that go on where they were; and without a disk, why not."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Broker
from contrada.client.gateway.streaming import resuming as module
from contrada.client.gateway.streaming.resuming import LAG, Resuming
from tests.client.gateway.conftest import running
from tests.client.gateway.test_http import next_event, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

aiohttp = pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")


@asynccontextmanager
async def storing(data: Path) -> AsyncIterator[Any]:
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.settings import GatewaySettings

    with Broker(data=data) as broker:
        async with (
            Gateway(broker.url, GatewaySettings(http="127.0.0.1:0")) as gateway,
            aiohttp.ClientSession(gateway.http_url) as http,
        ):
            yield http


class Delivered:
    """As much of a notification as acknowledging looks at."""

    def __init__(self, number: int, redelivered: bool, acknowledged: list[int]) -> None:
        self.id = number
        self.redelivered = redelivered
        self._acknowledged = acknowledged

    def ack(self, *, run: bool) -> None:
        assert run
        self._acknowledged.append(self.id)


@given(
    st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.lists(st.integers(1, 7), max_size=30), st.booleans()
)
def test_nothing_is_lost_and_only_what_arrived_is_left_out(acknowledged, written, fresh, sizes, knows):
    """The broker sends what was not acknowledged again, then what is new; the subscriber has what was written."""
    written = max(written, acknowledged)
    acks: list[int] = []
    coming = [Delivered(n, n <= written, acks) for n in range(acknowledged + 1, written + fresh + 1)]
    resuming = Resuming(str(written) if knows else "")
    got, start = [], 0
    for size in [*sizes, 1000]:
        batch = coming[start : start + size]
        start += size
        if batch:
            got += resuming.arrived(batch)
    got += resuming.arrived(())
    numbers = [each.id for each in got]
    assert numbers == sorted(set(numbers))
    assert set(numbers) >= set(range(written + 1, written + fresh + 1))
    if knows and written > acknowledged:
        assert numbers == list(range(written + 1, written + fresh + 1))
    if not knows:
        assert numbers == [each.id for each in coming]
    assert all(number <= written for number in acks)


def test_what_was_written_long_enough_ago_is_acknowledged():
    now = 0.0
    acks: list[int] = []
    resuming = Resuming("", lambda: now)
    resuming.written([Delivered(n, False, acks) for n in range(5)])
    assert acks == []
    now = LAG - 1
    resuming.written([Delivered(9, False, acks)])
    assert acks == []
    now = LAG
    resuming.written([])
    assert acks == [4]


def test_a_stream_goes_on_behind_the_last_event(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with storing(tmp_path) as http:
            query = {"filter": "n >= 0", "durable": "desk"}

            async def publish(*numbers: int) -> list[str]:
                body = [{"n": number} for number in numbers]
                async with http.post("/v1/notifications?durable=true", json=body) as answer:
                    assert answer.status == 200, await answer.text()
                    ids: list[str] = (await answer.json())["ids"]
                    return ids

            async with http.get("/v1/subscribe", params=query) as stream:
                await next_event(stream, "subscribed")
                await publish(1, 2, 3)
                seen = [await next_event(stream) for _ in range(3)]
            assert [each["notification"]["n"] for each in seen] == [1, 2, 3]
            await publish(4)
            headers = {"Last-Event-ID": seen[1]["id"]}
            async with http.get("/v1/subscribe", params=query, headers=headers) as stream:
                again = [await next_event(stream) for _ in range(2)]
                assert [each["notification"]["n"] for each in again] == [3, 4]
                await publish(5)
                assert (await next_event(stream))["notification"]["n"] == 5
            async with http.get("/v1/subscribe", params=query) as stream:  # one that does not know what it has
                first = await next_event(stream)
                assert first["notification"]["n"] == 3

    run(scenario)


def test_a_restarted_gateway_and_broker_go_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        query = {"filter": "n >= 0", "durable": "desk"}
        async with storing(tmp_path) as http:
            async with http.get("/v1/subscribe", params=query) as stream:
                await next_event(stream, "subscribed")
            async with http.post("/v1/notifications?durable=true", json=[{"n": 1}, {"n": 2}]) as answer:
                ids = (await answer.json())["ids"]
        async with storing(tmp_path) as http, http.get("/v1/subscribe", params=query) as stream:
            assert [(await next_event(stream))["id"] for _ in range(2)] == ids

    run(scenario)


def test_without_a_disk_it_is_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running() as (_, http):
            async with http.post("/v1/notifications?durable=true", json={"n": 1}) as answer:
                assert (answer.status, "--data" in await answer.text()) == (501, True)
            async with http.get("/v1/subscribe", params={"filter": "n > 1", "durable": "x"}) as answer:
                assert (answer.status, "--data" in await answer.text()) == (501, True)
            async with http.get("/v1/subscribe?filter=n>1&last-event-id=b:1") as answer:
                assert (answer.status, "durable=NAME" in await answer.text()) == (501, True)
            for wrong in ({"durable": "x" * 101}, {"durable": "x", "since": "yesterday"}, {"since": "all"}):
                async with http.get("/v1/subscribe", params={"filter": "n > 1", **wrong}) as answer:
                    assert answer.status == 400

    run(scenario)
    assert module.SEARCH < LAG
