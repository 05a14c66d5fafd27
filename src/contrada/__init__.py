"""Contrada: content-based publish/subscribe for events that have places.

Everything public is importable from here. Names are loaded on first use, so that `import contrada` is
quick and a client that sends only numbers and strings never loads numba or shapely.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contrada import geo
    from contrada.broker.node.server import Broker
    from contrada.broker.protocol.messages import Keep, NotificationId
    from contrada.broker.protocol.wire import Code, Policy
    from contrada.client.async_client import AsyncClient, connect
    from contrada.client.blocking import Client
    from contrada.client.notification import Draft, Notification
    from contrada.client.subscriptions import Advertisement, AsyncAdvertisement, AsyncSubscription, Subscription
    from contrada.errors import (
        CodecError,
        ContradaError,
        CorruptFile,
        Disconnected,
        FilterSyntaxError,
        InvalidRegion,
        InvalidValue,
        JournalFailed,
        NotFound,
        ProtocolError,
        Refused,
        UnwritableFile,
    )
    from contrada.forwarding.language.attr import attr
    from contrada.forwarding.language.constraint import Constraint, Operator
    from contrada.forwarding.language.explain import Explanation, Verdict
    from contrada.forwarding.language.filter import Expression, Filter, Predicate
    from contrada.forwarding.language.set_value import SetValue
    from contrada.forwarding.language.text.parse import parse
    from contrada.forwarding.segments.segment import Segment
    from contrada.forwarding.segments.segmented_table import SegmentedTable
    from contrada.forwarding.state.state import TableStats
    from contrada.forwarding.table.options import TableOptions
    from contrada.forwarding.table.table import ForwardingTable
    from contrada.spatial.cr_tree.tree import CRTree
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Box, Region
    from contrada.spatial.lines.line import Line
    from contrada.spatial.relations.relate import EXACT, Discretization, Uniform, relate, relate_many
    from contrada.spatial.relations.relation import Relation
    from contrada.spatial.road.network import RoadNetwork
    from contrada.spatial.textual.geotext import GeoText

__version__ = "0.2.0"

_HOME = {
    "Advertisement": "client.subscriptions",
    "AsyncAdvertisement": "client.subscriptions",
    "AsyncClient": "client.async_client",
    "AsyncSubscription": "client.subscriptions",
    "Box": "spatial.geometry.region",
    "Broker": "broker.node.server",
    "CRTree": "spatial.cr_tree.tree",
    "Client": "client.blocking",
    "Code": "broker.protocol.wire",
    "CodecError": "errors",
    "Constraint": "forwarding.language.constraint",
    "ContradaError": "errors",
    "CorruptFile": "errors",
    "Disconnected": "errors",
    "Discretization": "spatial.relations.relate",
    "Draft": "client.notification",
    "EXACT": "spatial.relations.relate",
    "Explanation": "forwarding.language.explain",
    "Expression": "forwarding.language.filter",
    "Filter": "forwarding.language.filter",
    "FilterSyntaxError": "errors",
    "ForwardingTable": "forwarding.table.table",
    "GeoText": "spatial.textual.geotext",
    "InvalidRegion": "errors",
    "InvalidValue": "errors",
    "JournalFailed": "errors",
    "Keep": "broker.protocol.messages",
    "NotFound": "errors",
    "Notification": "client.notification",
    "NotificationId": "broker.protocol.messages",
    "Operator": "forwarding.language.constraint",
    "Point": "spatial.geometry.point",
    "Policy": "broker.protocol.wire",
    "Predicate": "forwarding.language.filter",
    "ProtocolError": "errors",
    "Refused": "errors",
    "Line": "spatial.lines.line",
    "Region": "spatial.geometry.region",
    "Relation": "spatial.relations.relation",
    "RoadNetwork": "spatial.road.network",
    "Segment": "forwarding.segments.segment",
    "SegmentedTable": "forwarding.segments.segmented_table",
    "TableOptions": "forwarding.table.options",
    "SetValue": "forwarding.language.set_value",
    "Subscription": "client.subscriptions",
    "TableStats": "forwarding.state.state",
    "Uniform": "spatial.relations.relate",
    "UnwritableFile": "errors",
    "Verdict": "forwarding.language.explain",
    "attr": "forwarding.language.attr",
    "connect": "client.async_client",
    "geo": "geo",
    "parse": "forwarding.language.text.parse",
    "relate": "spatial.relations.relate",
    "relate_many": "spatial.relations.relate",
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
    "Draft",
    "Explanation",
    "Expression",
    "Filter",
    "FilterSyntaxError",
    "ForwardingTable",
    "GeoText",
    "InvalidRegion",
    "InvalidValue",
    "JournalFailed",
    "Keep",
    "Line",
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
    "SetValue",
    "Subscription",
    "TableOptions",
    "TableStats",
    "Uniform",
    "UnwritableFile",
    "Verdict",
    "__version__",
    "attr",
    "connect",
    "geo",
    "parse",
    "relate",
    "relate_many",
]


if not TYPE_CHECKING:  # a type checker that saw this would take every misspelt name for one that is loaded on first use

    def __getattr__(name: str) -> object:
        """Load a public name from its module on first use (PEP 562)."""
        if name not in _HOME:
            raise AttributeError(f"module 'contrada' has no attribute {name!r}")
        home = import_module(f"contrada.{_HOME[name]}")
        value = home if name == _HOME[name] else getattr(home, name)  # a module is its own home
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
