"""Prometheus metrics of one broker, in a registry of its own.

Counters and gauges are read from the core when Prometheus asks, so that the hot path pays nothing for them; only the
match time is observed, once per batch, and that of each turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from contrada.broker.overlay import report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from contrada.broker.core.core import Core

COUNTERS = {
    "received": "Messages received, heartbeats included",
    "published": "Notifications accepted from publishers",
    "delivered": "Deliveries made, one per notification and subscription",
    "forwarded": "Notifications sent to neighbours, one per notification and link",
    "bad_frames": "Messages that were not valid protocol",
    "banned": "Connections banned for bad frames",
    "refused": "Requests and sessions refused",
    "sessions_opened": "Sessions opened",
    "sessions_lost": "Sessions whose connection went away without a BYE",
    "sessions_ended": "Sessions that the broker ended for a fault of theirs",
    "handshake_failures": "Connections that failed the transport's security handshake",
    "standing_matches": "Matches of standing subscriptions, one per notification and interface of the index",
    "unattended": "Those of them to whose interface nobody was attached",
    "index_damaged": "Segments of the index that verification took out of matching",
    "index_passed_over": "Notifications that a damaged segment could not be asked about, one per segment",
    "recorded_bytes": "Bytes written to the recording",
    "stored": "Notifications put on disk, published durably or for durable subscriptions",
    "storage_refused": "Durable requests refused, for the disk or for a subscription that is full",
    "storage_failures": "Publications that the disk did not take",
    "publish_repeats": "Durable publishes whose idempotency key was known",
    "redelivered": "Durable deliveries that were made before",
    "durable_dropped": "Notifications that durable subscriptions lost to their limits",
    "durable_damaged": "Notifications of durable subscriptions that the journal has lost",
    "dead_letters": "Notifications that durable subscriptions gave up",
    "custody_taken": "Notifications that neighbours carried here, and that are on disk since",
    "custody_passed": "Notifications that neighbours have on disk, and that were freed here",
    "custody_declined": "Times that a neighbour could not keep what was carried to it",
    "record_failures": "Times that the recording could not be written or synced",
    "internal_errors": "Times that the broker failed on something and went on: see its log",
}


class Metrics:
    """The registry and what is in it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.match_seconds = Histogram(
            "contrada_match_seconds",
            "Time to read and match one batch of notifications",
            buckets=[1e-5 * 2**k for k in range(16)],
            registry=self.registry,
        )
        self.match_batch = Histogram(
            "contrada_match_batch_size",
            "Notifications matched together",
            buckets=[2**k for k in range(12)],
            registry=self.registry,
        )
        self.turn_seconds = Histogram(
            "contrada_turn_seconds",
            "Time of one turn of the loop, from what arrived to what was sent",
            buckets=[1e-4 * 2**k for k in range(16)],
            registry=self.registry,
        )
        self.commit_seconds = Histogram(
            "contrada_journal_commit_seconds",
            "Time to write and sync one group of what is durable",
            buckets=[1e-4 * 2**k for k in range(16)],
            registry=self.registry,
        )
        self._core: Core | None = None

    def _observe_match(self, seconds: float, notifications: int) -> None:
        self.match_seconds.observe(seconds)
        self.match_batch.observe(notifications)

    def watch(self, core: Core) -> None:
        """Expose a core's counters and gauges."""
        self._core = core
        core.turns.observe = self.turn_seconds.observe
        core.table.observe = self._observe_match
        for name in COUNTERS:
            core.counters.setdefault(name, 0)  # so that `status` shows what has not happened, too
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Read the core, on Prometheus's thread: whole numbers and copies only."""
        core = self._core
        if core is None:
            return
        for name, text in COUNTERS.items():
            yield CounterMetricFamily(f"contrada_{name}", text, value=core.counters[name])
        dropped = CounterMetricFamily("contrada_dropped", "Notifications lost by slow consumers", labels=["policy"])
        for policy, count in dict(core.delivery.drops).items():
            dropped.add_metric([policy], count)
        yield dropped
        sessions = list(dict(core.sessions.by_number).values())
        subscriptions = list(core.subscriptions.by_interface.values())
        queues = [(len(s.queue), s.waiting_bytes) for s in subscriptions]
        gauges = {
            "sessions": ("Open sessions", len(sessions)),
            "congested_sessions": ("Sessions whose connection takes no more", sum(s.congested for s in sessions)),
            "subscriptions": ("Subscriptions, each an interface of the table", len(subscriptions)),
            "filters": ("Filters in the forwarding table", sum(len(s.filters) for s in subscriptions)),
            "standing_filters": ("Filters in the index", len(loaded.table) if (loaded := core.index.loaded) else 0),
            "attached": ("Subscriptions attached to an interface of the index", len(core.index.attachments)),
            "queued": ("Notifications waiting for credit", sum(count for count, _ in queues)),
            "queued_bytes": ("Their bytes", sum(size for _, size in queues)),
            "longest_queue": ("Notifications in the longest queue", max((count for count, _ in queues), default=0)),
            "unacknowledged": ("Notifications whose ACK is withheld", sum(s.unacknowledged for s in sessions)),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"contrada_{name}", text, value=value)
        worst = core.turns.worst
        text = "Time of the longest turn so far; what took most of it, a type of message or a step, for which session"
        longest = GaugeMetricFamily("contrada_longest_turn_seconds", text, labels=["step", "session"])
        longest.add_metric([worst.step.what, str(worst.step.session)], worst.seconds)
        yield longest
        yield from self._links(core)
        yield from self._durable(core)

    @staticmethod
    def _durable(core: Core) -> Iterator[Metric]:
        """Of the disk: its journal, and how far behind durable subscriptions are."""
        store = core.durable.store
        if store is None:
            return
        queues = [each.queue for each in list(core.durable.interfaces.values())]
        oldest = min((time for queue in queues if (time := queue.oldest_time) is not None), default=None)
        lag = max(0.0, store.wall() - oldest) if oldest is not None else 0.0
        gauges = {
            "journal_bytes": ("Bytes of the journal", store.bytes),
            "journal_failed": ("Whether the last commit failed", int(store.failure is not None)),
            "durable_subscriptions": ("Durable subscriptions", len(queues)),
            "durable_waiting": ("Notifications that wait for durable subscriptions", sum(map(len, queues))),
            "durable_waiting_bytes": ("Their bytes", sum(queue.bytes for queue in queues)),
            "durable_longest": ("Notifications of the one with most", max(map(len, queues), default=0)),
            "durable_lag_seconds": ("Age of the oldest of them", lag),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"contrada_{name}", text, value=value)

    @staticmethod
    def _links(core: Core) -> Iterator[Metric]:
        """Per neighbour, from the rows that the core made at its last tick."""
        rows = core.overlay.link_rows
        for kind, names in ((CounterMetricFamily, report.COUNTERS), (GaugeMetricFamily, report.GAUGES)):
            for name, text in names.items():
                family = kind(f"contrada_link_{name}", text, labels=["neighbour"])
                for row in rows:
                    family.add_metric([row["neighbour"]], float(row[name]))
                yield family
