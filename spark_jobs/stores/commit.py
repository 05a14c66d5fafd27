"""A job's output: it appears whole or not at all, and running the job again replaces it.

Everything is written to a staging directory first. That of a replay, `.NAME.writing` beside the output, takes the
output's place by a rename at the end; that of a build is inside the index, `.staging-…`, and one manifest that names
its files replaces another. What a killed job leaves behind is the staging directory, and the next run sweeps it away. A
lock, which a killed process gives up by itself, keeps two runs from writing one output. Something that is not an output
of this kind of job is never replaced.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from contrada.errors import InvalidValue
from contrada.spark_jobs.common.paths import check_writable
from contrada.spatial.storage.file_lock import take_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def check_output(path: Path, mark: str) -> None:
    """Refuse to replace what is not an earlier output of this kind of job, or a place that cannot be written."""
    if path.exists() and not (path / mark).exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidValue(f"{path} exists and is no earlier output of this command (no {mark}); name another place")
    check_writable(path.parent, "OUT")


@contextmanager
def output(path: Path, mark: str) -> Iterator[Path]:
    """A directory to write into, which becomes `path` if the block ends well; it must then hold the file `mark`."""
    path = Path(os.path.abspath(path))  # noqa: PTH100  # a link that is given stays a link
    check_output(path, mark)
    with _alone(path.with_name(f".{path.name}.lock"), path):
        replaced = _beside(path)[1]
        if replaced.exists() and not path.exists():
            replaced.rename(path)  # the last run was killed between the two renames
        with replacing(path) as staging:
            yield staging
            if not (staging / mark).exists():
                raise AssertionError(f"the job ended without writing {mark}")


@contextmanager
def staging_inside(place: Path) -> Iterator[Path]:
    """A staging directory inside a place, while no one else has one there.

    No two have the same name: tasks of a job that was killed may still be writing.
    """
    with _alone(place / ".lock", place), _swept(place / f".staging-{uuid4().hex}", place.glob(".staging-*")) as staging:
        yield staging


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A directory to fill, which takes the place of another, or of none, if the block ends well.

    It lies beside its place, on the same disk: what can fail is over by then. Between the two renames there is none.
    """
    staging, replaced = _beside(path)
    with _swept(staging, (staging, replaced)):
        yield staging
        if path.exists():
            path.rename(replaced)
        staging.rename(path)
        shutil.rmtree(replaced, ignore_errors=True)


def _beside(path: Path) -> tuple[Path, Path]:
    """What is about to become a directory, and what was one."""
    return path.with_name(f".{path.name}.writing"), path.with_name(f".{path.name}.replaced")


@contextmanager
def _swept(staging: Path, leftovers: Iterable[Path]) -> Iterator[Path]:
    """A new directory, without what killed jobs left, and gone at the end unless it was moved."""
    for leftover in leftovers:
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        staging.mkdir(parents=True)
    except OSError as error:
        raise InvalidValue(f"cannot write {staging}: {error.strerror or error}") from error
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _alone(lock: Path, path: Path) -> Iterator[None]:
    """Hold a lock, or say that another job is writing there."""
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InvalidValue(f"cannot write {path}: {error.strerror or error}") from error
    try:
        try:
            take_lock(file)
        except BlockingIOError as error:
            raise InvalidValue(f"another job is writing {path}: wait for it, or name another place") from error
        yield
    finally:
        os.close(file)
