"""Jobs that fail: what Spark tells in a hundred lines, in one."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from contrada.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Turn the long account that Spark gives of a failed job into one line."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise CorruptFile(f"the job failed: {_cause(str(error))}") from error


def _cause(text: str) -> str:
    """The line that says what happened, of those that say where."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ") and "SparkException: [FAILED" not in line]
    python = [line for line in lines if line.startswith("contrada.")]
    told = python or causes or [line for line in lines if "Error: " in line or "Exception: " in line] or lines
    return told[-1].removeprefix("Caused by: ")[:500]
