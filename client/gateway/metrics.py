"""Prometheus metrics of one gateway, in a registry of its own. Totals of streams are read when Prometheus asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.streaming.stream import Stream


class GatewayMetrics:
    """The registry and what is in it."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._delivered = self._dropped = 0  # of streams that are closed
        self.registry = CollectorRegistry()
        self.published = Counter(
            "contrada_gateway_published", "Notifications that the broker accepted", registry=self.registry
        )
        self.refused = Counter("contrada_gateway_refused", "Publications that were refused", registry=self.registry)
        self.requests = Counter(
            "contrada_gateway_requests", "HTTP requests by status", ("status",), registry=self.registry
        )
        self.mqtt_messages = Counter(
            "contrada_gateway_mqtt_packets", "MQTT control packets received", registry=self.registry
        )
        self.mqtt_faults = Counter(
            "contrada_gateway_mqtt_faults", "MQTT connections ended for a fault of theirs", registry=self.registry
        )
        self.retain_ignored = Counter(
            "contrada_gateway_mqtt_retain_ignored", "MQTT 3.1.1 messages not retained", registry=self.registry
        )
        self.webhooks = Counter(
            "contrada_gateway_webhooks", "Posts of webhooks", ("webhook", "outcome"), registry=self.registry
        )
        self.registry.register(self)

    def count_closed(self, stream: Stream) -> None:
        """Keep the totals of a stream that ends."""
        self._delivered += stream.delivered
        self._dropped += stream.subscription.dropped

    @property
    def total_published(self) -> int:
        """Notifications that the broker accepted."""
        return int(self.published._value.get())

    @property
    def total_delivered(self) -> int:
        """Notifications written to subscribers."""
        return self._delivered + sum(stream.delivered for stream in self._gateway.streams.values())

    @property
    def total_dropped(self) -> int:
        """Notifications that slow subscribers lost."""
        return self._dropped + sum(stream.subscription.dropped for stream in self._gateway.streams.values())

    def collect(self) -> Iterator[Metric]:
        """What is read when Prometheus asks."""
        gateway = self._gateway
        yield CounterMetricFamily("contrada_gateway_delivered", "Notifications written", value=self.total_delivered)
        yield CounterMetricFamily("contrada_gateway_dropped", "Lost by slow subscribers", value=self.total_dropped)
        yield GaugeMetricFamily("contrada_gateway_connections", "Streams open", value=gateway.connections)
        yield GaugeMetricFamily("contrada_gateway_subscriptions", "Subscriptions", value=len(gateway.streams))
        yield GaugeMetricFamily(
            "contrada_gateway_broker_connected", "Whether the broker is there", value=int(not gateway.health())
        )

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self.registry)
