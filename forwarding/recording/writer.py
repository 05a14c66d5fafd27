"""Writes a recording: a turn's records as one block of a journal. What the files hold is told in `reader.py`.

    accepted, … ─▶ rows of this turn ── commit ─▶ entries, one write ─▶ NNNNNNNN.rec ── too large or too old ─▶ the next

A writer keeps what is subscribed (the rows as written, by interface) to restate it at the beginning of each file. The
journal is a lenient one: a recording promises nothing to anybody, and a broker does not wait for it. After a failed
write the file is given up; `reopen` begins another.
"""

from __future__ import annotations

import time
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.errors import ContradaError, JournalFailed
from contrada.forwarding.journal.disk import REAL_DISK
from contrada.forwarding.journal.journal import Journal
from contrada.forwarding.language.lonlat import PLANE
from contrada.forwarding.recording.records import Kind

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Sequence

    from contrada.forwarding.journal.disk import Disk

_pack: Final[Callable[[Any], bytes]] = msgpack.Packer(autoreset=True).pack


class RecordingWriter:
    """Appends to the recording in `directory`, made if need be.

    A file is followed by the next when it has `file_bytes` or is `file_seconds` old; the oldest are deleted while all
    have more than `total_bytes` (0: never).

    Methods that record cost an append; `commit` packs and writes. When it cannot it raises `JournalFailed`, and
    everything until the next successful `reopen` is lost: the sequence numbers tell how many records. `sync` may be
    called by another thread.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        broker: str,
        *,
        crs: str = PLANE,
        file_bytes: int = 256 << 20,
        file_seconds: float = 3600.0,
        total_bytes: int = 0,
        clock: Callable[[], int] = time.time_ns,
        disk: Disk = REAL_DISK,
    ) -> None:
        self.directory = Path(directory)
        self.broker = broker
        self.failed = False  # nothing is recorded until `reopen`
        self._file_us = int(file_seconds * 1e6)
        self._total_bytes = total_bytes
        self._clock = clock
        self._rows: list[tuple[Any, ...]] = []
        self._count = 0  # sequence numbers that the rows take
        self._broker = self._publisher = ""  # of the row that may be continued,
        self._next = -1  # with this number
        self._bodies: list[bytes] = []
        self._sizes: list[int] = []
        self._interfaces: list[int] = []
        self._live: dict[int, tuple[Any, ...]] = {}  # SUBSCRIBED, STANDING and ATTACHED rows by interface
        self._index: list[tuple[Any, ...]] = []  # the INDEXED row and how it was changed since
        self._opened = self._clock() // 1000
        try:
            self._journal = Journal.open(
                self.directory, disk=disk, file_bytes=file_bytes, clock=clock, restates=True, lenient=True
            )
            self._note((Kind.STARTED, broker, crs))
            self.commit()
        except JournalFailed as error:
            raise ContradaError(f"cannot record in {self.directory}: {error.reason}") from error

    @property
    def sequence(self) -> int:
        """The number of the next record."""
        return self._journal.last + 1 + self._count

    @property
    def path(self) -> Path:
        """The file that is written to, or was last."""
        return self._journal.path

    @property
    def written(self) -> int:
        """Bytes, of this life."""
        return self._journal.written

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
        count, self._count, self._next = self._count, 0, -1
        if self.failed:
            self._journal.skip(count)  # see `reopen`
            return
        for row in rows:
            self._journal.append(row[0], _pack(row[1:]), len(row[4]) if row[0] == Kind.ACCEPTED else 1)
        self._write()
        # Here, where nothing is pending, what is subscribed is what the next file must restate.
        if self._journal.full or self._clock() // 1000 - self._opened >= self._file_us:
            self.reopen()

    def reopen(self) -> None:
        """Begin the next file. What is not committed yet is counted and forgotten."""
        self._journal.skip(self._count)
        self._rows, self._count, self._next = [], 0, -1
        self._opened = self._clock() // 1000
        self._journal.begin_file((row[0], _pack(row[1:])) for row in (*self._index, *self._live.values()))
        self._write()
        self.failed = False
        self._delete_oldest()

    def _write(self) -> None:
        try:
            self._journal.write()
        except JournalFailed:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Record nothing more until `reopen`."""
        self.failed = True
        self._journal.discard()

    def _delete_oldest(self) -> None:
        files = self._journal.files
        excess, first = sum(each.size for each in files) - self._total_bytes, 0
        for oldest, following in pairwise(files):
            if excess <= 0:
                break
            excess -= oldest.size
            first = following.first
        if self._total_bytes and first:
            self._journal.drop_before(first)

    def sync(self) -> None:
        """Wait until the disk has what was committed."""
        self._journal.commit()

    def close(self, *, sync: bool = False) -> None:
        """Record a clean end, and wait for the disk if asked to. A second call does nothing."""
        if self._journal.closed:
            return
        try:
            self._note((Kind.STOPPED,))
            self.commit()
            if sync and not self.failed:
                self.sync()
        finally:
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
