"""Contrada: content-based publish/subscribe for events that have places.

Everything public is importable from here. Names are loaded on first use, so that `import contrada` is
quick and a client that sends only numbers and strings never loads numba or shapely.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contrada.broker.messages import NotificationId
    from contrada.broker.server import Broker
    from contrada.broker.wire import Code, Policy
    from contrada.client.async_client import AsyncClient, connect
    from contrada.client.async_subscription import AsyncSubscription
    from contrada.client.blocking import Client
    from contrada.client.blocking_subscription import Subscription
    from contrada.client.holding import Advertisement, AsyncAdvertisement
    from contrada.client.notification import Notification
    from contrada.errors import (
        CodecError,
        ContradaError,
        CorruptFile,
        Disconnected,
        FilterSyntaxError,
        InvalidRegion,
        InvalidValue,
        NotFound,
        ProtocolError,
        Refused,
        UnwritableFile,
    )
    from contrada.forwarding.attr import attr
    from contrada.forwarding.constraint import Constraint, Operator
    from contrada.forwarding.explain import Explanation, Verdict
    from contrada.forwarding.filter import Expression, Filter, Predicate
    from contrada.forwarding.language import parse
    from contrada.forwarding.parts import TableStats
    from contrada.forwarding.segments import Segment, SegmentedTable
    from contrada.forwarding.table import ForwardingTable
    from contrada.spatial.cr_tree import CRTree
    from contrada.spatial.geotext import GeoText
    from contrada.spatial.point import Point
    from contrada.spatial.region import Box, Region
    from contrada.spatial.relate import EXACT, Discretization, Uniform, relate, relate_many
    from contrada.spatial.relation import Relation
    from contrada.spatial.road.network import RoadNetwork

__version__ = "0.1.0"

_HOME = {
    "Advertisement": "client.holding",
    "AsyncAdvertisement": "client.holding",
    "AsyncClient": "client.async_client",
    "AsyncSubscription": "client.async_subscription",
    "Box": "spatial.region",
    "Broker": "broker.server",
    "CRTree": "spatial.cr_tree",
    "Client": "client.blocking",
    "Code": "broker.wire",
    "CodecError": "errors",
    "Constraint": "forwarding.constraint",
    "ContradaError": "errors",
    "CorruptFile": "errors",
    "Disconnected": "errors",
    "Discretization": "spatial.relate",
    "EXACT": "spatial.relate",
    "Explanation": "forwarding.explain",
    "Expression": "forwarding.filter",
    "Filter": "forwarding.filter",
    "FilterSyntaxError": "errors",
    "ForwardingTable": "forwarding.table",
    "GeoText": "spatial.geotext",
    "InvalidRegion": "errors",
    "InvalidValue": "errors",
    "NotFound": "errors",
    "Notification": "client.notification",
    "NotificationId": "broker.messages",
    "Operator": "forwarding.constraint",
    "Point": "spatial.point",
    "Policy": "broker.wire",
    "Predicate": "forwarding.filter",
    "ProtocolError": "errors",
    "Refused": "errors",
    "Region": "spatial.region",
    "Relation": "spatial.relation",
    "RoadNetwork": "spatial.road.network",
    "Segment": "forwarding.segments",
    "SegmentedTable": "forwarding.segments",
    "Subscription": "client.blocking_subscription",
    "TableStats": "forwarding.parts",
    "Uniform": "spatial.relate",
    "UnwritableFile": "errors",
    "Verdict": "forwarding.explain",
    "attr": "forwarding.attr",
    "connect": "client.async_client",
    "parse": "forwarding.language",
    "relate": "spatial.relate",
    "relate_many": "spatial.relate",
}

__all__ = [
    "EXACT",
    "Advertisement",
    "AsyncAdvertisement",
    "AsyncClient",
    "AsyncSubscription",
    "Box",
    "Broker",
    "CRTree",
    "Client",
    "Code",
    "CodecError",
    "Constraint",
    "ContradaError",
    "CorruptFile",
    "Disconnected",
    "Discretization",
    "Explanation",
    "Expression",
    "Filter",
    "FilterSyntaxError",
    "ForwardingTable",
    "GeoText",
    "InvalidRegion",
    "InvalidValue",
    "NotFound",
    "Notification",
    "NotificationId",
    "Operator",
    "Point",
    "Policy",
    "Predicate",
    "ProtocolError",
    "Refused",
    "Region",
    "Relation",
    "RoadNetwork",
    "Segment",
    "SegmentedTable",
    "Subscription",
    "TableStats",
    "Uniform",
    "UnwritableFile",
    "Verdict",
    "__version__",
    "attr",
    "connect",
    "parse",
    "relate",
    "relate_many",
]


if not TYPE_CHECKING:  # a type checker that saw this would take every misspelt name for one that is loaded on first use

    def __getattr__(name: str) -> object:
        """Load a public name from its module on first use (PEP 562)."""
        if name not in _HOME:
            raise AttributeError(f"module 'contrada' has no attribute {name!r}")
        value = getattr(import_module(f"contrada.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
