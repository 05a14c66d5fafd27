"""The public face: `__all__`, docs/api.md, what `help` says and what a type checker sees are one list."""

from __future__ import annotations

import inspect
import re
from types import UnionType

import pytest

import contrada
from tests.test_habits import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text()
LISTED = re.findall(r"^\| `(\w+)` \| (.+?) \| \[.+?\]\((.+?)\) \|$", PAGE, re.MULTILINE)
NAMES = sorted(set(contrada.__all__) - {"__version__"})


def test_the_page_lists_every_public_name_once():
    assert sorted(name for name, _, _ in LISTED) == NAMES
    assert "`__version__`" in PAGE


def test_where_a_name_is_told_there_is_a_page():
    for name, line, page in LISTED:
        assert (ROOT / "docs" / page).exists(), name
        assert 5 < len(line) < 100, name


@pytest.mark.parametrize("name", NAMES)
def test_help_is_useful(name):
    value = getattr(contrada, name)
    if isinstance(value, UnionType):
        return  # an alias for annotations: its members have the help
    assert (inspect.getdoc(value) or "").strip(), name
    if inspect.isclass(value):
        assert value.__doc__ or issubclass(value, Exception), f"{name} has only the help of its base"
        for member, found in vars(value).items():
            if member[0] != "_" and (inspect.isfunction(found) or isinstance(found, property | classmethod)):
                assert inspect.getdoc(getattr(value, member)), f"{name}.{member}"


@pytest.mark.parametrize("name", NAMES)
def test_public_functions_are_annotated(name):
    value = getattr(contrada, name)
    functions = [value] if inspect.isfunction(value) else []
    if inspect.isclass(value):
        functions = [found for member, found in vars(value).items() if member[0] != "_" and inspect.isfunction(found)]
    for function in functions:
        parameters = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
        assert all(each.annotation is not each.empty for each in parameters), f"{name}: {function.__name__}"
        assert "return" in function.__annotations__, f"{name}: {function.__name__}"


def test_types_ship_with_the_package():
    assert (ROOT / "src" / "contrada" / "py.typed").exists()
