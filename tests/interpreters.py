"""Tests that need no compiled kernels, on the other interpreters that pyproject.toml promises: `make interpreters`.

Each has an environment of its own below .venvs, with the package and without its extras, made once per set of
dependencies. Kernels run as plain Python there (NUMBA_DISABLE_JIT): what is tried is the package's Python, not the
machine code. An interpreter that this machine does not have is named, and skipped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = [
    "tests/forwarding/language",
    "tests/forwarding/codec",
    "tests/broker/protocol",
    "tests/client/engine/test_core.py",
]
KERNELS = [  # what a table or exact geometry decides: that is compiled code
    f"tests/forwarding/language/test_{name}.py" for name in ("at_point", "borders", "distance", "like", "lines", "sets")
]
NEEDED = ["pytest", "pytest-timeout", "pytest-xdist", "hypothesis"]


def promised() -> list[str]:
    """The versions of Python in the package's classifiers, as in "3.12"."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    return [text.rsplit(" ", 1)[1] for text in classifiers if "Python :: 3." in text]


def find(version: str) -> Path | None:
    """An interpreter of this version that runs: from the path, or from pyenv, whose shims may lead nowhere."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = shutil.which(f"python{version}")
    for candidate in [*([Path(on_path)] if on_path else []), *sorted(pyenv.glob(f"{version}.*/bin/python"))]:
        ask = [candidate, "-c", "import sys; print('{}.{}'.format(*sys.version_info))"]
        told = subprocess.run(ask, capture_output=True, text=True, check=False)
        if told.stdout.strip() == version:
            return candidate
    return None


def environment(version: str, interpreter: Path) -> Path:
    """The interpreter of an environment with the package's dependencies, made anew when they change."""
    home = ROOT / ".venvs" / version
    wanted = (ROOT / "pyproject.toml").read_bytes() + (ROOT / "constraints.txt").read_bytes() + bytes(interpreter)
    stamp, now = home / ".installed", hashlib.sha256(wanted).hexdigest()
    if not stamp.exists() or stamp.read_text() != now:
        subprocess.run([interpreter, "-m", "venv", "--clear", home], check=True)
        install = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        install += ["--constraint", "constraints.txt", "--editable", ".", *NEEDED]
        subprocess.run(install, cwd=ROOT, check=True)
        stamp.write_text(now)
    return home / "bin" / "python"


def start(version: str) -> subprocess.Popen[str] | None:
    """Start the tests on one interpreter; None, and a loud line, where there is none."""
    interpreter = find(version)
    if interpreter is None:
        print(f"interpreters: SKIPPED, there is no Python {version} on the path or in pyenv", flush=True)
        return None
    python = environment(version, interpreter)
    quick = {**os.environ, "NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "quick", "PYTHONPATH": str(ROOT)}
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    command += [f"--ignore={each}" for each in KERNELS]
    return subprocess.Popen(command, cwd=ROOT, env=quick, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main() -> int:
    """Try each promised interpreter but this one, all at the same time; 1 if any test failed."""
    others = [version for version in promised() if version != "{}.{}".format(*sys.version_info)]
    running = {version: process for version in others if (process := start(version)) is not None}
    for version, process in running.items():
        said, _ = process.communicate()
        print(said if process.returncode else said.splitlines()[-1], f"(Python {version})", flush=True)
    return int(any(process.returncode for process in running.values()))


if __name__ == "__main__":
    sys.exit(main())
