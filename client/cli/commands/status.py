"""`contrada status`: clients, subscriptions and rates of a broker, once or live."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrada.client.cli.common import Connect, with_client
from contrada.client.cli.status_tables import overlay_table, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

EXAMPLES = (
    "contrada status",
    "contrada status --json",
    "contrada status --cluster",
    "contrada status --watch --count 2 --interval 0.5",
)


@with_client("status")
def status(
    connect: Connect,
    as_json: Annotated[bool, typer.Option("--json", help="Print the document as JSON.")] = False,
    cluster: Annotated[bool, typer.Option("--cluster", help="Show the linked brokers and this one's links.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.05, help="Seconds between looks, with --watch.")] = 1.0,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="With --watch: stop after so many.")] = None,
) -> None:
    """Show what a broker is doing (role admin)."""
    from rich.console import Console
    from rich.live import Live

    looks = (count if watch else 1) or None
    draw = overlay_table if cluster else table
    with connect() as client:
        console = Console()
        if not console.is_terminal:
            console.width = 160  # nobody looks at the right edge of a file
        document = client.status(timeout=30.0)
        if as_json or not watch:
            _print(console, draw, document, client.url, as_json=as_json)
            for _ in _ticks(looks, interval):
                _print(console, draw, client.status(timeout=30.0), client.url, as_json=as_json)
            return
        with Live(draw(document, client.url), console=console, auto_refresh=False) as live:
            for _ in _ticks(looks, interval):
                live.update(draw(client.status(timeout=30.0), client.url), refresh=True)


def _print(
    console: Any,
    draw: Callable[[dict[str, Any], str], RenderableType],
    document: dict[str, Any],
    url: str,
    *,
    as_json: bool,
) -> None:
    if as_json:
        print(json.dumps(document, ensure_ascii=False), flush=True)
    else:
        console.print(draw(document, url))


def _ticks(looks: int | None, interval: float) -> Any:
    """Pause before every look after the first."""
    done = 1
    while looks is None or done < looks:
        time.sleep(interval)
        done += 1
        yield done
