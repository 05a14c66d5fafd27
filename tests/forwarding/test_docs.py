"""The examples in the documentation and docstrings of filters and codecs run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from contrada.forwarding.codec.limits import Limits
from contrada.forwarding.language.constraint import Operator

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["filters.md", "codec.md", "distance.md"])
def test_pages(page: str) -> None:
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False)
    assert tried
    assert not failed


@pytest.mark.parametrize(
    "module",
    ["forwarding.language.attr", "forwarding.language.text.parse", "spatial.textual.geotext", "spatial.distance.near"],
)
def test_docstrings(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"contrada.{module}"))
    assert tried
    assert not failed


def test_every_operator_and_limit_is_documented() -> None:
    filters, codec = (DOCS / "filters.md").read_text(), (DOCS / "codec.md").read_text()
    assert not [op.value for op in Operator if f"`{op.value}" not in filters and f'"{op.value}"' not in filters]
    assert all(limit in codec for limit in Limits.__dataclass_fields__)
