"""examples/spark.ipynb runs from its first cell to its last, in this session."""

from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING, Any

from tests.test_habits import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession


def test_the_notebook_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    notebook = json.loads((ROOT / "examples" / "spark.ipynb").read_text())
    names: dict[str, Any] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        assert cell["outputs"] == []
        exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert names["spark"] is spark
    assert names["streamed"].count() == names["found"].count() > 6
