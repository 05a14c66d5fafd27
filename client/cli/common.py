"""What the commands share: options, connecting, exit codes, messages."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from enum import IntEnum
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from contrada.client.cli.settings import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

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
    str | None, typer.Option("--url", "-u", envvar="CONTRADA_URL", help="The broker's address (tcp://127.0.0.1:7400).")
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


class ClientOptions(NamedTuple):
    """The options of every command that is a client."""

    url: Url = None
    config: ConfigFile = None
    key: Key = None
    server_key: ServerKey = None
    connect_timeout: ConnectTimeout = None
    quiet: Quiet = False


Connect = Callable[..., "AbstractContextManager[Client]"]


def with_client(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command that is a client: its first parameter connects it, `with connect() as client`.

    The options of a client are added to the command's own. One that the command has itself, it gets too.
    """
    hints = get_type_hints(ClientOptions, include_extras=True)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        _, *own = signature(command, eval_str=True).parameters.values()
        names = {parameter.name for parameter in own}
        added = [
            Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=hints[option])
            for option, default in ClientOptions._field_defaults.items()
            if option not in names
        ]

        @wraps(command)
        def run(**given: Any) -> None:
            options = ClientOptions(**{option: given[option] for option in ClientOptions._fields})
            command(partial(connected, options, name), **{option: given[option] for option in names})

        parameters = [*(parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own), *added]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


@contextmanager
def connected(options: ClientOptions, command: str, *, lasting: bool = False) -> Iterator[Client]:
    """Connect as options, environment and file say; tell how that goes.

    Unless the file names the client it has a name of its own, or, if that is to be `lasting`, the same in each process.
    """
    from contrada.client.blocking import Client

    settings = load(options.config)
    given = {name: getattr(options, name) for name in ("key", "server_key", "connect_timeout")}
    keywords: dict[str, Any] = {
        "name": f"contrada-{command}" if lasting else f"contrada-{command}-{os.getpid()}",  # for `contrada status`
        **settings.client,
        **{name: value for name, value in given.items() if value is not None},
    }
    with _telling(options.quiet), Client(settings.address(options.url), **keywords) as client:
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
