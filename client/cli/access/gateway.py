"""`contrada gateway`: HTTP, WebSocket and MQTT for a broker, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated, Any

import typer

from contrada.client.cli.common import ConfigFile, Key, Quiet, ServerKey, Url, say, teller
from contrada.client.cli.settings import load
from contrada.errors import ContradaError

EXAMPLES = (
    "contrada gateway --http 127.0.0.1:7480",
    "contrada gateway --url tcp://127.0.0.1:7400 --http 127.0.0.1:7480 --mqtt 127.0.0.1:1883",
    "contrada gateway --http 0.0.0.0:7480 --tokens keys --certificate tls/cert.pem --private-key tls/key.pem",
)


def gateway(
    url: Url = None,
    http: Annotated[str | None, typer.Option(help="HOST:PORT for HTTP, WebSocket and the live map.")] = None,
    mqtt: Annotated[str | None, typer.Option(help="HOST:PORT for MQTT 5 and 3.1.1.")] = None,
    tokens: Annotated[Path | None, typer.Option(help="The key directory: admit only its tokens.")] = None,
    recording: Annotated[Path | None, typer.Option(help="A broker's recording, for looking back on the map.")] = None,
    insecure: Annotated[bool | None, typer.Option("--insecure", help="Allow other machines in without tokens.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="TLS: the certificate chain, a PEM file.")] = None,
    private_key: Annotated[Path | None, typer.Option(help="TLS: the certificate's private key, a PEM file.")] = None,
    key: Key = None,
    server_key: ServerKey = None,
    config: ConfigFile = None,
    quiet: Quiet = False,
) -> None:
    """Serve a broker by HTTP, WebSocket and MQTT (extra contrada[gateway]); any number of gateways may run."""
    settings = load(config)
    given = {
        "http": http,
        "mqtt": mqtt,
        "tokens": tokens,
        "recording": recording,
        "insecure": insecure,
        "certificate": certificate,
        "private_key": private_key,
    }
    options = {**settings.gateway, **{name: value for name, value in given.items() if value is not None}}
    keys = {"key": key, "server_key": server_key}
    client = {**settings.client, **{name: value for name, value in keys.items() if value is not None}}
    run_gateway(settings.address(url), options, client, quiet=quiet)


def run_gateway(url: str, options: dict[str, Any], client: dict[str, Any], *, quiet: bool) -> None:
    """Run a gateway in this process until it is told to stop."""
    import asyncio
    import logging
    import signal

    if "http" not in options and "mqtt" not in options:
        options["http"] = "127.0.0.1:7480"
    require_libraries()
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.settings import GatewaySettings

    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format="contrada: %(message)s")
    settings = GatewaySettings.of(options)
    tell = teller(quiet)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        async with Gateway(url, settings, client) as running:  # type: ignore[arg-type]  # Options checks the names
            for place in filter(None, (running.http_url, running.mqtt_url)):
                tell(f"contrada gateway to {url} listens on {place}; stop it with Ctrl-C")
            _tune_collector()
            await stop.wait()
            say("contrada gateway: stopping") if not quiet else None

    _allow_files(settings.connections)
    asyncio.run(serve())


def _tune_collector() -> None:
    """Have the garbage collector run seldom: only what belonged to closed connections is cyclic."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def require_libraries() -> None:
    """Say what to install where the gateway's libraries are not there."""
    try:
        import aiohttp  # noqa: F401  # only looked for
        import mqtt5  # noqa: F401  # only looked for
    except ImportError as error:
        raise ContradaError(
            f"the gateway needs {error.name}: install the extra, pip install 'contrada[gateway]'"
        ) from error


def _allow_files(connections: int) -> None:
    """As many open files as connections are allowed, if the system lets us: the usual 1,024 are fewer."""
    try:
        import resource
    except ImportError:  # not Unix
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 200
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
