"""README's examples, run as they stand, one after the other in one namespace."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_python_examples_run(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 4
    namespace: dict[str, object] = {"__name__": "readme"}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"README.md, python block {number}", "exec"), namespace)
    said = capsys.readouterr().out
    assert said.startswith("120 POLYGON")
    assert "yes hazard > 3" in said


def test_every_file_that_readme_names_is_there():
    for target in re.findall(r"\]\(((?!https?:)[^)#]+)", README.read_text()):
        assert (README.parent / target).exists(), target
