"""How long everybody else waits because of what one client sends, within the limits that clients have by default.

A broker process, a client that every few milliseconds pings it, subscribes, publishes what it has subscribed to and
unsubscribes, and notes the longest wait for any of these, and another client that does the worst it may. Asked: nobody
waits longer than 100 ms. A row's `own` is how long the worst client itself waits until what it asked for is done.

    python -m benchmarks.fairness [--row NAME] [--repeat 5]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import zmq

from benchmarks.fairness_client import Raw
from benchmarks.fairness_rows import PEERS, ROWS, UNANSWERED, become_peer, broker_options
from benchmarks.harness import Report
from contrada import Broker, attr
from contrada.broker.node.logs import configure
from contrada.broker.protocol.messages import Ack, Deliver, Ping, Pong, Unsubscribe
from contrada.forwarding.language.lonlat import LONLAT
from contrada.forwarding.warm import compile_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

SPAWN = multiprocessing.get_context("spawn")
ASKED = 100.0  # milliseconds
EVERY = 0.003  # seconds between two rounds
LOOK = 0.04  # seconds between two looks at how long they wait
CALM = 0.01  # seconds: nobody waits longer for what is left of a step,
CALM_LOOKS = 3  # in so many looks at a time, when it is over
LONGEST = 2.0  # seconds that this is waited for
AFTERWARDS = 1.0  # seconds after a row of which the broker does not say when it is done


def serve(options: dict[str, Any], pipe: Connection) -> None:
    """A broker, as `contrada broker` runs it; nobody reads its log."""
    configure(stream=Path(os.devnull).open("w"))  # noqa: SIM115  # open until the process ends
    broker = Broker(metrics="127.0.0.1:0", **options)
    broker.run(lambda: pipe.send((broker.url, broker.metrics_url)))


class Waits(NamedTuple):
    """The longest wait, and for what."""

    seconds: float = 0.0
    message: str = "nothing"


def use(pipe: Connection) -> None:
    """Use one broker after the other.

    A url on the pipe is that of the next broker, None ends its use, and anything else asks how long the longest wait
    was since the last such question.
    """
    while True:
        context = zmq.Context()
        client = Raw(pipe.recv(), context)
        worst = Waits()
        pipe.send("ready")
        while True:
            worst = max(worst, a_round(client))
            if pipe.poll(EVERY):
                asked = pipe.recv()
                pipe.send(worst)
                worst = Waits()
                if asked is None:
                    break
        context.destroy(linger=0)


def a_round(client: Raw) -> Waits:
    """Ping, subscribe, publish what is subscribed to and unsubscribe."""
    client.request += 1
    subscribe = client.subscribe(attr("mine") == client.request)
    steps = (
        (Ping(client.request), (Pong,)),
        (subscribe, (Ack,)),
        (client.publish({"mine": subscribe.request - 1}), (Ack, Deliver)),
        (Unsubscribe(client.request, subscribe.subscription), (Ack,)),
    )
    worst = Waits()
    for message, answers in steps:
        began = time.perf_counter()
        client.say(message)
        client.await_each(answers)
        worst = max(worst, Waits(time.perf_counter() - began, type(message).__name__.upper()))
    return worst


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


def turns(metrics: str) -> str:
    """What took most of the longest turn so far."""
    text = urllib.request.urlopen(metrics).read().decode()
    return next(line for line in text.splitlines() if line.startswith("contrada_longest_turn_seconds{"))


def calm(user: Connection, least: float) -> Waits:
    """Wait until nobody waits for what is left of a step, but so many seconds at least; the longest wait meanwhile."""
    worst, began, looks = Waits(), time.perf_counter(), 0
    while looks < CALM_LOOKS or time.perf_counter() - began < least:
        time.sleep(LOOK)
        user.send("how long")
        waited = user.recv()
        looks = looks + 1 if waited.seconds < CALM else 0
        worst = max(worst, waited)
        if time.perf_counter() - began > LONGEST:
            break
    return worst


def measure(name: str, user: Connection, shared: Path) -> dict[str, Any]:
    """One row, of a broker of its own. In `shared` is what the runs of a row have in common."""
    context = zmq.Context()
    with tempfile.TemporaryDirectory() as folder:
        options = broker_options(name, Path(folder), shared)
        with process(serve, options) as broker:
            url, metrics = broker.recv()
            user.send(url)
            user.recv()
            try:
                seconds, waited_for, own = _measured(name, Raw(url, context), user)
                longest = turns(metrics)
            finally:
                user.send(None)
                user.recv()
                context.destroy(linger=0)
    return {"row": name, "others wait, ms": seconds * 1e3, "for": waited_for, "own, s": own, "longest turn": longest}


def _measured(name: str, client: Raw, user: Connection) -> tuple[float, str, float]:
    if name in PEERS:
        become_peer(client)
    worst, own = Waits(), 0.0
    for messages in ROWS[name](client):
        user.send("how long")  # not while the messages were made
        user.recv()
        began = time.perf_counter()
        for message in messages:
            if callable(message):
                message()
            else:
                client.say(message)
        client.await_answers(sum(hasattr(each, "request") for each in messages))
        own = max(own, time.perf_counter() - began)
        worst = max(worst, calm(user, 0.0))
    return *max(worst, calm(user, AFTERWARDS if name in UNANSWERED else 0.0)), own


def main() -> int:
    """Measure every row, or one, several times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", choices=ROWS)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    compile_kernels()  # once, not in every broker
    compile_kernels(crs=LONLAT)
    report = Report("fairness")
    rows = []
    with tempfile.TemporaryDirectory() as shared, process(use) as user:
        for name in [arguments.row] if arguments.row else ROWS:
            began = time.perf_counter()
            runs = [measure(name, user, Path(shared)) for _ in range(arguments.repeat)]
            rows.append(max(runs, key=lambda run: float(run["others wait, ms"])))
            print(json.dumps(rows[-1]), f"{time.perf_counter() - began:.0f} s", flush=True)
            report.target(f"others wait for {name}", rows[-1]["others wait, ms"], ASKED, at_least=False, unit="ms")
    report.table("The longest wait of others, the worst of all runs", rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
