"""`contrada token`: let somebody in at the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contrada.client.cli.common import Quiet, teller

EXAMPLES = (
    "contrada token alice",
    "contrada token dashboard --role subscribe --role admin --directory keys",
)


def token(
    name: Annotated[str, typer.Argument(help="Whose token: of a key in the directory, or a new name.")],
    directory: Annotated[Path, typer.Option("--directory", "-d", help="The key directory.")] = Path("keys"),
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role", "-r", help="publish, subscribe or admin; again for more. Of a name with a key: the key's roles."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Make a token, print it, and keep its hash in NAME.token. It is shown once; delete the file to end it."""
    from contrada.client.gateway.tokens import make_token

    made, path = make_token(directory, name, role)
    print(made)
    teller(quiet)(f"{path} has its hash; start the gateway with: contrada gateway --tokens {directory} …")
