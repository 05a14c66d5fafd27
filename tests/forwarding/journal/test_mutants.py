"""Without any one of its syncs or checks, the journal loses something, and the auditor says so.

Every call by one of these names in the journal's modules is taken out, one at a time, and the simulated crashes are run
until one of them shows it. Whoever adds a sync adds a mutant, too.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from contrada.forwarding.journal import journal, recovery, scan, tail
from contrada.forwarding.journal.disk import REAL_DISK
from tests.forwarding.journal.auditor import Auditor, Lost, audit_lenient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FunctionType, ModuleType

SYNCS = ("sync", "sync_directory", "_sync_found")  # taken out
CHECKS = ("checksum_holds", "follows")  # believed
RUNS = 600  # of 20 crashes each; most show it within ten


class Mutant(NamedTuple):
    """A function without one of its calls."""

    module: ModuleType
    owner: str  # class, or empty
    function: str
    call: str
    number: int  # of the calls by that name in the function

    def __str__(self) -> str:
        owner = f"{self.owner}." if self.owner else ""
        return f"{self.module.__name__.rsplit('.', 1)[1]}.{owner}{self.function}:{self.call}-{self.number}"

    @property
    def target(self) -> FunctionType:
        holder: Any = getattr(self.module, self.owner) if self.owner else self.module
        return getattr(holder, self.function)


def name_of(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def calls(function: ast.AST, name: str) -> list[ast.Call]:
    found = [node for node in ast.walk(function) if isinstance(node, ast.Call) and name_of(node) == name]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def functions(module: ModuleType) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.FunctionDef):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            yield from ((node.name, each) for each in node.body if isinstance(each, ast.FunctionDef))


def mutants() -> list[Mutant]:
    return [
        Mutant(module, owner, function.name, name, number)
        for module in (journal, tail, scan, recovery)
        for owner, function in functions(module)
        for name in (*SYNCS, *CHECKS)
        for number in range(len(calls(function, name)))
    ]


def mutated(mutant: Mutant) -> Any:
    """The code of the function without the call: None in its place, or the answer that all is well."""
    function = next(
        node for owner, node in functions(mutant.module) if (owner, node.name) == (mutant.owner, mutant.function)
    )
    gone = calls(function, mutant.call)[mutant.number]

    class Remove(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            return ast.copy_location(ast.Constant(mutant.call in CHECKS or None), node) if node is gone else node

    tree = ast.fix_missing_locations(ast.Module([Remove().visit(function)], []))
    names: dict[str, Any] = {}
    flags = __future__.annotations.compiler_flag
    exec(compile(tree, f"<{mutant}>", "exec", flags, dont_inherit=True), dict(vars(mutant.module)), names)
    return names[mutant.function].__code__


def tells_damage_when_opened(directory: Path) -> bool:
    """Whether a bit that has flipped long before the end is known before somebody reads there."""
    with journal.Journal.open(directory) as made:
        for number in range(9):
            made.append(1, b"entry %d" % number)
            made.commit()
    (path,) = directory.glob("*.rec")
    content = bytearray(path.read_bytes())
    content[content.index(b"entry 4")] ^= 1
    path.write_bytes(content)
    with journal.Journal.open(directory) as opened:
        return bool(opened.recovery.damaged)


MUTANTS = mutants()


def test_there_are_mutants_of_every_kind() -> None:
    assert {mutant.call for mutant in MUTANTS} == {*SYNCS, *CHECKS}
    assert len([mutant for mutant in MUTANTS if mutant.call in SYNCS]) >= 10


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_auditor_misses_every_sync_and_every_check(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mutant.target, "__code__", mutated(mutant))
    if mutant.call in CHECKS and not tells_damage_when_opened(tmp_path):
        return
    for seed in range(RUNS):
        try:
            Auditor(seed, 20, damage=mutant.call in CHECKS or seed % 2 == 1).run()
            audit_lenient(seed, 5)
        except (Lost, OSError):
            return
    pytest.fail(f"{RUNS} runs without {mutant}, and nobody noticed")


def test_a_real_disk_is_really_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, int]] = []
    real = {"fsync": os.fsync, "fdatasync": os.fdatasync}
    for name in real:
        monkeypatch.setattr(
            os, name, lambda file, name=name: synced.append((name, os.fstat(file).st_ino)) or real[name](file)
        )
    file = REAL_DISK.create(tmp_path / "file")
    REAL_DISK.sync(file)
    REAL_DISK.sync_directory(tmp_path)
    REAL_DISK.close(file)
    assert synced == [("fdatasync", (tmp_path / "file").stat().st_ino), ("fsync", tmp_path.stat().st_ino)]
