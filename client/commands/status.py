"""`contrada status`: clients, subscriptions and rates of a broker, once or live."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrada.client.commands.common import ConfigFile, ConnectTimeout, Key, ServerKey, Url, connected, default_name

if TYPE_CHECKING:
    from rich.console import RenderableType

EXAMPLES = (
    "contrada status",
    "contrada status --json",
    "contrada status --watch --count 2 --interval 0.5",
)
_COLUMNS = {  # of a client in the document: the heading
    "session": "session",
    "name": "client",
    "roles": "roles",
    "subscriptions": "subs",
    "published": "published",
    "delivered": "delivered",
    "queued": "queued",
    "dropped": "dropped",
}


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print the document as JSON.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.05, help="Seconds between looks, with --watch.")] = 1.0,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="With --watch: stop after so many.")] = None,
    url: Url = None,
    config: ConfigFile = None,
    key: Key = None,
    server_key: ServerKey = None,
    connect_timeout: ConnectTimeout = None,
) -> None:
    """Show what a broker is doing (role admin)."""
    from rich.console import Console
    from rich.live import Live

    looks = (count if watch else 1) or None
    with connected(
        url, config, key=key, server_key=server_key, connect_timeout=connect_timeout, name=default_name("status")
    ) as client:
        console = Console()
        if not console.is_terminal:
            console.width = 160  # nobody looks at the right edge of a file
        document = client.status(timeout=30.0)
        if as_json or not watch:
            _print(console, document, client.url, as_json=as_json)
            for _ in _ticks(looks, interval):
                _print(console, client.status(timeout=30.0), client.url, as_json=as_json)
            return
        with Live(table(document, client.url), console=console, auto_refresh=False) as live:
            for _ in _ticks(looks, interval):
                live.update(table(client.status(timeout=30.0), client.url), refresh=True)


def _print(console: Any, document: dict[str, Any], url: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(document, ensure_ascii=False), flush=True)
    else:
        console.print(table(document, url))


def _ticks(looks: int | None, interval: float) -> Any:
    """Pause before every look after the first."""
    done = 1
    while looks is None or done < looks:
        time.sleep(interval)
        done += 1
        yield done


def table(document: dict[str, Any], url: str) -> RenderableType:
    """Draw a status document."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    rates, totals = document.get("rates", {}), document.get("totals", {})
    head = Text.assemble(
        (str(document.get("broker", "?")), "bold cyan"),
        f" at {url}, up {duration(float(document.get('uptime', 0.0)))}",
        (" stopping" if document.get("stopping") else "", "bold red"),
    )
    rate = ", ".join(f"{escape(name)} {value:,.0f}/s" for name, value in rates.items())
    sums = ", ".join(f"{escape(name.replace('_', ' '))} {value:,}" for name, value in totals.items())
    clients = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for column, heading in _COLUMNS.items():
        text = column in ("name", "roles")
        clients.add_column(heading, justify="left" if text else "right", no_wrap=True, overflow="ellipsis")
    for client in document.get("clients", []):
        cells = [client.get(column, "") for column in _COLUMNS]
        clients.add_row(*(_cell(cell) for cell in cells), style="red" if client.get("dropped") else None)
    counts = (
        f"{document.get('sessions', 0):,} sessions, {document.get('subscriptions', 0):,} subscriptions, "
        f"{document.get('queued', 0):,} queued"
    )
    return Group(head, Text(counts), Text(f"rates   {rate}"), Text(f"totals  {sums}"), Text(), clients)


def _cell(value: Any) -> str:
    from rich.markup import escape

    if isinstance(value, list):
        return escape(" ".join(map(str, value)))
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def duration(seconds: float) -> str:
    """Write a time span as a person says it."""
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.0f} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
