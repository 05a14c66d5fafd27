"""Contrada: content-based publish/subscribe for events that have places.

Everything public is importable from here. Names are loaded on first use, so that `import contrada` is
quick and a client that sends only numbers and strings never loads numba or shapely.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contrada.errors import (
        CodecError,
        ContradaError,
        CorruptFile,
        Disconnected,
        FilterSyntaxError,
        InvalidRegion,
        InvalidValue,
        ProtocolError,
        Refused,
    )

__version__ = "0.1.0"

_HOME = {
    "CodecError": "errors",
    "ContradaError": "errors",
    "CorruptFile": "errors",
    "Disconnected": "errors",
    "FilterSyntaxError": "errors",
    "InvalidRegion": "errors",
    "InvalidValue": "errors",
    "ProtocolError": "errors",
    "Refused": "errors",
}

__all__ = [
    "CodecError",
    "ContradaError",
    "CorruptFile",
    "Disconnected",
    "FilterSyntaxError",
    "InvalidRegion",
    "InvalidValue",
    "ProtocolError",
    "Refused",
    "__version__",
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
