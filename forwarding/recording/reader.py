"""A broker's recording: what it accepted, who subscribed, and where everything went, in files that survive a kill.

A recording is a journal (`contrada.forwarding.journal.blocks` has the format) whose entries are records: an entry's
kind is the record's, its payload msgpack [field, …], see `records.Kind`. A block is what a broker did in one turn of
its loop, written by one `write`. Every record has a sequence number, one for each notification of an ACCEPTED, without
gaps over the whole directory, restarts of the broker included. What a file *restates* at its beginning is what was
subscribed then, so that each file can be read by itself and the oldest may be deleted. Interfaces are small numbers
that a broker begins anew whenever it starts; the life, which is the number of that start's first file, makes them
unique in the directory.

What a notification's `interfaces` mean: the local subscriptions that it matched at that moment, in whose queues or
connections it was put; a `Dropped` tells which of them lost it afterwards. Neighbours are no subscriptions.

A file may end in the middle of a block, if the broker or its machine died: the reader stops at the last whole one and
says so in `problems`. It may as well end, or have been cut, between two blocks: a life that does not end with a
`Stopped` is told there too. At the end of the recording that may also be a broker that still runs.

A damaged block with a good one behind it is another matter: `CorruptFile`, unless `strict` is off.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.errors import CorruptFile
from contrada.forwarding.journal.blocks import HEADER_BYTES, Block, entries_of, numbered_files
from contrada.forwarding.journal.disk import REAL_DISK
from contrada.forwarding.journal.scan import Hole, read_beginning, scan
from contrada.forwarding.recording.records import (
    Accepted,
    Added,
    Attached,
    Dropped,
    Gap,
    Indexed,
    Kind,
    Record,
    Removed,
    Standing,
    Started,
    Stopped,
    Subscribed,
    Unsubscribed,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from contrada.forwarding.journal.blocks import Entry

__all__ = [
    "Accepted",
    "Added",
    "Attached",
    "Dropped",
    "Fault",
    "Gap",
    "Indexed",
    "Kind",
    "Problem",
    "Record",
    "Recording",
    "Removed",
    "Standing",
    "Started",
    "Stopped",
    "Subscribed",
    "Unsubscribed",
    "recording_files",
    "records_at",
]

_LIFE: Final = 1 << 32  # a life has fewer interfaces
_UNLIKE: Final = (TypeError, ValueError, IndexError, msgpack.UnpackException)  # what reading a made-up entry raises


class Fault(StrEnum):
    """What a reader may find wrong without having to stop."""

    TORN = "torn"  # a file ends in the middle of a block: the broker or its machine died
    GAP = "gap"  # sequence numbers are missing: the disk was full, or files are
    DAMAGED = "damaged"  # a block is unreadable, and others follow
    CUT = "cut"  # a life of the broker ends without its `Stopped`: it was killed, or the end of a file is missing
    OPEN = "open"  # the same at the very end, where the broker may as well be running and writing on


class Problem(NamedTuple):
    """Something that is not as it was written."""

    path: Path
    offset: int
    fault: Fault
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.fault} at byte {self.offset}: {self.detail}"


def recording_files(directory: str | os.PathLike[str]) -> list[Path]:
    """The files of a recording, oldest first."""
    path = Path(directory)
    try:
        return numbered_files(path, REAL_DISK.names(path))
    except OSError as error:
        raise CorruptFile(f"{path}: not a recording's directory: {error.strerror or error}") from error


class Recording:
    """A recording to be read: a directory of files, or one of them.

        recording = Recording("log")
        for record in recording: ...
        recording.problems                      what was not whole

    Records come in order of their sequence numbers. What later files restate is left out: only the first file begins
    with subscriptions that go on. `problems` are those of the latest walk so far. A recording that is still being
    written may be read; its end is where the last whole block was. Of a directory it is also told which lives of the
    broker have no proper end; of a single file that cannot be known, as a life may go on in the next.
    """

    def __init__(self, path: str | os.PathLike[str], *, strict: bool = True) -> None:
        path = Path(path)
        self._alone = path.is_file()
        self.files = [path] if self._alone else recording_files(path)
        if not self.files:
            raise CorruptFile(f"{path}: no recording: it holds no file NNNNNNNN.rec")
        self.problems: list[Problem] = []
        self._strict = strict

    def __iter__(self) -> Iterator[Record]:
        self.problems = []
        walk = _Walk(self.problems, self._strict)
        for path in self.files:
            yield from walk.file(path)
        if not self._alone:
            walk.end()

    def end(self) -> int:
        """The sequence number that the next record would have."""
        for path in reversed(self.files):
            last = deque(_blocks(path, [], strict=False), maxlen=1)
            if last:
                return last[0].end
        return 1


class _Walk:
    """Reads files one after the other, and watches that sequence numbers go on and that lives come to an end."""

    def __init__(self, problems: list[Problem], strict: bool) -> None:
        self._problems = problems
        self._strict = strict
        self._next: int | None = None
        self._life: int | None = None  # that the last block was of
        self._stopped = False  # whether that block ended it
        self._place: tuple[Path, int] = Path(), 0  # where it ended

    def file(self, path: Path) -> Iterator[Record]:
        """The records of the next file; those it restates only if they are news."""
        expected = self._next
        news = True
        for block in _blocks(path, self._problems, self._strict):
            if block.life != self._life:
                self._unended(Fault.CUT)
                self._stopped = False
            self._life = block.life
            self._place = path, block.end_offset
            begins = block.offset == HEADER_BYTES
            if begins:
                news = block.first != expected
            if expected is not None and block.first != expected:
                detail = f"record {expected} is expected and {block.first} follows"
                if block.first < expected:
                    raise CorruptFile(f"{path}: block at byte {block.offset}: {detail}")
                self._problems.append(Problem(path, block.offset, Fault.GAP, detail))
                yield Gap(block.first, block.time, block.first - expected, begins)
            expected = self._next = block.end
            try:
                entries = entries_of(block)
                if block.numbers:  # a file that was begun behind the end only restates
                    self._stopped = entries[-1].kind == Kind.STOPPED
                for entry in entries:
                    if entry.numbers or news:
                        yield from _read(entry)
            except _UNLIKE as error:
                raise _unlike(path, block, error) from error

    def end(self) -> None:
        """Nothing follows."""
        self._unended(Fault.OPEN)

    def _unended(self, fault: Fault) -> None:
        """Tell of a life whose last record was not that of its end, unless something else was found just there."""
        path, offset = self._place
        if self._life is None or self._stopped or any(p.path == path and p.offset == offset for p in self._problems):
            return
        detail = "the broker did not record that it stopped: it was killed, or what it wrote from here on is missing"
        if fault is Fault.OPEN:
            detail = "still open or cut: the broker runs and writes on, or it was killed, or the end is missing"
        self._problems.append(Problem(path, offset, fault, detail))


def _read(entry: Entry) -> Iterator[Record]:
    """The records of an entry. Raises TypeError or ValueError when a broker does not write such."""
    sequence, time, base = entry.sequence, entry.time, entry.life * _LIFE
    fields = msgpack.unpackb(entry.payload, use_list=False)
    if entry.kind != Kind.ACCEPTED:
        yield _record(entry.kind, sequence, time, fields, base, entry.numbers == 0)
        return
    broker, number, publisher, bodies, sizes, interfaces = fields
    if len(bodies) != entry.numbers:
        raise ValueError(f"it has {len(bodies)} notifications and counts {entry.numbers}")
    start = 0
    for at, (body, size) in enumerate(zip(bodies, sizes, strict=True)):
        everyone = tuple([base + each for each in interfaces[start : start + size]])
        yield Accepted(sequence + at, time, broker, number + at, publisher, body, everyone)
        start += size


def _record(kind: int, sequence: int, time: int, fields: Sequence[Any], base: int, restated: bool) -> Record:
    if kind == Kind.SUBSCRIBED:
        interface, client, session, subscription, filters = fields
        return Subscribed(sequence, time, base + interface, client, session, subscription, tuple(filters), restated)
    if kind == Kind.UNSUBSCRIBED:
        (interface,) = fields
        return Unsubscribed(sequence, time, base + interface)
    if kind == Kind.DROPPED:
        interface, reason, lost = fields
        return Dropped(sequence, time, base + interface, reason, tuple((broker, number) for broker, number in lost))
    if kind == Kind.STANDING:
        interface, name = fields
        return Standing(sequence, time, base + interface, name, restated)
    if kind == Kind.ATTACHED:
        interface, client, session, subscription, name = fields
        return Attached(sequence, time, base + interface, client, session, subscription, name, restated)
    if kind == Kind.INDEXED:
        path, shard, digest, subscriptions, filters = fields
        return Indexed(sequence, time, path, shard, digest, subscriptions, filters, restated)
    if kind == Kind.ADDED:
        id, name, filter = fields
        return Added(sequence, time, id, name, filter, restated)
    if kind == Kind.REMOVED:
        (id,) = fields
        return Removed(sequence, time, id, restated)
    if kind == Kind.STARTED:
        return Started(sequence, time, *fields)
    if kind == Kind.STOPPED:
        return Stopped(sequence, time, *fields)
    raise ValueError(f"no record is of kind {kind!r}")


def _blocks(path: Path, problems: list[Problem], strict: bool) -> Iterator[Block]:
    """Each whole block; what is not goes into `problems`, or is raised."""
    try:
        file = REAL_DISK.open(path)
    except OSError as error:
        raise CorruptFile(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        beginning = read_beginning(REAL_DISK, file)
        if beginning.foreign:
            raise CorruptFile(f"{path}: {beginning.foreign}")
        if beginning.salt is None and beginning.block is None:
            problems.append(Problem(path, 0, Fault.TORN, "the header is not whole"))
            return
        if beginning.salt is None:
            _damaged(path, Hole(0, HEADER_BYTES, "the header is damaged"), problems, strict)
        if beginning.size == HEADER_BYTES:  # they are written together
            problems.append(Problem(path, HEADER_BYTES, Fault.TORN, "nothing is behind the header"))
        hole = None
        for each in scan(REAL_DISK, file, salt=beginning.salt):
            if isinstance(each, Hole):
                hole = each
                continue
            if hole is not None:
                _damaged(path, hole, problems, strict)
                hole = None
            yield each
        if hole is not None:
            detail = f"{hole.end_offset - hole.offset} bytes are not a whole block"
            problems.append(Problem(path, hole.offset, Fault.TORN, detail))
    finally:
        REAL_DISK.close(file)


def records_at(path: Path, offset: int) -> Iterator[Record]:
    """The records of a file from the block at `offset` on, but none restated, up to where it ends or is damaged."""
    file = REAL_DISK.open(path)
    try:
        for block in scan(REAL_DISK, file, start=offset, salt=None):
            if isinstance(block, Hole):
                return
            try:
                for entry in entries_of(block):
                    if entry.numbers:
                        yield from _read(entry)
            except _UNLIKE as error:
                raise _unlike(path, block, error) from error
    finally:
        REAL_DISK.close(file)


def _unlike(path: Path, block: Block, error: Exception) -> CorruptFile:
    return CorruptFile(f"{path}: block at byte {block.offset}: not as a broker writes it: {error}")


def _damaged(path: Path, hole: Hole, problems: list[Problem], strict: bool) -> None:
    if strict:
        raise CorruptFile(
            f"{path}: damaged at byte {hole.offset}: {hole.reason}; the next whole block is at byte {hole.end_offset}"
        )
    detail = f"{hole.end_offset - hole.offset} bytes are unreadable: {hole.reason}"
    problems.append(Problem(path, hole.offset, Fault.DAMAGED, detail))
