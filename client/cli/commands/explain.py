"""`contrada explain`: why a notification reached a subscription, or did not."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from contrada.client.cli.commands.sub import shorten
from contrada.client.cli.common import Connect, Exit, with_client

EXAMPLES = (
    "contrada explain b-1f2e9c00:1794793648947604 --session 3 --subscription 1",
    "contrada explain b-1f2e9c00:1794793648947604 --session 3 --subscription 1 --json",
)


@with_client("explain")
def explain(
    connect: Connect,
    notification: Annotated[str, typer.Argument(help="The id, as `pub` and `sub` print it.")],
    session: Annotated[int, typer.Option("--session", "-s", min=1, help="The subscriber's session (see status).")],
    subscription: Annotated[int, typer.Option("--subscription", "-n", min=0, help="The subscription's number.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the document as JSON.")] = False,
) -> None:
    """Tell why a recent notification did or did not reach a subscription (role admin). Exits with 1 if it did not."""
    with connect() as client:
        document = client.explain(notification, subscription, session, timeout=30.0)
    if as_json:
        print(json.dumps(document, ensure_ascii=False))
    else:
        _show(document)
    if document.get("fate") not in ("delivered", "queued"):
        raise typer.Exit(Exit.FAILURE)


def _show(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    fate = str(document.get("fate", "unknown"))
    colour = "green" if fate in ("delivered", "queued") else "red"
    console.print(f"[bold {colour}]{escape(fate)}[/]: {escape(str(document.get('why', '')))}")
    for number, item in enumerate(document.get("filters") or [], 1):
        console.print(f"  filter {number}", style="bold")
        for line in lines(item):
            console.print(f"    {escape(line)}", soft_wrap=True)


def lines(item: Any) -> list[str]:
    """Lay out one explained filter: a line for each constraint, or the text as it came."""
    if isinstance(item, dict) and isinstance(verdicts := item.get("verdicts"), list):
        return [_verdict(each) for each in verdicts if isinstance(each, dict)]
    return str(item).splitlines()


def _verdict(each: dict[str, Any]) -> str:
    mark = "✓" if each.get("held") else "✗"
    return f"{mark} {shorten(str(each.get('constraint', '')), 80)}: {shorten(str(each.get('why', '')), 160)}"
