"""Broker processes with the real forwarding table, linked over real sockets. Every wait has a deadline."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contrada import Client

ROOT = Path(__file__).parents[3]
PATIENCE = 60.0
SERVE = """
import json, sys
from contrada.broker.node import logs
from contrada.broker.node.server import Broker
logs.configure()
broker = Broker(**json.loads(sys.argv[1]))
print(broker.url, flush=True)
broker.run()
"""


class BrokerProcess:
    """One broker. `start` again after `kill` brings it back at the same address."""

    def __init__(self, directory: Path, prefix: tuple[str, ...] = (), **settings: Any) -> None:
        self.settings = {"listen": "tcp://127.0.0.1:*", "heartbeat": 3.0, "timeout": 30.0, **settings}
        self.log = directory / f"{settings['id']}.log"
        self.prefix = prefix
        self.start()

    def start(self) -> None:
        command = [*self.prefix, sys.executable, "-c", SERVE, json.dumps(self.settings)]
        with self.log.open("a") as errors:
            self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT)
        assert self.popen.stdout is not None
        self.url = self.popen.stdout.readline().strip()
        assert self.url, self.log.read_text()
        self.settings["listen"] = self.url

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()
        assert self.popen.stdout is not None
        self.popen.stdout.close()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextmanager
def cluster(directory: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """A function that starts brokers; all of them end with the block."""
    started: list[BrokerProcess] = []

    def start(id: str, **settings: Any) -> BrokerProcess:
        started.append(BrokerProcess(directory, id=id, **settings))
        return started[-1]

    try:
        yield start
    finally:
        for broker in started:
            if broker.popen.poll() is None:
                broker.kill()


def await_overlay(client: Client, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask a broker until its overlay is as it should be."""
    deadline = time.monotonic() + PATIENCE
    while not holds(overlay := client.status(timeout=PATIENCE)["overlay"]):
        assert time.monotonic() < deadline, overlay
    return overlay


def reaches(*brokers: str) -> Callable[[dict[str, Any]], bool]:
    """Whether a broker knows a way to exactly these, and each neighbour on the tree has said what it wants."""
    wanted = set(brokers)
    return lambda overlay: {b["broker"] for b in overlay["brokers"] if b["reachable"]} == wanted


def holds_filters(count: int) -> Callable[[dict[str, Any]], bool]:
    return lambda overlay: sum(link["asked"] for link in overlay["links"] if link["in_tree"]) == count
