"""Opening what is said to be a file: a FIFO would be waited for, and a device might do something."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, BinaryIO

from contrada.errors import CorruptFile

if TYPE_CHECKING:
    from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading, without ever waiting; `CorruptFile` for anything else that has its name.

    What the system says (no such file, no permission) stays the OSError that it is.
    """
    check_regular(path)  # before it is opened, which some devices answer with a deed
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    try:
        _refuse(path, os.fstat(descriptor).st_mode)  # it may have been replaced meanwhile
    except CorruptFile:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb", buffering)


def read_regular(path: Path, most: int) -> bytes:
    """The contents of a regular file of at most so many bytes."""
    with open_regular(path) as file:
        read = file.read(most + 1)
    if len(read) > most:
        raise CorruptFile(f"{path}: more than {most} bytes, which it should never have")
    return read


def is_regular(path: Path) -> bool:
    """Whether there is a regular file, and not a directory or nothing; `CorruptFile` for a FIFO, socket or device."""
    if path.is_file():
        return True
    if path.exists() and not path.is_dir():
        check_regular(path)
    return False


def check_regular(path: Path) -> None:
    """Refuse what exists and is no regular file."""
    _refuse(path, path.stat().st_mode)


def _refuse(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for matches, name in _KINDS if matches(mode)), "something else")
        raise CorruptFile(f"{path}: {kind}, where a file was expected")
