"""The command line: `contrada COMMAND`. Each command is a function in `contrada.client.cli.commands`.

Messages go to stderr and results to stdout. Exit codes are `common.Exit`.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from contrada.client.cli.commands import (
    bench,
    broker,
    build_index,
    cluster,
    demo,
    explain,
    index,
    keygen,
    pub,
    replay,
    status,
    sub,
    warm,
)
from contrada.client.cli.common import Exit, examples, say
from contrada.errors import ContradaError, Disconnected

app = typer.Typer(
    name="contrada",
    help="Content-based publish/subscribe for events that have places.",
    epilog="Exit codes: 0 ok, 1 failure, 2 usage, 3 no connection, 4 timed out, 5 set aside, 6 different: docs/cli.md.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for _command, _examples in (
    (broker.broker, broker.EXAMPLES),
    (cluster.cluster, cluster.EXAMPLES),
    (pub.pub, pub.EXAMPLES),
    (sub.sub, sub.EXAMPLES),
    (status.status, status.EXAMPLES),
    (explain.explain, explain.EXAMPLES),
    (build_index.build_index, build_index.EXAMPLES),
    (replay.replay, replay.EXAMPLES),
    (keygen.keygen, keygen.EXAMPLES),
    (warm.warm, warm.EXAMPLES),
    (bench.bench, bench.EXAMPLES),
    (demo.demo, demo.EXAMPLES),
):
    app.command(epilog=examples(_examples))(_command)
app.add_typer(index.index, name="index", epilog=examples(index.EXAMPLES))


def _version(wanted: bool) -> None:
    if wanted:
        from contrada import __version__

        print(f"contrada {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Content-based publish/subscribe for events that have places."""


def main() -> None:
    """Run the command line: errors become one line on stderr and an exit code."""
    try:
        app(prog_name="contrada", standalone_mode=True)
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
