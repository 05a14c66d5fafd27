"""Filters by wire at a broker whose coordinates are longitudes and latitudes: read, and put where longitudes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.codec.msgpack import decode_filter
from contrada.forwarding.language.filter import Predicate
from contrada.forwarding.language.lonlat import filter_in_degrees

if TYPE_CHECKING:
    from contrada.forwarding.language.filter import Filter


def decode_filter_in_degrees(data: bytes) -> Filter | Predicate:
    """As `decode_filter`; `CodecError` also for what is none in degrees."""
    decoded = decode_filter(data)
    try:
        filters = [filter_in_degrees(each) for each in decoded.filters]
    except InvalidValue as error:
        raise CodecError(str(error)) from None
    return Predicate(filters) if len(filters) > 1 else filters[0]
