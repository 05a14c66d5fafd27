"""Jobs that fail: what Spark tells in a hundred lines, in one, with the file and the machine it happened on.

A file that is damaged and a file that cannot be reached are different things. Damage is a property of the input: the
rows are lost wherever they are read, and go to the quarantine. A file that is not there, may not be read, or is on a
disk that fails is the fault of a machine: the task fails, Spark tries it again elsewhere, and at last the job fails.
Nothing is ever built of what happened to be in reach.
"""

from __future__ import annotations

import re
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN: Final = 1500
_CAUSES: Final = 8  # of one another
_LOST: Final = re.compile(r"failed (\d+) times?, .*?Lost task \S+ in stage \S+ \(TID \d+\) \(([^)]*)\)")
_READING: Final = re.compile(r"\[FAILED_READ_FILE\S* .*?reading file (\S+?)\.?\s")
_FRAMES: Final = ("at ", "...", "Driver stacktrace")


class JobFailed(ContradaError):
    """Spark gave up on a job. The message is its reason: what happened, to which file, on which machine."""


class OutOfReach(ContradaError):
    """A file that this machine cannot read, though nothing says that it is damaged."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(
            f"{path}: cannot be read on {socket.gethostname()}: {error.strerror or error}; "
            "every machine of the cluster must see it under this path"
        )


class TaskFailed(ContradaError):
    """What went wrong in a task, and on which machine: Spark's account of Python's errors does not say."""


@contextmanager
def naming_this_machine() -> Iterator[None]:
    """Around what a task does: its errors say where they happened."""
    try:
        yield
    except OutOfReach:
        raise
    except Exception as error:
        told = str(error) if isinstance(error, ContradaError) else f"{type(error).__name__}: {error}"
        raise TaskFailed(f"{told} (on {socket.gethostname()})") from error


def is_damage(error: Exception) -> bool:
    """Whether an error of reading a file tells of its content. What a system says has a number."""
    return not isinstance(error, OSError) or error.errno is None


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Turn the long account that Spark gives of a failed job into one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise JobFailed(f"the job failed, and nothing was changed: {reason_of(account_of(error))}") from error


def account_of(error: Exception) -> str:
    """All that Spark says of a failure: what its Python side keeps of it, and the JVM's own message, which has more."""
    origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    parts = [str(error)]
    for _ in range(_CAUSES):
        if origin is None:
            break
        parts.append(str(origin.getMessage()))
        origin = origin.getCause()
    return "\n".join(parts)


def reason_of(account: str) -> str:
    """What happened and where, of Spark's whole account: the Python error or the JVM's innermost, and the machine."""
    lines = [line.rstrip() for line in account.splitlines() if line.strip()]
    if not lines:
        return "Spark does not say why"
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    file = _READING.search(account)
    told = [f"reading {file[1]}"] if file is not None else []
    told += _python_errors(lines)[-1:] or causes[-1:]
    if not told:
        told = [line.strip() for line in lines if not line.strip().startswith(_FRAMES)][:3]
    lost = _LOST.search(account)
    where = [] if lost is None else [f"a task failed {lost[1]} times, the last on {lost[2]}"]
    return "; ".join(dict.fromkeys([*where, *told]))[:_SHOWN]


def _python_errors(lines: list[str]) -> list[str]:
    """The last lines of Python's tracebacks: the first after each that is not indented."""
    found = []
    inside = False
    for line in lines:
        if "Traceback (most recent call last)" in line:
            inside = True
        elif inside and not line[0].isspace():
            found.append(re.sub(r"^contrada\.[\w.]+: ", "", line))
            inside = False
    return found
