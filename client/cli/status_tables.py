"""STATUS documents as tables for people: a broker and its clients, or the overlay that it is part of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

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


_LINK_COLUMNS = {
    "neighbour": "link to",
    "up": "up",
    "in_tree": "in tree",
    "asked": "filters asked",
    "wanted": "wanted",
    "shown": "sent",
    "saved": "saved",
    "forwarded": "forwarded",
    "received": "received",
    "duplicates": "twice",
    "lost": "lost",
    "queued": "queued",
}


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
    lines = [Text(counts), *_index_line(document.get("index") or {}), Text(f"rates   {rate}"), Text(f"totals  {sums}")]
    return Group(head, *lines, Text(), clients)


def _index_line(index: dict[str, Any]) -> list[Text]:
    from rich.text import Text

    if not index:
        return []
    shard = f", shard {index['shard']}" if index.get("shard") else ""
    return [Text(f"index   {index['filters']:,} filters of {index['path']}{shard}, {index['attached']:,} attached")]


def _cell(value: Any) -> str:
    from rich.markup import escape

    if isinstance(value, bool):
        return "yes" if value else "no"
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


def overlay_table(document: dict[str, Any], url: str) -> RenderableType:
    """Draw the overlay as a broker sees it: the topology, then each of its links."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    overlay = document.get("overlay", {})
    names = overlay.get("names", {})

    def named(*ids: str) -> str:
        return escape(" ".join(names.get(id, id) for id in ids))

    brokers = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("broker", "linked with", "on the tree"):
        brokers.add_column(heading)
    for row in overlay.get("brokers", []):
        name = named(row["broker"]) + (" (here)" if row["broker"] == document.get("broker") else "")
        tree = named(*row["tree"]) if row["reachable"] else "out of reach"
        brokers.add_row(name, named(*row["neighbours"]), tree, style=None if row["reachable"] else "red")
    links = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column, heading in _LINK_COLUMNS.items():
        links.add_column(heading, justify="left" if column == "neighbour" else "right")
    for row in overlay.get("links", []):
        cells = [_cell(row.get(column)) for column in _LINK_COLUMNS if column != "neighbour"]
        links.add_row(named(row["neighbour"]), *cells, style=None if row.get("up") else "red")
    own = str(document.get("broker", "?"))
    head = Text.assemble((names.get(own, own), "bold cyan"), f" at {url}")
    notes = [Text(f"dialling {peer}") for peer in overlay.get("dialling", [])]
    if overlay.get("stands_down"):
        notes.append(Text("stands down: another broker has this id too, and started later", style="red"))
    if (more := overlay.get("known", 0) - len(overlay.get("brokers", []))) > 0:
        notes.append(Text(f"and {more:,} brokers more"))
    return Group(head, brokers, Text(), links, *notes, Text())
