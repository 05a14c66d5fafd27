"""The command line: `contrada COMMAND`. Each command is a function in a module of its name, in `commands` or `jobs`.

Messages go to stderr and results to stdout. Exit codes are `common.Exit`. Only the command that is run is imported; all
of them are for help and completion.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from contrada.client.cli.common import Exit, examples, say
from contrada.errors import ContradaError, Disconnected

if TYPE_CHECKING:
    from types import ModuleType

COMMANDS: Final = (
    "broker",
    "cluster",
    "pub",
    "sub",
    "status",
    "explain",
    "build_index",
    "replay",
    "keygen",
    "gateway",
    "token",
    "live",
    "feed",
    "warm",
    "bench",
    "demo",
    "index",
    "subs",
    "journal",
)
_ROOMS: Final = {
    "build_index": "jobs",
    "replay": "jobs",
    "gateway": "access",
    "token": "access",
    "live": "access",
    "feed": "access",
    "subs": "disk",
    "journal": "disk",
}
_HELP: Final = ("--help", "-h")


def command_module(name: str) -> ModuleType:
    """Import the module of a command."""
    return import_module(f"contrada.client.cli.{_ROOMS.get(name, 'commands')}.{name}")


@cache
def make_app(*only: str) -> typer.Typer:
    """All commands, with examples at the end of their help; or only some, without."""
    made = typer.Typer(
        name="contrada",
        help="Content-based publish/subscribe for events that have places.",
        epilog="Exit codes: 0 ok, 1 failure, 2 usage, 3 no connection, 4 timed out, 5 set aside, 6 different: "
        "docs/cli.md.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": list(_HELP)},
    )
    for name in only or COMMANDS:
        module = command_module(name)
        command = getattr(module, name)
        epilog = None if only else examples(module.EXAMPLES)
        if isinstance(command, typer.Typer):
            made.add_typer(command, name=name, epilog=epilog)
        else:
            made.command(epilog=epilog)(command)
    made.callback()(_root)
    return made


def __getattr__(name: str) -> Any:
    if name == "app":
        return make_app()
    raise AttributeError(name)


def _version(wanted: bool) -> None:
    if wanted:
        from contrada import __version__

        print(f"contrada {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Content-based publish/subscribe for events that have places."""


def main() -> None:
    """Run the command line: errors become one line on stderr and an exit code."""
    words = sys.argv[1:]
    command = words[0].replace("-", "_") if words else ""
    only = (command,) if command in COMMANDS and not set(words) & set(_HELP) else ()
    try:
        make_app(*only)(prog_name="contrada", standalone_mode=True)
    except Disconnected as error:
        say(f"contrada: {error}")
        sys.exit(Exit.DISCONNECTED)
    except ContradaError as error:
        say(f"contrada: {error}")
        sys.exit(Exit.FAILURE)
    except TimeoutError as error:
        say(f"contrada: {error}")
        sys.exit(Exit.TIMEOUT)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:  # the reader has left, as in `contrada sub … | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.OK)
    except OSError as error:  # standard output on a full disk, say
        say(f"contrada: {error}")
        sys.exit(Exit.FAILURE)
