"""`contrada keygen`: make CURVE keys for brokers and clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contrada.client.cli.common import Quiet, teller

EXAMPLES = (
    "contrada keygen broker",
    "contrada keygen gauge-17 --role publish",
    "contrada keygen dashboard --role subscribe --role admin --directory keys",
)


def keygen(
    name: Annotated[str, typer.Argument(help="Whose key: broker, or a client's name.")],
    directory: Annotated[Path, typer.Option("--directory", "-d", help="The key directory.")] = Path("keys"),
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            "-r",
            help="publish, subscribe, admin or peer; again for more (publish and subscribe; a broker: none).",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Make a key pair: NAME.toml (public, stays with the broker) and NAME.secret.toml (goes to its owner)."""
    from contrada.broker.protocol.keys import BROKER, CLIENT_ROLES, generate

    public, secret = generate(directory, name, role or (() if name == BROKER else CLIENT_ROLES))
    print(public)
    print(secret)
    teller(quiet)(
        f"keep {secret.name} secret; the broker needs only {public.name}"
        if name != "broker"
        else f"start it with: contrada broker --keys {directory}"
    )
