"""How long everybody else waits because of what one client sends, within the limits that clients have by default.

A broker process, a client that every few milliseconds pings it, subscribes, publishes what it has subscribed to and
unsubscribes, and notes the longest wait for any of these, and another client that does the worst it may. Asked: nobody
waits longer than 100 ms. A row's `own` is how long the worst client itself waits until what it asked for is done.

    python -m benchmarks.fairness [--row NAME] [--repeat 5]
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import sys
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import zmq

from benchmarks.harness import Report
from contrada import Box, Broker, GeoText, Predicate, Region, attr
from contrada.broker.protocol.frames import decode, encode
from contrada.broker.protocol.messages import (
    Ack,
    Bye,
    Deliver,
    Error,
    Hello,
    Ping,
    Pong,
    Publish,
    Subscribe,
    Unsubscribe,
)
from contrada.broker.protocol.wire import Policy
from contrada.forwarding.codec.msgpack import encode_filter, encode_notification
from contrada.forwarding.warm import compile_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

SPAWN = multiprocessing.get_context("spawn")
ASKED = 100.0  # milliseconds
EVERY = 0.003  # seconds between two rounds


class Raw:
    """A client that speaks frames, so that the client library is not what is measured."""

    def __init__(self, url: str) -> None:
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.rcvhwm = 0
        self.socket.connect(url)
        self.request = 0
        self.say(Hello(1, 1, "bench"))
        self.hear()

    def say(self, message: Any) -> None:
        """Send a message."""
        self.socket.send_multipart(encode(message))

    def hear(self, seconds: float = 120.0) -> Any:
        """The next message."""
        if not self.socket.poll(seconds * 1000):
            raise TimeoutError("the broker does not answer")
        return decode(self.socket.recv_multipart())

    def await_acks(self, count: int) -> None:
        """Listen until so many requests are answered."""
        done = 0
        while done < count:
            message = self.hear()
            if isinstance(message, Ack):
                done += len(message.entries)
            elif isinstance(message, Error):
                raise RuntimeError(message.reason)
            elif isinstance(message, Ping):
                self.say(Pong(message.nonce))

    def await_each(self, types: tuple[type, ...]) -> None:
        """Listen until a message of each type has come."""
        missing = set(types)
        while missing:
            message = self.hear()
            if isinstance(message, Error):
                raise RuntimeError(message.reason)
            if isinstance(message, Ping):
                self.say(Pong(message.nonce))
            missing.discard(type(message))

    def subscribe(self, *filters: Any) -> Subscribe:
        """The message that asks for filters."""
        self.request += 1
        encoded = tuple(encode_filter(each) for each in filters)
        return Subscribe(self.request, self.request, encoded, Policy.BLOCK, 10**6)

    def publish(self, *notifications: Any) -> Publish:
        """The message that publishes."""
        self.request += 1
        return Publish(self.request, tuple(encode_notification(each) for each in notifications))


def serve(pipe: Connection) -> None:
    """A broker, as `contrada broker` runs it."""
    broker = Broker(metrics="127.0.0.1:0")
    broker.run(lambda: pipe.send((broker.url, broker.metrics_url)))


def use(url: str, pipe: Connection) -> None:
    """Use the broker, and say after each question how long the longest wait was since the last, and for what."""
    client = Raw(url)
    worst = (0.0, "nothing")
    pipe.send("ready")
    while True:
        client.request += 1
        subscribe = client.subscribe(attr("mine") == client.request)
        steps = (
            (Ping(client.request), (Pong,)),
            (subscribe, (Ack,)),
            (client.publish({"mine": subscribe.request - 1}), (Ack, Deliver)),
            (Unsubscribe(client.request, subscribe.subscription), (Ack,)),
        )
        for message, answers in steps:
            began = time.perf_counter()
            client.say(message)
            client.await_each(answers)
            worst = max(worst, (time.perf_counter() - began, type(message).__name__.upper()))
        if pipe.poll(EVERY):
            pipe.recv()
            pipe.send(worst)
            worst = (0.0, "nothing")


@contextmanager
def process(target: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """Another process, and a pipe to it."""
    here, there = SPAWN.Pipe()
    child = SPAWN.Process(target=target, args=(*arguments, there), daemon=True)
    child.start()
    try:
        yield here
    finally:
        child.terminate()
        child.join(10)
        child.kill()


# -- what a client may send --------------------------------------------------------------------------------


def ring(rng: random.Random, vertices: int, *, star: bool = False, size: float = 10.0) -> Region:
    """A polygon around some place; a star's radius jumps from vertex to vertex."""
    x, y = rng.uniform(0, 100), rng.uniform(0, 100)
    points = []
    for number in range(vertices):
        angle = 2 * math.pi * number / vertices
        radius = size * (rng.uniform(0.3, 1.0) if star else 1.0 + 0.1 * math.sin(9 * angle) + 0.001 * rng.random())
        points.append((x + radius * math.cos(angle), y + radius * math.sin(angle)))
    return Region(points)


def contains(client: Raw) -> Iterator[list[Any]]:
    """64 `contains` that resemble "aaa…", one notification of 1 MB of "a"."""
    yield [client.subscribe(attr("t").contains("a" * (190 + n) + "b")) for n in range(64)]
    yield [client.publish({"t": "a" * 1_000_000})]


def polygons(client: Raw) -> Iterator[list[Any]]:
    """One SUBSCRIBE of 50 polygons of 10,000 vertices."""
    rng = random.Random(1)
    yield [client.subscribe(*(attr("r").intersects(ring(rng, 10_000)) for _ in range(50)))]


def districts(client: Raw) -> Iterator[list[Any]]:
    """One predicate of 1,000 polygons of 150 vertices."""
    rng = random.Random(2)
    yield [client.subscribe(Predicate([attr("r").intersects(ring(rng, 150, size=1.0)) for _ in range(1000)]))]


def stars(client: Raw) -> Iterator[list[Any]]:
    """40 star polygons of 10,000 vertices against 400 such filters."""
    rng = random.Random(3)
    for _ in range(10):
        yield [client.subscribe(*(attr("r").intersects(ring(rng, 10_000, star=True)) for _ in range(40)))]
    yield [client.publish(*({"r": ring(rng, 10_000, star=True)} for _ in range(40)))]


def large_star(client: Raw) -> Iterator[list[Any]]:
    """One star polygon of 10,000 vertices that lies over all of 400 such filters."""
    rng = random.Random(5)
    for _ in range(10):
        yield [client.subscribe(*(attr("r").intersects(ring(rng, 10_000, star=True)) for _ in range(40)))]
    yield [client.publish({"r": ring(rng, 10_000, star=True, size=60.0)})]


def geotexts(client: Raw) -> Iterator[list[Any]]:
    """100 geotexts of 4,096 keywords against 100 filters of keywords."""
    rng = random.Random(4)
    words = [f"word{n}" for n in range(20_000)]
    box = Box(0, 0, 100, 100)
    yield [client.subscribe(attr("g").matches(rng.sample(words, 5), within=box)) for _ in range(100)]
    texts = [GeoText(" ".join(rng.sample(words, 4096)), at=(50, 50)) for _ in range(100)]
    yield [client.publish(*({"g": each} for each in texts))]


def many_small(client: Raw) -> Iterator[list[Any]]:
    """4,000 small notifications at once that half of 1,000 subscriptions want."""
    yield [client.subscribe(attr("x") > n) for n in range(0, 4000, 4)]
    yield [client.publish(*({"x": n * 100 + each} for each in range(100))) for n in range(40)]


def leaves(client: Raw) -> Iterator[list[Any]]:
    """A client with 10,000 subscriptions leaves."""
    for start in range(0, 10_000, 1000):
        yield [client.subscribe(attr("x") == start + n) for n in range(1000)]
    yield []


def idle(client: Raw) -> Iterator[list[Any]]:
    """Nothing."""
    yield []


ROWS = {
    each.__name__: each
    for each in (idle, contains, polygons, districts, stars, large_star, geotexts, many_small, leaves)
}


def turns(metrics: str) -> str:
    """What took most of the longest turn so far."""
    text = urllib.request.urlopen(metrics).read().decode()
    return next(line for line in text.splitlines() if line.startswith("contrada_longest_turn_seconds{"))


def measure(name: str) -> dict[str, Any]:
    """One row, of a broker of its own."""
    with process(serve) as broker:
        url, metrics = broker.recv()
        with process(use, url) as user:
            user.recv()
            client = Raw(url)
            worst, own = (0.0, "nothing"), 0.0
            for messages in ROWS[name](client):
                user.send("how long")
                user.recv()
                began = time.perf_counter()
                for message in messages:
                    client.say(message)
                client.await_acks(len(messages))
                own = max(own, time.perf_counter() - began)
                time.sleep(0.2)  # what is left of it
                user.send("how long")
                worst = max(worst, user.recv())
            if name == "leaves":
                client.say(Bye())
                time.sleep(2.0)
                user.send("how long")
                worst = max(worst, user.recv())
            seconds, waited_for = worst
            return {
                "row": name,
                "others wait, ms": seconds * 1e3,
                "for": waited_for,
                "own, s": own,
                "longest turn": turns(metrics),
            }


def main() -> int:
    """Measure every row, or one, several times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", choices=ROWS)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    compile_kernels()  # once, not in every broker
    report = Report("fairness")
    rows = []
    for name in [arguments.row] if arguments.row else ROWS:
        runs = [measure(name) for _ in range(arguments.repeat)]
        rows.append(max(runs, key=lambda run: float(run["others wait, ms"])))
        print(json.dumps(rows[-1]), flush=True)
        report.target(f"others wait for {name}", rows[-1]["others wait, ms"], ASKED, at_least=False, unit="ms")
    report.table("The longest wait of others, the worst of all runs", rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
