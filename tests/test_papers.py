"""docs/papers.md: every short name that is cited is listed there, and everything it points to exists."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.test_habits import ROOT, sources

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (ROOT / "docs" / "papers.md").read_text()
CITED = re.compile(r"(?<![\w\]])\[((?=[A-Z0-9-]*[A-Z]{2})[A-Z0-9]+(?:-[A-Z0-9]+)+|[A-Z]{3,})\](?![(:\[])")
NUMBERED = re.compile(r"\b[Pp]apers? [1-5]\b")
LISTED = set(re.findall(r"^(?:## |\| )\[([A-Z0-9-]+)\]", PAGE, re.MULTILINE))
FIVE = ["SIENA-2D", "RT-TREE", "LFILTER", "AP-TREE", "ROADS"]


def prose(path: Path) -> Iterator[str]:
    """What a Python file says to its readers: docstrings, comments, and the texts that it prints."""
    text = path.read_text()
    if not CITED.search(text) and not NUMBERED.search(text):
        return  # most files cite nothing, and need not be parsed
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@pytest.mark.parametrize("folder", ["benchmarks", "broker", "client", "forwarding", "spark_jobs", "spatial", "tests"])
def test_every_citation_in_code_is_listed(folder):
    for path in sources(folder):
        if path.name != Path(__file__).name:
            for text in prose(path):
                assert set(CITED.findall(text)) <= LISTED, path
                assert not NUMBERED.search(text), f"{path}: cite the paper by its short name"


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda path: path.name)
def test_every_citation_in_docs_is_listed(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    text = re.sub(r"^## \[Unreleased\]", "", text, flags=re.MULTILINE)
    assert set(CITED.findall(text)) <= LISTED, page.name
    assert not NUMBERED.search(text), f"{page.name}: cite the paper by its short name"


def test_everything_the_page_points_to_exists():
    named = re.findall(r"`([a-z_]+/[\w/.]+)`", PAGE)
    assert len(named) > 40
    assert [name for name in named if not (ROOT / name).exists()] == []
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / link).exists(), link


def test_the_five_papers_have_everything_that_is_asked_of_them():
    assert [*FIVE] == re.findall(r"^## \[([A-Z0-9-]+)\]", PAGE, re.MULTILINE)
    for part in PAGE.split("\n## ")[1 : len(FIVE) + 1]:
        for wanted in ("| of it | where |", "Where we deviate:", "| | printed | measured here |", "*"):
            assert wanted in part, part.splitlines()[0]


def test_the_five_papers_are_cited_where_the_page_says():
    code = {path: "".join(prose(path)) for folder in ("spatial", "forwarding") for path in sources(folder)}
    for name in FIVE:
        assert any(f"[{name}]" in text for text in code.values()), name
