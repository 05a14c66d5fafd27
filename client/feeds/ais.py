"""AIS, what ships say of themselves, as notifications: NMEA 0183 sentences `!AIVDM…`, read by pyais.

    mmsi, position, speed (knots), course, heading, status, turn            of messages that tell where a ship is
    mmsi, shipname, callsign, imo, ship_type, destination, draught          of those that tell what it is

What a ship marks as not available (a longitude of 181, a heading of 511) is absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contrada.errors import CodecError
from contrada.spatial.geometry.point import Point

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NUMBERS: Final = {  # name here: the field, and what it is when it is not known
    "speed": ("speed", 102.3),
    "course": ("course", 360.0),
    "heading": ("heading", 511),
    "imo": ("imo", 0),
    "draught": ("draught", 0.0),
    "ship_type": ("ship_type", 0),
}
_TEXTS: Final = ("shipname", "callsign", "destination")
_LONGEST: Final = 1024  # bytes of a sentence; the standard has 82
_PARTS: Final = 64  # of messages that wait for their other sentences


def read_ais(lines: Iterable[bytes]) -> Iterator[dict[str, Any] | CodecError]:
    """Yield the notifications of sentences as they come; what is wrong with one stands in its stead."""
    from pyais import decode
    from pyais.exceptions import AISBaseException

    waiting: dict[tuple[bytes, bytes], dict[int, bytes]] = {}
    for raw in lines:
        start = raw.find(b"!", 0, _LONGEST)
        sentence = raw[start:].strip() if start >= 0 else b""
        if not sentence or len(sentence) > _LONGEST:
            continue  # comments, tag blocks, other talkers
        try:
            parts = _whole(sentence, waiting)
            if parts is not None:
                yield from _message(decode(*parts).asdict())
        except (AISBaseException, ValueError, IndexError, TypeError, KeyError) as error:
            yield CodecError(f"{sentence[:60].decode(errors='replace')}: {error}")


def _whole(sentence: bytes, waiting: dict[tuple[bytes, bytes], dict[int, bytes]]) -> list[bytes] | None:
    """The sentences of one message once all are there."""
    fields = sentence.split(b",")
    if len(fields) < 7:
        raise ValueError("too few fields for a sentence of AIS")
    total, number = int(fields[1]), int(fields[2])
    if total == 1:
        return [sentence]
    if not 1 <= number <= total <= 9:
        raise ValueError("no such part of a message")
    key = fields[3], fields[4]
    parts = waiting.setdefault(key, {})
    parts[number] = sentence
    if len(parts) < total:
        if len(waiting) > _PARTS:
            del waiting[next(iter(waiting))]
        return None
    del waiting[key]
    return [parts[each] for each in sorted(parts)]


def _message(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {"mmsi": str(told["mmsi"])}
    lon, lat = told.get("lon"), told.get("lat")
    if lon is not None and lat is not None and abs(lon) <= 180 and abs(lat) <= 90:
        found["position"] = Point(float(lon), float(lat))
    for name, (field, unknown) in _NUMBERS.items():
        value = told.get(field)
        if isinstance(value, (int, float)) and value != unknown:
            found[name] = value if type(value) is float else int(value)
    for name in _TEXTS:
        if text := str(told.get(name) or "").strip(" @"):
            found[name] = text
    status = told.get("status")
    if status is not None and hasattr(status, "name"):
        found["status"] = str(status.name)
    if len(found) > 1:
        yield found
