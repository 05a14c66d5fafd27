"""Kills by a seed, over real processes, and an auditor of what publisher and subscriber wrote down.

What was acknowledged arrives, in order, under the id that was acknowledged; what arrives twice has the same id, and
nothing arrives that was not published.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from tests.broker.processes import PATIENCE, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random


def free_url() -> str:
    """An address that nobody listens at, to be used again and again."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{taken.getsockname()[1]}"


class World:
    """The processes, their logs, and what may be done to them.

    Of several brokers, `broker`, `broker-2`, …, each is linked with the one before; the publisher is at the first and
    the subscriber at the last.
    """

    def __init__(
        self,
        directory: Path,
        total: int,
        data: Path | None = None,
        *,
        brokers: int = 1,
        pause: float = 0.0,
        patience: float = PATIENCE,
    ) -> None:
        self.directory = directory
        self.total = total
        self.pause = pause
        self.patience = patience  # seconds for whatever is waited for
        self.brokers = ["broker", *(f"broker-{number}" for number in range(2, brokers + 1))]
        self.urls = {name: free_url() for name in self.brokers}
        self.faults = directory / "faults"
        self.faults.mkdir()
        self.data = data or directory / "data"
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.starts = 0
        self.frames = 0  # that a vandal sends

    def __enter__(self) -> World:
        for name in (*self.brokers, "subscriber"):
            self.start(name)
            if name == "subscriber":
                self.wait(self.is_linked, "that the brokers are linked")
            self.wait(partial(self.has_spoken, name), f"that the {name} is ready")
        self.start("publisher")
        return self

    def is_linked(self) -> bool:
        """Whether each has been dialled by the next one."""
        accepted = '"dialled": false'
        return all(accepted in (self.directory / f"{name}.log").read_text() for name in self.brokers[:-1])

    def __exit__(self, *_: object) -> None:
        for name in list(self.running):
            self.kill(name)

    def start(self, name: str) -> None:
        first, last = self.urls[self.brokers[0]], self.urls[self.brokers[-1]]
        if name in self.brokers:
            place = self.brokers.index(name)
            data = self.data.with_name(f"{self.data.name}{place or ''}")
            peers = [self.urls[self.brokers[place - 1]]] if place else []
            words = ["broker", self.urls[name], str(data), str(self.faults), *peers]
        else:
            words = {
                "publisher": ["publisher", first, str(self.directory / "published"), str(self.total)],
                "subscriber": ["subscriber", last, str(self.directory / "received"), str(self.pause)],
                "vandal": ["vandal", first, str(self.frames), str(self.starts)],
            }[name]
        log, said = self.directory / f"{name}.log", self.directory / f"{name}.out"
        with log.open("a") as errors, said.open("a") as output:
            command = [sys.executable, "-m", "tests.broker.kills.parties", *words]
            self.running[name] = subprocess.Popen(command, stdout=output, stderr=errors, text=True, cwd=ROOT)
        self.starts += 1

    def told(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text()[-3000:]

    def has_spoken(self, name: str) -> bool:
        """Whether the broker listens, or the subscriber has subscribed."""
        return bool((self.directory / f"{name}.out").read_text())

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def lines(self, name: str) -> list[tuple[int, str]]:
        """Numbers and ids of a log, without a last line that a kill cut."""
        path = self.directory / name
        if not path.exists():
            return []
        whole = path.read_text().rpartition("\n")[0]
        return [(int(number), id) for number, id in (line.split() for line in whole.splitlines())]

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self.patience
        while not condition():
            if time.monotonic() > deadline:
                told = [self.told(name) for name in self.running]
                raise AssertionError(f"{what} did not happen; missing {self.missing()[:50]}: {told}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                next(iter(self.running.values())).wait(0.01)  # or until it dies

    def progress(self, more: int) -> None:
        """Wait until so many more were acknowledged, or all."""
        wanted = min(self.total, len(self.lines("published")) + more)
        self.wait(lambda: len(self.lines("published")) >= wanted, f"{more} more acknowledgements")

    def finish(self) -> None:
        """Let everything be published and received."""
        self.wait(lambda: len(self.lines("published")) >= self.total, "publishing all")
        self.wait(lambda: not self.missing(), "receiving all")

    def missing(self) -> list[int]:
        """What was published and has not been received."""
        received = {number for number, _ in self.lines("received")}
        return [number for number in range(self.total) if number not in received]

    def audit(self) -> None:
        published, received = self.lines("published"), self.lines("received")
        assert [number for number, _ in published] == list(range(self.total))
        first: dict[int, str] = {}
        for number, id in received:
            assert first.setdefault(number, id) == id, f"{number} came as {id} and as {first[number]}"
        assert {number: id for number, id in published if number in first} == first, "phantoms, or other ids"
        lost = set(range(self.total)) - set(first)
        assert not lost, f"acknowledged and never received: {sorted(lost)}"
        assert list(first) == sorted(first), "not in the publisher's order"


def kills(world: World, random: Random, rounds: int) -> None:
    """Kill, or stop for a while, one or two of them, again and again, and now and then set the clocks wrong."""
    for _ in range(rounds):
        world.progress(random.randrange(1, 30))
        victims = random.sample([*world.brokers, "publisher", "subscriber"], random.choice((1, 1, 2)))
        if random.random() < 0.2:
            (world.faults / "clock").write_text(str(random.choice((-3600.0, 0.0, 5.0, 900.0))))
        if random.random() < 0.15 and victims == ["subscriber"]:
            os.kill(world.running["subscriber"].pid, signal.SIGSTOP)
            world.progress(20)
            os.kill(world.running["subscriber"].pid, signal.SIGCONT)
            continue
        for name in victims:
            world.kill(name)
        for name in victims:
            world.start(name)
