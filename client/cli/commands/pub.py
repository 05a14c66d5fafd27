"""`contrada pub`: publish JSON objects and GeoJSON features from arguments, files or standard input."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.client.cli.common import Connect, say, with_client
from contrada.client.cli.json_input import DescriptorLines, Lines, batches
from contrada.errors import CodecError, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.broker.protocol.messages import NotificationId

EXAMPLES = (
    """contrada pub '{"stock": "MTK", "price": 50}'""",
    """echo '{"hazard": 4}' | contrada pub""",
    """contrada pub '{"type": "Feature", "properties": {"wind": 120}, "geometry": """
    """{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 0]]]}}'""",
    "contrada pub --file storms.geojson --geometry area",
)
DURABLE_EXAMPLES = (
    """contrada pub --durable --id leak-17 '{"hazard": 4}'""",
    """contrada pub --retain vehicle-17 '{"vehicle": 17, "speed": 42}'""",
)


@with_client("pub")
def pub(
    connect: Connect,
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
    durable: Annotated[
        bool, typer.Option("--durable", help="Acknowledged when it is on the broker's disk, or refused.")
    ] = False,
    id: Annotated[
        str, typer.Option("--id", help="With --durable, of one notification: however often it is sent, it is once.")
    ] = "",
    retain: Annotated[
        str, typer.Option("--retain", help="Of one notification: the last value of this key, for who comes later.")
    ] = "",
    payload: Annotated[
        Path | None, typer.Option("--payload", help="A file that travels with one notification, unread.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no ids and no summary.")] = False,
) -> None:
    """Publish notifications. A GeoJSON feature's properties become attributes, beside its geometry."""
    arguments = [Lines(f"argument {n}", os.fsencode(text)) for n, text in enumerate(notifications or [], 1)]
    sources = [*arguments, *map(_file, file or [])]
    if not sources:
        sources = [_file(Path("-"))]
    count = 0
    with connect(lasting=bool(id)) as client:  # keys are known by the name of who used them
        if advertise is not None:
            client.advertise(advertise)
        try:
            for batch in batches(sources, geometry):
                ids: Sequence[NotificationId | None]
                if id or retain or payload is not None:
                    if len(batch) + count != 1:
                        raise InvalidValue("--id, --retain and --payload are for one notification")
                    carried = None if payload is None else _bytes(payload)
                    keep = durable or bool(id or retain)
                    ids = [client.publish(batch[0], durable=keep, id=id, retain=retain, payload=carried)]
                else:
                    ids = client.publish_many(batch, ack=ack, durable=durable)
                count += len(batch)
                if not quiet:
                    print(*ids, sep="\n", end="\n" * bool(ids), flush=True)
            client.flush()
        except CodecError:
            client.flush()
            say(f"published {count:,} before the mistake")
            raise
    if not quiet:
        say(f"published {count:,} notification{'s' * (count != 1)}")


def _file(path: Path) -> Lines:
    if str(path) == "-":
        return DescriptorLines("standard input", sys.stdin.fileno())
    return Lines(str(path), _bytes(path))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidValue(f"cannot read {path}: {error}") from error
