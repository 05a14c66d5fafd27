"""What was fetched from object stores, kept on this machine up to so many bytes, and mapped from there.

    CACHE/.lock                   shared by who is about to map files, held alone by who makes room
    CACHE/<folder>/<name>         a file, under a digest of the address of the folder it came from, and its own name
    CACHE/<folder>/.<name>.lock   held by the process that fetches it: the others wait, and find it

Files must never change under their name, as those of an index and of a job do not: what is here is what is there. When
something is used, its time is set; room is made by removing what was used longest ago. What a process has mapped it
keeps, even after the file is gone from here, so whoever maps files must let go of them by himself.

The place is $CONTRADA_CACHE, or `contrada/fetched` below the platform's cache folder; it holds at most
$CONTRADA_CACHE_BYTES (10 GiB unless set, as bytes or with k, m or g), and a little more while several fetch at once.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.errors import InvalidValue
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import folder_of, name_of, shown
from contrada.spatial.storage.file_lock import take_lock
from contrada.spatial.storage.kernel_cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PLACE: Final = "CONTRADA_CACHE"
BYTES: Final = "CONTRADA_CACHE_BYTES"
_MOST: Final = 10 << 30
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_HALF: Final = ".half"  # what is being fetched
_DAY: Final = 86_400.0
_ATTEMPTS: Final = 5  # to fetch what others remove meanwhile, for want of room


class LocalCache(NamedTuple):
    """A directory and how many bytes it may hold."""

    place: Path
    most: int

    @classmethod
    def of_environment(cls) -> LocalCache:
        """The cache that the environment says, or the usual one."""
        named = os.environ.get(PLACE)
        return cls(Path(named) if named else cache_folder() / "fetched", _bytes_of(os.environ.get(BYTES, "")))

    @contextmanager
    def holding(
        self, addresses: Sequence[str], check: Callable[[Path], object] = lambda file: None
    ) -> Iterator[list[Path]]:
        """Objects as files of this machine, which stay while the block maps or reads them.

        A file that is fetched is looked at by `check` before anybody sees it. The block must not fetch any itself: room
        is made while nobody holds any.
        """
        files = [self._file(address) for address in addresses]
        for _ in range(_ATTEMPTS):
            for address, file in zip(addresses, files, strict=True):
                if not file.exists():
                    self._fetch(address, file, check)
            with self._locked(self.place / ".lock", shared=True):
                if all(file.exists() for file in files):
                    for file in files:
                        os.utime(file)
                    yield files
                    return
        raise InvalidValue(
            f"{self.place}: {self.most} bytes are too few for what is fetched at a time; allow more with {BYTES}"
        )

    def check_room(self, size: int, what: str) -> None:
        """Refuse what does not fit as a whole."""
        if size > self.most:
            raise InvalidValue(
                f"{what}: {size} bytes, and the cache {self.place} may hold {self.most}; allow more with {BYTES}"
            )

    def _file(self, address: str) -> Path:
        digest = hashlib.blake2b(folder_of(address).encode(), digest_size=12).hexdigest()
        return self.place / digest / name_of(address)

    def _fetch(self, address: str, file: Path, check: Callable[[Path], object]) -> None:
        size = object_store.size_of(address)
        if size is None:
            raise FileNotFoundError(2, "no such object", shown(address))
        self.check_room(size, shown(address))
        file.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(file.with_name(f".{file.name}.lock")):
            if file.exists():
                return
            self._make_room(size)
            handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=_HALF)
            os.close(handle)
            try:
                object_store.download(address, Path(temporary))
                check(Path(temporary))
                os.replace(temporary, file)  # noqa: PTH105  # mkstemp gave a name, not a Path
            finally:
                Path(temporary).unlink(missing_ok=True)

    def _make_room(self, size: int) -> None:
        """Remove what was used longest ago until there are so many bytes."""
        with self._locked(self.place / ".lock"):
            for file in self.place.glob(f"*/.*{_HALF}"):
                with suppress(FileNotFoundError):  # it is whole now, and has its name
                    if time.time() - file.stat().st_mtime > _DAY:
                        file.unlink()  # of a process that was killed
            found = []
            for file in self.place.glob("*/[!.]*"):
                stat = file.stat()  # nobody else removes any now
                found.append((stat.st_mtime, stat.st_size, file))
            used = sum(each for _, each, _ in found)
            for _, each, file in sorted(found):
                if used + size <= self.most:
                    break
                file.unlink(missing_ok=True)
                used -= each

    @contextmanager
    def _locked(self, path: Path, *, shared: bool = False) -> Iterator[None]:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            take_lock(handle, shared=shared, wait=True)
            yield
        finally:
            os.close(handle)


def _bytes_of(text: str) -> int:
    if not text:
        return _MOST
    number, unit = text.strip().lower(), 1
    if number[-1:] in _UNITS:
        number, unit = number[:-1], _UNITS[number[-1]]
    if not number.isdecimal():
        raise InvalidValue(f"{BYTES}={text}: give a number of bytes, or one with k, m or g")
    return int(number) * unit
