"""`contrada cluster`: a whole overlay of broker processes on this machine, from one file."""

from __future__ import annotations

import multiprocessing
import signal
import time
import tomllib
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrada.client.cli.common import Quiet, teller
from contrada.errors import ContradaError, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = ("contrada cluster examples/cluster.toml", "contrada cluster examples/cluster.toml --demo")
_PATIENCE = 60.0


def cluster(
    file: Annotated[Path, typer.Argument(help="A TOML file with one table [brokers.NAME] of settings per broker.")],
    demo: Annotated[
        bool, typer.Option("--demo", help="Publish across the cluster, show what happened, and stop.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Start every broker of a file, each in a process of its own, until SIGTERM or Ctrl-C."""
    from contrada.client.cli.commands.warm import progress_lines
    from contrada.forwarding.warm import compile_on_all_cores

    tell = teller(quiet)
    brokers = read(file)
    # Once, or on a new machine all brokers would compile the same at once.
    compile_on_all_cores(progress_lines(tell))
    with ExitStack() as stack:
        processes = [stack.enter_context(_process(options)) for options in brokers.values()]
        _await_links(brokers)
        for name, options in brokers.items():
            tell(f"{name} listens on {options['listen']}")
        if demo:
            _show(brokers)
            return
        tell("the cluster is linked; look at it with: contrada status --cluster --url URL; stop it with Ctrl-C")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        for process in processes:
            process.join()


def read(file: Path) -> dict[str, dict[str, Any]]:
    """Read settings by name. A peer that is the name of another broker stands for its address."""
    try:
        tables = tomllib.loads(file.read_text()).get("brokers")
    except (OSError, ValueError) as error:
        raise InvalidValue(f"cannot read the cluster {file}: {error}") from error
    if not isinstance(tables, dict) or not tables or not all(isinstance(t, dict) for t in tables.values()):
        raise InvalidValue(f"{file}: a cluster has a table [brokers.NAME] for every broker")
    for name, options in tables.items():
        if not isinstance(options.get("listen"), str):
            raise InvalidValue(f"{file}: brokers.{name} needs listen, where it listens")
        if options.get("keys") is not None:
            options["keys"] = str(file.parent / options["keys"])
    return {
        name: {
            **options,
            "id": options.get("id", name),
            "peers": [_address(peer, tables, secure="keys" in options) for peer in options.get("peers", [])],
        }
        for name, options in tables.items()
    }


def _address(peer: str, tables: dict[str, Any], *, secure: bool) -> str:
    if peer not in tables:
        return peer
    url: str = tables[peer]["listen"]
    return f"{peer}@{url}" if secure else url


def _serve(options: dict[str, Any]) -> None:
    import logging

    from contrada.broker.node.logs import configure
    from contrada.broker.node.server import Broker

    configure(logging.WARNING)
    Broker(**options).run()


@contextmanager
def _process(options: dict[str, Any]) -> Iterator[Any]:
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(options,), name=options["id"])
    process.start()
    try:
        yield process
    finally:
        process.terminate()
        process.join()


def _await_links(brokers: dict[str, dict[str, Any]]) -> None:
    """Wait until every broker knows every other."""
    from contrada.client.blocking import Client

    deadline = time.monotonic() + _PATIENCE
    for name, options in brokers.items():
        if "keys" in options:
            continue  # this process has no key to ask it with
        with Client(options["listen"], connect_timeout=_PATIENCE, name="contrada-cluster") as client:
            while sum(b["reachable"] for b in client.status(timeout=_PATIENCE)["overlay"]["brokers"]) < len(brokers):
                if time.monotonic() > deadline:
                    raise ContradaError(
                        f"{name} has not found the others in {_PATIENCE:.0f} s: do the peers join them?"
                    )
                time.sleep(0.05)


def _show(brokers: dict[str, dict[str, Any]]) -> None:
    """Subscribe everywhere, publish somewhere, and say what crossed which link."""
    from rich.console import Console

    from contrada.client.blocking import Client
    from contrada.client.cli.status_tables import overlay_table

    console = Console()
    if not console.is_terminal:
        console.width = 160  # nobody looks at the right edge of a file
    with ExitStack() as stack:
        clients = {name: stack.enter_context(Client(o["listen"], name="demo")) for name, o in brokers.items()}
        subscriptions = {}
        for number, (name, client) in enumerate(clients.items()):
            text = f"level > {number} and place inside BOX(0 0, {99 - number} {99 - number})"
            subscriptions[name] = client.subscribe(text)
            console.print(f"[bold]{name}[/bold] wants {text}")
        while not all(_has_heard(client.status(timeout=_PATIENCE)) for client in clients.values()):
            time.sleep(0.05)
        origin, first = next(iter(clients.items()))
        published = {"level": len(clients), "place": _point(1.0, 1.0)}
        first.publish(published)
        for name, subscription in subscriptions.items():
            got = subscription.get(timeout=_PATIENCE)
            console.print(f"{origin} published level {published['level']}; [bold]{name}[/bold] got it as {got.id}")
        for name, client in clients.items():
            console.print(overlay_table(client.status(timeout=_PATIENCE), name))


def _has_heard(document: dict[str, Any]) -> bool:
    """Whether every neighbour on the tree has said what it wants."""
    return all(link["asked"] for link in document["overlay"]["links"] if link["in_tree"])


def _point(x: float, y: float) -> Any:
    from contrada import Point

    return Point(x, y)
