"""Files by address, a path or a URL, as tasks and the driver read and write them.

What is written to a store is written to this machine first, and put when it is whole. What is read again and again, or
is mapped, is fetched into the cache of the machine; logs and tables are read where they are, a range at a time.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import pyarrow.parquet as pq

from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import is_url, name_of
from contrada.forwarding.stores.local_cache import LocalCache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class SizedFile(NamedTuple):
    """A file that was found, and how large it is."""

    address: str
    size: int


@contextmanager
def writing(address: str) -> Iterator[Path]:
    """A file to be written; if the block ends well it is there."""
    if not is_url(address):
        Path(address).parent.mkdir(parents=True, exist_ok=True)
        yield Path(address)
        return
    with tempfile.TemporaryDirectory(prefix="contrada-") as home:
        file = Path(home) / name_of(address)
        yield file
        object_store.upload(file, address)


@contextmanager
def writing_into(address: str) -> Iterator[Path]:
    """A directory for new files, which are in the folder of that address if the block ends well."""
    if not is_url(address):
        Path(address).mkdir(parents=True, exist_ok=True)
        yield Path(address)
        return
    with tempfile.TemporaryDirectory(prefix="contrada-") as home:
        yield Path(home)
        object_store.upload_folder(Path(home), address)


@contextmanager
def reading(address: str) -> Iterator[Path]:
    """A file that is never changed, on this machine, as long as it takes to read or map it."""
    if not is_url(address):
        yield Path(address)
        return
    with LocalCache.of_environment().holding([address]) as (file,):
        yield file


@contextmanager
def fetched(addresses: Sequence[str]) -> Iterator[Path]:
    """A directory with copies of files that may change later, as long as the block reads them."""
    with tempfile.TemporaryDirectory(prefix="contrada-") as home:
        for address in addresses:
            object_store.download(address, Path(home) / name_of(address))
        yield Path(home)


def take(address: str, file: Path) -> None:
    """Have a file that nobody else needs as one of the driver's own."""
    if is_url(address):
        object_store.download(address, file)
    else:
        shutil.move(address, file)


def open_binary(address: str) -> BinaryIO:
    """A file to be read where it is."""
    return object_store.open_object(address) if is_url(address) else Path(address).open("rb")


@contextmanager
def parquet_at(address: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file to be read where it is."""
    if not is_url(address):
        with pq.ParquetFile(address) as file:
            yield file
        return
    with object_store.open_object(address) as stored, pq.ParquetFile(stored) as file:
        yield file


def size_of(address: str) -> int:
    """How large a file is; 0 when there is none any more."""
    if is_url(address):
        return object_store.size_of(address) or 0
    return Path(address).stat().st_size if Path(address).exists() else 0
