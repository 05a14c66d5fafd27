r"""The format of a journal's files: a header, then blocks, each chained to the one before.

A directory holds `00000001.rec`, `00000002.rec`, …, each:

    header     "contrada-rec", uint32 format version, uint32 salt, uint32 CRC-32 of these (numbers are little-endian)
    block      "\xc7BLK", uint32 checksum, and what the checksum, a CRC-32, is taken of:
               uint32 length of the payload      uint32 before: the checksum of the block before, or 0
               uint32 salt of the journal        uint32 life, uint32 numbers: how many it takes
               uint64 first of these numbers     uint64 synced: the last number known to be on disk when it was written
               uint64 UTC time in µs             payload
    payload    msgpack [[kind, numbers, bytes], …]: the entries

A file begins with a block without entries, which tells life, salt and where the numbers go on. Blocks that take no
numbers *restate*: they repeat what goes on, so that the files before may be removed. One without entries elsewhere only
says what is on disk, as at a clean end.

    before   what a block follows, by its own word: one that was replaced by an older one, or is left over from a write
             that was given up, is known by the `before` of the next, whole as it may look
    salt     random, one for the directory: no client that has bytes put into a payload can write what a reader that
             lost its place would take for a block
    synced   tells a torn tail, which nobody was promised, from damage in what somebody was
    life     the number of the file that the writer began with: one for each start
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # it ships no types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

MAGIC: Final = b"contrada-rec"
VERSION: Final = 2
PREAMBLE: Final = MAGIC + struct.pack("<I", VERSION)
HEADER_BYTES: Final = len(PREAMBLE) + 8
MARK: Final = b"\xc7BLK"
HEAD: Final = struct.Struct("<4sIIIIIIQQQ")
_COVERED: Final = struct.Struct("<IIIIIQQQ")  # of the head, what the checksum covers
COVERED_AT: Final = HEAD.size - _COVERED.size
_NAME: Final = re.compile(r"[0-9]{8,}\.rec")
LONGEST: Final = 256 << 20  # no payload is longer

_pack: Callable[[Any], bytes] = msgpack.Packer(autoreset=True).pack
_pack_count: Callable[[int], bytes] = msgpack.Packer(autoreset=True).pack_array_header


class Block(NamedTuple):
    """A whole block, as it stands in a file."""

    offset: int
    checksum: int
    length: int
    before: int
    salt: int
    life: int
    numbers: int
    first: int
    synced: int
    time: int
    payload: bytes

    @property
    def end(self) -> int:
        """The sequence number behind its last."""
        return self.first + self.numbers

    @property
    def end_offset(self) -> int:
        """Where the next block begins."""
        return self.offset + HEAD.size + self.length


class Entry(NamedTuple):
    """What was appended: so many `numbers` from `sequence` on; none if it restates."""

    sequence: int
    time: int  # µs since 1970, UTC, of the write
    kind: int
    payload: bytes
    numbers: int = 1
    life: int = 1


def encode_header(salt: int) -> bytes:
    """The beginning of a file."""
    header = PREAMBLE + salt.to_bytes(4, "little")
    return header + zlib.crc32(header).to_bytes(4, "little")


def header_salt(header: bytes) -> int | None:
    """The salt that a header tells; None if it is not whole."""
    if len(header) < HEADER_BYTES or header != encode_header(int.from_bytes(header[-8:-4], "little")):
        return None
    return int.from_bytes(header[-8:-4], "little")


def encode_entry(kind: int, count: int, payload: bytes) -> bytes:
    """An entry as it stands in a block's payload."""
    return _pack((kind, count, payload))


def encode_payload(entries: Sequence[bytes]) -> bytes:
    """The payload of a block of encoded entries."""
    return b"".join((_pack_count(len(entries)), *entries))


def encode_block(
    payload: bytes, before: int, salt: int, life: int, count: int, first: int, synced: int, time: int
) -> tuple[bytes, int]:
    """A block and its checksum, which the next one is to name."""
    covered = _COVERED.pack(len(payload), before, salt, life, count, first, synced, time)
    checksum = zlib.crc32(payload, zlib.crc32(covered))
    return b"".join((MARK, checksum.to_bytes(4, "little"), covered, payload)), checksum


def checksum_holds(covered: bytes | memoryview, checksum: int) -> bool:
    """Whether a block, from `COVERED_AT` on, is what was written."""
    return zlib.crc32(covered) == checksum


def head_of_block(head: bytes, room: int) -> tuple[int, int] | None:
    """How many bytes the block has that begins with `head`, and its time; None if `room` is too small for it.

    Nothing of it is checked.
    """
    if len(head) < HEAD.size:
        return None
    mark, _, length, *_, time = HEAD.unpack_from(head)
    return (HEAD.size + length, time) if mark == MARK and length <= room - HEAD.size else None


def entries_of(block: Block) -> list[Entry]:
    """What a block holds; ValueError when that is not what a journal writes."""
    try:
        rows = msgpack.unpackb(block.payload, use_list=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise ValueError(f"its payload is not msgpack: {error}") from error
    entries, sequence = [], block.first
    try:
        for kind, count, payload in rows:
            entries.append(Entry(sequence, block.time, kind, payload, count, block.life))
            sequence += count
    except (TypeError, ValueError) as error:
        raise ValueError(f"an entry is not [kind, numbers, bytes]: {error}") from error
    if sequence != block.end or not all(type(each.payload) is bytes for each in entries):
        raise ValueError(f"it has {sequence - block.first} records and counts {block.numbers}")
    return entries


def file_name(number: int) -> str:
    """The name of the file of that number."""
    return f"{number:08}.rec"


def file_number(path: Path) -> int:
    """The number that names a file."""
    return int(path.stem)


def numbered_files(directory: Path, names: Iterable[str]) -> list[Path]:
    """Those of a directory's names that are files of a journal, oldest first."""
    return sorted((directory / name for name in names if _NAME.fullmatch(name)), key=file_number)
