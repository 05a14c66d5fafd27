"""A broker's recording: what it accepted, who subscribed, and where everything went, in files that survive a kill.

A directory holds `00000001.rec`, `00000002.rec`, …, each:

    header     "contrada-rec", and uint32 little-endian: format version, life, CRC-32 of the header before it
    blocks     byte C7 and "BLK", uint32 length of the payload, uint32 CRC-32 of length and payload, payload
    payload    msgpack [sequence of its first record, records counted, UTC time in µs, [record, …]]
    record     msgpack [kind, field, …], see `recording_records.Kind`

A block is what a broker did in one turn of its loop, written by one `write`. Every record has a sequence number, one
for each notification of an ACCEPTED, without gaps over the whole directory, restarts of the broker included. Blocks
that count none stand at the beginning of a file and *restate* what was subscribed then, so that each file can be read
by itself and the oldest may be deleted. Interfaces are small numbers that a broker begins anew whenever it starts; the
life, which is the number of that start's first file, makes them unique in the directory.

What a notification's `interfaces` mean: the local subscriptions that it matched at that moment, in whose queues or
connections it was put; a `Dropped` tells which of them lost it afterwards. Neighbours are no subscriptions.

A file may end in the middle of a block, if the broker or its machine died: the reader stops at the last whole one and
says so in `problems`. It may as well end, or have been cut, between two blocks: a life that does not end with a
`Stopped` is told there too. At the end of the recording that may also be a broker that still runs.

A damaged block with a good one behind it is another matter: `CorruptFile`, unless `strict` is off.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections import deque
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.errors import CorruptFile
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
from contrada.spatial.storage.regular_file import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "HEADER_BYTES",
    "MAGIC",
    "VERSION",
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
    "encode_block",
    "encode_header",
    "file_number",
    "recording_files",
]

MAGIC: Final = b"contrada-rec"
VERSION: Final = 1
HEADER_BYTES: Final = 24
_NAME: Final = re.compile(r"[0-9]{8,}\.rec")
_MARK: Final = b"\xc7BLK"
_LENGTH: Final = struct.Struct("<I")
_HEAD: Final = struct.Struct("<4sII")  # mark, length, checksum
_LIFE: Final = 1 << 32  # a life has fewer interfaces


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


# -- writing -----------------------------------------------------------------------------------------------


_pack: Callable[[Any], bytes] = msgpack.Packer(autoreset=True).pack


def encode_block(first: int, count: int, time: int, records: Sequence[tuple[Any, ...]]) -> bytes:
    """Write records, of which `count` have sequence numbers, from `first` on, as one block."""
    payload = _pack((first, count, time, records))
    length = _LENGTH.pack(len(payload))
    return b"".join((_MARK, length, _LENGTH.pack(zlib.crc32(payload, zlib.crc32(length))), payload))


def encode_header(life: int) -> bytes:
    """Begin a file of a life of the broker: the number of the first file of that life."""
    header = MAGIC + struct.pack("<II", VERSION, life)
    return header + _LENGTH.pack(zlib.crc32(header))


def recording_files(directory: str | os.PathLike[str]) -> list[Path]:
    """The files of a recording, oldest first."""
    path = Path(directory)
    try:
        found = [each for each in path.iterdir() if _NAME.fullmatch(each.name)]
    except OSError as error:
        raise CorruptFile(f"{path}: not a recording's directory: {error.strerror or error}") from error
    return sorted(found, key=file_number)


def file_number(path: Path) -> int:
    """The number that names a file of a recording."""
    return int(path.stem)


# -- reading -----------------------------------------------------------------------------------------------


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
                first, count, _, _ = _unpack(path, *last[0][1:])
                return first + count
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
        for life, offset, payload in _blocks(path, self._problems, self._strict):
            if life != self._life:
                self._unended(Fault.CUT)
                self._stopped = False
            first, count, time, rows = _unpack(path, offset, payload)
            self._life = life
            self._place = path, offset + _HEAD.size + len(payload)
            begins = offset == HEADER_BYTES
            if begins:
                news = first != expected
            if expected is not None and first != expected:
                detail = f"record {expected} is expected and {first} follows"
                if first < expected:
                    raise CorruptFile(f"{path}: block at byte {offset}: {detail}")
                self._problems.append(Problem(path, offset, Fault.GAP, detail))
                yield Gap(first, time, first - expected, begins)
            expected = self._next = first + count
            try:
                if count:  # a file that was begun behind the end only restates
                    self._stopped = rows[-1][0] == Kind.STOPPED
                yield from _read(first, count, time, rows, life * _LIFE, news)
            except (TypeError, ValueError, IndexError) as error:
                raise CorruptFile(f"{path}: block at byte {offset}: not as a broker writes it: {error}") from error

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


def _read(first: int, count: int, time: int, rows: Sequence[Any], base: int, news: bool) -> Iterator[Record]:
    """The records of a block; what it restates only if that is news. Raises TypeError or ValueError for any others."""
    restated = count == 0
    sequence = first
    for kind, *fields in rows:
        if kind == Kind.ACCEPTED:
            broker, number, publisher, bodies, sizes, interfaces = fields
            start = 0
            for at, (body, size) in enumerate(zip(bodies, sizes, strict=True)):
                everyone = tuple([base + each for each in interfaces[start : start + size]])
                yield Accepted(sequence, time, broker, number + at, publisher, body, everyone)
                start += size
                sequence += 1
        else:
            record = _record(kind, sequence, time, fields, base, restated)
            if news or not restated:
                yield record
            sequence += not restated
    if sequence != first + count:
        raise ValueError(f"it has {sequence - first} records and counts {count}")


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
        (broker,) = fields
        return Started(sequence, time, broker)
    if kind == Kind.STOPPED:
        return Stopped(sequence, time, *fields)
    raise ValueError(f"no record is of kind {kind!r}")


def _unpack(path: Path, offset: int, payload: bytes) -> tuple[int, int, int, Sequence[Any]]:
    try:
        first, count, time, rows = msgpack.unpackb(payload, use_list=False)
        if not (type(first) is type(count) is type(time) is int and type(rows) is tuple):
            raise ValueError("its head is not [sequence, count, time, records]")
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptFile(f"{path}: block at byte {offset}: not as a broker writes it: {error}") from error
    return first, count, time, rows


def _blocks(path: Path, problems: list[Problem], strict: bool) -> Iterator[tuple[int, int, bytes]]:
    """Life, offset and payload of each whole block."""
    try:
        file = open_regular(path, 1 << 20)
    except OSError as error:
        raise CorruptFile(f"{path}: cannot be read: {error.strerror or error}") from error
    with file:
        size = os.fstat(file.fileno()).st_size
        life = _read_header(path, file.read(HEADER_BYTES))
        if life is None:
            problems.append(Problem(path, 0, Fault.TORN, "the header is not whole"))
            return
        offset = HEADER_BYTES
        if size == offset:  # they are written together
            problems.append(Problem(path, offset, Fault.TORN, "nothing is behind the header"))
        while offset < size:
            payload = _block(file, size - offset)
            if payload is not None:
                yield life, offset, payload
                offset += _HEAD.size + len(payload)
                continue
            after = _next_whole(file, offset + 1, size)
            if after is None:
                problems.append(Problem(path, offset, Fault.TORN, f"{size - offset} bytes are not a whole block"))
                return
            if strict:
                raise CorruptFile(f"{path}: damaged at byte {offset}; the next whole block is at byte {after}")
            problems.append(Problem(path, offset, Fault.DAMAGED, f"{after - offset} bytes are unreadable"))
            offset = after
            file.seek(offset)


def blocks_at(path: Path, offset: int) -> Iterator[Record]:
    """The records of a file from the block at `offset` on, up to where it ends or is damaged."""
    with open_regular(path, 1 << 20) as file:
        size = os.fstat(file.fileno()).st_size
        life = _read_header(path, file.read(HEADER_BYTES))
        file.seek(offset)
        while life is not None and offset < size and (payload := _block(file, size - offset)) is not None:
            first, count, time, rows = _unpack(path, offset, payload)
            try:
                yield from _read(first, count, time, rows, life * _LIFE, news=False)
            except (TypeError, ValueError, IndexError) as error:
                raise CorruptFile(f"{path}: block at byte {offset}: not as a broker writes it: {error}") from error
            offset += _HEAD.size + len(payload)


def head_of_block(file: BinaryIO, room: int) -> int | None:
    """The bytes of the block at the file's position, None if it is not whole; leaves the file at its payload."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    mark, length, _ = _HEAD.unpack(head)
    return _HEAD.size + int(length) if mark == _MARK and length <= room - _HEAD.size else None


def _read_header(path: Path, header: bytes) -> int | None:
    """The life that a file belongs to, None if its header was cut short."""
    if not header.startswith(MAGIC[: len(header)]):
        raise CorruptFile(f"{path}: not a recording (no magic number)")
    if len(header) < HEADER_BYTES:
        return None
    version, life, checksum = struct.unpack("<3I", header[len(MAGIC) :])
    if version != VERSION:
        raise CorruptFile(f"{path}: a recording of format {version}, this version reads {VERSION}")
    if checksum != zlib.crc32(header[:-4]):
        raise CorruptFile(f"{path}: a recording whose header is damaged")
    return int(life)


def _block(file: BinaryIO, room: int) -> bytes | None:
    """The payload of the block at the file's position, None when there is no whole one."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    mark, length, checksum = _HEAD.unpack(head)
    if mark != _MARK or length > room - _HEAD.size:
        return None
    payload = file.read(length)
    if len(payload) != length or zlib.crc32(payload, zlib.crc32(head[4:8])) != checksum:
        return None
    return payload


def _next_whole(file: BinaryIO, start: int, size: int) -> int | None:
    """Where the first whole block at or behind `start` begins."""
    file.seek(start)
    rest = file.read(size - start)
    at = rest.find(_MARK)
    while at >= 0:
        file.seek(start + at)
        if _block(file, size - start - at) is not None:
            return start + at
        at = rest.find(_MARK, at + 1)
    return None
