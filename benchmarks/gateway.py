"""What the gateway costs: HTTP, WebSocket and MQTT over the native client, MQTT over mosquitto, and a slow subscriber.

Broker, gateway (or mosquitto), publisher and subscriber are processes of their own. The clients speak raw sockets and
only count what comes, so that they are not what is measured; the native ones are the client library. Ways are measured
in turns, and the figures are ratios of medians. On a busy machine these say little, since who has fewer processes waits
less: the processor time that the gateway or mosquitto takes for each notification says more.

    python -m benchmarks.gateway [--scale 0.2] [--only rates slow]
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import multiprocessing
import os
import re
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import contrada
from benchmarks.harness import Report
from contrada.client.cli.local import local_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Begin = Callable[[], None]

SPAWN = multiprocessing.get_context("spawn")
COUNT = 100_000
CHUNK = 256
ROUNDS = 5
MARK = b'"mark"'  # an attribute of every notification: subscribers count it
IDLE = 2.0  # seconds after which nothing more is expected
SUBSCRIBERS = 1000
PUBLICATIONS = 25  # in each turn of the crowd,
TURN = 12.0  # or as many as there are in so many seconds
DOORS = ("SSE", "WebSocket")
SUBSCRIBED = b'"dropped":'  # in the last line of what a subscriber hears first
PONG = b"\x8a\x80\0\0\0\0"
SENT = re.compile(rb'"sent":(\d+),')


def ticks(count: int) -> list[dict[str, Any]]:
    """Stock ticks, as small as notifications usually are."""
    return [{"mark": n, "stock": "MTK", "price": n % 1000 / 10, "exchange": "NYSE"} for n in range(count)]


# -- subscribers: say how to begin, then count ----------------------------------------------------------------


def count_marks(connection: socket.socket, count: int, say: Any) -> None:
    """Read until so many have come, or nothing comes any more; say how many, and when the last came."""
    connection.settimeout(IDLE)
    tail, seen, last = b"", 0, 0.0
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
            seen += found
    say.send((seen, last))


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
    connection = upgrade(connect(address))
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
        for _ in range(count):
            subscription.get(timeout=30)["mark"]
        say.send((count, time.perf_counter()))


def read_until(connection: socket.socket, wanted: bytes) -> bytes:
    """What comes, until something has."""
    found = b""
    while wanted not in found:
        data = connection.recv(4096)
        if not data:
            raise ConnectionError(found.decode(errors="replace"))
        found += data
    return found


# -- publishers -----------------------------------------------------------------------------------------------


def publish_lines(address: str, count: int, begin: Begin) -> None:
    """One request that goes on: JSON lines in chunks."""
    connection = connect(address)
    connection.sendall(
        b"POST /v1/notifications?ids=false HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    lines = [json.dumps(each).encode() + b"\n" for each in ticks(count)]
    begin()
    for start in range(0, count, CHUNK):
        body = b"".join(lines[start : start + CHUNK])
        connection.sendall(f"{len(body):x}\r\n".encode() + body + b"\r\n")
    connection.sendall(b"0\r\n\r\n")
    read_until(connection, b'"published"')


def publish_socket(address: str, count: int, begin: Begin) -> None:
    """Messages of many notifications, at most eight unanswered."""
    connection = upgrade(connect(address))
    all_of_them = ticks(count)
    starts = range(0, count, CHUNK)
    frames = [
        frame(json.dumps({"type": "publish", "notification": all_of_them[s : s + CHUNK]}).encode()) for s in starts
    ]
    answered, tail = 0, b""
    begin()
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


def publish_mqtt(address: str, count: int, begin: Begin) -> None:
    connection = connect(address)
    connection.sendall(bytes((0x10, 15)) + b"\0\4MQTT\4\2\0\0\0\3pub")
    connection.recv(4)
    packets = []
    for each in ticks(count):
        body = b"\0\5ticks" + json.dumps(each).encode()
        packets.append(bytes((0x30, len(body))) + body)
    begin()
    for start in range(0, count, CHUNK):
        connection.sendall(b"".join(packets[start : start + CHUNK]))
    connection.sendall(b"\xc0\0")  # PINGREQ: answered behind all of them
    read_until(connection, b"\xd0\0")


def publish_native(address: str, count: int, begin: Begin) -> None:
    all_of_them = ticks(count)
    with contrada.Client(address) as client:
        begin()
        for start in range(0, count, CHUNK):
            client.publish_many(all_of_them[start : start + CHUNK], ack=False)
        client.flush()


def upgrade(connection: socket.socket) -> socket.socket:
    """Make a WebSocket of a connection."""
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


def publish(way: str, address: str, count: int, say: Any) -> None:
    """Publish in a way, and tell when it began: everything is written before, and the connection open."""
    WAYS[way][0](address, count, lambda: say.send(time.perf_counter()))


WAYS: dict[str, tuple[Callable[..., None], Callable[..., None]]] = {
    "native": (publish_native, subscribe_native),
    "http lines, SSE": (publish_lines, subscribe_sse),
    "websocket": (publish_socket, subscribe_socket),
    "mqtt": (publish_mqtt, subscribe_mqtt),
    "mosquitto": (publish_mqtt, subscribe_mqtt),
}


def rate(way: str, address: str, count: int) -> tuple[float, float]:
    """Notifications a second, from the publisher's first byte to the last that arrives, and the share that arrived."""
    here, there = SPAWN.Pipe()
    subscriber = SPAWN.Process(target=WAYS[way][1], args=(address, count, there))
    subscriber.start()
    assert here.recv() == "ready"
    beginning, theirs = SPAWN.Pipe()
    publisher = SPAWN.Process(target=publish, args=(way, address, count, theirs))
    publisher.start()
    begun = beginning.recv()
    seen, last = here.recv()
    publisher.join()
    subscriber.join()
    return seen / (last - begun), seen / count


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
        threading.Thread(target=process.stderr.read, daemon=True).start()  # so that its log never blocks it
        yield {**doors, "process": str(process.pid)}
    finally:
        process.terminate()
        process.wait()


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


class Crowd:
    """Subscribers of one door, read by one process: who is asked for, and when each notification came to each.

    One of them, the odd one, may be left unread. It has a small window and queue, and asks for `fill`, too, which
    nobody else does: so it can be given more than sockets take, until the broker drops what it would get.
    """

    def __init__(self, address: str, door: str, others: int) -> None:
        self._address, self._door, self._others = address, door, others
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._tails: dict[int, bytes] = {}
        self._publisher, self._answer = connect(address), b""
        self._poll.register(self._publisher, select.EPOLLIN)
        self._odd: socket.socket | None = None
        self._number = 0  # of its subscription
        self.arrivals: list[tuple[int, float]] = []  # the number of a notification, and when somebody had it
        begun = []
        for number in range(others):
            begun.append(self._begin("sent > 0"))
            if len(begun) == 50 or number == others - 1:  # some at a time, so that no backlog overflows
                for each in begun:
                    read_until(each, SUBSCRIBED)
                    self._read(each)
                begun = []

    def _begin(self, wanted: str, buffer: int = 0, **options: int) -> socket.socket:
        host, _, port = self._address.rpartition("//")[2].rpartition(":")
        connection = socket.socket()
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.connect((host, int(port)))
        if self._door == "SSE":
            query = "".join(f"&{name}={value}" for name, value in options.items())
            head = f"GET /v1/subscribe?filter={quote(wanted)}{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            connection.sendall(head.encode())
        else:
            upgrade(connection)
            wish = {"type": "subscribe", "id": "s", "filter": wanted, **options}
            connection.sendall(frame(json.dumps(wish).encode()))
        return connection

    def _read(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        number = connection.fileno()
        self._sockets[number], self._tails[number] = connection, b""
        self._poll.register(number, select.EPOLLIN)

    def change(self, *, slow: bool) -> None:
        """Put another in the place of the odd one: it reads, or does not until the broker drops what is for it."""
        if self._odd is not None:
            self._drop(self._odd)
        self._odd = self._begin("sent > 0 or fill exists", 4096 if slow else 0, window=16, queue=16)
        found = re.search(rb'"subscription": ?(\d+)', read_until(self._odd, SUBSCRIBED))
        assert found is not None
        self._number = int(found[1])
        if not slow:
            self._read(self._odd)
            return
        while not self.dropped():
            self.publish({"fill": 1, "text": "x" * 60_000}, times=10)

    def _drop(self, connection: socket.socket) -> None:
        if connection.fileno() in self._sockets:
            self._poll.unregister(connection.fileno())
            del self._tails[connection.fileno()], self._sockets[connection.fileno()]
        connection.close()

    def dropped(self) -> int:
        """How many notifications the broker has dropped for the odd one."""
        answer = self._ask(b"GET /v1/subscriptions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        listed = json.loads(answer)["subscriptions"]
        return sum(each["dropped"] for each in listed if each["subscription"] == self._number)

    def publish(self, notification: dict[str, Any], times: int = 1) -> None:
        """Publish, and wait until it is accepted."""
        body = json.dumps([notification] * times).encode()
        head = (
            "POST /v1/notifications HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._ask(head.encode() + body)

    def _ask(self, request: bytes) -> bytes:
        """Send a request, and wait for its answer, reading what subscribers get meanwhile; its body."""
        self._publisher.sendall(request)
        self._answer = b""
        while True:
            head, found, body = self._answer.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            if found and length is not None and len(body) >= int(length[1]):
                assert head.startswith(b"HTTP/1.1 200"), self._answer
                return body
            self.read(1.0)

    def read(self, seconds: float) -> None:
        """Take in what has come, or comes within this time."""
        for number, _ in self._poll.poll(seconds):
            if number == self._publisher.fileno():
                self._answer += self._publisher.recv(1 << 20)
                continue
            data = self._sockets[number].recv(1 << 17)
            if not data:
                raise ConnectionError("the gateway has ended a subscriber's connection")
            data, now, end = self._tails[number] + data, time.perf_counter(), 0
            for found in SENT.finditer(data):
                if self._sockets[number] is not self._odd:
                    self.arrivals.append((int(found[1]), now))
                end = found.end()
            self._tails[number] = data[max(end, len(data) - 40) :]

    def send(self, count: int, interval: float) -> list[float]:
        """Publish 4 kB every `interval` seconds, whatever has come of those before; how long each took to each other.

        Times count from when it was due. With an interval of 0 each waits for the one before to be everywhere.
        """
        if self._door == "WebSocket":  # signs of life, which the gateway asks for every 15 s
            for each in {*self._sockets.values(), *([self._odd] if self._odd else [])}:
                each.send(PONG)
        self.arrivals = []
        due: list[float] = []
        for number in range(count):
            due.append(due[-1] + interval if due and interval else time.perf_counter())
            while (wait := due[-1] - time.perf_counter()) > 0:
                self.read(wait)
            self.publish({"sent": number + 1, "text": "x" * 4000})
            until = time.perf_counter() + 10
            wanted = 0 if interval and number < count - 1 else self._others * (number + 1)
            while len(self.arrivals) < wanted and time.perf_counter() < until:
                self.read(0.1)
        return [when - due[number - 1] for number, when in self.arrivals]

    def close(self) -> None:
        """All of them leave."""
        for connection in [*self._sockets.values(), self._publisher]:
            connection.close()
        if self._odd is not None:
            self._odd.close()


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
            tell(f"round {number} of {ROUNDS}: {way}, {measured:,.0f} a second")
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
    """The same subscribers, publications and rate in all turns: but one of a thousand reads, or does not read."""
    others = SUBSCRIBERS - 1
    for door in DOORS:
        tell(f"{door}: {others} subscribers connect")
        crowd = Crowd(address, door, others)
        crowd.change(slow=False)
        tell("warming up")
        crowd.send(3, 0.0)
        start = time.perf_counter()
        crowd.send(5, 0.0)
        one = (time.perf_counter() - start) / 5
        interval = max(0.05, 4 * one)  # a quarter of what it bears: queues do not grow by themselves
        tell(f"a publication is everywhere after {1e3 * one:.0f} ms: one every {1e3 * interval:.0f} ms")
        publications = max(3, int(scale * min(PUBLICATIONS, TURN / interval)))
        rows: list[dict[str, Any]] = []
        all_times: dict[bool, list[float]] = {False: [], True: []}
        for slow in (False, True, True, False, False, True):
            crowd.change(slow=slow)
            before = crowd.dropped()
            times = crowd.send(publications, interval)
            row = {
                "the odd one": "does not read" if slow else "reads",
                "p50, ms": 1e3 * quantile(times, 0.5),
                "p99, ms": 1e3 * quantile(times, 0.99),
                "worst, ms": 1e3 * max(times),
                "arrived": len(times) / publications / others,
                "dropped for it": float(crowd.dropped() - before),
            }
            rows.append(row)
            all_times[slow] += times
            tell(", ".join(f"{name} {value:.4g}" if isinstance(value, float) else value for name, value in row.items()))
        crowd.close()
        report.table(f"{SUBSCRIBERS} subscribers by {door}, {publications} times 4 kB to each", rows)
        having, without = (quantile(all_times[slow], 0.99) for slow in (True, False))
        report.target(f"{door}: p99 of the others, with one slow over none", having / without, 2.0, at_least=False)
        report.target(f"{door}: share that arrived", min(row["arrived"] for row in rows), 1.0)


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)]


def tell(what: str) -> None:
    """Tell at once how far it is."""
    print(f"{time.strftime('%H:%M:%S')}  {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
