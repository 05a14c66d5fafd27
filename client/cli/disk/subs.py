"""`contrada subs`: list the durable subscriptions of a broker, remove one, read its dead letters; forget a link."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from contrada.client.cli.common import Connect, examples, with_client

LIST_EXAMPLES = ("contrada subs ls", "contrada subs ls --json")
REMOVE_EXAMPLES = ("contrada subs rm desk-7",)
DEAD_EXAMPLES = ("contrada subs dead desk-7",)
UNLINK_EXAMPLES = ("contrada subs unlink b-60ec2af1",)
EXAMPLES = (*LIST_EXAMPLES, *DEAD_EXAMPLES, *REMOVE_EXAMPLES)

subs = typer.Typer(help="Durable subscriptions of a broker: list, remove, read dead letters.", no_args_is_help=True)
_COLUMNS = ("name", "session", "waiting", "waiting_bytes", "oldest", "redelivered", "dropped", "dead")


@subs.command(epilog=examples(LIST_EXAMPLES))
@with_client("subs")
def ls(
    connect: Connect,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for programs.")] = False,
) -> None:
    """List your durable subscriptions, with the role admin all: what waits, how old it is, what was lost.

    A session of 0: nobody is there to be delivered to.
    """
    with connect() as client:
        rows: list[dict[str, Any]] = []
        after = ""
        while True:
            document = client.durable_subscriptions(after, timeout=30.0)
            rows += document["subscriptions"]
            if not document["more"]:
                break
            after = rows[-1]["name"]
    if as_json:
        for row in rows:
            print(json.dumps(row, ensure_ascii=False), flush=True)
    else:
        _print_table(rows)


@subs.command(epilog=examples(REMOVE_EXAMPLES))
@with_client("subs")
def rm(connect: Connect, name: Annotated[str, typer.Argument(help="The durable subscription.")]) -> None:
    """End a durable subscription for good, with everything that waits for it. Prints what it was, as JSON."""
    with connect() as client:
        print(json.dumps(client.durable_remove(name, timeout=30.0), ensure_ascii=False), flush=True)


@subs.command(epilog=examples(DEAD_EXAMPLES))
@with_client("subs")
def dead(connect: Connect, name: Annotated[str, typer.Argument(help="The durable subscription.")]) -> None:
    """Print the dead letters of a durable subscription, as JSON lines: id, publisher, reason, time and notification."""
    with connect() as client:
        behind = 0
        while letters := client.durable_dead(name, behind, timeout=30.0)["letters"]:
            for letter in letters:
                letter["notification"] = json.loads(letter["notification"])
                print(json.dumps(letter, ensure_ascii=False), flush=True)
            behind = letters[-1]["position"]


@subs.command(epilog=examples(UNLINK_EXAMPLES))
@with_client("subs")
def unlink(connect: Connect, neighbour: Annotated[str, typer.Argument(help="The id of the other broker.")]) -> None:
    """Keep nothing more for a neighbour that is gone for good (role admin). Prints what it was, as JSON.

    What waits for it is lost, and counted; `contrada status` tells how much that is.
    """
    with connect() as client:
        print(json.dumps(client.durable_unlink(neighbour, timeout=30.0), ensure_ascii=False), flush=True)


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for column in _COLUMNS:  # a name is what `rm` and `dead` ask for: all of it is shown, whatever the width
        table.add_column(column.replace("_", " "), no_wrap=column == "name", overflow="fold")
    for row in rows:
        table.add_row(*(f"{row[name]:.0f} s" if name == "oldest" else str(row[name]) for name in _COLUMNS))
    console = Console()
    console.print(table, soft_wrap=not console.is_terminal)
