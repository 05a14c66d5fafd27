"""A broker of one's own: a process on a free port of this machine, in a temporary directory, gone at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_READY = re.compile(r"listens on (\S+);")
_GRACE = 10.0


@contextmanager
def local_broker(*options: str) -> Iterator[str]:
    """Start `contrada broker` on a free port; its address. The process has ended when the block has."""
    with broker_process("--listen", "tcp://127.0.0.1:*", *options) as (_, url):
        yield url


@contextmanager
def broker_process(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start `contrada broker`; the process and its address, once it listens."""
    with tempfile.TemporaryDirectory(prefix="contrada-") as directory:
        # The package may be importable only from here, by a relative path.
        path = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry and Path(entry).exists())
        process = subprocess.Popen(
            [sys.executable, "-m", "contrada", "broker", *options],
            stderr=subprocess.PIPE,
            text=True,
            cwd=directory,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert process.stderr is not None
        drain: threading.Thread | None = None
        try:
            url = _await_ready(process.stderr)
            drain = threading.Thread(target=process.stderr.read, daemon=True)  # so that its log never blocks it
            drain.start()
            yield process, url
        finally:
            process.terminate()
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if drain is not None:
                drain.join()
            process.stderr.close()


def _await_ready(stderr: Iterable[str]) -> str:
    said = []
    for line in stderr:
        said.append(line)
        if (found := _READY.search(line)) is not None:
            return found[1]
    raise ContradaError(f"the broker did not start:\n{''.join(said).strip()}")
