"""`contrada demo`: see it work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.client.cli.common import Exit, Quiet, teller

if TYPE_CHECKING:
    from rich.console import Console

    from contrada.client.demo.run import Picture, Show

EXAMPLES = (
    "contrada demo",
    "contrada demo --seconds 3 --plain",
)


def demo(
    seconds: Annotated[float, typer.Option(min=1.0, max=600.0, help="How long the storms take.")] = 20.0,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live screen.")] = False,
    seed: Annotated[int, typer.Option(help="Of facilities, posts and rain.")] = 2026,
    url: Annotated[str | None, typer.Option("--url", "-u", help="Use this broker instead of a new one.")] = None,
    quiet: Quiet = False,
) -> None:
    """Let storms pass over Florida and see who is warned, and why. Starts its own broker; ends by itself.

    Counties: U.S. Census Bureau. Facilities, storms, posts and rain are invented.
    """
    from rich.console import Console

    from contrada.client.cli.commands.warm import progress_lines
    from contrada.client.cli.local import local_broker
    from contrada.forwarding.warm import compile_on_all_cores

    console = Console()
    if url is not None:
        picture = _play(url, seconds, seed, console, plain)
    else:
        tell = teller(quiet)
        compile_on_all_cores(progress_lines(tell))
        tell("starting a broker in a temporary directory …")
        with local_broker() as address:
            picture = _play(address, seconds, seed, console, plain)
    if picture.wrong:
        raise typer.Exit(Exit.FAILURE)


def _play(url: str, seconds: float, seed: int, console: Console, plain: bool) -> Picture:
    from contrada.client.demo.run import Show
    from contrada.client.demo.view import story_line, summary

    live = console.is_terminal and not plain
    show = Show(url, seconds, seed, None if live else lambda line: console.print(story_line(line), soft_wrap=True))
    picture = asyncio.run(_live(show, console) if live else show.play())
    console.print(summary(picture))
    return picture


async def _live(show: Show, console: Console) -> Picture:
    from rich.live import Live

    from contrada.client.demo.sketch import Sketch
    from contrada.client.demo.view import screen

    sketch = Sketch(show.picture.counties)
    screen(show.picture, sketch, console)  # the base of the map takes a moment: before the clock starts
    playing = asyncio.create_task(show.play())
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not playing.done():
            live.update(screen(show.picture, sketch, console), refresh=True)
            await asyncio.wait([playing], timeout=0.1)
    return await playing
