"""Brokers, a publisher, a subscriber and a vandal, each a process that may be killed at any time and started again.

    python -m tests.broker.kills.parties broker URL DATA FAULTS [PEER …]
    python -m tests.broker.kills.parties publisher URL LOG TOTAL
    python -m tests.broker.kills.parties subscriber URL LOG PAUSE
    python -m tests.broker.kills.parties vandal URL FRAMES SEED

A publisher writes the number and id of what was acknowledged into its log, a subscriber what it received before it
acknowledges it; both go on behind what their logs say. While FAULTS/sync or FAULTS/write exists, the broker's journal
finds that the disk fails to sync, or is full; FAULTS/clock has the seconds by which its clock is wrong. A subscriber
takes PAUSE seconds for each notification. A vandal sends frames that are no messages, or nearly.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import zmq

from contrada import Client
from contrada.broker.core.ports import Codec
from contrada.broker.node import logs
from contrada.broker.node.metrics import Metrics
from contrada.broker.node.node import Node
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.messages import Hello, Ping, Publish, Store
from contrada.errors import ContradaError
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification
from contrada.forwarding.covering.covering_set import CoveringSet
from contrada.forwarding.journal.disk import RealDisk
from contrada.forwarding.language.text.parse import parse
from tests.naive.delivery import NaiveTable

PATIENT = {"heartbeat": 0.5, "timeout": 3.0}
AGAIN = 0.05  # seconds until a client that was refused or cut off tries again


class EqualityTable(NaiveTable):
    """Filters of one constraint `name = value`, which is all that the naive table knows."""

    def add(self, interface: int, expression: Any) -> list[int]:
        (constraint,) = expression.constraints
        return super().add(interface, (constraint.name, constraint.value))


def broker(url: str, data: str, faults: str, *peers: str) -> None:
    sync, write = RealDisk.sync, RealDisk.write
    seconds, nanoseconds = time.time, time.time_ns

    def wrong_by() -> float:
        try:
            return float((Path(faults) / "clock").read_text())
        except (FileNotFoundError, ValueError):
            return 0.0

    def failing_sync(disk: RealDisk, file: int) -> None:
        if (Path(faults) / "sync").exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(disk, file)

    def full_write(disk: RealDisk, file: int, offset: int, content: bytes) -> None:
        if (Path(faults) / "write").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(disk, file, offset, content)

    RealDisk.sync, RealDisk.write = failing_sync, full_write
    time.time = lambda: seconds() + wrong_by()
    time.time_ns = lambda: nanoseconds() + int(wrong_by() * 1e9)
    logs.configure()
    CoveringSet().add(b"", parse('kind = "alarm"'))  # loads what filters are compared with, which takes its time
    settings = Settings.of({"listen": url, "data": data, "peers": list(peers), **PATIENT})
    node = Node(settings, EqualityTable(), Codec(decode_notification, decode_filter), Metrics())
    signal.signal(signal.SIGTERM, lambda *_: node.stop())
    print(node.url, flush=True)
    node.run()


def publisher(url: str, log: str, total: str) -> None:
    with Path(log).open("a+") as file:
        file.seek(0)
        number = len(file.readlines())
        while number < int(total):
            try:
                with Client(url, name="publisher") as client:
                    while number < int(total):
                        id = client.publish(
                            {"kind": "alarm", "n": number}, durable=True, id=f"n-{number}", timeout=10.0
                        )
                        file.write(f"{number} {id}\n")
                        file.flush()
                        number += 1
            except (ContradaError, TimeoutError) as error:
                print(f"publisher: {error!r}", file=sys.stderr, flush=True)
                time.sleep(AGAIN)
    print("done", flush=True)


def subscriber(url: str, log: str, pause: str) -> None:
    with Path(log).open("a") as file:
        while True:
            try:
                with Client(url, name="subscriber") as client:
                    desk = client.subscribe('kind = "alarm"', durable="desk")
                    print("subscribed", flush=True)
                    for n in desk:
                        file.write(f"{n['n']} {n.id}\n")
                        file.flush()
                        time.sleep(float(pause))
            except (ContradaError, TimeoutError) as error:
                print(f"subscriber: {error!r}", file=sys.stderr, flush=True)
                time.sleep(AGAIN)


def vandal(url: str, frames: str, seed: str) -> None:
    random = Random(seed)
    whole = [
        encode(each)[0] for each in (Hello(1, 3, "vandal"), Ping(1), Store(1, (b"\x80",), "", ""), Publish(2, (b"",)))
    ]
    context = zmq.Context()
    left = int(frames)
    while left > 0:
        with context.socket(zmq.DEALER) as dealer:  # a new connection: who sends too much of this is ignored
            dealer.connect(url)
            for _ in range(min(left, 50)):
                frame = bytearray(random.choice(whole) if random.random() < 0.7 else random.randbytes(30))
                for _ in range(random.randrange(1, 4)):
                    frame[random.randrange(len(frame))] = random.randrange(256)
                with contextlib.suppress(zmq.Again):
                    dealer.send_multipart([bytes(frame)] * random.randrange(1, 3), zmq.NOBLOCK)
                left -= 1
            dealer.poll(1000)  # it is heard, or ignored, before the next ones come
            dealer.close(linger=100)
    context.destroy(linger=100)
    print("done", flush=True)


if __name__ == "__main__":
    parties = {"broker": broker, "publisher": publisher, "subscriber": subscriber, "vandal": vandal}
    parties[sys.argv[1]](*sys.argv[2:])
