"""docs/geotext.md says what is there, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from contrada.spatial.textual.registry import NAMES

PAGE = Path(__file__).parents[3] / "docs" / "geotext.md"


def test_every_index_has_a_line() -> None:
    table = PAGE.read_text().split("## Choosing an index")[1].split("##")[0]
    for name in NAMES:
        assert f"`{name}`" in table


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
def test_the_examples_run(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(block, names)
    for line, expected in re.findall(r"^([^#\n]+?)\s+# (True|False|array\(.*?\))", block, re.MULTILINE):
        if "index" not in names:
            assert repr(eval(line, names)) == expected
    if "index" in names:
        assert names["index"].search({"tram", "strike"}, (5.0, 5.0, 5.0, 5.0)).tolist() == [2, 3]
