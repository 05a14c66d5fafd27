"""`contrada live`: the live map with something to see, until Ctrl-C."""

from __future__ import annotations

from typing import Annotated

import typer

from contrada.client.cli.common import Quiet, teller

EXAMPLES = (
    "contrada live",
    "contrada live --http 127.0.0.1:8080 --mqtt 127.0.0.1:1883",
)


def live(
    http: Annotated[str, typer.Option(help="HOST:PORT of the page.")] = "127.0.0.1:7480",
    mqtt: Annotated[str | None, typer.Option(help="HOST:PORT for MQTT, too.")] = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="How long; 0 is until Ctrl-C.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of vehicles, posts and subscribers.")] = 2026,
    quiet: Quiet = False,
) -> None:
    """Start a broker that records, a gateway, storms, vehicles and posts over Florida, and say where the map is."""
    import asyncio
    import signal
    import tempfile

    from contrada.client.cli.access.gateway import require_libraries
    from contrada.client.cli.commands.warm import progress_lines
    from contrada.client.cli.local import local_broker
    from contrada.forwarding.warm import compile_on_all_cores

    require_libraries()
    tell = teller(quiet)
    compile_on_all_cores(progress_lines(tell))

    async def run(url: str, recording: str) -> None:
        from contrada.client.demo.traffic import play
        from contrada.client.gateway.gateway import Gateway
        from contrada.client.gateway.http.page import FOLDER
        from contrada.client.gateway.settings import GatewaySettings

        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        if seconds:
            loop.call_later(seconds, stop.set)
        async with Gateway(url, GatewaySettings(http=http, mqtt=mqtt, recording=recording)) as gateway:
            if not (FOLDER / "index.html").is_file():
                tell("the page is not built into this installation: in a clone, `make web` builds it")
            tell(f"the broker is {url}; the live map is {gateway.http_url}/ - stop it with Ctrl-C")
            await play(url, stop, seed)

    with tempfile.TemporaryDirectory(prefix="contrada-live-") as folder, local_broker("--record", folder) as address:
        asyncio.run(run(address, folder))
