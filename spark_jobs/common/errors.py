"""What goes wrong in a job, and what Spark tells of it in a hundred lines, in one.

    ContradaError
     ├─ JobError
     │   ├─ SparkMissing     there is no Spark here: the extra or Java is missing
     │   ├─ ClusterNotReady  executors lack something that the job needs
     │   ├─ JobFailed        Spark gave up
     │   ├─ NotCommitted     a build ended well, and would have made a worse index than the one that is there
     │   ├─ OutOfReach       in a task: a file that this machine cannot read
     │   └─ TaskFailed       in a task: anything else, with the machine's name
     └─ CorruptFile
         └─ DamagedSplit     in a task: part of a file that cannot be read

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

from contrada.errors import ContradaError, CorruptFile
from contrada.forwarding.stores.addresses import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SHOWN: Final = 1500
_CAUSES: Final = 8  # of one another
_LOST: Final = re.compile(r"failed (\d+) times?, .*?Lost task \S+ in stage \S+ \(TID \d+\) \(([^)]*)\)")
_READING: Final = re.compile(r"\[FAILED_READ_FILE\S* .*?reading file (\S+?)\.?\s")
_FRAMES: Final = ("at ", "...", "Driver stacktrace")


class JobError(ContradaError):
    """A job that could not do what it was asked."""


class SparkMissing(JobError):
    """Spark cannot be started here: the extra or Java is missing."""


class ClusterNotReady(JobError):
    """Executors lack something: an interpreter, a package, its version, or paths."""


class JobFailed(JobError):
    """Spark gave up on a job. The message is its reason: what happened, to which file, on which machine."""


class NotCommitted(JobError):
    """Nothing was accepted, or too much refused: the index was left as it was. The quarantine tells why."""

    def __init__(self, why: str, quarantine: str) -> None:
        super().__init__(f"{why}; nothing was changed, and the refused rows are in {shown(quarantine)}")
        self.quarantine = quarantine


class OutOfReach(JobError):
    """A file that this machine cannot read, though nothing says that it is damaged."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(
            f"{shown(path)}: cannot be read on {socket.gethostname()}: {error.strerror or error}; "
            "every machine of the cluster must see it under this path"
        )


class TaskFailed(JobError):
    """What went wrong in a task, and on which machine: Spark's account of Python's errors does not say."""


class DamagedSplit(CorruptFile):
    """Part of a file that cannot be read; what it said would be a guess."""

    def __init__(self, path: str, why: str, share: float = 1.0) -> None:
        super().__init__(why)
        self.path = path
        self.share = share


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
def damage_as(path: str, damaged: Callable[[Exception], Exception]) -> Iterator[None]:
    """Around the reading of a file: its damage is raised as given, and that it is out of reach always in one way."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        if isinstance(error, OSError) and not is_damage(error):
            raise OutOfReach(path, error) from error
        raise damaged(error) from error


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
