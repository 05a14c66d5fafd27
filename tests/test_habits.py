"""Habits of the house that no linter knows: every suppression has a reason, every promise of the metadata is kept."""

from __future__ import annotations

import ast
import importlib
import logging
import re
import tomllib
from pathlib import Path

import pytest

import contrada

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "broker", "client", "forwarding", "spark_jobs", "spatial", "src", "tests")
SUPPRESSION = re.compile(r"# (?:type: ignore|noqa)\b(?:\[[\w, -]+\]|: [A-Z]+\d+(?:, ?[A-Z]+\d+)*)?")


def sources(*folders: str) -> list[Path]:
    """Python files of the repository; the links below src are followed only once, from the root."""
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if "__pycache__" not in path.parts and path.resolve() == path]


def unexplained(text: str) -> list[int]:
    """Lines that tell a linter or the type checker to look away and do not say why."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        last = [*SUPPRESSION.finditer(line)][-1:]
        if last and not re.search(r"\w{2}", line[last[0].end() :]):
            lines.append(number)
    return lines


def test_what_counts_as_a_reason():
    hush, ignore = "# no" + "qa", "# type: " + "ignore"  # put together, or these lines would count
    assert unexplained(f"x = 1  {hush}: E501\ny = 2  {ignore}[arg-type]\nz = 3  {hush}") == [1, 2, 3]
    assert unexplained(f"x = 1  {hush}: E501  # a table\ny = 2  {ignore}[a, b]  # judged below\nz = 3") == []
    assert unexplained(f"x = 1  {hush}: B008 (an immutable tuple)\ny = 2  {ignore}[a] {hush}: B015") == [2]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_suppression_has_its_reason(folder):
    told = [f"{path.relative_to(ROOT)}:{line}" for path in sources(folder) for line in unexplained(path.read_text())]
    assert told == [], "say why, behind the comment: # noqa: RULE  # the reason"


def test_kernels_pack_and_unpack_by_name():
    """Tags, payloads and statuses are taken apart by `kernels/memory/bits.py`, not by shifts."""
    raw = re.compile(r"(?:>>|<<) 33\b|>> COUNTED|& INTERFACE\b|(?:O_TAG|F_STATE|F_ACCESS)\] (?:>> 8|& 255)")
    folder = ROOT / "forwarding" / "kernels"
    elsewhere = {folder / "memory" / "bits.py", folder / "memory" / "postings.py"}
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources("forwarding/kernels")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if path not in elsewhere and raw.search(line)
    ]
    assert found == []


def test_benchmarks_import_what_is_there():
    """No type checker reads them, and hardly anybody runs all of them."""
    missing = []
    for path in sources("benchmarks"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("contrada"):
                module = importlib.import_module(str(node.module))
                there = {*vars(module), *getattr(module, "__all__", ())}
                only_for_checkers = set(
                    re.findall(r"^    (\w+)(?:: TypeAlias)? = ", Path(str(module.__file__)).read_text(), re.MULTILINE)
                )
                folder = Path(str(module.__file__)).parent
                missing += [
                    f"{path.name}:{node.lineno} {each.name}"
                    for each in node.names
                    if each.name not in there | only_for_checkers and not (folder / f"{each.name}.py").exists()
                ]
    assert missing == []


def test_no_test_is_annotated_for_a_checker_that_never_reads_it():
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["packages"]
    assert checked == ["contrada"]
    marks = [path for path in sources("tests") if "# type: " + "ignore" in path.read_text()]
    assert marks == []


def test_the_version_is_written_once_and_has_its_notes():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    released = re.findall(r"^## \[(.+?)\](.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    versions = [version for version, _ in released if version != "Unreleased"]
    assert versions[0] == contrada.__version__
    assert versions == sorted(versions, key=lambda text: [int(part) for part in text.split(".")], reverse=True)
    for version, rest in released:
        assert version == "Unreleased" or re.fullmatch(r" - \d{4}-\d\d-\d\d", rest), version


def test_nothing_that_is_logged_takes_the_name_of_a_field_of_logging():
    """`logging` raises KeyError for those, and only at a level that is shown."""
    taken = {*vars(logging.makeLogRecord({})), "message", "asctime"}
    for path in sources(*FOLDERS):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "extra" and isinstance(node.value, ast.Dict):
                names = {key.value for key in node.value.keys if isinstance(key, ast.Constant)}
                assert not names & taken, f"{path}:{node.value.lineno}"


def test_make_says_what_each_target_does():
    makefile = (ROOT / "Makefile").read_text()
    head = makefile.split("\n\n")[0]
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, re.MULTILINE))
    documented = set(re.findall(r"make ([a-z-]+?)(?:-NAME)?\s", head))
    assert documented - {"bench"} == targets, "the head of the Makefile lists its targets"
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    for habit in ("lint", "types", "imports", "interpreters", "pytest"):
        assert f"`make {habit}`" in guide, habit


def test_the_supported_interpreters_are_those_that_are_run():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = [text.rsplit(" ", 1)[1] for text in project["classifiers"] if "Python :: 3." in text]
    lowest = project["requires-python"].removeprefix(">=")
    assert promised[0] == lowest
    from tests import interpreters

    assert interpreters.promised() == promised
    assert all((ROOT / folder).exists() for folder in interpreters.TESTS)
