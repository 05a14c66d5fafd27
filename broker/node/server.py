"""A whole broker: the node, its forwarding table and its metrics, in this process or as one.

The socket is bound first; what takes long to import, to load and perhaps to compile comes after that, so that clients
may connect meanwhile. Hence the imports inside functions.
"""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from contrada.broker.node.listener import Listener
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.wire import PLANE
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.broker.core.ports import Table
    from contrada.broker.node.http import HttpServer
    from contrada.broker.node.metrics import Metrics
    from contrada.broker.node.node import Node
    from contrada.forwarding.warm import Progress
    from contrada.spatial.road.network import RoadNetwork

log = logging.getLogger("contrada.broker")

_SWITCH = 0.0005  # seconds that a thread beside the loop may go on while the loop waits


class Broker:
    """A broker in this process, on a thread of its own.

        with Broker(listen="tcp://127.0.0.1:*") as b:
            client = contrada.Client(b.url)

    Options are the fields of `Settings`. `bound` is called when the socket is: before kernels are loaded, and before
    anybody is served. `run()` serves on the calling thread instead, until SIGTERM or SIGINT.
    """

    def __init__(
        self,
        listen: str = "tcp://127.0.0.1:*",
        *,
        table: Table | None = None,
        bound: Callable[[Listener], None] = lambda _listener: None,
        **options: Any,
    ) -> None:
        self.settings = settings = Settings.of({"listen": listen, **options})
        listener = Listener(settings)
        try:
            bound(listener)
            self._metrics, self._node = _node(settings, listener, table)
        except BaseException:
            listener.context.destroy(linger=0)
            raise
        self._thread: threading.Thread | None = None
        self._endpoint: HttpServer | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        return self._node.url

    @property
    def id(self) -> str:
        """The broker's name in notification ids."""
        return self._node.core.id

    @property
    def metrics_url(self) -> str | None:
        """Where Prometheus scrapes, if it may."""
        return self._endpoint.url if self._endpoint else None

    def start(self) -> Self:
        """Serve on a thread of its own."""
        if self._thread is not None or self._node.closed:
            raise ContradaError("this broker was started before: make a new one")
        self._serve_metrics()
        self._thread = threading.Thread(target=self._node.run, name=f"contrada-{self.id}", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Flush, say goodbye and return when the thread has ended. A second call does nothing."""
        self._node.stop()
        if self._thread is not None:
            self._thread.join()
        else:
            self._node.close()
        self._close_metrics()

    def run(self, ready: Callable[[], None] | None = None) -> None:
        """Serve on this thread, the main one, until SIGTERM or SIGINT; then flush and return.

        `ready` is called once both signals are heeded, for whoever waits to hear that the broker is up.
        """
        _tune_process()
        self._serve_metrics()
        before = {s: signal.signal(s, lambda *_: self._node.stop()) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            if ready is not None:
                ready()
            self._node.run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._close_metrics()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _serve_metrics(self) -> None:
        if self.settings.metrics is not None and self._endpoint is None:
            from contrada.broker.node.http import serve

            self._endpoint = serve(self._metrics, self.settings.metrics, self._node.checks())
            log.info("metrics", extra={"url": self._endpoint.url})

    def _close_metrics(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None


def _node(settings: Settings, listener: Listener, table: Table | None) -> tuple[Metrics, Node]:
    """Everything behind the socket."""
    from contrada.broker.core.ports import Codec
    from contrada.broker.node.files.index_loader import check_crs, check_relations, open_index
    from contrada.broker.node.metrics import Metrics
    from contrada.broker.node.node import Node
    from contrada.forwarding.codec.in_degrees import decode_filter_in_degrees
    from contrada.forwarding.codec.msgpack import costly, decode_filter, decode_notification

    roads = _roads(settings)
    index = open_index(settings.index, settings.shard, roads=roads) if settings.index is not None else None
    metrics = Metrics()
    read_filter = decode_filter if settings.crs == PLANE else decode_filter_in_degrees
    codec = Codec(decode_notification, read_filter, costly)
    if index is not None:
        check_relations(index, settings.relations)
        check_crs(index, settings.crs)
    table = table or _new_table(roads, settings)
    return metrics, Node(settings, table, codec, metrics, index, roads, listener)


def _roads(settings: Settings) -> RoadNetwork | None:
    """The road network that the settings name, if any."""
    if settings.roads is None:
        return None
    network: type[RoadNetwork] = import_module("contrada.spatial.road.network").RoadNetwork
    return network.open(settings.roads, d_max=settings.d_max)


def _new_table(roads: RoadNetwork | None, settings: Settings) -> Table:
    """An empty forwarding table, its kernels compiled."""
    warm = import_module("contrada.forwarding.warm")
    give_back: Callable[[], None] = import_module("contrada.spatial.storage.memory").give_back
    with warm.told_while_compiling(_tell_progress):
        warm.compile_kernels(roads, settings.crs, tidy=give_back)
    give_back()
    made: type[Table] = import_module("contrada.forwarding.table.table").ForwardingTable
    table: Table = made(  # type: ignore[call-arg]  # a port says nothing of these
        discretization=settings.discretization,
        geotext_index=settings.geotext_index,
        road_network=roads,
        simplify=settings.simplify,
        matching=settings.matching,
        crs=settings.crs,
    )
    return table


def _tell_progress(progress: Progress) -> None:
    facts = {"kernels": progress.done, "of": progress.most, "seconds_left": round(progress.seconds_left)}
    log.info("compiling", extra=facts)


def _tune_process() -> None:
    """Make the process a server's: room for many connections, and a loop that other threads do not keep waiting.

    Nor does the garbage collector, which seldom runs: it would find next to nothing (only closed sessions are cyclic),
    and a full pass over a large table is a pause of many milliseconds.
    """
    with suppress(ImportError):  # not every system limits open files in this way
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sys.setswitchinterval(_SWITCH)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
