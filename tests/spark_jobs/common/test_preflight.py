"""What executors lack is told in one line, also by those that have nothing of this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark import cloudpickle

from contrada import __version__
from contrada.spark_jobs.common import preflight
from contrada.spark_jobs.common.errors import ClusterNotReady, JobFailed
from contrada.spark_jobs.common.preflight import Executor, check_executors

READY = Executor("h1", "/usr/bin/python3", __version__, None, True, ())


class Session:
    """As much of a session as is looked at before executors are asked."""

    class sparkContext:  # noqa: N801  # Spark's name
        master = "spark://127.0.0.1:7077"
        pythonExec = "/gone/python"  # noqa: N815  # Spark's name


def check(monkeypatch: pytest.MonkeyPatch, *seen: Executor, **options: Any) -> set[str]:
    monkeypatch.setattr(preflight, "_ask", lambda session, paths: list(seen))
    session: Any = Session()
    return check_executors(session, {"OUT": "/mnt/out"}, **options)


def test_a_cluster_that_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    seen = READY._replace(host="h2", kernels=False, missing=("/mnt/index",))
    unseen = check(monkeypatch, READY, seen, wanted=["/mnt/index", "/mnt/other"], tell=told.append)
    assert unseen == {"/mnt/index"}
    assert told == ["no compiled kernels on h2: the first tasks compile them (contrada warm --jobs)"]


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (
            READY._replace(version=None, why="ImportError: x"),
            r"h1: /usr/bin/python3 has no contrada \(ImportError: x\)",
        ),
        (READY._replace(version="0.1.0"), f"has contrada 0.1.0, and here it is {__version__}"),
        (READY._replace(missing=("/mnt/out",)), "h1: does not see OUT /mnt/out"),
    ],
)
def test_a_cluster_that_is_not(monkeypatch: pytest.MonkeyPatch, seen: Executor, why: str) -> None:
    with pytest.raises(ClusterNotReady, match=why) as told:
        check(monkeypatch, READY, seen)
    assert "\n" not in str(told.value)


def test_an_interpreter_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise JobFailed("java.io.IOException: error=2, No such file or directory")

    monkeypatch.setattr(preflight, "_ask", fail)
    session: Any = Session()
    with pytest.raises(ClusterNotReady, match=r"cannot run /gone/python: .*PYSPARK_PYTHON"):
        check_executors(session, {})


def test_what_is_asked_needs_nothing_of_this_package(tmp_path: Path) -> None:
    (tmp_path / "contrada").mkdir()
    (tmp_path / "contrada" / "__init__.py").write_text("raise ModuleNotFoundError('none here')")
    cloudpickle.register_pickle_by_value(preflight)
    try:
        data = cloudpickle.dumps(preflight._look)
    finally:
        cloudpickle.unregister_pickle_by_value(preflight)
    program = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())([sys.executable, '/nowhere'])[2:])"
    path = os.pathsep.join((str(tmp_path), str(Path(pyspark.__file__).parents[1])))
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=data,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().strip() == "(None, 'ModuleNotFoundError: none here', False, ('/nowhere',))"
