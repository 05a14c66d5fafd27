"""Webhooks: signed, in order, tried again until taken, a dead letter in the end; and settings that are refused."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from contrada import Broker
from contrada.client.gateway.settings import GatewaySettings
from contrada.errors import ContradaError, FilterSyntaxError, InvalidValue, Refused
from tests.client.gateway.test_http import run

if TYPE_CHECKING:
    from pathlib import Path

aiohttp = pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")
SECRET = "a secret of many characters"


class Receiver:
    """A server of somebody else's: it keeps what it is sent, and answers as told."""

    def __init__(self, *answers: int) -> None:
        self._answers = list(answers)
        self.got: list[tuple[dict[str, Any], dict[str, str], bytes]] = []
        self.came = asyncio.Condition()

    async def __aenter__(self) -> Receiver:
        from aiohttp import web

        application = web.Application()
        application.add_routes([web.post("/hook", self._hear)])
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/hook"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _hear(self, request: Any) -> Any:
        from aiohttp import web

        body = await request.read()
        async with self.came:
            self.got.append((json.loads(body), dict(request.headers), body))
            self.came.notify_all()
        return web.Response(status=self._answers.pop(0) if self._answers else 200)

    async def wait_for(self, number: int) -> None:
        async with self.came:
            await self.came.wait_for(lambda: self.got[-1][0]["notification"]["n"] == number)

    async def wait(self, count: int) -> None:
        async with self.came:
            await self.came.wait_for(lambda: len(self.got) >= count)


def settings(url: str) -> GatewaySettings:
    hook = {"name": "desk", "filter": "n > 0", "url": url, "secret": SECRET}
    return GatewaySettings(http="127.0.0.1:0", webhooks=[hook])


def test_signed_in_order_and_again_until_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.streaming import webhooks

    monkeypatch.setattr(webhooks, "FIRST_WAIT", 0.01)

    async def scenario() -> None:
        async with Receiver(200, 500, 302, 204) as receiver:
            with Broker(data=tmp_path) as broker:
                async with Gateway(broker.url, settings(receiver.url)) as gateway:
                    ids = await gateway.publish([{"n": 1}, {"n": 0}, {"n": 2}, {"n": 3}], durable=True)
                    await receiver.wait(5)
                    text = gateway.metrics.text().decode()
                async with Gateway(broker.url, settings(receiver.url)) as gateway:
                    await gateway.publish([{"n": 4}])
                    await receiver.wait_for(4)
        numbers = [document["notification"]["n"] for document, _, _ in receiver.got]
        assert numbers[:5] == [1, 2, 2, 2, 3]
        assert set(numbers[5:]) <= {3, 4}  # the first gateway may have left before it acknowledged
        assert numbers[-1] == 4
        assert [headers["Contrada-Delivery"] for _, headers, _ in receiver.got][:5] == [
            str(ids[0]), *[str(ids[2])] * 3, str(ids[3])
        ]  # fmt: skip
        for _, headers, body in receiver.got:
            signature = headers["Contrada-Signature"]
            seconds = int(signature.removeprefix("t=").partition(",")[0])
            assert signature == webhooks.sign(SECRET, seconds, body)
            assert signature != webhooks.sign(SECRET, seconds, body + b" ")
        assert 'webhook="desk"' in text
        assert 'outcome="failed"' in text

    run(scenario)


def test_what_is_never_taken_is_a_dead_letter_and_the_next_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.streaming import webhooks

    monkeypatch.setattr(webhooks, "FIRST_WAIT", 0.005)
    monkeypatch.setattr(webhooks, "_LONGEST_WAIT", 0.01)

    async def scenario() -> None:
        async with Receiver(*[500] * 10) as receiver:
            with Broker(data=tmp_path) as broker:
                async with Gateway(broker.url, settings(receiver.url)) as gateway:
                    letters = await gateway.subscriber.subscribe('"webhook.dead" = "desk"')
                    await gateway.publish([{"n": 1}, {"n": 2}], durable=True)
                    await receiver.wait(11)
                    letter = await letters.get()
        assert [document["notification"]["n"] for document, _, _ in receiver.got] == [*[1] * 10, 2]
        assert (letter["n"], letter["webhook.reason"]) == (1, "answered 500")

    run(scenario)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"url": "ftp://x"}, "https"),
        ({"secret": "short"}, "16 characters"),
        ({"filter": "n >"}, "expected"),
        ({"more": 1}, "table with"),
        ({"name": ""}, "text"),
    ],
)
def test_settings_that_are_refused(wrong: dict[str, Any], why: str) -> None:
    from contrada.client.gateway.streaming.webhooks import Hook

    good = {"name": "a", "filter": "n > 0", "url": "http://x/", "secret": SECRET}
    assert Hook.of(good).name == "a"
    with pytest.raises((InvalidValue, FilterSyntaxError), match=why):
        Hook.of(good | wrong)


def test_without_a_disk_the_gateway_does_not_start() -> None:
    async def scenario() -> None:
        from contrada.client.gateway.gateway import Gateway

        with Broker() as broker:
            with pytest.raises(Refused, match="--data"):
                async with Gateway(broker.url, settings("http://127.0.0.1:9/")):
                    pass
            with pytest.raises(ContradaError, match="table"):
                async with Gateway(broker.url, GatewaySettings(http="127.0.0.1:0", webhooks=["x"])):
                    pass

    run(scenario)
