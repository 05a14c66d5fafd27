"""A broker process on the naive table: `python -m tests.broker.naive_server '{"heartbeat": 1}'` prints its URL.

Keeps the tests of the node independent of the forwarding table, and quick to start.
"""

from __future__ import annotations

import json
import signal
import sys

from contrada.broker import logs
from contrada.broker.metrics import Metrics, serve
from contrada.broker.node import Node
from contrada.broker.ports import Codec
from contrada.broker.settings import Settings
from tests.naive.delivery import NaiveTable, read_filter, read_notification


def main() -> None:
    logs.configure()
    settings = Settings.of({"listen": "tcp://127.0.0.1:*", **json.loads(sys.argv[1])})
    metrics = Metrics()
    node = Node(settings, NaiveTable(), Codec(read_notification, read_filter), metrics)
    signal.signal(signal.SIGTERM, lambda *_: node.stop())
    endpoint = serve(metrics, settings.metrics) if settings.metrics else None
    print(json.dumps({"url": node.url, "metrics": endpoint.url if endpoint else None}), flush=True)
    node.run()
    if endpoint:
        endpoint.close()


if __name__ == "__main__":
    main()
