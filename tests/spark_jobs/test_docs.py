"""The examples of docs/spark.md run, and its commands and options exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contrada.client.cli.main import app

TEXT = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", TEXT, re.S))
def test_the_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "docs/spark.md", "exec"), {})


def test_the_options_exist() -> None:
    for command in sorted(set(re.findall(r"contrada (build-index|replay)\b", TEXT))):
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).stdout
        lines = [line.split("#")[0] for line in TEXT.splitlines() if f"contrada {command} " in line]
        for option in {option for line in lines for option in re.findall(r"--[a-z-]+", line)}:
            assert option in shown, f"{command} has no {option}"
