"""How long a newcomer waits: for the demo of a fresh clone, a wheel's first match, a broker, a command, an import.

Each row runs what a person would type, in a folder of its own under a temporary one, with an empty kernel cache where
the row says so. Packages come from where this machine's pip gets them, and pip's own cache is as it is.

    python -m benchmarks.first_minute [--row NAME …]
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.harness import Report

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
CONTRADA = (sys.executable, "-m", "contrada")
STORM = "appears with"  # of the demo's first line about a storm
MATCH = """
import time
began = time.perf_counter()
import contrada
table = contrada.ForwardingTable()
table.add("i", 'x > 3 and area overlaps BOX(0 0, 10 10)')
assert table.match({"x": 4, "area": contrada.Box(5, 5, 20, 20)}) == {"i"}
print(time.perf_counter() - began)
"""


class Figure(NamedTuple):
    """What was measured, in seconds, and the most that is asked."""

    what: str
    seconds: float
    most: float


def run(*command: str | Path, cwd: Path = ROOT, **variables: str | Path) -> str:
    """What a command prints; its failure is ours."""
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def until(text: str, *command: str | Path, cwd: Path = ROOT, **variables: str | Path) -> float:
    """Seconds from the start of a command to the first line of its output with a text in it; then it is ended."""
    with started(text, *command, cwd=cwd, **variables) as (seconds, _line):
        return seconds


@contextmanager
def started(text: str, *command: str | Path, cwd: Path = ROOT, **variables: str | Path) -> Iterator[tuple[float, str]]:
    """A command that has printed a line with a text in it: how long that took, and the line. Ended afterwards."""
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    began = time.perf_counter()
    child = subprocess.Popen(
        [*map(str, command)],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    assert child.stdout is not None
    heard = []
    try:
        for line in child.stdout:
            heard.append(line)
            if text in line:
                yield time.perf_counter() - began, line
                return
        raise SystemExit(f"{command} ended without {text!r}: {''.join(heard)}")
    finally:
        os.killpg(child.pid, 15)
        child.stdout.close()
        child.wait(60)


# -- rows ------------------------------------------------------------------------------------------------------


def imports(_folder: Path) -> Iterator[Figure]:
    """`import contrada`, beyond what Python itself takes."""
    code = "import time; began = time.perf_counter(); import contrada; print(time.perf_counter() - began)"
    yield Figure("import contrada", min(float(run(sys.executable, "-c", code)) for _ in range(7)), 0.05)


def warm(_folder: Path) -> Iterator[Figure]:
    """A broker and a publisher whose kernels are compiled."""
    run(*CONTRADA, "warm")
    command = (*CONTRADA, "broker", "--listen", "tcp://127.0.0.1:*")
    yield Figure("warm: contrada broker listens", min(until('"listening"', *command) for _ in range(5)), 1.0)
    yield Figure("warm: contrada broker serves", min(until('"serving"', *command) for _ in range(5)), 1.0)
    with started('"listening"', *command) as (_, line):
        url = re.findall(r"tcp://[\d.]+:\d+", line)[0]
        times = []
        for _ in range(7):
            began = time.perf_counter()
            run(*CONTRADA, "pub", "--url", url, '{"x": 1}')
            times.append(time.perf_counter() - began)
    yield Figure("warm: contrada pub in all", min(times), 0.5)


def compiling(folder: Path) -> Iterator[Figure]:
    """Everything that a broker needs, into an empty cache."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    run(*CONTRADA, "warm", CONTRADA_KERNELS=folder / "kernels")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    yield Figure("compiling all that a broker needs, processor time", processor, 90.0)
    yield Figure("the same, waiting for it", time.perf_counter() - began, 100.0)


def wheel(folder: Path) -> Iterator[Figure]:
    """A wheel with kernels in it, in an environment of its own, with no cache to help."""
    run("git", "clone", "--quiet", ROOT, folder / "clone")
    run(*CONTRADA, "warm", "--copy-to", folder / "kernels")
    build = (sys.executable, "-m", "build", "--wheel", "--outdir", folder / "dist", folder / "clone")
    run(*build, CONTRADA_CARRY_KERNELS=folder / "kernels")
    (built,) = (folder / "dist").iterdir()
    run(sys.executable, "-m", "venv", folder / "venv")
    bin = folder / "venv" / "bin"
    run(bin / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", built)
    (folder / "file").touch()
    nowhere = folder / "file" / "kernels"  # below a file no folder can be made
    for name in ("first", "second"):
        seconds = float(run(bin / "python", "-c", MATCH, cwd=folder, CONTRADA_KERNELS=nowhere))
        yield Figure(f"wheel: {name} ForwardingTable().match", seconds, 2.0)
    command = (bin / "contrada", "broker", "--listen", "tcp://127.0.0.1:*")
    yield Figure(
        "wheel: contrada broker serves", until('"serving"', *command, cwd=folder, CONTRADA_KERNELS=nowhere), 2.0
    )


def clones(folder: Path) -> Iterator[Figure]:
    """`make demo` of a fresh clone, then of a second one beside it."""
    for name, most in (("fresh", 100.0), ("second", 30.0)):
        run("git", "clone", "--quiet", ROOT, folder / name)
        seconds = until(STORM, "make", "demo", cwd=folder / name, CONTRADA_KERNELS=folder / "kernels")
        yield Figure(f"{name} clone: make demo to its first storm", seconds, most)


ROWS = {each.__name__: each for each in (imports, warm, compiling, wheel, clones)}


def main() -> int:
    """Measure every row, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", choices=ROWS, action="append")
    report = Report("first_minute")
    rows = []
    for name in parser.parse_args().row or ROWS:
        with tempfile.TemporaryDirectory() as folder:
            for figure in ROWS[name](Path(folder)):
                print(f"{figure.what}: {figure.seconds:.2f} s", flush=True)
                rows.append(figure._asdict())
                report.target(figure.what, figure.seconds, figure.most, at_least=False, unit="s")
    report.table("What a newcomer waits for", rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
