"""A broker process on the naive table: `python -m tests.broker.naive_server '{"heartbeat": 1}'` prints its URL.

Keeps the tests of the node independent of the forwarding table, and quick to start.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from contrada.broker.core.ports import Codec
from contrada.broker.node import logs
from contrada.broker.node.http import serve
from contrada.broker.node.metrics import Metrics
from contrada.broker.node.node import Node
from contrada.broker.node.settings import Settings
from tests.naive.delivery import NaiveTable, read_filter, read_notification

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.errors import CodecError


class GatedTable(NaiveTable):
    """Matching a notification with an attribute `gate`, the path of a FIFO, takes until the FIFO's writer closes it."""

    def match_bodies(self, bodies: Sequence[bytes]) -> tuple[list[set[int]], dict[int, CodecError]]:
        for body in bodies:
            if b"gate" in body:
                Path(read_notification(body)["gate"]).read_bytes()
        return super().match_bodies(bodies)


def main() -> None:
    logs.configure()
    settings = Settings.of({"listen": "tcp://127.0.0.1:*", **json.loads(sys.argv[1])})
    metrics = Metrics()
    node = Node(settings, GatedTable(), Codec(read_notification, read_filter), metrics)
    signal.signal(signal.SIGTERM, lambda *_: node.stop())
    endpoint = serve(metrics, settings.metrics, node.checks()) if settings.metrics else None
    print(json.dumps({"url": node.url, "metrics": endpoint.url if endpoint else None}), flush=True)
    node.run()
    if endpoint:
        endpoint.close()


if __name__ == "__main__":
    main()
