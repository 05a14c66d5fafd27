"""A broker, a publisher and a subscriber, each a process that may be killed at any time and started again.

    python -m tests.broker.kills.parties broker URL DATA FAULTS
    python -m tests.broker.kills.parties publisher URL LOG TOTAL
    python -m tests.broker.kills.parties subscriber URL LOG

A publisher writes the number and id of what was acknowledged into its log, a subscriber what it received before it
acknowledges it; both go on behind what their logs say. While FAULTS/sync or FAULTS/write exists, the broker's journal
finds that the disk fails to sync, or is full.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from contrada import Client
from contrada.broker.core.ports import Codec
from contrada.broker.node import logs
from contrada.broker.node.metrics import Metrics
from contrada.broker.node.node import Node
from contrada.broker.node.settings import Settings
from contrada.errors import ContradaError
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification
from contrada.forwarding.journal.disk import RealDisk
from tests.naive.delivery import NaiveTable

AGAIN = 0.05  # seconds until a client that was refused or cut off tries again


def read_equality(encoded: bytes) -> tuple[str, Any]:
    """The name and value of a filter `name = value`, which is all that the naive table knows."""
    (constraint,) = decode_filter(encoded).constraints
    return constraint.name, constraint.value


def broker(url: str, data: str, faults: str) -> None:
    sync, write = RealDisk.sync, RealDisk.write

    def failing_sync(disk: RealDisk, file: int) -> None:
        if (Path(faults) / "sync").exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(disk, file)

    def full_write(disk: RealDisk, file: int, offset: int, content: bytes) -> None:
        if (Path(faults) / "write").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(disk, file, offset, content)

    RealDisk.sync, RealDisk.write = failing_sync, full_write
    logs.configure()
    node = Node(
        Settings.of({"listen": url, "data": data}), NaiveTable(), Codec(decode_notification, read_equality), Metrics()
    )
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


def subscriber(url: str, log: str) -> None:
    with Path(log).open("a") as file:
        while True:
            try:
                with Client(url, name="subscriber") as client:
                    desk = client.subscribe('kind = "alarm"', durable="desk")
                    print("subscribed", flush=True)
                    for n in desk:
                        file.write(f"{n['n']} {n.id}\n")
                        file.flush()
            except (ContradaError, TimeoutError) as error:
                print(f"subscriber: {error!r}", file=sys.stderr, flush=True)
                time.sleep(AGAIN)


if __name__ == "__main__":
    {"broker": broker, "publisher": publisher, "subscriber": subscriber}[sys.argv[1]](*sys.argv[2:])
