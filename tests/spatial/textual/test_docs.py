"""docs/geotext.md says what is there, and its second example runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrada.spatial.textual.registry import NAMES

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[3] / "docs" / "geotext.md"


def test_every_index_has_a_line() -> None:
    table = PAGE.read_text().split("## Choosing an index")[1].split("##")[0]
    for name in NAMES:
        assert f"`{name}`" in table


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        names: dict[str, Any] = {}
        exec(block, names)
    assert names["index"].search({"tram", "strike"}, (5.0, 5.0, 5.0, 5.0)).tolist() == [2, 3]
