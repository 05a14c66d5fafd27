"""What a user installs: the wheel's contents, the cost of importing it, and the names it promises."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import contrada
from contrada import errors

ROOT = Path(__file__).parents[1]
PACKAGES = ["broker", "client", "forwarding", "spark_jobs", "spatial"]
LOOSE = ["__init__.py", "__main__.py", "errors.py", "py.typed"]


def run(*command: str | Path, **environment: str | Path) -> str:
    variables = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=250, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(source: Path, **environment: Path) -> Path:
    leave = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in ["src", *PACKAGES]:
        shutil.copytree(ROOT / part, source / part, symlinks=True, ignore=leave)
    for part in ["pyproject.toml", "setup.py", "README.md", "LICENSE"]:
        shutil.copy(ROOT / part, source)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", source / "dist", source]
    run(*command, **environment)
    (built,) = (source / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("source"))


def test_the_wheel_holds_contrada_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"contrada", f"contrada-{contrada.__version__}.dist-info"}
    assert "contrada/py.typed" in names
    for package in PACKAGES:
        assert f"contrada/{package}/__init__.py" in names
        sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / package).rglob("*.py")}
        assert {f"contrada/{name}" for name in sources} <= set(names)


def test_the_wheel_imports_in_a_clean_environment(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-I", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    said = run(python, "-I", "-c", "import contrada; print(contrada.__version__, contrada.__file__)")
    version, where = said.split()
    assert version == contrada.__version__
    assert Path(where).is_relative_to(tmp_path)


_MATCH = """
import contrada
from contrada.spatial.storage import kernel_cache
names = []
kernel_cache.compiled.append(names.append)
table = contrada.ForwardingTable()
table.add("i", 'x > 3 and s = "k"')
table.add("j", "area overlaps BOX(0 0, 10 10)")
found = table.match({"x": 4, "s": "k", "area": contrada.Box(5, 5, 20, 20)})
print(sorted(found), len(names), len(kernel_cache.used), contrada.__file__)
"""


def test_a_wheel_that_carries_kernels_compiles_nothing_and_writes_nothing(tmp_path):
    run(sys.executable, "-m", "contrada", "warm", "--copy-to", tmp_path / "kernels")
    (tmp_path / "source").mkdir()
    carrying = build_wheel(tmp_path / "source", CONTRADA_CARRY_KERNELS=tmp_path / "kernels")
    assert not carrying.name.endswith("-any.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-I", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", carrying)
    (tmp_path / "file").touch()  # below which no folder can be made
    nowhere = tmp_path / "file" / "kernels"
    needs = sysconfig.get_path("purelib")
    said = run(python, "-c", _MATCH, PYTHONPATH=needs, CONTRADA_KERNELS=nowhere)
    found, compiled, used, where = said.rsplit(maxsplit=3)
    assert found == "['i', 'j']"
    assert (compiled, int(used) > 3) == ("0", True)
    assert Path(where).is_relative_to(tmp_path)


def test_importing_is_cheap():
    heavy = ["numpy", "numba", "shapely", "zmq", "msgpack", "pyspark", "pyarrow", "rich", "typer"]
    code = f"import sys, contrada; print([name for name in {heavy} if name in sys.modules])"
    assert run(sys.executable, "-c", code).strip() == "[]"


def test_every_public_name_resolves():
    assert set(contrada.__all__) <= set(dir(contrada))
    for name in contrada.__all__:
        assert getattr(contrada, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = contrada.nonsense


def test_the_public_names_are_one_list():
    """What `contrada/__init__.py` says three times, for programs, for `import *` and for type checkers, agrees."""
    tree = ast.parse(Path(contrada.__file__).read_text())
    imported = {
        name.asname or name.name: f"contrada.{name.name}" if node.module == "contrada" else node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert imported == {name: f"contrada.{home}" for name, home in contrada._HOME.items()}
    assert sorted(contrada.__all__) == sorted([*contrada._HOME, "__version__"])


def test_whatever_is_annotated_or_caught_is_public():
    raised = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}
    assert raised <= set(contrada.__all__)
    for name in raised:
        assert getattr(contrada, name) is getattr(errors, name)
    for kind in (contrada.Client, contrada.AsyncClient, contrada.ForwardingTable, contrada.SegmentedTable):
        for method in (each for name, each in vars(kind).items() if inspect.isfunction(each) and name[0] != "_"):
            returned = re.findall(r"\b[A-Z]\w+\b", str(inspect.signature(method).return_annotation))
            ours = set(returned) - {"Any", "Ints", "InterfaceT", "Iterator", "None", "Sequence", "Set"}
            assert ours <= set(contrada.__all__), (kind.__name__, method.__name__)


@pytest.mark.parametrize("hook", ["build_wheel", "build_editable", "build_sdist"])
def test_a_clone_without_symbolic_links_is_not_built(hook, tmp_path):
    (tmp_path / "src" / "contrada").mkdir(parents=True)
    for part in ["pyproject.toml", "setup.py", "README.md", "LICENSE", *(f"src/contrada/{name}" for name in LOOSE)]:
        shutil.copy(ROOT / part, tmp_path / part)
    for package in PACKAGES:  # what git writes for a link with core.symlinks = false
        (tmp_path / "src" / "contrada" / package).write_text(f"../../{package}")
        (tmp_path / package).mkdir()
    code = f"import setuptools.build_meta as backend; backend.{hook}('dist')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode != 0
    assert "src/contrada/broker is no link to ../../broker" in done.stderr
    assert not list(tmp_path.glob("dist/*"))


@pytest.mark.parametrize(
    "module", ["contrada.broker.node.server", "contrada.client.cli.main", "contrada.forwarding.recording.writer"]
)
def test_what_only_unix_has_is_loaded_only_where_it_is_used(module):
    run(sys.executable, "-c", f"import sys; sys.modules.update(resource=None, fcntl=None); import {module}")


def test_without_file_locks_recording_says_so(tmp_path):
    module = "contrada.spatial.storage.file_lock"
    code = f"import sys; sys.modules['fcntl'] = None; from {module} import take_lock; take_lock(0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert "ContradaError: this system has no file locks" in done.stderr


def test_the_package_runs_as_a_program():
    assert run(sys.executable, "-m", "contrada", "--version") == f"contrada {contrada.__version__}\n"
