"""A standalone Spark cluster on loopback: a master and two workers of one core each, on free ports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOME = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"


@contextmanager
def spark_cluster(work: Path, memory: str = "1g") -> Iterator[str]:
    """The address of a master whose workers have registered; all of them end with the block."""
    with ExitStack() as running:
        master = running.enter_context(_started(work, "master.Master", "--host", "127.0.0.1", "--port", "0"))
        url = _next(master, r"Starting Spark master at (spark://\S+)")[1]
        for number in range(2):
            options = ["--cores", "1", "--memory", memory, "--host", "127.0.0.1", "--work-dir", str(work / f"{number}")]
            running.enter_context(_started(work, "worker.Worker", *options, url))
        for _ in range(2):
            _next(master, r"Registering worker")
        yield url


@contextmanager
def _started(work: Path, name: str, *arguments: str) -> Iterator[Queue[str]]:
    """A daemon, and the lines that it says."""
    environment = {
        **os.environ,
        "SPARK_HOME": str(_HOME),
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "PYSPARK_PYTHON": "no-python",  # executors' interpreter must come from the job
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }
    command = [shutil.which("bash") or "bash", str(_HOME / "bin" / "spark-class"), f"{_DEPLOY}.{name}"]
    process = subprocess.Popen(
        [*command, "--webui-port", "0", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=work,
        text=True,
    )
    said: Queue[str] = Queue()
    assert process.stdout is not None
    reader = Thread(target=lambda lines: [said.put(line) for line in lines], args=(process.stdout,))
    reader.start()
    try:
        yield said
    finally:
        process.terminate()
        process.wait()
        reader.join()
        process.stdout.close()


def _next(said: Queue[str], pattern: str) -> re.Match[str]:
    """Wait until a daemon says something of that form; the test's own limit ends it."""
    while (found := re.search(pattern, said.get())) is None:
        pass
    return found
