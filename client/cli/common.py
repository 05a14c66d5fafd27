"""What the commands share: options, connecting, exit codes, messages."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrada.client.cli.settings import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contrada.client.blocking import Client


class Exit(IntEnum):
    """Exit codes, the same for every command."""

    OK = 0
    FAILURE = 1  # refused by the broker, or bad input
    USAGE = 2  # wrong options or arguments
    DISCONNECTED = 3  # no broker there, or the connection was lost
    TIMEOUT = 4  # what was waited for did not come in time
    SET_ASIDE = 5  # some input was set aside: done, with --strict; or too much of it, and nothing was changed
    DIFFERENT = 6  # done, but what was compared differs
    INTERRUPTED = 130  # Ctrl-C


Url = Annotated[
    str | None,
    typer.Option("--url", "-u", envvar="CONTRADA_URL", help="The broker's address (tcp://127.0.0.1:7400)."),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", envvar="CONTRADA_CONFIG", help="A TOML file of settings: see docs/cli.md.")
]
Key = Annotated[Path | None, typer.Option("--key", help="This client's secret key file (NAME.secret.toml).")]
ServerKey = Annotated[
    str | None, typer.Option("--server-key", help="The broker's public key: its file (broker.toml) or 40 characters.")
]
ConnectTimeout = Annotated[
    float | None, typer.Option("--connect-timeout", min=0.001, help="Seconds to try to connect (15).")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.")]


@contextmanager
def connected(
    url: str | None,
    config: Path | None,
    *,
    key: Path | None = None,
    server_key: str | None = None,
    connect_timeout: float | None = None,
    quiet: bool = False,
    **defaults: Any,
) -> Iterator[Client]:
    """Connect as options, environment and file say; tell how that goes."""
    from contrada.client.blocking import Client

    settings = load(config)
    given = {"key": key, "server_key": server_key, "connect_timeout": connect_timeout}
    options = {**defaults, **settings.client, **{name: value for name, value in given.items() if value is not None}}
    with _telling(quiet), Client(settings.address(url), **options) as client:
        yield client


class _Teller(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"contrada: {record.getMessage()}")


@contextmanager
def _telling(quiet: bool) -> Iterator[None]:
    """Tell what the client logs: that nobody listens yet, that the connection was lost."""
    log = logging.getLogger("contrada.client")
    before = log.level
    teller = _Teller()
    log.addHandler(teller)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(teller)


def examples(lines: tuple[str, ...]) -> str:
    """Lay out examples for the end of a command's help: typer makes each paragraph a line."""
    from rich.markup import escape

    return "\n\n".join(["[bold]Examples[/bold]", *(f"  {escape(line)}" for line in lines)])


def teller(quiet: bool) -> Callable[[str], None]:
    """How a command tells the person how it goes: on stderr, or with --quiet not at all."""
    return (lambda message: None) if quiet else say


def say(message: str) -> None:
    """Tell the person, not the pipe."""
    print(message, file=sys.stderr, flush=True)


def default_name(command: str) -> str:
    """Name a client for `contrada status`."""
    return f"contrada-{command}-{os.getpid()}"
