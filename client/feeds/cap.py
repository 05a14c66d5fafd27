"""Common Alerting Protocol 1.2 (OASIS, 2010) as notifications: one for each place of each info of an alert.

    identifier, sender, sent, status, msgType, scope           of the alert
    language, category, event, urgency, severity, certainty,
    effective, onset, expires, senderName, headline            of the info
    areaDesc, area                                             of the place: polygons and circles are regions

CAP writes latitude first, a region has longitude first. A circle becomes a polygon of 36 vertices.
XML is read by defusedxml: documents with entities or a DTD of their own are refused.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from contrada.errors import CodecError, ContradaError
from contrada.spatial.geometry.region import Region

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

_ALERT: Final = ("identifier", "sender", "sent", "status", "msgType", "scope")
_INFO: Final = (
    "language", "category", "event", "urgency", "severity", "certainty",
    "effective", "onset", "expires", "senderName", "headline",
)  # fmt: skip
_TIMES: Final = frozenset(("sent", "effective", "onset", "expires"))
_DEGREE: Final = 111.195  # kilometres of a degree of latitude
_VERTICES: Final = 36


def read_cap(data: bytes) -> Iterator[dict[str, Any] | CodecError]:
    """Yield the notifications of all alerts in a document; what is wrong with one place stands in its stead."""
    from defusedxml import ElementTree
    from defusedxml.common import DefusedXmlException

    try:
        root = ElementTree.fromstring(data, forbid_dtd=True)
    except DefusedXmlException as error:
        raise CodecError(f"CAP with a DTD or entities is refused: {error}") from error
    except ElementTree.ParseError as error:
        raise CodecError(f"not XML: {error}") from error
    alerts = [each for each in root.iter() if _tag(each) == "alert"]
    if not alerts:
        raise CodecError("no CAP alert in it: expected an <alert>, alone or inside another document")
    for alert in alerts:
        yield from _of_alert(alert)


def _of_alert(alert: Element) -> Iterator[dict[str, Any] | CodecError]:
    try:
        common = _texts(alert, _ALERT)
        if "identifier" not in common:
            raise CodecError("an alert without an identifier")
    except CodecError as error:
        yield error
        return
    infos = [each for each in alert if _tag(each) == "info"]
    if not infos:
        yield common
    for info in infos:
        try:
            told = common | _texts(info, _INFO)
        except CodecError as error:
            yield CodecError(f"alert {common['identifier']}: {error}")
            continue
        places = [place for area in info if _tag(area) == "area" for place in _places(area)]
        for name, text, description in places or [("", "", "")]:
            try:
                about = {"areaDesc": description} if description else {}
                yield told | about | ({"area": _region(name, text)} if name else {})
            except (ContradaError, ValueError) as error:
                yield CodecError(f"alert {common['identifier']}: {name} {text!r:.60}: {error}")


def _texts(element: Element, names: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for child in element:
        name, text = _tag(child), (child.text or "").strip()
        if name not in names or not text or name in found:
            continue
        found[name] = _time(name, text) if name in _TIMES else text
    return found


def _time(name: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CodecError(f"{name} is not a time: {text!r:.60}") from None
    if moment.tzinfo is None:
        raise CodecError(f"{name} has no time zone: {text!r:.60}")
    return moment


def _places(area: Element) -> list[tuple[str, str, str]]:
    description = next(((each.text or "").strip() for each in area if _tag(each) == "areaDesc"), "")
    shapes = [(_tag(each), (each.text or "").strip(), description) for each in area]
    found = [shape for shape in shapes if shape[0] in ("polygon", "circle") and shape[1]]
    return found or [("", "", description)]


def _region(name: str, text: str) -> Region:
    if name == "polygon":
        return Region([(lon, lat) for lat, lon in (_pair(each) for each in text.split())])
    place, _, radius = text.partition(" ")
    lat, lon = _pair(place)
    reach = float(radius) / _DEGREE
    if not 0 < reach < 90 or abs(lat) >= 89:
        raise ValueError("a circle of that size cannot be drawn there")
    angles = [2 * math.pi * i / _VERTICES for i in range(_VERTICES)]
    stretch = 1 / math.cos(math.radians(lat))
    return Region([(lon + stretch * reach * math.cos(a), lat + reach * math.sin(a)) for a in angles])


def _pair(text: str) -> tuple[float, float]:
    lat, _, lon = text.partition(",")
    return float(lat), float(lon)


def _tag(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]
