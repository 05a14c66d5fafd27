"""What the gateway costs: HTTP, WebSocket and MQTT over the native client, MQTT over mosquitto, and a slow subscriber.

Broker, gateway (or mosquitto), publisher and subscriber are processes of their own. The clients speak raw sockets and
only count what comes, so that they are not what is measured; the native ones are the client library. Ways are measured
in turns, and the figures are ratios of medians. On a busy machine these say little, since who has fewer processes waits
less: the processor time that the gateway or mosquitto takes for each notification says more.

    python -m benchmarks.gateway [--scale 0.2] [--only rates slow]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import multiprocessing
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import contrada
from benchmarks.harness import Report
from contrada.client.cli.local import local_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SPAWN = multiprocessing.get_context("spawn")
COUNT = 40_000
CHUNK = 256
ROUNDS = 5
MARK = b'"mark"'  # an attribute of every notification: subscribers count it
IDLE = 2.0  # seconds after which nothing more is expected
SUBSCRIBERS = 1000


def ticks(count: int) -> list[dict[str, Any]]:
    """Stock ticks, as small as notifications usually are."""
    return [{"mark": n, "stock": "MTK", "price": n % 1000 / 10, "exchange": "NYSE"} for n in range(count)]


# -- subscribers: say how to begin, then count ----------------------------------------------------------------


def count_marks(connection: socket.socket, count: int, say: Any) -> None:
    """Read until so many have come, or nothing comes any more; the times of the first and the last."""
    connection.settimeout(IDLE)
    tail, seen, first, last = b"", 0, 0.0, 0.0
    say.send("ready")
    waited = 0
    while seen < count:
        try:
            data = connection.recv(1 << 20)
        except TimeoutError:
            waited += 1
            if seen or waited > 10:
                break
            continue
        if not data:
            break
        found = (tail + data).count(MARK)
        tail = data[-len(MARK) + 1 :]
        if found:
            last = time.perf_counter()
            first = first or last
            seen += found
    say.send((seen, first, last))


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition("//")[2].rpartition(":")
    return socket.create_connection((host, int(port)))


def subscribe_sse(address: str, count: int, say: Any) -> None:
    connection = connect(address)
    path = f"/v1/subscribe?filter={quote('mark >= 0')}&policy=block&window=4000"
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    read_until(connection, b"event: subscribed")
    count_marks(connection, count, say)


def subscribe_socket(address: str, count: int, say: Any) -> None:
    connection = upgraded(address)
    wish = {"type": "subscribe", "id": "s", "filter": "mark >= 0", "policy": "block", "window": 4000}
    connection.sendall(frame(json.dumps(wish).encode()))
    read_until(connection, b'"subscribed"')
    count_marks(connection, count, say)


def subscribe_mqtt(address: str, count: int, say: Any) -> None:
    connection = connect(address)
    connection.sendall(bytes((0x10, 15)) + b"\0\4MQTT\4\2\0\0\0\3sub")
    connection.recv(4)
    connection.sendall(bytes((0x82, 2 + 2 + 5 + 1)) + b"\0\1\0\5ticks\0")
    read_until(connection, b"\x90\x03\x00\x01")
    count_marks(connection, count, say)


def subscribe_native(address: str, count: int, say: Any) -> None:
    with contrada.Client(address) as client:
        subscription = client.subscribe("mark >= 0", policy="block", window=4000)
        say.send("ready")
        first = 0.0
        for _ in range(count):
            subscription.get(timeout=30)["mark"]
            first = first or time.perf_counter()
        say.send((count, first, time.perf_counter()))


def read_until(connection: socket.socket, wanted: bytes) -> None:
    found = b""
    while wanted not in found:
        data = connection.recv(4096)
        if not data:
            raise ConnectionError(found.decode(errors="replace"))
        found += data


# -- publishers -----------------------------------------------------------------------------------------------


def publish_lines(address: str, count: int) -> None:
    """One request that goes on: JSON lines in chunks."""
    connection = connect(address)
    connection.sendall(
        b"POST /v1/notifications?ids=false HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    lines = [json.dumps(each).encode() + b"\n" for each in ticks(count)]
    for start in range(0, count, CHUNK):
        body = b"".join(lines[start : start + CHUNK])
        connection.sendall(f"{len(body):x}\r\n".encode() + body + b"\r\n")
    connection.sendall(b"0\r\n\r\n")
    read_until(connection, b'"published"')


def publish_socket(address: str, count: int) -> None:
    """Messages of many notifications, at most eight unanswered."""
    connection = upgraded(address)
    all_of_them = ticks(count)
    starts = range(0, count, CHUNK)
    frames = [
        frame(json.dumps({"type": "publish", "notification": all_of_them[s : s + CHUNK]}).encode()) for s in starts
    ]
    answered, tail = 0, b""
    for sent, each in enumerate(frames, 1):
        connection.sendall(each)
        while sent - answered >= 8:
            data = connection.recv(1 << 16)
            answered += (tail + data).count(b'"published"')
            tail = data[-10:]
    while answered < len(frames):
        data = connection.recv(1 << 16)
        answered += (tail + data).count(b'"published"')
        tail = data[-10:]


def publish_mqtt(address: str, count: int) -> None:
    connection = connect(address)
    connection.sendall(bytes((0x10, 15)) + b"\0\4MQTT\4\2\0\0\0\3pub")
    connection.recv(4)
    packets = []
    for each in ticks(count):
        body = b"\0\5ticks" + json.dumps(each).encode()
        packets.append(bytes((0x30, len(body))) + body)
    for start in range(0, count, CHUNK):
        connection.sendall(b"".join(packets[start : start + CHUNK]))
    connection.sendall(b"\xc0\0")  # PINGREQ: answered behind all of them
    read_until(connection, b"\xd0\0")


def publish_native(address: str, count: int) -> None:
    all_of_them = ticks(count)
    with contrada.Client(address) as client:
        for start in range(0, count, CHUNK):
            client.publish_many(all_of_them[start : start + CHUNK], ack=False)
        client.flush()


def upgraded(address: str) -> socket.socket:
    connection = connect(address)
    key = base64.b64encode(os.urandom(16)).decode()
    connection.sendall(
        f"GET /v1/socket HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    read_until(connection, b"\r\n\r\n")
    return connection


def frame(payload: bytes) -> bytes:
    """A WebSocket's text frame with a mask of zeros."""
    size = len(payload)
    head = bytes((0x81, 0x80 | size)) if size < 126 else bytes((0x81, 0xFE)) + size.to_bytes(2, "big")
    if size >= 1 << 16:
        head = bytes((0x81, 0xFF)) + size.to_bytes(8, "big")
    return head + bytes(4) + payload


WAYS: dict[str, tuple[Callable[..., None], Callable[..., None]]] = {
    "native": (publish_native, subscribe_native),
    "http lines, SSE": (publish_lines, subscribe_sse),
    "websocket": (publish_socket, subscribe_socket),
    "mqtt": (publish_mqtt, subscribe_mqtt),
    "mosquitto": (publish_mqtt, subscribe_mqtt),
}


def rate(way: str, address: str, count: int) -> tuple[float, float]:
    """Notifications a second, from the first that arrives to the last, and the share that arrived."""
    publish, subscribe = WAYS[way]
    here, there = SPAWN.Pipe()
    subscriber = SPAWN.Process(target=subscribe, args=(address, count, there))
    subscriber.start()
    assert here.recv() == "ready"
    publisher = SPAWN.Process(target=publish, args=(address, count))
    publisher.start()
    seen, first, last = here.recv()
    publisher.join()
    subscriber.join()
    return (seen - 1) / (last - first), seen / count


# -- processes ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def gateway(url: str) -> Iterator[dict[str, str]]:
    words = [
        sys.executable,
        "-m",
        "contrada",
        "gateway",
        "--url",
        url,
        "--http",
        "127.0.0.1:0",
        "--mqtt",
        "127.0.0.1:0",
    ]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        doors: dict[str, str] = {}
        while len(doors) < 2:
            for scheme, address in re.findall(r"listens on (\w+)(://\S+);", process.stderr.readline()):
                doors[scheme] = scheme + address
        yield {**doors, "process": str(process.pid)}
    finally:
        process.terminate()
        process.communicate()


@contextlib.contextmanager
def mosquitto() -> Iterator[tuple[str, int]]:
    """Debian's, on a free port, with queues that lose nothing here; its process."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        yield "", 0
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "mosquitto.conf"
        settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
        process = subprocess.Popen([program, "-c", str(settings)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield f"mqtt://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait()


# -- one slow among a thousand --------------------------------------------------------------------------------


async def latencies(address: str, subscribers: int, slow: int, publications: int) -> list[float]:
    """How long notifications take to subscribers who read, while some do not."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    request = f"GET /v1/subscribe?filter={quote('sent > 0')} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    found: list[float] = []
    tasks: list[asyncio.Task[None]] = []
    writers: list[Any] = []

    async def read(reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            if line.startswith(b'data: {"id"'):
                found.extend([time.perf_counter() - float(sent) for sent in re.findall(rb'"sent":([0-9.]+)', line)])

    for number in range(subscribers):
        if number < slow:
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((host, int(port)))
            connection.sendall(request)
            writers.append(connection)
            continue
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
        writer.write(request)
        await reader.readuntil(b"event: subscribed")
        writers.append(writer)
        tasks.append(asyncio.create_task(read(reader)))
    _, publisher = await asyncio.open_connection(host, int(port))
    for _ in range(publications):
        body = json.dumps({"sent": time.perf_counter(), "text": "x" * 4000}).encode()
        head = (
            "POST /v1/notifications HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        publisher.write(head.encode() + body)
        await publisher.drain()
        await asyncio.sleep(0.4)
    await asyncio.sleep(2.0)
    for task in tasks:
        task.cancel()
    for writer in [*writers, publisher]:
        writer.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=["rates", "slow"])
    arguments = parser.parse_args()
    report = Report("gateway")
    with local_broker() as url, gateway(url) as doors, mosquitto() as (other, process):
        if "rates" in arguments.only:
            measure_rates(report, url, doors, other, process, int(COUNT * arguments.scale))
        if "slow" in arguments.only:
            measure_slow(report, doors["http"], arguments.scale)
    return report.finish()


def spent(process: int) -> float:
    """Processor time of a process so far, seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_rates(report: Report, url: str, doors: dict[str, str], other: str, other_process: int, count: int) -> None:
    where = {"native": url, "http lines, SSE": doors["http"], "websocket": doors["http"], "mqtt": doors["mqtt"]}
    if other:
        where["mosquitto"] = other
    else:
        print("THERE IS NO mosquitto HERE: MQTT is not compared", file=sys.stderr)
    rates: dict[str, list[float]] = {way: [] for way in where}
    servers = dict.fromkeys(where, int(doors["process"])) | ({"mosquitto": other_process} if other else {})
    costs = dict.fromkeys(where, 0.0)
    arrived = dict.fromkeys(where, 1.0)
    for number in range(ROUNDS + 1):
        for way, address in where.items():
            before = spent(servers[way])
            measured, share = rate(way, address, count)
            if number:  # the first is for warming up
                rates[way].append(measured)
                costs[way] += (spent(servers[way]) - before) / (ROUNDS * count) * 1e6
            arrived[way] = min(arrived[way], share)
    medians = {way: statistics.median(each) for way, each in rates.items()}
    rows = [
        {
            "way": way,
            "a second": round(value),
            "of native": value / medians["native"],
            "gateway or mosquitto, µs of processor each": round(costs[way], 1),
            "arrived": arrived[way],
        }
        for way, value in medians.items()
    ]
    report.table(f"publisher to subscriber, {count:,} notifications, median of {ROUNDS}", rows)
    for way in ("http lines, SSE", "websocket", "mqtt"):
        report.target(f"{way} over native", medians[way] / medians["native"], 0.4)
    if other:
        report.target("mqtt over mosquitto", medians["mqtt"] / medians["mosquitto"], 0.5)
        report.target("the same by processor time of gateway and mosquitto", costs["mosquitto"] / costs["mqtt"], 0.5)


def measure_slow(report: Report, address: str, scale: float) -> None:
    publications = max(5, int(30 * scale))
    rows = []
    for _ in range(2):
        for slow in (0, 1):
            found = sorted(asyncio.run(latencies(address, SUBSCRIBERS, slow, publications)))
            share = len(found) / ((SUBSCRIBERS - slow) * publications)
            middle, worst = (1e3 * found[int(len(found) * q)] for q in (0.5, 0.99))
            rows.append({"slow": slow, "p50, ms": middle, "p99, ms": worst, "arrived": share})
    report.table(f"{SUBSCRIBERS} SSE subscribers, 4 kB to each", rows)
    without, having = (statistics.median([row["p99, ms"] for row in rows if row["slow"] == slow]) for slow in (0, 1))
    report.target("p99 of the others, with one slow over none", having / without, 2.0, at_least=False)


if __name__ == "__main__":
    sys.exit(main())
