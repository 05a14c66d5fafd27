"""What a URL names, read and written: S3, Google Cloud Storage, Azure and HDFS, through `pyarrow.fs`.

A store has objects under names; folders are what names have in common. An object appears whole, when its upload ends,
or not at all, and replaces what was there at once: a pointer is moved by writing one object. Who reads or lists after
that sees it. There are no renames and no locks; `alone_in` keeps two writers apart with what there is:

    .writing-<random>    an object of each writer, written anew every half minute

A writer puts its own and then looks for others, so of two that begin at once at least one sees the other, and gives
up. One that was not renewed for five minutes, by the store's own clock, is of a process that was killed.

What a store says of credentials, networks and names is an `OSError` with a number and the address, as of any disk;
what is wrong with an address is `InvalidValue`. The settings of a store come from where its own tools have them
(AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS, …) or from the URL's options.
"""

from __future__ import annotations

import errno
import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit
from uuid import uuid4

from contrada.errors import ContradaError, CorruptFile, InvalidValue
from contrada.forwarding.stores.addresses import join, name_of, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

MARK: Final = ".writing-"
_ALIASES: Final = {"s3a": "s3", "gcs": "gs"}
_HOSTS: Final = ("hdfs", "viewfs")  # what follows the scheme is a machine, not a bucket
_BLOCK: Final = 1 << 22
_BUFFER: Final = 1 << 20
_TOGETHER: Final = 8  # objects that are deleted or fetched at a time
_RENEWED: Final = 30.0  # seconds after which a writer's mark is written anew
_DEAD: Final = 300.0  # seconds after which one that was not is of a process that was killed


class Entry(NamedTuple):
    """An object of a folder."""

    address: str
    size: int
    modified: float  # seconds since 1970, by the store's clock


def size_of(address: str) -> int | None:
    """How large an object is; None when there is none."""
    with _told(address) as (store, path):
        info = store.get_file_info(path)
    return int(info.size) if info.is_file else None


def read(address: str, most: int) -> bytes:
    """An object of at most so many bytes; `FileNotFoundError` when there is none."""
    with _told(address) as (store, path), store.open_input_file(path) as file:
        if file.size() > most:
            raise CorruptFile(f"{shown(address)}: more than {most} bytes, which it should never have")
        content: bytes = file.read()
    return content


def write(address: str, content: bytes) -> None:
    """Put an object, in the place of any that is there."""
    with _told(address) as (store, path), store.open_output_stream(path, compression=None) as file:
        file.write(content)


def upload(file: Path, address: str) -> None:
    """Put a file; one of which something is missing afterwards is an error."""
    with _told(address) as (store, path):
        with file.open("rb") as source, store.open_output_stream(path, compression=None) as target:
            while block := source.read(_BLOCK):
                target.write(block)
        size = store.get_file_info(path).size
    if size != file.stat().st_size:
        raise OSError(errno.EIO, f"{size} bytes arrived of {file.stat().st_size}", shown(address))


def upload_folder(folder: Path, address: str) -> None:
    """Put all files of a directory, under their names there."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    with ThreadPoolExecutor(_TOGETHER) as pool:
        list(pool.map(lambda file: upload(file, join(address, *file.relative_to(folder).parts)), files))


def download(address: str, file: Path) -> None:
    """Fetch an object into a file."""
    with _told(address) as (store, path), store.open_input_file(path) as source, file.open("wb") as target:
        while block := source.read(_BLOCK):
            target.write(block)


def open_object(address: str) -> BinaryIO:
    """An object to be read from, here and there."""
    with _told(address) as (store, path):
        return io.BufferedReader(_Reading(store.open_input_file(path), address), _BUFFER)


def entries(address: str) -> list[Entry]:
    """All objects in a folder and in those below it, by address; none of a folder that is not there."""
    from pyarrow.fs import FileSelector

    with _told(address) as (store, path):
        found = store.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    listed = [
        Entry(join(address, *info.path[len(path) :].strip("/").split("/")), int(info.size), _seconds(info.mtime))
        for info in found
        if info.is_file
    ]
    return sorted(listed)


def copy(source: str, target: str) -> None:
    """Have the store copy an object within itself."""
    with _told(source) as (store, path):
        store.copy_file(path, _store_of(target)[1])


def delete(addresses: Iterable[str]) -> None:
    """Remove objects; one that is not there need not be removed."""

    def remove(address: str) -> None:
        try:
            with _told(address) as (store, path):
                store.delete_file(path)
        except FileNotFoundError:
            pass

    with ThreadPoolExecutor(_TOGETHER) as pool:
        list(pool.map(remove, addresses))


@contextmanager
def alone_in(address: str) -> Iterator[str]:
    """Be the only writer in a folder, or say that another job is writing there; the address of this writer's mark."""
    mine = join(address, f"{MARK}{uuid4().hex}")
    done = threading.Event()
    write(mine, b"")
    renewing = threading.Thread(target=_renew, args=(mine, done), daemon=True)
    try:
        marks = {each.address: each.modified for each in entries(address) if name_of(each.address).startswith(MARK)}
        now = marks.pop(mine, 0.0)
        if any(now - modified < _DEAD for modified in marks.values()):
            raise InvalidValue(f"another job is writing {shown(address)}: wait for it, or name another place")
        delete(marks)
        renewing.start()
        yield mine
    finally:
        done.set()
        if renewing.is_alive():
            renewing.join()
        delete([mine])


def _renew(mark: str, done: threading.Event) -> None:
    while not done.wait(_RENEWED):
        try:
            write(mark, b"")
        except OSError:  # the store may be back before the mark counts as dead
            continue


class _Reading(io.RawIOBase):
    """An object as Python has files; what a store says is told as of any disk."""

    def __init__(self, file: Any, address: str) -> None:
        super().__init__()
        self._file = file
        self._address = address

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._ask(lambda: int(self._file.readinto(buffer)))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._ask(lambda: int(self._file.seek(offset, whence)))

    def tell(self) -> int:
        return self._ask(lambda: int(self._file.tell()))

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    def _ask(self, question: Callable[[], int]) -> int:
        try:
            return question()
        except OSError as error:
            raise _with_number(error, self._address) from error


@contextmanager
def _told(address: str) -> Iterator[tuple[Any, str]]:
    """The store of an address and the path in it; its errors are told with the address, and with a number."""
    from pyarrow.lib import ArrowException

    try:
        yield _store_of(address)
    except OSError as error:
        raise _with_number(error, address) from error
    except ArrowException as error:
        raise InvalidValue(f"{shown(address)}: {error}") from error


def _with_number(error: OSError, address: str) -> OSError:
    """What pyarrow says of a store often has no number, as what it says of damaged files has none."""
    number = errno.EIO if error.errno is None else error.errno
    return OSError(number, str(error.strerror or error), shown(address))


def _store_of(address: str) -> tuple[Any, str]:
    parts = urlsplit(address)
    scheme = _ALIASES.get(parts.scheme, parts.scheme)
    store, root = _connected(urlunsplit((scheme, parts.netloc, "", parts.query, "")))
    if scheme in _HOSTS:
        return store, unquote(parts.path)
    return store, f"{root.strip('/')}{unquote(parts.path)}".lstrip("/")


@lru_cache(64)
def _connected(root: str) -> tuple[Any, str]:
    try:
        from pyarrow.fs import FileSystem
    except ImportError:
        raise ContradaError("a URL is read by pyarrow, which is not installed: pip install 'contrada[spark]'") from None
    store, path = FileSystem.from_uri(root)
    return store, path


def _seconds(modified: Any) -> float:
    return float(modified.timestamp()) if modified is not None else 0.0
