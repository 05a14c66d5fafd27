"""Writes a recording: blocks into rolling files. What the files hold is told in `reader.py`.

    append ─▶ records of this turn ── commit ─▶ one block, one write ─▶ NNNNNNNN.rec ── too large or too old ─▶ the next

A writer keeps what is subscribed (the rows as written, by interface) to restate it at the beginning of each file. It
never touches a file of an earlier life: a start opens the next number. A lock on the directory keeps a second writer
out. After a failed write the torn block is cut off and the file is given up; `reopen` begins another.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from contrada.errors import ContradaError
from contrada.forwarding.recording.reader import (
    Kind,
    Recording,
    encode_block,
    encode_header,
    file_number,
    recording_files,
)
from contrada.spatial.storage.file_lock import take_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_RESTATED: Final = 4096  # subscriptions in one block


class RecordingWriter:
    """Appends to the recording in `directory`, made if need be.

    A file is followed by the next when it has `file_bytes` or is `file_seconds` old; the oldest are deleted while all
    have more than `total_bytes` (0: never). A `durable` writer has the disk know of each new file before it goes on.
    `retire` is given the descriptor of each file that is done with, to sync and close it.

    Methods that record cost an append; `commit` packs and writes. When it cannot it raises `OSError`, and everything
    until the next successful `reopen` is lost: the sequence numbers tell how many records.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        broker: str,
        *,
        file_bytes: int = 256 << 20,
        file_seconds: float = 3600.0,
        total_bytes: int = 0,
        durable: bool = False,
        clock: Callable[[], int] = time.time_ns,
        retire: Callable[[int], None] = os.close,
    ) -> None:
        self.directory = Path(directory)
        self.broker = broker
        self.written = 0  # bytes, of this life
        self._file_bytes = file_bytes
        self._file_us = int(file_seconds * 1e6)
        self._total_bytes = total_bytes
        self._durable = durable
        self._clock = clock
        self._retire = retire
        self._rows: list[tuple[Any, ...]] = []
        self._count = 0  # sequence numbers that the rows take
        self._broker = self._publisher = ""  # of the row that may be continued,
        self._next = -1  # with this number
        self._bodies: list[bytes] = []
        self._sizes: list[int] = []
        self._interfaces: list[int] = []
        self._live: dict[int, tuple[Any, ...]] = {}  # SUBSCRIBED, STANDING and ATTACHED rows by interface
        self._index: list[tuple[Any, ...]] = []  # the INDEXED row and how it was changed since
        self._file: int | None = None
        self._size = 0
        self._opened = 0
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ContradaError(f"cannot record in {self.directory}: {error.strerror or error}") from error
        try:
            self._take_lock()
            files = recording_files(self.directory)
            self._sequence = Recording(self.directory).end() if files else 1
            self._number = file_number(files[-1]) if files else 0
            self._life = self._number + 1
            self.reopen()
            self._note((Kind.STARTED, broker))
            self.commit()
        except OSError as error:
            os.close(self._lock)
            raise ContradaError(f"cannot record in {self.directory}: {error.strerror or error}") from error
        except BaseException:
            os.close(self._lock)
            raise

    def _take_lock(self) -> None:
        try:
            take_lock(self._lock)
        except BlockingIOError as error:
            raise ContradaError(f"another broker records in {self.directory}: give each a directory") from error

    @property
    def sequence(self) -> int:
        """The number of the next record."""
        return self._sequence + self._count

    @property
    def path(self) -> Path:
        """The file that is written to, or was last."""
        return self.directory / f"{self._number:08}.rec"

    # -- what happens ------------------------------------------------------------------------------------

    def subscribed(
        self, interface: int, client: str, session: int, subscription: int, filters: Sequence[bytes]
    ) -> None:
        """A subscription began."""
        self._live[interface] = row = (Kind.SUBSCRIBED, interface, client, session, subscription, filters)
        self._note(row)

    def unsubscribed(self, interface: int) -> None:
        """A subscription ended."""
        del self._live[interface]
        self._note((Kind.UNSUBSCRIBED, interface))

    def accepted(
        self, broker: str, number: int, publisher: str, bodies: Sequence[bytes], matched: Sequence[Collection[int]]
    ) -> None:
        """Notifications of one publisher, numbered on from `number`, and the interfaces that each went to."""
        if number != self._next or publisher != self._publisher or broker != self._broker:
            self._begin_row(broker, number, publisher)
        count = len(bodies)
        if count == 1:  # the usual case, and worth being quick at: it comes with every message
            (interfaces,) = matched
            self._bodies.append(bodies[0])
            self._sizes.append(len(interfaces))
            self._interfaces.extend(interfaces)
        else:
            self._bodies.extend(bodies)
            self._sizes.extend(map(len, matched))
            self._interfaces.extend(chain.from_iterable(matched))
        self._next += count
        self._count += count

    def _begin_row(self, broker: str, number: int, publisher: str) -> None:
        """A row takes notifications as long as they are of one publisher and numbered on, and nothing else happens."""
        self._bodies, self._sizes, self._interfaces = [], [], []
        self._broker, self._publisher, self._next = broker, publisher, number
        self._rows.append((Kind.ACCEPTED, broker, number, publisher, self._bodies, self._sizes, self._interfaces))

    def dropped(self, interface: int, reason: str, notifications: Sequence[tuple[str, int]]) -> None:
        """A subscription lost notifications."""
        self._note((Kind.DROPPED, interface, reason, notifications))

    def indexed(self, path: str, shard: str, digest: str, subscriptions: int, filters: int) -> None:
        """An index was loaded, in place of any before."""
        self._index.clear()
        self._change((Kind.INDEXED, path, shard, digest, subscriptions, filters))

    def added(self, id: str, name: str, filter: bytes) -> None:
        """A subscription was put into the index."""
        self._change((Kind.ADDED, id, name, filter))

    def removed(self, id: str) -> None:
        """A subscription was taken out of the index."""
        self._change((Kind.REMOVED, id))

    def _change(self, row: tuple[Any, ...]) -> None:
        self._index.append(row)
        self._note(row)

    def standing(self, interface: int, name: str) -> None:
        """A standing interface gets its number."""
        self._live[interface] = row = (Kind.STANDING, interface, name)
        self._note(row)

    def attached(self, interface: int, client: str, session: int, subscription: int, name: str) -> None:
        """A client attached to a standing interface; `unsubscribed` ends it."""
        self._live[interface] = row = (Kind.ATTACHED, interface, client, session, subscription, name)
        self._note(row)

    def _note(self, row: tuple[Any, ...]) -> None:
        self._next = -1
        self._rows.append(row)
        self._count += 1

    # -- files -------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Write what happened since the last commit. Once it returns, a kill of the process loses none of it."""
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        self._next = -1
        first, count = self._sequence, self._count
        self._sequence += count
        self._count = 0
        if self._file is None:
            return  # failed: see `reopen`
        now = self._clock() // 1000
        self._write(encode_block(first, count, now, rows))
        # Here, where nothing is pending, what is subscribed is what the next file must restate.
        if self._size >= self._file_bytes or now - self._opened >= self._file_us:
            self.reopen()

    def reopen(self) -> None:
        """Begin the next file. What is not committed yet is counted and forgotten."""
        self._sequence += self._count
        self._rows, self._count, self._next = [], 0, -1
        self.give_up()
        now = self._clock() // 1000
        self._number += 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self.path, flags, 0o644)
        self._size, self._opened = 0, now
        restated = [*self._index, *self._live.values()]
        try:
            for start in range(0, len(restated) or 1, _RESTATED):
                block = encode_block(self._sequence, 0, now, restated[start : start + _RESTATED])
                self._write(block if start else encode_header(self._life) + block)
            if self._durable:
                os.fdatasync(self._file)
                _sync_directory(self.directory)
        except OSError:
            self.give_up()
            self.path.unlink()
            self._number -= 1
            raise
        self._delete_oldest()

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        left = memoryview(data)
        try:
            while left:  # a write may stop short of a full disk
                left = left[os.write(self._file, left) :]
        except OSError:
            with suppress(OSError):  # the reader knows a torn block when it sees one
                os.ftruncate(self._file, self._size)
            self.give_up()
            raise
        self._size += len(data)
        self.written += len(data)

    def give_up(self) -> None:
        """Write no more to this file."""
        if self._file is not None:
            file, self._file = self._file, None
            self._retire(file)

    def _delete_oldest(self) -> None:
        if self._total_bytes:
            files = recording_files(self.directory)
            sizes = [path.stat().st_size for path in files]
            total = sum(sizes)
            for path, size in zip(files[:-1], sizes, strict=False):
                if total <= self._total_bytes:
                    break
                path.unlink()
                total -= size

    @property
    def failed(self) -> bool:
        """Whether a write failed, and nothing is recorded until `reopen`."""
        return self._file is None

    def sync(self) -> None:
        """Wait until the disk has what was committed."""
        if self._file is not None:
            os.fdatasync(self._file)

    def descriptor(self) -> int | None:
        """A duplicate of the current file's descriptor, for a thread that syncs; the caller closes it."""
        return os.dup(self._file) if self._file is not None else None

    def close(self) -> None:
        """Record a clean end. A second call does nothing."""
        if self._lock < 0:
            return
        try:
            self._note((Kind.STOPPED,))
            self.commit()
        finally:
            self.give_up()
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
