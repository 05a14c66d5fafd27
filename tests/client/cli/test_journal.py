"""`contrada journal`: what a broker wrote is listed, printed and checked; damage is told and changes the exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import contrada
from contrada.client.cli import main as cli

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

PATIENCE = 30.0


def run(*words: object) -> Result:
    return CliRunner().invoke(cli.app, ["journal", *map(str, words)], env={"COLUMNS": "200", "TERM": "dumb"})


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """What a broker that records and keeps durable data leaves."""
    with (
        contrada.Broker(data=tmp_path / "data", record=tmp_path / "log") as broker,
        contrada.Client(broker.url) as client,
        client.subscribe("hazard > 3", durable="desk-7") as desk,
    ):
        for number in range(5):
            client.publish({"hazard": number, "place": contrada.Point(1, 2)}, durable=True)
        assert desk.get(timeout=PATIENCE)["hazard"] == 4
    return tmp_path


def test_every_example_runs(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written)
    for example in cli.command_module("journal").EXAMPLES:
        told = CliRunner().invoke(cli.app, example.split()[1:])
        assert told.exit_code == 0, told.output


def test_files_are_listed_with_the_numbers_of_their_records(written: Path) -> None:
    (row,) = [json.loads(line) for line in run("ls", written / "log", "--json", "--quiet").stdout.splitlines()]
    assert row["file"] == "00000001.rec"
    assert row["first"] == 1
    assert row["bytes"] == (written / "log" / "00000001.rec").stat().st_size
    assert row["begun"].startswith("20")
    records = run("cat", written / "log", "--quiet").stdout.splitlines()
    assert row["last"] == json.loads(records[-1])["number"]
    assert "00000001.rec" in run("ls", written / "log").stdout


def test_records_are_printed_with_their_notifications(written: Path) -> None:
    recorded = [json.loads(line) for line in run("cat", written / "log", "--quiet").stdout.splitlines()]
    assert recorded[0]["kind"] == "started"
    assert recorded[-1]["kind"] == "stopped"
    bodies = [body for each in recorded if each["kind"] == "accepted" for body in each["fields"][3]]
    assert [body["hazard"] for body in bodies] == [0, 1, 2, 3, 4]
    assert bodies[0]["place"] == {"type": "Point", "coordinates": [1.0, 2.0]}
    kept = [json.loads(line) for line in run("cat", written / "data", "--quiet").stdout.splitlines()]
    rows = [row for each in kept for row in each["rows"]]
    assert [row[4]["hazard"] for row in rows if row[0] == "published"] == [0, 1, 2, 3, 4]
    assert [row[0] for row in rows if row[0] == "subscribed"] == ["subscribed"]
    some = run("cat", written / "data", "--from", 2, "--to", 3, "--quiet").stdout.splitlines()
    assert [json.loads(line)["number"] for line in some] == [2, 3]


def test_damage_is_told_with_what_it_cost(written: Path) -> None:
    whole = run("verify", written / "data")
    assert (whole.exit_code, "whole" in whole.stdout) == (0, True)
    (path,) = (written / "data" / "journal").glob("*.rec")
    data = bytearray(path.read_bytes())
    data[data.index(b"hazard")] ^= 1
    path.write_bytes(data)
    hurt = run("verify", written / "data")
    assert (hurt.exit_code, "are lost" in hurt.stdout) == (1, True)
    assert "are lost" in run("cat", written / "data").stderr
    path.write_bytes(data + b"torn")
    assert "torn by a crash" in run("verify", written / "data").stdout


def test_where_there_is_no_journal(tmp_path: Path) -> None:
    for words in (("ls", tmp_path), ("cat", tmp_path / "nowhere"), ("verify", tmp_path)):
        told = run(*words)
        assert isinstance(told.exception, contrada.ContradaError)
        assert "no journal" in str(told.exception) or "cannot be read" in str(told.exception)
