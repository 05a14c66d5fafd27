"""Every file operation that a journal makes, in one protocol: tests put a disk under it that forgets, tears and fails.

What is promised: `write` is seen by later reads, but survives a power cut only after `sync` of that file; a file that
was created or removed, or a directory that was made, stays so only after `sync_directory` of the directory it is in.
All raise `OSError`; a failed `write` may have written a part.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final, Protocol

from contrada.spatial.storage.file_lock import take_lock
from contrada.spatial.storage.regular_file import open_regular

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Disk(Protocol):
    """What a journal needs of a file system. Files are known by numbers, as the system has them."""

    def exists(self, path: Path) -> bool:
        """Whether there is such a directory."""

    def make_directory(self, path: Path) -> None:
        """Make a directory in one that exists."""

    def names(self, path: Path) -> Sequence[str]:
        """What a directory holds, in any order."""

    def lock(self, path: Path) -> int:
        """Make or open a file and lock it until it is closed; `BlockingIOError` when another process has it."""

    def create(self, path: Path) -> int:
        """Make a file and open it for writing; it must not be there."""

    def open(self, path: Path) -> int:
        """Open a file for reading."""

    def size(self, file: int) -> int:
        """How many bytes an open file has."""

    def read(self, file: int, offset: int, length: int) -> bytes:
        """The bytes at a place, fewer at the end of the file."""

    def write(self, file: int, offset: int, data: bytes) -> None:
        """Write all of `data` at a place, which may be behind the end."""

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file."""

    def sync(self, file: int) -> None:
        """Wait until the disk has what was written to a file, and its size."""

    def sync_directory(self, path: Path) -> None:
        """Wait until the disk knows which files and directories are in this one."""

    def remove(self, path: Path) -> None:
        """Remove a file."""

    def close(self, file: int) -> None:
        """Be done with a file."""


class RealDisk:
    """The operating system's files."""

    def exists(self, path: Path) -> bool:
        """Whether there is such a directory."""
        return path.is_dir()

    def make_directory(self, path: Path) -> None:
        """Make a directory; another process may have been quicker."""
        path.mkdir(exist_ok=True)

    def names(self, path: Path) -> Sequence[str]:
        """What a directory holds."""
        return [each.name for each in path.iterdir()]

    def lock(self, path: Path) -> int:
        """Make or open a file and lock it."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            take_lock(file)
        except BaseException:
            os.close(file)
            raise
        return file

    def create(self, path: Path) -> int:
        """Make a file and open it for writing."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)

    def open(self, path: Path) -> int:
        """Open a regular file for reading; `CorruptFile` for anything else of that name."""
        with open_regular(path, 0) as file:
            return os.dup(file.fileno())

    def size(self, file: int) -> int:
        """How many bytes an open file has."""
        return os.fstat(file).st_size

    def read(self, file: int, offset: int, length: int) -> bytes:
        """The bytes at a place."""
        return os.pread(file, length, offset)

    def write(self, file: int, offset: int, data: bytes) -> None:
        """Write all of `data`: the system may take it in parts."""
        left = memoryview(data)
        while left:
            written = os.pwrite(file, left, offset)
            left, offset = left[written:], offset + written

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file."""
        os.truncate(path, size)

    def sync(self, file: int) -> None:
        """Wait for the disk; of the metadata only what reading back needs."""
        os.fdatasync(file)

    def sync_directory(self, path: Path) -> None:
        """Wait until the disk knows the entries."""
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def close(self, file: int) -> None:
        """Be done with a file."""
        os.close(file)


REAL_DISK: Final[Disk] = RealDisk()


def is_full(error: OSError) -> bool:
    """Whether there may be room later."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
