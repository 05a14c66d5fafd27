"""`contrada broker`: serve until SIGTERM or Ctrl-C."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from contrada.client.cli.common import ConfigFile, Exit, Quiet, teller
from contrada.client.cli.settings import load

EXAMPLES = (
    "contrada broker",
    "contrada broker --listen 'tcp://127.0.0.1:*' --metrics 127.0.0.1:0",
    "contrada broker --listen 'tcp://*:7400' --keys keys",
    "contrada broker --listen tcp://127.0.0.1:7401 --id north --peer tcp://127.0.0.1:7400",
    "contrada broker --id north --record log --record-sync always",
    "contrada broker --data data",
    "contrada broker --http 127.0.0.1:7480 --mqtt 127.0.0.1:1883",
    "contrada broker --discretization uniform --density 2 --halo",
    "contrada broker --roads seattle.npz --d-max 50000",
    "contrada broker --crs lonlat",
)


def broker(
    listen: Annotated[
        str | None, typer.Option("--listen", "-l", help="Where to listen (tcp://127.0.0.1:7400).")
    ] = None,
    id: Annotated[str | None, typer.Option(help="A name that stays the same across restarts.")] = None,
    keys: Annotated[Path | None, typer.Option(help="The key directory: encrypt, and admit only its keys.")] = None,
    insecure: Annotated[bool | None, typer.Option("--insecure", help="Allow other machines in without keys.")] = None,
    peer: Annotated[
        list[str] | None, typer.Option("--peer", help="A broker to link with, URL or KEY@URL; again for more.")
    ] = None,
    http: Annotated[str | None, typer.Option(help="HOST:PORT of a gateway beside it: HTTP and WebSocket.")] = None,
    mqtt: Annotated[str | None, typer.Option(help="HOST:PORT of a gateway beside it, for MQTT.")] = None,
    tokens: Annotated[Path | None, typer.Option(help="The gateway admits only tokens of this key directory.")] = None,
    metrics: Annotated[str | None, typer.Option(help="HOST:PORT to serve Prometheus metrics on.")] = None,
    index: Annotated[
        str | None, typer.Option(help="An index (contrada build-index), by path or URL: standing subscriptions.")
    ] = None,
    shard: Annotated[str | None, typer.Option(help="k/n: of the index, the k-th of n parts, counted from 0.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="A directory for what is durable; without it durable requests are refused.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="A directory to record everything accepted, subscribed and delivered in.")
    ] = None,
    record_sync: Annotated[
        str | None, typer.Option(help="When the recording is on the disk: none, interval (1 s), always.")
    ] = None,
    roads: Annotated[
        Path | None, typer.Option(help="The road network that `similar` asks: a saved RoadNetwork, or .npz.")
    ] = None,
    d_max: Annotated[
        float | None, typer.Option(help="Of an .npz: the distance beyond which nothing is similar.")
    ] = None,
    matching: Annotated[
        str | None, typer.Option(help="How the table matches: auto, counting, selective. Answers are the same.")
    ] = None,
    crs: Annotated[
        str | None, typer.Option(help="What coordinates are: plane, or lonlat for degrees and distances in metres.")
    ] = None,
    discretization: Annotated[
        str | None, typer.Option(help="How regions are related: exact, or uniform (sampled). Alike in the overlay.")
    ] = None,
    density: Annotated[float | None, typer.Option(help="Of uniform: points per unit length, at least.")] = None,
    halo: Annotated[
        bool | None, typer.Option("--halo", help="Of uniform: what is nearly on a boundary meets it.")
    ] = None,
    simplify: Annotated[
        bool | None, typer.Option("--simplify/--no-simplify", help="Keep aside filters that others cover.")
    ] = None,
    geotext_index: Annotated[str | None, typer.Option(help="The index behind `matches` (rk-tree).")] = None,
    config: ConfigFile = None,
    quiet: Quiet = False,
) -> None:
    """Run a broker until SIGTERM or Ctrl-C, then deliver what is queued and stop. Logs JSON lines to stderr."""
    given = {**locals(), "peers": peer or None}
    import logging
    from dataclasses import fields

    from contrada.broker.node.listener import Listener
    from contrada.broker.node.logs import configure
    from contrada.broker.node.server import Broker
    from contrada.broker.node.settings import Settings
    from contrada.client.cli.beside import Beside

    configure(logging.WARNING if quiet else logging.INFO)
    known = {field.name for field in fields(Settings)}
    options: dict[str, Any] = {"listen": "tcp://127.0.0.1:7400", **load(config).broker}
    options.update({name: value for name, value in given.items() if name in known and value is not None})
    settings = Settings.of(options)  # what is wrong with them should not wait for the kernels
    tell = teller(quiet)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(Exit.OK))  # while it is loading; then `run` stops it cleanly
    doors = {"--http": http, "--mqtt": mqtt, "--tokens": tokens, "--config": config}
    beside = Beside(doors, quiet) if http or mqtt else None

    def bound(listener: Listener) -> None:
        tell(f"contrada broker {listener.id} listens on {listener.url}; stop it with Ctrl-C")
        if beside is not None:
            beside.start(listener.url)

    try:
        Broker(bound=bound, **{field.name: getattr(settings, field.name) for field in fields(settings)}).run()
    finally:
        if beside is not None:
            beside.stop()
