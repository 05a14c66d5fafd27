"""`contrada index`: load an index into a running broker, and change it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from contrada.client.cli.common import Connect, Quiet, examples, teller, with_client
from contrada.forwarding.stores.addresses import is_url

LOAD_EXAMPLES = (
    "contrada index load standing",
    "contrada index load standing --shard 0/3",
)
ADD_EXAMPLES = ("contrada index add s-17 harbour 'wind > 90 and area intersects BOX(0 0, 9 9)'",)
REMOVE_EXAMPLES = ("contrada index remove s-17",)
EXAMPLES = (*LOAD_EXAMPLES, *ADD_EXAMPLES, *REMOVE_EXAMPLES)

index = typer.Typer(help="Load an index into a running broker, or change it (role admin).", no_args_is_help=True)
_PATIENCE = 600.0  # to open an index on a slow disk


@index.command(epilog=examples(LOAD_EXAMPLES))
@with_client("index")
def load(
    connect: Connect,
    path: Annotated[str, typer.Argument(help="The index, by URL or by its path on the broker's machine.")],
    shard: Annotated[str, typer.Option(help="k/n: the k-th of n parts, counted from 0.")] = "",
    quiet: Quiet = False,
) -> None:
    """Have a broker match by the index in PATH from now on, in place of any that it has. Prints what it holds, as JSON.

    If it cannot be opened the broker goes on with what it had.
    """
    with connect() as client:
        document = client.index_load(path if is_url(path) else Path(path).absolute(), shard, timeout=_PATIENCE)
        _print(document)
        teller(quiet)(f"{client.broker} matches by {document['filters']:,} filters of {document['path']}")


@index.command(epilog=examples(ADD_EXAMPLES))
@with_client("index")
def add(
    connect: Connect,
    id: Annotated[str, typer.Argument(help="The subscription's id in the index; one of the same id is replaced.")],
    interface: Annotated[str, typer.Argument(help="The interface that clients attach to.")],
    filter: Annotated[str, typer.Argument(help="What it matches, in the filter language.")],
) -> None:
    """Put a subscription into a broker's loaded index. The files of the index stay as they are."""
    with connect() as client:
        _print(client.index_add(id, interface, filter, timeout=30.0))


@index.command(epilog=examples(REMOVE_EXAMPLES))
@with_client("index")
def remove(connect: Connect, id: Annotated[str, typer.Argument(help="The subscription's id in the index.")]) -> None:
    """Take a subscription out of a broker's loaded index. The files of the index stay as they are."""
    with connect() as client:
        _print(client.index_remove(id, timeout=30.0))


def _print(document: dict[str, Any]) -> None:
    print(json.dumps(document, ensure_ascii=False), flush=True)
