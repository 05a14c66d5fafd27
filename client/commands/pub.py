"""`contrada pub`: publish JSON objects and GeoJSON features from arguments, files or standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrada.client.commands.common import (
    ConfigFile,
    ConnectTimeout,
    Key,
    ServerKey,
    Url,
    connected,
    default_name,
    say,
)
from contrada.errors import CodecError, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EXAMPLES = (
    """contrada pub '{"stock": "MTK", "price": 50}'""",
    """echo '{"hazard": 4}' | contrada pub""",
    """contrada pub '{"type": "Feature", "properties": {"wind": 120}, "geometry": """
    """{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 0]]]}}'""",
    "contrada pub --file storms.geojson --geometry area",
)


def pub(
    notifications: Annotated[
        list[str] | None, typer.Argument(help="JSON objects or GeoJSON features; none: read standard input.")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", "-f", help="Read JSON lines, a JSON array or GeoJSON; - is stdin.")
    ] = None,
    geometry: Annotated[
        str, typer.Option("--geometry", "-g", help="The attribute that a GeoJSON feature's geometry becomes.")
    ] = "area",
    advertise: Annotated[
        str | None, typer.Option("--advertise", "-a", help="First advertise this filter to linked brokers.")
    ] = None,
    ack: Annotated[bool, typer.Option("--ack/--no-ack", help="Print ids once acknowledged, or stream.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no ids and no summary.")] = False,
    url: Url = None,
    config: ConfigFile = None,
    key: Key = None,
    server_key: ServerKey = None,
    connect_timeout: ConnectTimeout = None,
) -> None:
    """Publish notifications. A GeoJSON feature's properties become attributes, beside its geometry."""
    from contrada.client.settle import chunks

    sources = [*_arguments(notifications or []), *(_file(path) for path in file or [])]
    if not sources:
        sources = [_file(Path("-"))]
    count = 0
    with connected(
        url, config, key=key, server_key=server_key, connect_timeout=connect_timeout, name=default_name("pub")
    ) as client:
        if advertise is not None:
            client.advertise(advertise)
        for chunk in chunks((n for where, text in sources for n in read(text, where, geometry)), 256):
            ids = client.publish_many(chunk, ack=ack)
            count += len(chunk)
            if not quiet:
                for id in ids:
                    print(id)
        client.flush()
    if not quiet:
        say(f"published {count:,} notification{'s' * (count != 1)}")


def read(text: Iterable[str], where: str, geometry: str = "area") -> Iterator[dict[str, Any]]:
    """Read notifications from lines of JSON, one JSON document, or GeoJSON; errors name the place."""
    lines = iter(text)
    gathered = ""
    for number, line in enumerate(lines, 1):
        gathered += line
        if not gathered.strip():
            continue
        try:
            document = json.loads(gathered)
        except ValueError as error:
            if _ends_inside(gathered, error):
                continue  # a document over several lines
            raise CodecError(f"{where}, line {number}: not JSON: {error}") from error
        yield from _notifications(document, f"{where}, line {number}", geometry)
        gathered = ""
    if gathered.strip():
        raise CodecError(f"{where}: ends inside a JSON document")


def _arguments(texts: list[str]) -> Iterator[tuple[str, Iterable[str]]]:
    for number, text in enumerate(texts, 1):
        yield f"argument {number}", [text]


def _file(path: Path) -> tuple[str, Iterable[str]]:
    if str(path) == "-":
        return "standard input", sys.stdin
    try:
        return str(path), path.read_text().splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(f"cannot read {path}: {error}") from error


def _ends_inside(text: str, error: ValueError) -> bool:
    """Whether the only fault is that more must follow."""
    return isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip())


def _notifications(document: Any, where: str, geometry: str) -> Iterator[dict[str, Any]]:
    from contrada.forwarding.json_codec import notification_from_json

    if isinstance(document, list):
        for index, item in enumerate(document):
            yield from _notifications(item, f"{where}, item {index}", geometry)
        return
    if isinstance(document, dict) and document.get("type") == "FeatureCollection":
        features = document.get("features")
        yield from _notifications(features if isinstance(features, list) else [], where, geometry)
        return
    if isinstance(document, dict) and document.get("type") == "Feature":
        document = _flat(document, geometry)
    try:
        yield notification_from_json(json.dumps(document))
    except CodecError as error:
        raise CodecError(f"{where}: {error}") from error


def _flat(feature: dict[str, Any], geometry: str) -> dict[str, Any]:
    """Make attributes of a feature: properties that are not null, and the geometry under its name."""
    properties = feature.get("properties") or {}
    flat = {name: value for name, value in properties.items() if value is not None}
    shape = feature.get("geometry")
    if shape is not None:
        flat[geometry] = {name: shape.get(name) for name in ("type", "coordinates")}
    return flat
