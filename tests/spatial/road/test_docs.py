"""The examples of docs/roads.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "roads.md"


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
def test_the_examples_run(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, "docs/roads.md", "exec"), {})
    if "print" in block:
        (promised,) = re.findall(r"# … (.*)", block)
        assert promised in capsys.readouterr().out
