"""The kernel cache finds what was compiled from the same sources, and nothing else."""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from numba import typeof
from numba.core.registry import cpu_target

from contrada.spatial.storage import compiler, kernel_cache
from contrada.spatial.storage.kernel_cache import kernel_digest, module_digest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FunctionType

_SOURCE = '''
from contrada.spatial.storage.jit import kernel

STEP = 3


@kernel
def inner(x):
    """Add a step."""
    return x + STEP


@kernel
def outer(x):
    """Call another kernel."""
    return inner(x) * 2
'''

_RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from contrada.spatial.storage import kernel_cache
names = []
kernel_cache.compiled.append(names.append)
import kernels_of_a_test
print(kernels_of_a_test.outer(int(sys.argv[2])), *names)
"""


def _run(folder: Path, source: str, argument: int = 1, cache: Path | None = None, **settings: str) -> list[str]:
    """The answer of `outer` in a process of its own, and the names of the kernels that it had to compile."""
    return _run_whole(folder, source, argument, cache, **settings).stdout.split()


def _run_whole(
    folder: Path, source: str, argument: int = 1, cache: Path | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    (folder / "kernels_of_a_test.py").write_text(source)
    environment = {kernel_cache.VARIABLE: str(cache or folder.parent / "cache"), "PYTHONPATH": ":".join(sys.path)}
    environment |= settings
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # its bytecode would be taken for that of the next second's source
    command = [sys.executable, "-c", _RUN, str(folder), str(argument)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=120)


def test_another_clone_and_another_docstring_compile_nothing(tmp_path: Path) -> None:
    first = _run(tmp_path / "one", _SOURCE)
    assert first[0] == "8"
    assert len(first) == 3
    changed = _SOURCE.replace("Call another kernel.", "Another text,\n\n    and more lines of it.")
    assert _run(tmp_path / "two", "\n\n" + changed) == ["8"]


def test_a_changed_callee_is_compiled_again_with_its_callers(tmp_path: Path) -> None:
    _run(tmp_path / "one", _SOURCE)
    assert _run(tmp_path / "two", _SOURCE.replace("x + STEP", "x - STEP"))[0] == "-4"
    assert _run(tmp_path / "two", _SOURCE.replace("STEP = 3", "STEP = 4"))[0] == "10"
    assert _run(tmp_path / "two", _SOURCE) == ["8"]


def test_another_way_of_compiling_is_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(compiler.__file__).read_text()
    changed = tmp_path / "compiler.py"
    changed.write_text("# a comment\n\n" + source.replace('"""Take no more code in."""', '"""Another docstring."""'))
    assert module_digest(changed) == module_digest(Path(compiler.__file__))
    changed = tmp_path / "another.py"
    changed.write_text(source.replace("(types.Number, types.Boolean", "(types.Number"))
    assert module_digest(changed) != module_digest(Path(compiler.__file__))

    context = cpu_target.target_context
    cache, signature = compiler.KernelDispatcher(_nothing, {})._cache, typeof(1)
    key = cache._key((signature,), context.codegen())
    monkeypatch.setattr(kernel_cache, "_COMPILER", changed)
    assert cache._key((signature,), context.codegen()) != key


def _nothing(x: int) -> int:
    return x


_ARRAYS = """
import numpy as np
from contrada.spatial.storage.jit import kernel


@kernel
def behind(values, place):
    return values[place:] + np.zeros(len(values) - place)


@kernel
def outer(number):
    return behind(np.ones(4), number).sum() + behind(np.ones(4), 0).sum()
"""

_CALLER_FIRST = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import kernels_of_a_test
print(kernels_of_a_test.outer(1), len(kernels_of_a_test.behind(np.ones(4), 1)))
"""


def test_an_entry_is_loaded_after_one_that_has_it_as_a_callee(tmp_path: Path) -> None:
    """Both refer to Python's objects: the entry to the type of its result, which the callee never needs."""
    (tmp_path / "kernels_of_a_test.py").write_text(_ARRAYS)
    environment = {**os.environ, kernel_cache.VARIABLE: str(tmp_path / "cache")}
    command = [sys.executable, "-c", _CALLER_FIRST, str(tmp_path)]
    for _ in ("compiled", "loaded"):
        run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
        assert run.stdout.split() == ["7.0", "3"], run.stderr


def test_what_cannot_be_kept_is_compiled_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done = _run_whole(tmp_path / "one", _SOURCE, cache=tmp_path / "file" / "cache")
    assert done.stdout.startswith("8 ")
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"compiled kernels cannot be kept in {tmp_path}/file/cache: Not a directory")


def test_who_has_no_home_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(kernel_cache.VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("Could not determine home directory.")))
    folder = kernel_cache.user_folder()
    assert not kernel_cache.is_ours(folder)
    with pytest.raises(OSError, match="Not a directory"):
        folder.mkdir(parents=True)


def test_what_root_keeps_others_may_read(tmp_path: Path) -> None:
    _run(tmp_path / "one", _SOURCE)
    cache = tmp_path / "cache"
    masked = [stat.S_IMODE(path.stat().st_mode) for path in (cache, *cache.iterdir())]
    umask = os.umask(0o022)
    os.umask(umask)
    assert masked == [0o755 & ~umask, 0o644 & ~umask]


def test_other_settings_of_numba_are_another_key(tmp_path: Path) -> None:
    _run(tmp_path / "one", _SOURCE)
    for name in ("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_DEBUGINFO"):
        assert len(_run(tmp_path / "one", _SOURCE, **{name: "1"})) == 3
        assert len(_run(tmp_path / "one", _SOURCE, **{name: "1"})) == 1
    assert _run(tmp_path / "one", _SOURCE) == ["8"]


def test_a_folder_that_others_may_write_to_is_not_read(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    _run(tmp_path / "one", _SOURCE)
    cache.chmod(0o777)
    assert len(_run(tmp_path / "one", _SOURCE)) == 3


class _Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(self.path),)

    def __init__(self, path: Path) -> None:
        self.path = str(path)


def _kernels(cache: Path) -> Iterator[tuple[Path, bytes, int]]:
    start = len(kernel_cache._MAGIC) + 2 * kernel_cache._DIGEST
    for path in cache.iterdir():
        yield path, path.read_bytes(), start


def test_a_damaged_file_is_never_unpickled(tmp_path: Path) -> None:
    _run(tmp_path / "one", _SOURCE)
    trap = pickle.dumps(_Trap(tmp_path / "sprung"))
    for path, content, start in _kernels(tmp_path / "cache"):
        path.write_bytes(content[:start] + trap)
    assert len(_run(tmp_path / "one", _SOURCE)) == 3
    assert not (tmp_path / "sprung").exists()


def test_a_file_of_another_key_is_never_unpickled(tmp_path: Path) -> None:
    _run(tmp_path / "one", _SOURCE)
    trap = pickle.dumps(_Trap(tmp_path / "sprung"))
    for path, _content, _start in _kernels(tmp_path / "cache"):
        foreign = hashlib.sha256(b"another key").digest()
        path.write_bytes(kernel_cache._MAGIC + foreign + hashlib.sha256(trap).digest() + trap)
    assert len(_run(tmp_path / "one", _SOURCE)) == 3
    assert not (tmp_path / "sprung").exists()


def test_every_kernel_of_the_package_can_be_told_apart() -> None:
    import pkgutil
    from importlib import import_module

    from numba.core.dispatcher import Dispatcher

    digests: dict[bytes, FunctionType] = {}
    for folder in ("spatial", "forwarding"):
        package = import_module(f"contrada.{folder}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(import_module(module.name)).values():
                if isinstance(value, Dispatcher):
                    function = value.py_func
                    assert digests.setdefault(kernel_digest(function), function) is function
    assert len(digests) > 300


@pytest.mark.parametrize("value", [object(), {1: 2}])
def test_a_global_of_unknown_making_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="cannot tell what it is made of"):
        kernel_cache._describe(value, [])
