"""Paths as a job takes them: looked at before Spark starts, and absolute before they reach another machine.

An executor has a directory of its own, so a relative path means another place there. What is written must be neither
inside what is read nor around it: the next run would read its own output, or this one replace its own input.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the address of something on another system, also after `Path` has taken one of its slashes."""
    return _URL.match(os.fspath(path)) is not None


def absolute(path: str | os.PathLike[str], what: str) -> Path:
    """A path that means the same on every machine; `InvalidValue` for a URL of anything but a file."""
    text = os.fspath(path)
    if is_url(text):
        parts = urlsplit(text)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise InvalidValue(
                f"{what} {text}: a URL, and this must be a path that all machines see, such as a shared mount"
            )
        text = unquote(parts.path)
    if not text:
        raise InvalidValue(f"{what}: an empty path")
    return Path(os.path.abspath(text))  # noqa: PTH100  # a link that is given stays a link


def check_apart(read: Mapping[str, Path], written: Mapping[str, Path]) -> None:
    """Refuse to write into what is read, or around it; both by what the user calls them."""
    for what, source in read.items():
        for name, target in written.items():
            one, other = source.resolve(), target.resolve()
            if one == other or one in other.parents:
                raise InvalidValue(
                    f"{name} {target} is inside {what} {source}, and the next run would read it; choose another place"
                )
            if other in one.parents:
                raise InvalidValue(
                    f"{what} {source} is inside {name} {target}, which this run replaces; choose another place"
                )


def check_readable(files: Iterable[Path]) -> None:
    """Refuse files that may not be read."""
    for file in files:
        if not os.access(file, os.R_OK):
            raise InvalidValue(f"{file}: may not be read")


def check_writable(place: Path, what: str) -> None:
    """Refuse a directory that is a file, or that cannot be made or written."""
    if place.exists() and not place.is_dir():
        raise InvalidValue(f"{what} {place}: a file, and it must be a directory")
    there = next(each for each in (place, *place.parents) if each.exists())
    if not there.is_dir():
        raise InvalidValue(f"{what} {place}: {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InvalidValue(f"{what} {place}: {there} may not be written")


def check_table_place(place: Path, what: str) -> None:
    """Refuse a directory that holds anything but an earlier table of Parquet files."""
    check_writable(place, what)
    if place.exists():
        for file in place.rglob("*"):
            if file.is_file() and file.suffix not in (".parquet", ".crc") and file.name != "_SUCCESS":
                raise InvalidValue(
                    f"{what} {place}: there is something other than an earlier table ({file.name}); "
                    "choose another place"
                )
