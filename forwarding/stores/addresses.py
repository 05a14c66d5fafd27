"""Addresses: where a file or a folder of files is, an absolute path or the URL of something in an object store.

    /mnt/index                     a path
    s3://bucket/index              a URL; in front of a `?` is where, behind it how (pyarrow's options of a store)
    file:///mnt/index              a path, too

An address is a string, so that it can be sent to other machines and be written into a recording.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from contrada.errors import InvalidValue

STORES: Final = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
"""The schemes of what pyarrow reads and writes."""

_AZURE: Final = ("abfs", "abfss")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether an address is that of something on another system."""
    text = os.fspath(path)
    return _URL.match(text) is not None and not text.startswith("file:")


def in_a_store(path: str | os.PathLike[str]) -> bool:
    """Whether an address is a URL that `object_store` reads and writes."""
    return is_url(path) and urlsplit(os.fspath(path)).scheme in STORES


def address_of(path: str | os.PathLike[str], what: str) -> str:
    """An address that means the same on every machine; `InvalidValue` for a URL of what no store is known for.

    `what` the user calls it.
    """
    text = os.fspath(path)
    if not text:
        raise InvalidValue(f"{what}: an empty path")
    if is_url(text):
        parts = urlsplit(text)
        if parts.scheme not in STORES:
            raise InvalidValue(f"{what} {shown(text)}: a URL begins with one of {', '.join(STORES)}; or give a path")
        if parts.fragment or not (parts.netloc and parts.path.strip("/")):
            raise InvalidValue(f"{what} {shown(text)}: a URL has a bucket and a path, as in s3://bucket/index")
        return urlunsplit(parts._replace(path=parts.path.rstrip("/")))
    if text.startswith("file:"):
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise InvalidValue(f"{what} {text}: a file of another machine; give a path that all machines see")
        text = unquote(parts.path)
    return os.path.abspath(text)  # noqa: PTH100  # a link that is given stays a link


def join(address: str, *names: str) -> str:
    """The address of something inside a folder."""
    if not is_url(address):
        return str(Path(address, *names))
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path="/".join((parts.path.rstrip("/"), *names))))


def name_of(address: str) -> str:
    """The last part of an address."""
    return PurePosixPath(urlsplit(address).path if is_url(address) else address).name


def name_inside(folder: str, address: str) -> str:
    """What leads from a folder to an address in it, with slashes."""
    at, to = (urlsplit(each).path if is_url(each) else each for each in (folder, address))
    return PurePosixPath(to).relative_to(at).as_posix()


def folder_of(address: str) -> str:
    """The address without its last part."""
    if not is_url(address):
        return str(Path(address).parent)
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=parts.path.rpartition("/")[0]))


def shown(address: str | os.PathLike[str]) -> str:
    """As it is told to people: without options, which may hold a key, and without a name and password.

    What stands before an Azure account, `abfs://container@account…`, is no name of a user.
    """
    text = os.fspath(address)
    if not is_url(text):
        return text
    parts = urlsplit(text)
    user, _, host = parts.netloc.rpartition("@")
    container = user.partition(":")[0] if parts.scheme in _AZURE else ""
    return f"{parts.scheme}://{container}{'@' if container else ''}{host}{parts.path}"
