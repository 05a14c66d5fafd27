"""Contrada: content-based publish/subscribe for events that have places.

Everything public is importable from here. Names are loaded on first use, so that `import contrada` is
quick and a client that sends only numbers and strings never loads numba or shapely.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contrada.broker.server import Broker
    from contrada.client.async_client import connect
    from contrada.client.blocking import Client
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
    from contrada.forwarding.constraint import Constraint
    from contrada.forwarding.filter import Filter, Predicate
    from contrada.forwarding.language import parse
    from contrada.forwarding.table import ForwardingTable
    from contrada.spatial.geotext import GeoText
    from contrada.spatial.point import Point
    from contrada.spatial.region import Box, Region
    from contrada.spatial.relate import EXACT, Uniform, relate, relate_many
    from contrada.spatial.relation import Relation
    from contrada.spatial.road.network import RoadNetwork

__version__ = "0.1.0"

_HOME = {
    "Broker": "broker.server",
    "EXACT": "spatial.relate",
    "Box": "spatial.region",
    "Client": "client.blocking",
    "CodecError": "errors",
    "Constraint": "forwarding.constraint",
    "ContradaError": "errors",
    "CorruptFile": "errors",
    "Disconnected": "errors",
    "Filter": "forwarding.filter",
    "FilterSyntaxError": "errors",
    "ForwardingTable": "forwarding.table",
    "GeoText": "spatial.geotext",
    "InvalidRegion": "errors",
    "InvalidValue": "errors",
    "NotFound": "errors",
    "Point": "spatial.point",
    "Predicate": "forwarding.filter",
    "ProtocolError": "errors",
    "Refused": "errors",
    "Region": "spatial.region",
    "Relation": "spatial.relation",
    "RoadNetwork": "spatial.road.network",
    "Uniform": "spatial.relate",
    "UnwritableFile": "errors",
    "attr": "forwarding.attr",
    "connect": "client.async_client",
    "parse": "forwarding.language",
    "relate": "spatial.relate",
    "relate_many": "spatial.relate",
}

__all__ = [
    "EXACT",
    "Box",
    "Broker",
    "Client",
    "CodecError",
    "Constraint",
    "ContradaError",
    "CorruptFile",
    "Disconnected",
    "Filter",
    "FilterSyntaxError",
    "ForwardingTable",
    "GeoText",
    "InvalidRegion",
    "InvalidValue",
    "NotFound",
    "Point",
    "Predicate",
    "ProtocolError",
    "Refused",
    "Region",
    "Relation",
    "RoadNetwork",
    "Uniform",
    "UnwritableFile",
    "__version__",
    "attr",
    "connect",
    "parse",
    "relate",
    "relate_many",
]


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'contrada' has no attribute {name!r}")
    value = getattr(import_module(f"contrada.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
