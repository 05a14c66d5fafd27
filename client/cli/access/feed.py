"""`contrada feed`: publish real formats, CAP, GTFS-realtime and AIS, from a file or an address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from contrada.client.cli.common import Connect, Quiet, say, with_client
from contrada.errors import CodecError, ContradaError

EXAMPLES = (
    "contrada feed cap alert.xml",
    "contrada feed gtfs-rt https://transit.example/vehicles.pb --every 15",
    "contrada feed ais tcp://receiver.local:10110",
    "contrada feed ais ships.nmea --print",
)
_BATCH = 256
_KNOWN = 100_000  # notifications that are not published again


class Format(StrEnum):
    """What can be read."""

    CAP = "cap"
    GTFS_RT = "gtfs-rt"
    AIS = "ais"


@with_client("feed")
def feed(
    connect: Connect,
    format: Annotated[Format, typer.Argument(help="cap, gtfs-rt or ais.")],
    source: Annotated[
        str, typer.Argument(help="A file, - for standard input, http(s)://…; of ais also tcp://HOST:PORT.")
    ],
    every: Annotated[float, typer.Option(min=0.0, help="Read it again after so many seconds; 0: once.")] = 0.0,
    print_only: Annotated[bool, typer.Option("--print", help="Print JSON lines instead of publishing.")] = False,
    quiet: Quiet = False,
) -> None:
    """Publish alerts, vehicles or ships (extra contrada[feeds]). What is wrong with one is told, and left out.

    Read again (`--every`), only what is new or has changed is published.
    """
    import time

    told: dict[int, None] = {}

    def rounds() -> Iterator[dict[str, Any]]:
        while True:
            for each in _notifications(format, source):
                if isinstance(each, CodecError):
                    say(f"left out: {each}")
                elif not every or _is_news(each, told):
                    yield each
            if not every:
                return
            time.sleep(every)

    if print_only:
        _print(rounds())
        return
    published = 0
    with connect() as client:
        for batch in _batches(rounds(), whole=format is not Format.AIS):
            published += len(client.publish_many(batch))
    if not quiet:
        say(f"published {published}")


def _notifications(format: Format, source: str) -> Iterator[dict[str, Any] | CodecError]:
    from contrada.client.feeds.sources import read_lines, read_whole

    try:
        if format is Format.AIS:
            from contrada.client.feeds.ais import read_ais

            yield from read_ais(read_lines(source))
        elif format is Format.CAP:
            from contrada.client.feeds.cap import read_cap

            yield from read_cap(read_whole(source))
        else:
            from contrada.client.feeds.gtfs_rt import read_gtfs_rt

            yield from read_gtfs_rt(read_whole(source))
    except ImportError as error:
        raise ContradaError(f"feeds need {error.name}: install the extra, pip install 'contrada[feeds]'") from error


def _is_news(notification: dict[str, Any], told: dict[int, None]) -> bool:
    mark = hash(repr(sorted(notification.items())))
    if mark in told:
        return False
    told[mark] = None
    if len(told) > _KNOWN:
        del told[next(iter(told))]
    return True


def _batches(notifications: Iterable[dict[str, Any]], *, whole: bool) -> Iterator[list[dict[str, Any]]]:
    """In batches; those of a stream one by one, since the next may take a while."""
    batch: list[dict[str, Any]] = []
    for each in notifications:
        batch.append(each)
        if not whole or len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _print(notifications: Iterable[dict[str, Any]]) -> None:
    from contrada.forwarding.codec.json import notification_to_json

    for each in notifications:
        print(notification_to_json(each), flush=True)
