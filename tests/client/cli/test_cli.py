"""The command line: every example of every --help runs, every command and option is documented, exit codes hold."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from typer.testing import CliRunner

import contrada
from contrada.broker.node.settings import Settings
from contrada.client.cli import main as cli
from contrada.client.cli import settings
from contrada.client.cli.commands.broker import broker
from contrada.client.cli.json_input import Lines, batches
from contrada.forwarding.segments.index_directory import write_index

if TYPE_CHECKING:
    from contrada.broker.node.server import Broker

ROOT = Path(__file__).parents[3]
COMMANDS = typer.main.get_command(cli.app).commands
LONG = {"broker", "bench", "demo"}  # tested as processes, in test_processes.py


def examples(name: str) -> tuple[str, ...]:
    found: tuple[str, ...] = cli.command_module(name.replace("-", "_")).EXAMPLES
    return found


@pytest.fixture
def shell(tmp_path: Path, url: str) -> dict[str, str]:
    """An environment in which `contrada` is this package's, and finds the test's broker."""
    program = tmp_path / "bin" / "contrada"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m contrada "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry and Path(entry).exists())
    kernels = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # or each command would compile its own
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CACHE_HOME": kernels}
    return {
        **os.environ,
        **home,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": path,
        "CONTRADA_URL": url,
    }


def sh(command: str, env: dict[str, str], cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, shell=True, env=env, cwd=cwd, capture_output=True, text=True, timeout=60, **options)


# ---------------------------------------------------------------------------------------------- documentation


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_option_is_documented(name: str) -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    sections = dict(re.findall(r"^## `contrada ([\w-]+)`\n(.*?)(?=^## |\Z)", text, re.S | re.M))
    assert name in sections, f"docs/cli.md lacks a section on `contrada {name}`"
    shared = re.search(r"^`pub`, `sub`, .* all take .*$", text, re.M)
    assert shared is not None
    for parameter in COMMANDS[name].params:
        for flag in parameter.opts:
            if flag.startswith("--") and flag != "--help":
                assert flag in sections[name] or flag in shared[0], f"docs/cli.md lacks {flag} of `contrada {name}`"


def test_every_option_of_broker_is_a_setting_or_the_gateway_s() -> None:
    options = set(signature(broker).parameters)
    assert options - {field.name for field in fields(Settings)} == {"peer", "http", "mqtt", "tokens", "config", "quiet"}


def test_no_section_is_left_over() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    assert set(re.findall(r"^## `contrada ([\w-]+)`", text, re.M)) == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_ends_with_the_examples(name: str) -> None:
    result = CliRunner().invoke(cli.app, [name, "--help"], env={"COLUMNS": "300", "TERM": "dumb", "NO_COLOR": "1"})
    assert result.exit_code == 0
    told = re.sub(r"\s+", " ", result.output)
    assert examples(name)
    for example in examples(name):
        assert example.startswith(("contrada ", "echo "))
        assert re.sub(r"\s+", " ", example) in told


def test_every_option_of_index_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    for name, command in COMMANDS["index"].commands.items():
        assert f"index {name}" in text
        for flag in (flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")):
            assert flag in text or flag == "--help"


# ---------------------------------------------------------------------------------------------- examples


def test_examples_of_index(shell: dict[str, str], tmp_path: Path, url: str) -> None:
    write_index(tmp_path / "standing", [("s1", "harbour", "wind > 200")])
    with contrada.Client(url) as c, c.attach("harbour") as harbour:
        for example in examples("index"):
            result = sh(example, shell, tmp_path)
            assert result.returncode == 0, result.stderr
            assert isinstance(json.loads(result.stdout), dict)
            if " load " in example:
                assert "filters of" in result.stderr
                c.publish({"wind": 201})
            elif " add " in example:
                c.publish({"wind": 91, "area": contrada.Point(1, 1)})
        winds = [harbour.get(timeout=10)["wind"] for _ in range(harbour.pending)]
        assert winds[-1] == 91
        attached = sh("contrada sub --attach harbour --timeout 0.1", shell, tmp_path)
        assert attached.returncode == 0, attached.stderr
        neither = sh("contrada sub --timeout 0.1", shell, tmp_path)
        assert neither.returncode == 2
        bad = sh("contrada index load nowhere", shell, tmp_path)
        assert (bad.returncode, "not an index" in bad.stderr) == (1, True)


@pytest.mark.parametrize("example", examples("pub"))
def test_examples_of_pub(example: str, shell: dict[str, str], tmp_path: Path, url: str) -> None:
    feature = {
        "type": "Feature",
        "properties": {"wind": 120, "note": None},
        "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 0]]]},
    }
    collection = {"type": "FeatureCollection", "features": [feature, feature]}
    (tmp_path / "storms.geojson").write_text(json.dumps(collection, indent=1))
    with contrada.Client(url) as c:
        everything = [c.subscribe(f"{name} exists") for name in ("price", "hazard", "area")]
        result = sh(example, shell, tmp_path)
        assert result.returncode == 0, result.stderr
        ids = result.stdout.split()
        assert ids
        got = {str(sub.get(timeout=10).id) for sub in everything if sub.pending or _arrives(c, sub)}
        assert got <= set(ids)
        assert got


def _arrives(c: contrada.Client, sub: Any) -> bool:
    """Whether something is there, once everything published before has been delivered."""
    c.publish({"barrier": 1})
    c.status()
    return bool(sub.pending)


@pytest.mark.parametrize("example", examples("sub"))
def test_examples_of_sub(example: str, shell: dict[str, str], tmp_path: Path, url: str) -> None:
    storm = {"wind": 120, "area": contrada.Region([(5, 5), (12, 5), (12, 12)])}
    done = threading.Event()

    def publish() -> None:
        with contrada.Client(url) as c:
            while not done.wait(0.02):
                c.publish_many([{"hazard": 4}, storm, {"stock": "MTK", "price": 50}, {"stock": "DYS"}])

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        result = sh(example.replace("--timeout 10", "--timeout 2"), shell, tmp_path)
    finally:
        done.set()
        publisher.join()
    assert result.returncode == 0, result.stderr
    assert "subscription 1 of session" in result.stderr
    assert result.stdout.strip()
    if "--pretty" not in example:
        for line in result.stdout.splitlines():
            json.loads(line)


@pytest.mark.parametrize("example", examples("status"))
def test_examples_of_status(example: str, shell: dict[str, str], tmp_path: Path, broker: Broker) -> None:
    with contrada.Client(broker.url, name="somebody") as c:
        c.subscribe("n exists")
        result = sh(example, shell, tmp_path)
        assert result.returncode == 0, result.stderr
        assert broker.id in result.stdout
        assert ("on the tree" if "--cluster" in example else "somebody") in result.stdout
        if "--json" in example:
            assert json.loads(result.stdout)["subscriptions"] == 1


@pytest.mark.parametrize("example", examples("explain"))
def test_examples_of_explain(example: str, shell: dict[str, str], tmp_path: Path, url: str) -> None:
    with contrada.Client(url) as c:
        sub = c.subscribe("hazard > 3")
        for hazard, code in ((4, 0), (2, 1)):
            id = c.publish({"hazard": hazard})
            command = re.sub(r"b-\w+:\d+", str(id), example).replace("--session 3", f"--session {c.session}")
            command = command.replace("--subscription 1", f"--subscription {sub.id}")
            result = sh(command, shell, tmp_path)
            assert result.returncode == code, result.stderr
            assert ("delivered" if hazard == 4 else "no-match") in result.stdout


@pytest.mark.parametrize("example", examples("keygen"))
def test_examples_of_keygen(example: str, shell: dict[str, str], tmp_path: Path) -> None:
    result = sh(example, shell, tmp_path)
    assert result.returncode == 0, result.stderr
    public, secret = (tmp_path / line for line in result.stdout.split())
    assert public.exists()
    assert secret.stat().st_mode & 0o077 == 0
    again = sh(example, shell, tmp_path)
    assert again.returncode == 1
    assert "exists already" in again.stderr


# ---------------------------------------------------------------------------------------------- exit codes


def test_exit_codes_and_messages(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("CONTRADA_URL", url)
    monkeypatch.chdir(tmp_path)

    def outcome(*arguments: str, stdin: str = "") -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["contrada", *arguments])
        (tmp_path / "input").write_text(stdin)
        with (tmp_path / "input").open() as opened:
            monkeypatch.setattr("sys.stdin", opened)
            with pytest.raises(SystemExit) as end:
                cli.main()
        return int(end.value.code or 0), capsys.readouterr().err

    code, told = outcome("pub", "{oops")
    assert code == 1
    assert "argument 1, line 1: not JSON" in told
    code, told = outcome("pub", stdin='{"a": 1}\n{"b": [null]}\n')
    assert code == 1
    assert "standard input, line 2" in told
    code, told = outcome("sub", "hazard >")
    assert code == 1
    assert "^" in told, "the syntax error shows where"
    assert outcome("sub", "n exists", "--count", "1", "--timeout", "0.1")[0] == 4
    assert outcome("sub")[0] == 2
    code, told = outcome("explain", f"b:{2**64}", "--session", "1", "--subscription", "1")
    assert (code, "is not a notification id" in told) == (1, True)
    (tmp_path / "file").touch()
    code, told = outcome("keygen", "x", "--directory", "file")
    assert (code, "cannot write the key" in told) == (1, True)
    assert outcome("sub", "n exists", "--policy", "shrug")[0] == 1
    assert outcome("nonsense")[0] == 2
    code, told = outcome("status", "--url", "tcp://127.0.0.1:9", "--connect-timeout", "0.2")
    assert code == 3
    assert "no connection" in told
    code, told = outcome("status", "--config", "missing.toml")
    assert code == 1
    assert "missing.toml" in told


def test_ctrl_c_ends_sub_with_130(shell: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "contrada", "sub", "n exists"]
    with subprocess.Popen(command, env=shell, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "subscription 1" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert "Traceback" not in process.stderr.read()


def test_a_reader_that_leaves_is_no_error(shell: dict[str, str], tmp_path: Path, url: str) -> None:
    done = threading.Event()

    def publish() -> None:
        with contrada.Client(url) as c:
            while not done.wait(0.01):
                c.publish({"n": 1})

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        result = sh("contrada sub 'n exists' --timeout 20 | head -1", shell, tmp_path)
    finally:
        done.set()
        publisher.join()
    assert result.stdout.count("\n") == 1
    assert "Traceback" not in result.stderr


def test_version() -> None:
    result = CliRunner().invoke(cli.app, ["--version"])
    assert result.output == f"contrada {contrada.__version__}\n"


# ---------------------------------------------------------------------------------------------- reading


def read(text: str, geometry: str = "area") -> list[dict[str, Any]]:
    return [n for batch in batches([Lines("here", text.encode())], geometry) for n in batch]


def test_pub_reads_lines_arrays_documents_and_collections() -> None:
    assert read('{"a": 1}\n\n{"a": 2}\n') == [{"a": 1}, {"a": 2}]
    assert read('[{"a": 1},\n {"a": 2}]') == [{"a": 1}, {"a": 2}]
    assert read('{\n "a": 1\n}\n{"a":\n2}') == [{"a": 1}, {"a": 2}]
    assert read("") == []
    assert read('\ufeff{"a": "x\u2028y\x85]{"}\r\n') == [{"a": "x\u2028y\x85]{"}]
    point = {"type": "Feature", "properties": {"b": 2, "c": None}, "geometry": {"type": "Point", "coordinates": [1, 2]}}
    assert read(json.dumps({"type": "FeatureCollection", "features": [point]})) == [
        {"b": 2, "area": contrada.Point(1, 2)}
    ]
    assert read(json.dumps({"type": "Feature", "properties": {"b": 2}, "geometry": None})) == [{"b": 2}]
    many = json.dumps({"type": "FeatureCollection", "features": [point] * 20_000}, indent=1)  # minutes, if quadratic
    assert len(read(many + "\n" + many)) == 40_000


@pytest.mark.parametrize(
    ("wrong", "line", "why"),
    [
        ('{"a": 1', 1, "ends inside"),
        ("[1]", 1, "item 0"),
        ('{"a": [[1]]}', 1, "attribute 'a'"),
        ("3", 1, "object"),
        ('{"a": NaN}', 1, "NaN"),
        ('{"a": 1}\n{"a": 1\n{"a": 2}\n', 3, "not JSON"),
        ('{"a": 1}\n\n{"a": 1, "a": 2}', 3, "'a' is there twice"),
        ("[" * 200_000, 1, "nested too deeply|ends inside"),
        ('{"type": "FeatureCollection"}', 1, "features"),
        ('{"type": "Feature", "properties": [], "geometry": null}', 1, "properties"),
        ('{"type": "Feature", "properties": {}, "geometry": "POINT(1 2)"}', 1, "geometry"),
        ('{"type": "Feature", "properties": {"area": 1}, "geometry": {"type": "Point"}}', 1, "--geometry"),
    ],
)
def test_pub_names_the_line_of_a_mistake(wrong: str, line: int, why: str) -> None:
    with pytest.raises(contrada.CodecError, match=why) as caught:
        read(wrong)
    assert f"here, line {line}" in str(caught.value) or f"line {line}" in str(caught.value)


def test_pub_loses_nothing_that_comes_before_a_mistake(shell: dict[str, str], tmp_path: Path, url: str) -> None:
    lines = "".join(f'{{"n": {n}}}\n' for n in range(300)) + '{"n": oops}\n{"n": 301}\n'
    with contrada.Client(url) as c:
        sub = c.subscribe("n >= 0")
        result = sh("contrada pub", shell, tmp_path, input=lines)
        assert result.returncode == 1
        assert "standard input, line 301: not JSON" in result.stderr
        assert "published 300 before the mistake" in result.stderr
        assert len(result.stdout.split()) == 300
        assert [sub.get(timeout=30)["n"] for _ in range(300)] == list(range(300))


def test_pub_does_not_wait_for_the_end_of_its_input(shell: dict[str, str], tmp_path: Path) -> None:
    """At the end of a pipe, or of a person's patience, each line is published when it comes."""
    command = [sys.executable, "-m", "contrada", "pub"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=shell, cwd=tmp_path, text=True, **pipes) as process:
        for _ in range(3):
            process.stdin.write('{"n": 1}\n')
            process.stdin.flush()
            assert ":" in process.stdout.readline(), process.stderr.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert "Traceback" not in process.stderr.read()


def test_settings_come_from_the_nearest_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert settings.load().address(None) == settings.DEFAULT_URL
    (tmp_path / "config" / "contrada").mkdir(parents=True)
    (tmp_path / "config" / "contrada" / "config.toml").write_text('url = "tcp://home:1"\n')
    assert settings.load().address(None) == "tcp://home:1"
    (tmp_path / "k.toml").touch()
    (tmp_path / "contrada.toml").write_text('url = "tcp://here:1"\n[client]\nname = "n"\nkey = "k.toml"\n')
    assert settings.load().address(None) == "tcp://here:1"
    assert settings.load().client == {"name": "n", "key": "k.toml"}
    assert settings.load().address("tcp://option:1") == "tcp://option:1"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("url = 3", "url"),
        ("[clint]\n", "clint"),
        ("[client]\nnmae = 1", "nmae"),
        ("client = 1", "table"),
        ("=", "read"),
    ],
)
def test_bad_settings_are_named(text: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "contrada.toml"
    path.write_text(text)
    with pytest.raises(contrada.InvalidValue, match=fault):
        settings.read(path)


def test_directories_in_a_file_are_beside_it_even_before_they_exist(tmp_path: Path) -> None:
    (tmp_path / "contrada.toml").write_text('[broker]\nrecord = "log"\nindex = "/standing"\nrecord_sync = "always"\n')
    told = settings.read(tmp_path / "contrada.toml").broker
    assert (told["record"], told["index"]) == (str(tmp_path / "log"), "/standing")


def test_what_is_durable_from_the_command_line(shell: dict[str, str], tmp_path: Path) -> None:
    with contrada.Broker(data=tmp_path / "data", durable={"attempts": 1}) as broker:
        env = {**shell, "CONTRADA_URL": broker.url}
        first = sh("contrada sub 'hazard > 3' --durable desk-7 --count 1 --timeout 0.1", env, tmp_path)
        assert first.returncode == 4
        for example in cli.command_module("pub").DURABLE_EXAMPLES * 2:
            assert sh(example, env, tmp_path).returncode == 0
        again = sh("contrada sub 'hazard > 3' --durable desk-7 --count 1 --timeout 10 --bare", env, tmp_path)
        assert (again.returncode, json.loads(again.stdout)) == (0, {"hazard": 4})
        twice = [sh("""contrada pub --durable --id leak-99 '{"x": 1}'""", env, tmp_path).stdout for _ in range(2)]
        assert twice[0] == twice[1], "a retry by another process was accepted again"
        past = sh("contrada sub 'vehicle = 17' --durable road --since all --count 2 --timeout 10 --bare", env, tmp_path)
        assert [json.loads(line)["speed"] for line in past.stdout.splitlines()] == [42, 42]
        long = "of a fleet that has a name too long for the table".replace(" ", "-")
        contrada.Client(broker.url).subscribe("x > 1", durable=long).close()
        assert long in sh("contrada subs ls", env, tmp_path).stdout  # what `rm` asks for is shown whole
        assert sh(f"contrada subs rm {long}", env, tmp_path).returncode == 0
        for example in examples("subs"):
            result = sh(example, env, tmp_path)
            assert result.returncode == 0, result.stderr
        left = [json.loads(line) for line in sh("contrada subs ls --json", env, tmp_path).stdout.splitlines()]
        assert [(each["name"], each["waiting"]) for each in left] == [("road", 0)]
        gone = sh("contrada subs dead desk-7", env, tmp_path)
        assert (gone.returncode, "no durable subscription" in gone.stderr) == (1, True)
