"""The examples of docs/forwarding.md run, and the page names every public method."""

from __future__ import annotations

import re
from pathlib import Path

from contrada.forwarding.table.table import ForwardingTable
from contrada.forwarding.types.plugged import TYPES

PAGE = (Path(__file__).parents[2] / "docs" / "forwarding.md").read_text()


def test_the_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/forwarding.md", "exec"), {})


def test_every_method_is_named() -> None:
    methods = [name for name in vars(ForwardingTable) if not name.startswith("_")]
    assert [name for name in methods if f"{name}(" not in PAGE and f"`{name}`" not in PAGE] == []


def test_every_type_can_be_made() -> None:
    from contrada.forwarding.types.plugged import Settings, make_type
    from contrada.spatial.relations.relate import EXACT

    for kind in TYPES:
        make_type(kind, Settings(EXACT, "scan", None))._check()
