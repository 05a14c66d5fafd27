"""A job's output directory: it appears whole or not at all, and running the job again replaces it.

Everything is written to a directory beside the output, `.NAME.writing`, which takes the output's place by a rename at
the end. What a killed job leaves behind is that directory, and the next run sweeps it away. A lock, which a killed
process gives up by itself, keeps two runs from writing one output. Something that is not an output of this kind of job
is never replaced.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from contrada.errors import InvalidValue
from contrada.spark_jobs.common.paths import check_writable
from contrada.spatial.storage.file_lock import take_lock

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InvalidValue(f"cannot write {path}: {error.strerror or error}") from error
    staging = path.with_name(f".{path.name}.writing")
    replaced = path.with_name(f".{path.name}.replaced")
    try:
        try:
            take_lock(lock)
        except BlockingIOError as error:
            raise InvalidValue(f"another job is writing {path}: wait for it, or name another place") from error
        if replaced.exists() and not path.exists():
            replaced.rename(path)  # the last run was killed between the two renames
        for leftover in (staging, replaced):
            shutil.rmtree(leftover, ignore_errors=True)
        staging.mkdir()
        try:
            yield staging
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        if not (staging / mark).exists():
            raise AssertionError(f"the job ended without writing {mark}")
        if path.exists():
            path.rename(replaced)
        staging.rename(path)
        shutil.rmtree(replaced, ignore_errors=True)
    finally:
        os.close(lock)


def replace_directory(source: Path, target: Path) -> None:
    """Put a directory in the place of another, or of none; between the two renames there is none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    written, replaced = (target.with_name(f".{target.name}.{how}") for how in ("writing", "replaced"))
    for leftover in (written, replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    shutil.move(source, written)  # from another disk, perhaps: what can fail comes first
    if target.exists():
        target.rename(replaced)
    written.rename(target)
    shutil.rmtree(replaced, ignore_errors=True)
