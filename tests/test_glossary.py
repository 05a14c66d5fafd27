"""The glossary of docs/architecture.md: words that were given up are in no name, and each in use is defined once."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

import pytest

import contrada
from tests.test_habits import ROOT, sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = (ROOT / "docs" / "architecture.md").read_text()
GLOSSARY, GIVEN_UP = PAGE.split("## Glossary")[1].split("### Words given up")
PRODUCT = ("broker", "client", "forwarding", "spark_jobs", "spatial")

# Where a word given up is the right one: (path, name) and why.
ALLOWED = {
    ("broker/core/core.py", "_handle"): "the verb: what is done with a message",
    ("spatial/relations/contacts.py", "_witness"): "the word of [SIENA-2D] for a point that proves an intersection",
}


def given_up() -> dict[str, tuple[str, ...]]:
    """Each word that was given up, with the folders in which it must not occur."""
    words = {}
    for listed, _, folders in re.findall(r"^\| (`.+?) \| (.+?) \| (.+?) \|$", GIVEN_UP, re.MULTILINE):
        for word in re.findall(r"`(\w+)`", listed):
            words[word] = PRODUCT if folders == "all" else tuple(folders.split(", "))
    return words


WORDS = given_up()


def words_of(name: str) -> set[str]:
    """The words of an identifier: of `_nextBatch` and `next_batch` "next" and "batch"."""
    return set(re.findall(r"[a-z]+", re.sub(r"([A-Z][a-z])", r"_\1", name).lower()))


def named(path: Path) -> Iterator[str]:
    """What a module defines: itself, classes, functions, arguments, attributes and variables that outlive a call."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


@pytest.mark.parametrize("folder", PRODUCT)
def test_names_use_no_word_that_was_given_up(folder):
    forbidden = {word for word, folders in WORDS.items() if folder in folders}
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in sources(folder)
        for name in named(path)
        if words_of(name) & forbidden
    }
    assert sorted(found - set(ALLOWED)) == []


def test_public_names_use_no_word_that_was_given_up():
    forbidden = {word for word, folders in WORDS.items() if folders == PRODUCT} | {"handle"}
    for name in contrada.__all__:
        value = getattr(contrada, name)
        members = {member for member in vars(value) if member[0] != "_"} if inspect.isclass(value) else set()
        for each in {name, *members}:
            assert not words_of(each) & forbidden, f"{name}: {each}"


def test_metrics_use_no_word_that_was_given_up():
    text = (ROOT / "broker" / "node" / "metrics.py").read_text()
    for name in re.findall(r'"(contrada_\w+|[a-z]+(?:_[a-z]+)+)"', text):
        assert not words_of(name) & set(WORDS), name


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda path: path.name)
def test_headings_use_no_word_that_was_given_up(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for heading in re.findall(r"^#+ (.+)", text, re.MULTILINE):
        assert not words_of(heading) & set(WORDS), heading


def test_every_word_is_defined_once():
    defined = re.findall(r"^\| ([\w ,]+?) \|", GLOSSARY, re.MULTILINE)
    words = [word for entry in defined for word in entry.split(", ")]
    assert len(words) == len(set(words))
    for word in (
        "notification",
        "constraint",
        "filter",
        "predicate",
        "interface",
        "interface number",
        "batch",
        "receiver",
    ):
        assert word in words
    assert not set(words) & set(WORDS)


def test_identifiers_are_read_word_by_word():
    assert words_of("_next_handle") == {"next", "handle"}
    assert words_of("HTTPParcel2") >= {"parcel"}
    assert words_of("handler") == {"handler"}
