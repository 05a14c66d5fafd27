"""What a new user meets at the command line: completion, --quiet, and a broker that is not there, or not yet."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from io import StringIO
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from rich.console import Console
from typer.testing import CliRunner

import contrada
from contrada import Client
from contrada.broker.node.server import Broker
from contrada.broker.protocol.addresses import host_name
from contrada.client.cli import main as cli
from contrada.client.cli.status_tables import overlay_table
from contrada.client.engine.core import Core
from contrada.client.engine.states import Input
from contrada.client.options import Options
from contrada.forwarding.segments.index_directory import write_index
from tests.client.reference import make_broker

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = typer.main.get_command(cli.app).commands


def contrada_(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "contrada", *words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=110,
    )


# ---------------------------------------------------------------------------------------------- completion


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete"), ("zsh", "compdef"), ("fish", "complete")])
def test_shells_get_a_script(shell: str, word: str) -> None:
    script = contrada_(_CONTRADA_COMPLETE=f"source_{shell}", SHELL=f"/bin/{shell}")
    assert script.returncode == 0, script.stderr
    assert "_CONTRADA_COMPLETE" in script.stdout
    assert word in script.stdout


def test_commands_and_options_are_completed() -> None:
    def completed(words: str) -> list[str]:
        number = str(len(words.split(" ")) - 1)
        told = contrada_(_CONTRADA_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=number)
        return told.stdout.split()

    assert {*completed("contrada s")} == {"sub", "status", "subs"}
    assert "--connect-timeout" in completed("contrada pub --c")


# ---------------------------------------------------------------------------------------------- --quiet


def leaves(commands: Any) -> list[Any]:
    return [
        leaf for each in commands.values() for leaf in (leaves(each.commands) if hasattr(each, "commands") else [each])
    ]


@pytest.mark.parametrize("command", leaves(COMMANDS), ids=lambda command: command.name)
def test_every_command_can_be_quiet(command: Any) -> None:
    assert any("--quiet" in parameter.opts for parameter in command.params)


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_is_quiet(quiet: bool, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTRADA_URL", url)
    monkeypatch.chdir(tmp_path)
    for words in (
        ["sub", "n exists", "--timeout", "0"],
        ["pub", '{"n": 1}'],
        ["keygen", "alice"],
        ["keygen", "broker"],
    ):
        told = CliRunner().invoke(cli.app, [*words, *["--quiet"] * quiet])
        assert told.exit_code == 0, told.output
        assert (told.stderr == "") is quiet, told.stderr


@pytest.mark.parametrize("quiet", [True, False])
def test_a_quiet_broker_says_nothing(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(broker: Broker) -> None:
        broker.stop()

    levels: list[int] = []
    monkeypatch.setattr(Broker, "run", run)
    monkeypatch.setattr("contrada.broker.node.logs.configure", levels.append)
    told = CliRunner().invoke(cli.app, ["broker", "--listen", "tcp://127.0.0.1:*", *["--quiet"] * quiet])
    assert told.exit_code == 0
    assert ("listens on" in told.stderr) is not quiet
    assert levels == [logging.WARNING if quiet else logging.INFO]


# ---------------------------------------------------------------------------------------------- nobody there


def test_while_nobody_listens_the_command_says_so() -> None:
    with make_broker() as broker:
        gone = broker.url
    told = contrada_("pub", "{}", "--url", gone, "--connect-timeout", "1.5")
    assert told.returncode == 3
    first, last = told.stderr.splitlines()
    assert first.startswith(
        f"contrada: nobody listens at {gone}, or not yet: a broker that is new on its machine first"
    )
    assert re.search(r"; trying for \d s$", first)
    assert re.match(rf"contrada: no connection after [\d.]+ s: nobody listens at {gone}", last)
    told = contrada_("pub", "{}", "--url", gone, "--connect-timeout", "1.5", "--quiet")
    assert told.stderr.startswith("contrada: no connection after")
    assert told.stderr.count("\n") == 1


def test_a_reason_is_told_once_and_a_new_one_again(caplog: pytest.LogCaptureFixture) -> None:
    core = Core(Options(connect_timeout=9.0), random=Random(1))
    with caplog.at_level(logging.INFO, "contrada.client"):
        core.start(0.0)
        for reason in ("nobody listens", "nobody listens", "no such host", "no such host"):
            core.failed(Input.CUT, reason, 4.0)
    assert caplog.messages == ["nobody listens; trying for 5 s", "no such host; trying for 5 s"]


def test_a_host_that_cannot_be_found_is_named() -> None:
    with pytest.raises(contrada.Disconnected, match=r"there is no host 'nowhere\.invalid'"):
        contrada.Client("tcp://nowhere.invalid:7400", connect_timeout=3.0)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("tcp://broker.example:7400", "broker.example"),
        ("tcp://localhost:7400", "localhost"),
        ("tcp://127.0.0.1:7400", None),
        ("tcp://[::1]:7400", None),
        ("tcp://127.0.0.1:0;broker.example:7400", "broker.example"),
        ("ipc:///run/contrada", None),
    ],
)
def test_which_hosts_are_looked_up(url: str, name: str | None) -> None:
    assert host_name(url) == name


def test_attaching_to_a_name_that_the_index_does_not_have_is_told(tmp_path: Path) -> None:
    write_index(tmp_path / "standing", [("s1", "harbour", "wind > 90")])
    with Broker(index=tmp_path / "standing", shutdown_timeout=0.5) as broker:
        options = ["--url", broker.url, "--timeout", "0"]
        told = CliRunner().invoke(cli.app, ["sub", "--attach", "harbor", *options])
        assert told.exit_code == 1
        assert "no interface 'harbor'" in told.stderr
        assert CliRunner().invoke(cli.app, ["sub", "--attach", "harbour", *options]).exit_code == 0
        with Client(broker.url) as client:
            assert not client.attach("harbor").known
            assert client.attach("harbour").known


def test_the_overlay_is_shown_by_names_where_there_are_some() -> None:
    document = {
        "broker": "b-1",
        "overlay": {
            "names": {"b-1": "north", "b-2": "south"},
            "brokers": [
                {"broker": each, "neighbours": ["b-2"], "tree": ["b-3"], "reachable": True} for each in ("b-1", "b-3")
            ],
            "links": [{"neighbour": "b-2", "up": True}],
        },
    }
    console = Console(width=200, record=True, file=StringIO())
    console.print(overlay_table(document, "tcp://there:1"))
    shown = console.export_text()
    assert "b-1" not in shown
    assert "b-2" not in shown
    assert shown.count("north") == 2
    assert shown.count("south") == 3
    assert "b-3" in shown, "it has no other name"


@pytest.mark.parametrize(
    ("loaded", "not_yet"),
    [
        ("contrada.client.transport, contrada.client.blocking", "asyncio numpy numba shapely"),
        ("contrada.broker.node.server", "asyncio numpy numba shapely prometheus_client"),
        ("contrada.client.cli.main", "contrada.client.cli.commands contrada.client.cli.jobs zmq rich.markup"),
    ],
)
def test_what_a_command_does_not_need_is_not_loaded(loaded: str, not_yet: str) -> None:
    program = f"import {loaded}, sys; print(sorted(set({not_yet.split()!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_the_command_that_is_run_is_imported() -> None:
    program = "import sys; from contrada.client.cli.main import make_app; make_app('pub'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = ("contrada.client.cli.commands.", "contrada.client.cli.jobs.")
    commands = [name for name in done.stdout.split() if name.startswith(rooms)]
    assert commands == ["contrada.client.cli.commands.pub"]
