"""docs/architecture.md: every folder, module and function that it names exists, and folders say what they hold."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.test_habits import ROOT, sources

PAGE = (ROOT / "docs" / "architecture.md").read_text()
PACKAGES = ("broker", "client", "forwarding", "spark_jobs", "spatial")
NAMED = re.findall(rf"`((?:{'|'.join(PACKAGES)})\.[\w.]+)`", PAGE)
LISTED = re.findall(r"^\| `([a-z_/]+)` \|", PAGE.split("## Folders")[1].split("\n## ")[0], re.MULTILINE)


def resolve(name: str) -> object:
    """What a dotted name below contrada stands for."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = import_module("contrada." + ".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if not f"contrada.{name}".startswith(error.name or "?"):
                raise
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise AttributeError(name)


def test_there_are_walks():
    assert len(NAMED) > 50
    assert {name.split(".")[0] for name in NAMED} == set(PACKAGES)


@pytest.mark.parametrize("name", sorted(set(NAMED)))
def test_what_the_walks_name_exists(name):
    assert callable(resolve(name))


def test_a_name_that_is_not_there_is_noticed():
    with pytest.raises(AttributeError):
        resolve("forwarding.table.table.ForwardingTable.nonsense")
    with pytest.raises(AttributeError):
        resolve("nonsense.nothing")


def test_every_folder_of_the_product_is_in_the_table():
    for folder in LISTED:
        assert (ROOT / folder).is_dir(), folder
    packages = {path.parent.relative_to(ROOT).as_posix() for package in PACKAGES for path in sources(package)}
    assert {folder for folder in packages if folder.count("/") < 2} <= set(LISTED)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_says_what_lives_there(package):
    for init in (path for path in sources(package) if path.name == "__init__.py"):
        assert init.read_text().lstrip().startswith('"""'), init


def test_every_page_is_reached_from_the_readme():
    seen, new = set(), {ROOT / "README.md"}
    while new:
        page = new.pop()
        seen.add(page)
        links = re.findall(r"\]\((?!https?:)([^)#]+\.md)", page.read_text())
        new |= {(page.parent / link).resolve() for link in links} - seen
    assert set((ROOT / "docs").glob("*.md")) <= seen
