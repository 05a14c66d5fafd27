"""Paths as a job takes them: looked at before Spark starts, and absolute before they reach another machine.

An executor has a directory of its own, so a relative path means another place there. What is written must be neither
inside what is read nor around it: the next run would read its own output, or this one replace its own input.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING

from contrada.errors import InvalidValue
from contrada.forwarding.stores.addresses import address_of, is_url, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contrada.spark_jobs.stores.shared_files import SizedFile


def local_path(path: str | os.PathLike[str], what: str) -> Path:
    """A path of this machine, absolute; `InvalidValue` for a URL."""
    if is_url(path):
        raise InvalidValue(f"{what} {shown(path)}: a URL, and this must be a path")
    return Path(address_of(path, what))


def check_apart(read: Mapping[str, str], written: Mapping[str, str]) -> None:
    """Refuse to write into what is read, or around it; both by what the user calls them."""
    for what, place in read.items():
        for name, target in written.items():
            if is_url(place) != is_url(target):
                continue
            one, other = _resolved(place), _resolved(target)
            if one == other or one in other.parents:
                raise InvalidValue(
                    f"{name} {shown(target)} is inside {what} {shown(place)}, and the next run would read it; "
                    "choose another place"
                )
            if other in one.parents:
                raise InvalidValue(
                    f"{what} {shown(place)} is inside {name} {shown(target)}, which this run replaces; "
                    "choose another place"
                )


def _resolved(address: str) -> PurePath:
    return PurePosixPath(shown(address)) if is_url(address) else Path(address).resolve()


def check_readable(files: Iterable[SizedFile]) -> None:
    """Refuse files of a disk that may not be read."""
    for file, _ in files:
        if not is_url(file) and not os.access(file, os.R_OK):
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
