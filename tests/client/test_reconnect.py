"""Broken connections: brokers that restart, stay away, or never answer."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest

import contrada
from tests.client.reference import make_broker

if TYPE_CHECKING:
    from collections.abc import Coroutine

FAST = {"backoff": 0.01, "backoff_max": 0.1}


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 90.0))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def reaches(c: contrada.client.async_client.AsyncClient, sub: Any, marker: int) -> None:
    """Publish until it comes back: the subscription is live again."""
    while True:
        try:
            await c.publish({"n": marker})
            while (await sub.get(timeout=5))["n"] != marker:
                pass
        except (contrada.Disconnected, TimeoutError):
            continue
        return


def test_a_restart_restores_every_subscription() -> None:
    async def main() -> None:
        listen = f"tcp://127.0.0.1:{free_port()}"
        broker = make_broker(listen).start()
        try:
            async with contrada.connect(listen, **FAST) as c:
                subs = [await c.subscribe(f"n >= {i}") for i in range(20)]
                await reaches(c, subs[0], 100)
                broker.stop()
                broker = make_broker(listen).start()
                for sub in subs:
                    await reaches(c, sub, 1000 + sub.id)
                assert c.reconnects >= 1
                assert all(sub.interruptions >= 1 for sub in subs)
                assert (await c.status())["subscriptions"] == 20
        finally:
            broker.stop()

    run(main())


def test_publishing_waits_while_the_broker_is_away_and_what_it_never_had_is_sent_later() -> None:
    async def main() -> None:
        listen = f"tcp://127.0.0.1:{free_port()}"
        broker = make_broker(listen).start()
        async with contrada.connect(listen, **FAST) as c:
            broker.stop()
            while c.connected:
                await asyncio.sleep(0)
            waiting = asyncio.create_task(c.publish({"n": 1}))
            await asyncio.sleep(0)
            assert not waiting.done()
            with make_broker(listen):
                assert await waiting is not None

    run(main())


def test_giving_up_ends_iterations_with_the_reason() -> None:
    async def main() -> None:
        broker = make_broker().start()
        client = await contrada.connect(broker.url, **FAST, give_up_after=0.2, attempt_timeout=0.1)
        sub = await client.subscribe("n >= 0")
        broker.stop()
        with pytest.raises(contrada.Disconnected, match="no connection after"):
            async for _ in sub:
                pass
        with pytest.raises(contrada.Disconnected):
            await client.publish({"n": 1})
        await client.close()

    run(main())


def test_without_reconnect_the_first_cut_is_the_end() -> None:
    async def main() -> None:
        broker = make_broker().start()
        client = await contrada.connect(broker.url, reconnect=False)
        sub = await client.subscribe("n >= 0")
        broker.stop()
        with pytest.raises(contrada.Disconnected):
            await sub.get()
        await client.close()

    run(main())


def test_the_blocking_client_survives_a_restart_too() -> None:
    listen = f"tcp://127.0.0.1:{free_port()}"
    broker = make_broker(listen).start()
    try:
        with contrada.Client(listen, **FAST) as c:
            sub = c.subscribe("n >= 0")
            c.publish({"n": 1})
            assert sub.get(timeout=30)["n"] == 1
            broker.stop()
            broker = make_broker(listen).start()
            while True:
                try:
                    c.publish({"n": 2}, timeout=30)
                    if sub.get(timeout=5)["n"] == 2:
                        break
                except (contrada.Disconnected, TimeoutError):
                    continue
            assert sub.interruptions >= 1
    finally:
        broker.stop()
