"""The broker over loopback against a bare pyzmq forwarder: rate, latency, fan-out and churn, in one run.

Every party is a process of its own. The forwarder is the least a Python broker could do: a ROUTER that takes a
message, unpacks it and the notifications in it, and sends it on; no acknowledgement, no matching, no state. Publisher
and subscriber are the same processes for both; they speak raw frames, so that the client library is not what is
measured. Notifications travel one per message, as `publish` sends them one at a time, and also in batches.

    python -m benchmarks.broker [--scale 0.1]
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np
import zmq

from benchmarks.harness import Report
from contrada import Box, Broker, ForwardingTable, Point, attr
from contrada.broker.protocol.frames import decode, encode
from contrada.broker.protocol.messages import (
    Ack,
    Bye,
    Credit,
    Deliver,
    Error,
    Grant,
    Hello,
    Limits,
    Publish,
    Subscribe,
    Unsubscribe,
    Welcome,
)
from contrada.broker.protocol.wire import Policy
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification, encode_filter, encode_notification
from contrada.forwarding.warm import compile_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

SPAWN = multiprocessing.get_context("spawn")
STOCKS = [f"{a}{b}{c}{d}" for a in "ABCDEFGH" for b in "AEIOU" for c in "KLMNPQRS" for d in "ABCDEFGHIJ"]
FEWER_STOCKS = STOCKS[::10]  # so that ten times as many filters ask for each
WINDOW = 4096
MANY = 10**12
PARTS = ["rate", "latency", "record", "fanout", "churn"]


# -- workload ----------------------------------------------------------------------------------------------


def notifications(count: int, seed: int = 1, stocks: list[str] = STOCKS) -> list[bytes]:
    """Stock ticks, every tenth with the place it came from."""
    rng = random.Random(seed)
    encoded = []
    for number in range(count):
        tick: dict[str, Any] = {
            "stock": rng.choice(stocks),
            "price": round(rng.uniform(0, 1000), 2),
            "volume": rng.randrange(1, 100_000),
            "exchange": rng.choice(["NYSE", "LSE", "TSE"]),
            "all": True,
        }
        if number % 10 == 0:
            tick["place"] = Point(rng.uniform(0, 1000), rng.uniform(0, 1000))
        encoded.append(encode_notification(tick))
    return encoded


def filters(count: int, seed: int = 2, stocks: list[str] = STOCKS) -> list[bytes]:
    """Mixed filters: equality with ranges, ranges, prefixes, sets and places; narrower the more there are."""
    rng = random.Random(seed)
    width = 1000 / max(count, 1000) * 20
    made = []
    for number in range(count):
        low = rng.uniform(0, 1000)
        kind = number % 5
        if kind == 0:
            f = (attr("stock") == rng.choice(stocks)) & (attr("price") > low) & (attr("price") < low + width)
        elif kind == 1:
            f = (attr("price") >= low) & (attr("price") < low + width / 10) & (attr("volume") > rng.randrange(100_000))
        elif kind == 2:
            f = attr("stock").prefix(rng.choice(stocks)[:3]) & (attr("volume") > 100_000 - rng.randrange(1, 2000))
        elif kind == 3:
            f = attr("stock").in_(rng.sample(stocks, 3)) & (attr("price") < width / 20)
        else:
            x, y = rng.uniform(0, 990), rng.uniform(0, 990)
            f = attr("place").inside(Box(x, y, x + width / 4, y + width / 4))
        made.append(encode_filter(f))
    return made


def matches(encoded: list[bytes], bodies: list[bytes]) -> float:
    """Subscriptions that a notification matches, on average, besides the one that asks for everything."""
    table = ForwardingTable()
    table.add_many((number, decode_filter(one)) for number, one in enumerate(encoded))
    found = table.match_many([decode_notification(body) for body in bodies[:5000]])
    return sum(map(len, found)) / len(found)


EVERYTHING = encode_filter(attr("all").exists())


# -- processes ---------------------------------------------------------------------------------------------


def run_broker(pipe: Connection, options: dict[str, Any]) -> None:
    compile_kernels()
    broker = Broker(**options)
    broker.run(lambda: pipe.send(broker.url))


def run_forwarder(pipe: Connection, _options: dict[str, Any]) -> None:
    """A HELLO makes a receiver; everything else is unpacked and sent on to all receivers."""
    allow_many_files()
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.ROUTER_MANDATORY, 1)
    router.bind("tcp://127.0.0.1:*")
    pipe.send(router.getsockopt_string(zmq.LAST_ENDPOINT))
    receivers: list[bytes] = []
    while True:
        sender, head = router.recv_multipart()
        message = msgpack.unpackb(head)
        if message[0] == 1:
            receivers.append(sender)
            router.send_multipart([sender, head])
            continue
        for body in message[2]:
            msgpack.unpackb(body, ext_hook=msgpack.ExtType)
        for receiver in receivers:
            router.send_multipart([receiver, head])


class Party:
    """A raw client of either."""

    def __init__(self, url: str, context: zmq.Context[Any] | None = None, name: str = "") -> None:
        self.context = context or zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.sndhwm = self.socket.rcvhwm = 2000
        self.socket.connect(url)
        self.socket.send_multipart(encode(Hello(1, 1, name)))
        self.greeting = self.socket.recv_multipart()
        self.request = 0

    def next_request(self) -> int:
        """A number not used before."""
        self.request += 1
        return self.request

    def subscribe(self, encoded: list[bytes], policy: Policy = Policy.BLOCK, first: int = 0) -> None:
        """Subscribe to each filter, pipelined, and wait for all the answers."""
        waiting = set()
        for id, one in enumerate(encoded, first):
            request = self.next_request()
            waiting.add(request)
            self.socket.send_multipart(encode(Subscribe(request, id, (one,), policy, MANY)))
            while len(waiting) > 500:
                waiting -= self.answered()
        while waiting:
            waiting -= self.answered()

    def answered(self) -> set[int]:
        """The requests that the next message acknowledges."""
        message = decode(self.socket.recv_multipart())
        if isinstance(message, Error):
            raise RuntimeError(message.reason)
        return {entry.request for entry in message.entries} if isinstance(message, Ack) else set()


def run_subscriber(pipe: Connection, url: str, expected: int, encoded: list[bytes], everyone: int) -> None:
    """Receive `expected` notifications on each of `everyone` connections; report when the first and last came."""
    allow_many_files()
    context = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 4096)
    parties = [Party(url, context, f"s{n}") for n in range(everyone)]
    broker = isinstance(decode(parties[0].greeting), Welcome)
    if broker:
        for party in parties:
            party.subscribe([EVERYTHING, *encoded])
    pipe.send("ready")
    gc.collect()
    gc.freeze()
    left = {party.socket: expected for party in parties}
    poller = zmq.Poller()
    for socket in left:
        poller.register(socket, zmq.POLLIN)
    first = 0.0
    latencies: list[int] = []
    while left:
        for socket, _ in poller.poll():
            while True:
                try:
                    head = socket.recv(zmq.NOBLOCK)
                except zmq.Again:
                    break
                message = msgpack.unpackb(head)
                first = first or time.perf_counter()
                if message[0] == 6:  # DELIVER
                    left[socket] -= (len(message) - 1) // 2
                    bodies = [envelope[3] for envelope in message[1::2]]
                elif message[0] == 5:
                    left[socket] -= len(message[2])
                    bodies = message[2]
                else:
                    socket.send(encode(decode([head]))[0]) if message[0] == 9 else None
                    continue
                if len(bodies[0]) == 8 + 2 + 4:  # a latency probe: {"all": ns}
                    now = time.perf_counter_ns()
                    latencies += [now - msgpack.unpackb(body)["all"] for body in bodies]
            if left.get(socket, 1) <= 0:
                poller.unregister(socket)
                del left[socket]
    pipe.send((first, time.perf_counter(), latencies))
    pipe.recv()


def allow_many_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def child(target: Callable[..., None], *arguments: Any) -> Iterator[tuple[Connection, Any]]:
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours, process
    finally:
        process.terminate()
        process.join()
        ours.close()


def receive(pipe: Connection, patience: float = 120.0) -> Any:
    if not pipe.poll(patience):
        raise TimeoutError(f"a process was silent for {patience} s")
    return pipe.recv()


# -- experiments -------------------------------------------------------------------------------------------


def publish_all(publisher: Party, bodies: list[bytes], batch: int, acks: bool) -> None:
    """Publish as fast as it goes: within the window when the other side acknowledges, else as fast as it reads."""
    send_all(publisher, encode_all(publisher, bodies, batch), batch, acks)


def encode_all(publisher: Party, bodies: list[bytes], batch: int) -> list[bytes]:
    """The messages of `send_all`."""
    return [
        encode(Publish(publisher.next_request(), tuple(bodies[at : at + batch])))[0]
        for at in range(0, len(bodies), batch)
    ]


def send_all(publisher: Party, frames: list[bytes], batch: int, acks: bool) -> None:
    """Send them, each of so many notifications."""
    socket = publisher.socket
    unacknowledged = 0
    for frame in frames:
        while unacknowledged >= WINDOW // batch:
            unacknowledged -= count_acks(socket.recv())
        unacknowledged += acks
        socket.send(frame)


def count_acks(head: bytes) -> int:
    message = msgpack.unpackb(head)
    if message[0] == 11:
        raise RuntimeError(message)
    return len(message[1]) if message[0] == 7 else 0


def rate(
    target: Callable[..., None],
    encoded: list[bytes],
    bodies: list[bytes],
    batch: int,
    everyone: int = 1,
    **settings: Any,
) -> float:
    """Deliveries per second, from the first to the last."""
    return timed(target, encoded, bodies, batch, everyone, **settings)[0]


def timed(
    target: Callable[..., None],
    encoded: list[bytes],
    bodies: list[bytes],
    batch: int,
    everyone: int = 1,
    **settings: Any,
) -> tuple[float, float]:
    """Deliveries per second, from the first to the last, and the broker's processor time for each notification."""
    options = {"limits": Limits(subscriptions=1_000_000)._asdict(), **settings}
    with child(target, options) as (pipe, process):
        url = receive(pipe)
        acks = target is run_broker
        with child(run_subscriber, url, len(bodies), encoded, everyone) as (subscriber, _):
            assert receive(subscriber, 300.0) == "ready"
            if acks:
                publisher = Party(url, name="publisher")
            else:
                publisher = Party.__new__(Party)
                publisher.context = zmq.Context()
                publisher.socket = publisher.context.socket(zmq.DEALER)
                publisher.socket.linger = 0
                publisher.socket.connect(url)
                publisher.request = 0
            before = processor_time(process.pid)
            publish_all(publisher, bodies, batch, acks)
            first, last, _ = receive(subscriber)
            spent = processor_time(process.pid) - before
            subscriber.send("done")
            publisher.socket.close()
            publisher.context.term()
    return len(bodies) * everyone / (last - first), spent / len(bodies)


def recording(count: int, encoded: list[bytes], batch: int, rounds: int) -> list[dict[str, Any]]:
    """The broker with and without --record, in turns, so that both meet the same weather."""
    bodies = notifications(count)
    rows = []
    for number in range(rounds):
        plain = timed(run_broker, encoded, bodies, batch)
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".recording-") as directory:
            recorded = timed(run_broker, encoded, bodies, batch, record=directory)
            size = sum(path.stat().st_size for path in Path(directory).glob("*.rec"))
        rows.append(
            {
                "per message": batch,
                "round": number + 1,
                "without/s": plain[0],
                "with/s": recorded[0],
                "ratio": recorded[0] / plain[0],
                "µs cpu without": plain[1] * 1e6,
                "µs cpu with": recorded[1] * 1e6,
                "bytes each": size / count,
            }
        )
    return rows


def latency(per_second: float, count: int, encoded: list[bytes]) -> tuple[float, float]:
    """p50 and p99 in seconds from publish to delivery, at a steady rate."""
    with child(run_broker, {"limits": Limits(subscriptions=1_000_000)._asdict()}) as (pipe, _):
        url = receive(pipe)
        with child(run_subscriber, url, count, encoded, 1) as (subscriber, _):
            assert receive(subscriber, 300.0) == "ready"
            publisher = Party(url)
            start = time.perf_counter()
            for number in range(count):
                due = start + number / per_second
                while (now := time.perf_counter()) < due:
                    time.sleep(min(due - now, 0.001))
                body = msgpack.packb({"all": time.perf_counter_ns()})
                publisher.socket.send_multipart(encode(Publish(publisher.next_request(), (body,))))
                while publisher.socket.poll(0):
                    publisher.socket.recv()
            _, _, measured = receive(subscriber)
            subscriber.send("done")
    steady = np.array(measured[len(measured) // 10 :]) / 1e9  # the first tenth warms up
    return float(np.percentile(steady, 50)), float(np.percentile(steady, 99))


def churn(clients: int, each: int, rounds: int) -> list[dict[str, Any]]:
    """Clients connect, subscribe, publish, are delivered to, unsubscribe, leave and return; the broker's memory."""
    allow_many_files()
    rng = random.Random(3)
    encoded = filters(each * 50)
    bodies = notifications(200)
    rows = []
    context = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 8192)
    quiet = {"heartbeat": 60.0, "timeout": 600.0}  # these raw clients read only when it is their turn
    with child(run_broker, quiet) as (pipe, process):
        url = receive(pipe)
        parties = [Party(url, context, f"c{n}") for n in range(clients)]
        for party in parties:
            party.subscribe(rng.sample(encoded, each))
        for round in range(rounds):
            start = time.perf_counter()
            for party in rng.sample(parties, clients // 4):
                for id in rng.sample(range(each), each // 2):
                    party.socket.send_multipart(encode(Unsubscribe(party.next_request(), id)))
                    body = (rng.choice(encoded),)
                    again = Subscribe(party.next_request(), id, body, Policy.DROP_OLDEST, MANY)
                    party.socket.send_multipart(encode(again))
                party.socket.send_multipart(encode(Publish(party.next_request(), tuple(bodies))))
                last = party.request
                answered: set[int] = set()
                while last not in answered:
                    answered |= party.answered()
            for number in rng.sample(range(clients), clients // 20):
                old = parties[number]
                if number % 2:
                    old.socket.send_multipart(encode(Bye()))
                old.socket.close()
                parties[number] = Party(url, context, f"c{number}")
                parties[number].subscribe(rng.sample(encoded, each))
            for party in parties:
                while party.socket.poll(0):
                    message = decode(party.socket.recv_multipart())
                    if isinstance(message, Error):
                        raise RuntimeError(message.reason)
                    if isinstance(message, Deliver):
                        party.socket.send_multipart(encode(Credit((Grant(0, 1),))))
            rows.append(
                {
                    "round": round + 1,
                    "changes/s": clients // 4 * each / (time.perf_counter() - start),
                    "broker MB": resident(process.pid) / 1e6,
                }
            )
        for party in parties:
            party.socket.close()
    context.term()
    return rows


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the full sizes")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--symbols", type=int, choices=[320, 3200], default=3200, help="stocks in the workload")
    arguments = parser.parse_args()
    scale = arguments.scale
    stocks = STOCKS if arguments.symbols == len(STOCKS) else FEWER_STOCKS
    report = Report("broker")
    wanted = [arguments.only] if arguments.only else PARTS
    full = 0.0
    if "rate" in wanted or "latency" in wanted:
        rows = []
        for batch, count in ((1, int(100_000 * scale)), (64, int(200_000 * scale))):
            bodies = notifications(count, stocks=stocks)
            bare = rate(run_forwarder, [], bodies, batch)
            rows.append(
                {
                    "what": f"bare forwarder, {batch} per message",
                    "notifications/s": bare,
                    "ratio": 1.0,
                    "matches each": 1.0,
                }
            )
            for subscriptions in (1_000, 100_000):
                mixed = filters(subscriptions - 1, stocks=stocks)
                ours = rate(run_broker, mixed, bodies, batch)
                row = {"what": f"broker, {subscriptions:,} subscriptions, {batch} per message", "notifications/s": ours}
                rows.append({**row, "ratio": ours / bare})
                few = subscriptions == 1_000
                what = f"rate at {subscriptions:,} subscriptions / bare forwarder, {batch} per message"
                if batch == 1:
                    rows[-1]["matches each"] = 1.0 + matches(mixed, bodies)
                    report.target(what, ours / bare, 0.35 if few else 0.15)
                    full = full or ours
                else:
                    report.target(what, ours / bare, 0.3 if few else 0.15)
        report.table("End to end: 1 publisher, 1 subscriber", rows)
    if "latency" in wanted:
        p50, p99 = latency(full / 10, int(max(2000, full / 10 * 5 * scale)), filters(999))
        report.table(
            "Latency at a tenth of the rate", [{"rate/s": full / 10, "p50 ms": p50 * 1e3, "p99 ms": p99 * 1e3}]
        )
        report.target("p50 latency", p50 * 1e3, 1.0, at_least=False, unit="ms")
        report.target("p99 latency", p99 * 1e3, 5.0, at_least=False, unit="ms")
    if "record" in wanted:
        rows = []
        for batch, count in ((1, int(100_000 * scale)), (64, int(200_000 * scale))):
            measured = recording(count, filters(999), batch, 5)
            rows += measured
            ratio = float(np.median([row["ratio"] for row in measured]))
            report.target(f"rate with --record / without, {batch} per message (median of 5)", ratio, 0.9)
        report.table("Recording, 1,000 subscriptions", rows)
    if "fanout" in wanted:
        bodies = notifications(max(10, int(300 * scale)))
        bare = rate(run_forwarder, [], bodies, 1, everyone=1000)
        ours = rate(run_broker, [], bodies, 1, everyone=1000)
        report.table(
            "Fan-out 1 to 1,000, published in one burst",
            [{"what": "bare forwarder", "deliveries/s": bare}, {"what": "broker", "deliveries/s": ours}],
        )
        report.target("fan-out 1 to 1,000 / bare forwarder", ours / bare, 0.5)
    if "churn" in wanted:
        clients = int(1000 * max(scale, 0.05))
        rows = churn(clients, 100, 8)
        report.table(f"{clients:,} clients with 100 subscriptions each, churning", rows)
        report.target(
            "memory after 8 rounds of churn / after 4",
            rows[7]["broker MB"] / rows[3]["broker MB"],
            1.15,
            at_least=False,
        )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
