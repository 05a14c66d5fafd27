"""The commonest JSON, quickly: flat objects of numbers, texts and booleans, by the library `orjson`.

Whatever is not that, or may be read differently by the two libraries, is left to `contrada.forwarding.codec.json`:
nested and repeated members, null, texts that are not ASCII, integers beyond 64 bits. A flat object has as many colons
as members; one with more has a colon in a text, a nested object, or a name twice, and is not read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgpack  # type: ignore[import-untyped]  # it ships no types
import orjson

from contrada.client.notification import Encoded
from contrada.forwarding.codec.limits import DEFAULT_LIMITS
from contrada.forwarding.codec.msgpack import PAYLOAD_KEY
from contrada.forwarding.language.values import INT_MAX, INT_MIN

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIZE: Final = 1 << 15
_PLAIN: Final = frozenset((int, float, str, bool))
_GEOJSON: Final = frozenset(("Feature", "FeatureCollection"))
_LARGE: Final = 2.0**63  # orjson makes floats of integers that have more bits


def load_flat(text: bytes) -> dict[str, Any] | None:
    """The notification that a JSON object describes; None if it takes another look to say so."""
    if len(text) > _SIZE or not text.isascii() or b"\\" in text:  # so that all that comes out is ASCII
        return None
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if type(document) is not dict or not len(document) == text.count(b":") <= DEFAULT_LIMITS.attributes:
        return None
    for value in document.values():
        kind = type(value)
        if kind is int:
            if not INT_MIN <= value <= INT_MAX:
                return None
        elif kind is float:
            if not -_LARGE < value < _LARGE:
                return None
        elif kind is not str and kind is not bool:
            return None
    if not document or "" in document:
        return None
    longest = DEFAULT_LIMITS.name_length
    if len(text) > longest and max(map(len, document)) > longest:
        return None
    return None if document.get("type") in _GEOJSON else document


def encode_flat(values: Mapping[str, Any]) -> Encoded:
    """What `load_flat` has read and so checked, encoded, with other attributes that are plain texts."""
    return Encoded(msgpack.packb(values))


def attributes_of(encoded: bytes) -> dict[str, Any] | None:
    """The attributes of what a broker delivered, and so has checked; None if some are not numbers, texts or booleans.

    None, too, if a payload is with them, or may be: some byte is that of its name.
    """
    if PAYLOAD_KEY in encoded:
        return None
    values: dict[str, Any] = msgpack.unpackb(encoded)
    return values if _PLAIN.issuperset(map(type, values.values())) else None


def dump_flat(values: Mapping[str, Any]) -> bytes | None:
    """Attributes as JSON; None if they are not all numbers, texts and booleans."""
    return orjson.dumps(values) if _PLAIN.issuperset(map(type, values.values())) else None


dump_plain = orjson.dumps
"""Attributes that are known to be numbers, texts and booleans as JSON."""
