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
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.fairness_rows import BROKERS, PEERS, ROWS, Raw, peer
from benchmarks.harness import Report
from contrada import Broker, attr
from contrada.broker.protocol.messages import Ack, Bye, Deliver, Ping, Pong, Unsubscribe
from contrada.forwarding.language.lonlat import LONLAT
from contrada.forwarding.warm import compile_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

SPAWN = multiprocessing.get_context("spawn")
ASKED = 100.0  # milliseconds
EVERY = 0.003  # seconds between two rounds


def serve(options: dict[str, Any], pipe: Connection) -> None:
    """A broker, as `contrada broker` runs it."""
    broker = Broker(metrics="127.0.0.1:0", **options)
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


def turns(metrics: str) -> str:
    """What took most of the longest turn so far."""
    text = urllib.request.urlopen(metrics).read().decode()
    return next(line for line in text.splitlines() if line.startswith("contrada_longest_turn_seconds{"))


def measure(name: str) -> dict[str, Any]:
    """One row, of a broker of its own."""
    options = dict(BROKERS.get(name, {}))
    with tempfile.TemporaryDirectory() as folder:
        if "data" in options:
            options["data"] = f"{folder}/data"
        return _measured(name, options)


def _measured(name: str, options: dict[str, Any]) -> dict[str, Any]:
    with process(serve, options) as broker:
        url, metrics = broker.recv()
        with process(use, url) as user:
            user.recv()
            client = peer(url) if name in PEERS else Raw(url)
            worst, own = (0.0, "nothing"), 0.0
            for messages in ROWS[name](client):
                user.send("how long")
                user.recv()
                began = time.perf_counter()
                for message in messages:
                    client.say(message)
                client.await_answers(sum(hasattr(each, "request") for each in messages))
                own = max(own, time.perf_counter() - began)
                time.sleep(1.0 if name in PEERS or not messages else 0.2)  # what is left of it
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
    compile_kernels(crs=LONLAT)
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
