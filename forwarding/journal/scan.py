"""One file of a journal, block by block, with whatever is not whole in between.

    read_beginning     header and first block: is this a file of a journal, of which life, from which number on
    scan               Block, Block, Hole, Block, …

A block is handed on when the next one has confirmed it: one that was replaced by another whole one is known only by the
`before` of its successor. Behind a hole, the next block is searched by its mark; the salt keeps what clients wrote into
payloads from being taken for one, so that the search costs a checksum for each block that a journal wrote, and no more.

Who only wants to know that all is well asks for some blocks (`every`): the others are verified alike, by `_skip`,
without being made.

Memory: a window of a megabyte, or the longest block.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.forwarding.journal.blocks import (
    COVERED_AT,
    HEAD,
    HEADER_BYTES,
    LONGEST,
    MAGIC,
    MARK,
    PREAMBLE,
    VERSION,
    Block,
    checksum_holds,
    header_salt,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.forwarding.journal.disk import Disk

_WINDOW: Final = 1 << 20
_PAGE: Final = 4096
NOT_WHOLE: Final = "not a whole block"
UNREADABLE: Final = "the disk cannot read it"


class Hole(NamedTuple):
    """Bytes that are no block, or a block that was not there when the next one was written."""

    offset: int
    end_offset: int
    reason: str


class Beginning(NamedTuple):
    """How a file begins."""

    block: Block | None  # the first, without entries; None when it is not whole
    salt: int | None  # that the header tells; None when it is not whole
    size: int  # of the file
    foreign: str = ""  # why it seems to be somebody else's
    unreadable: bool = False  # the disk does not give it


def read_beginning(disk: Disk, file: int) -> Beginning:
    """Look at header and first block."""
    size = disk.size(file)
    data, readable = _read(disk, file, 0, min(size, HEADER_BYTES + HEAD.size + _PAGE))
    header = data[:HEADER_BYTES]
    block = _block_at(data, HEADER_BYTES, 0, size, None)
    foreign = ""
    preamble = header[: len(PREAMBLE)]
    if block is None and not PREAMBLE.startswith(preamble.rstrip(b"\0")):  # nor what a crash may have left of one
        foreign = "not a recording or journal (no magic number)"
        if len(preamble) == len(PREAMBLE) and preamble.startswith(MAGIC):
            version = int.from_bytes(preamble[len(MAGIC) :], "little")
            foreign = f"a recording or journal of format {version}, this version reads {VERSION}"
    return Beginning(block, header_salt(header), size, foreign, not readable)


def scan(
    disk: Disk,
    file: int,
    *,
    start: int = HEADER_BYTES,
    end: int | None = None,
    salt: int | None,
    first: int = 0,
    every: int = 0,
    until: Block | None = None,
) -> Iterator[Block | Hole]:
    """What is in a file from `start`, where a block begins, to `end`; no block has a number below `first`.

    Without a salt, that of the block at `start` is taken. With `every`, of blocks that are whole and in order one in so
    many bytes is told, and the first and last of them; and the one that `until`, of another file, follows.
    """
    end = disk.size(file) if end is None else end
    buffer, base, offset = b"", start, start
    latest: Block | None = None
    while offset < end:
        block = _block_at(buffer, offset - base, base, end, salt)
        if block is None:  # it may only be longer than what was read
            buffer, base = _read_around(disk, file, offset, end), offset
            block = _block_at(buffer, 0, base, end, salt)
        if block is None or block.first < first:
            if latest is not None:
                yield latest
                latest = None
            after = None if salt is None else _next_whole(disk, file, offset + 1, end, salt, first)
            stop = end if after is None else after
            yield Hole(offset, stop, NOT_WHOLE if _read(disk, file, offset, stop - offset)[1] else UNREADABLE)
            if after is None:
                return
            offset = after
            continue
        if latest is not None:
            yield latest if follows(latest, block) else Hole(latest.offset, offset, "a block that others replaced")
        latest, salt, first = block, block.salt, block.first + block.numbers
        offset += HEAD.size + block.length
        if every:
            skipped = _skip(buffer, offset - base, block.offset - base + every, block, until)
            if skipped > offset - base:
                yield latest
                offset = base + skipped  # the block there is looked at as any other, and confirms those before
                latest = None
    if latest is not None:
        yield latest


def _skip(buffer: bytes, at: int, limit: int, before: Block, until: Block | None) -> int:
    """Go over whole blocks, each of which follows the one before, up to the first that begins at or behind `limit`.

    Where the last that another one confirms begins, or `at` if there are too few.
    """
    view = memoryview(buffer)
    unpack, head, size, salt = HEAD.unpack_from, HEAD.size, len(buffer), before.salt
    checksum, first, confirmed, last = before.checksum, before.end, at, at
    behind, final = (until.first, until.before) if until is not None else (1 << 64, -1)
    while at + head <= size:
        mark, own, length, named, block_salt, _, count, number, _, _ = unpack(buffer, at)
        end = at + head + length
        if mark != MARK or block_salt != salt or not first <= number < behind or end > size:
            break
        if not confirms(named, checksum) or not checksum_holds(view[at + COVERED_AT : end], own):
            break
        checksum, first, confirmed, last, at = own, number + count, last, at, end
        if last >= limit or own == final:
            break
    return confirmed


def follows(before: Block, block: Block) -> bool:
    """Whether a block was written behind another."""
    return confirms(block.before, before.checksum)


def confirms(named: int, checksum: int) -> bool:
    """Whether the checksum that a block names is that of the block before it."""
    return named == checksum


def _block_at(buffer: bytes, at: int, base: int, end: int, salt: int | None) -> Block | None:
    """The whole block at a place of the buffer, which begins at `base` of a file that ends at `end`."""
    if not 0 <= at <= len(buffer) - HEAD.size:
        return None
    mark, checksum, length, before, own, life, count, first, synced, time = HEAD.unpack_from(buffer, at)
    stop = at + HEAD.size + length
    if mark != MARK or stop > end - base or length > LONGEST or (salt is not None and own != salt):
        return None
    covered = buffer[at + COVERED_AT : stop]
    if stop > len(buffer) or not checksum_holds(covered, checksum):
        return None
    payload = covered[HEAD.size - COVERED_AT :]
    return Block(base + at, checksum, length, before, own, life, count, first, synced, time, payload)


def _read_around(disk: Disk, file: int, offset: int, end: int) -> bytes:
    """A window from `offset` on, longer if the block that seems to begin there is."""
    data, _ = _read(disk, file, offset, min(_WINDOW, end - offset))
    if len(data) >= HEAD.size and data.startswith(MARK):
        length = HEAD.unpack_from(data)[2]
        if _WINDOW - HEAD.size < length <= min(LONGEST, end - offset - HEAD.size):
            data, _ = _read(disk, file, offset, HEAD.size + length)
    return data


def _next_whole(disk: Disk, file: int, start: int, end: int, salt: int, first: int) -> int | None:
    """Where the first whole block at or behind `start` begins, of those from number `first` on."""
    while end - start >= HEAD.size:
        data, _ = _read(disk, file, start, min(_WINDOW, end - start))
        at = data.find(MARK)
        while 0 <= at <= len(data) - HEAD.size:
            if HEAD.unpack_from(data, at)[4] == salt:
                block = _block_at(_read_around(disk, file, start + at, end), 0, start + at, end, salt)
                if block is not None and block.first >= first:
                    return start + at
            at = data.find(MARK, at + 1)
        if len(data) < HEAD.size:  # it was cut meanwhile
            return None
        start += len(data) - HEAD.size + 1
    return None


def _read(disk: Disk, file: int, offset: int, length: int) -> tuple[bytes, bool]:
    """Read; where the disk cannot, zeros stand for what it does not give, and it is told."""
    try:
        return disk.read(file, offset, length), True
    except OSError as error:
        if error.errno != errno.EIO:
            raise
    parts = []
    while length > 0:
        part = min(_PAGE - offset % _PAGE, length)
        try:
            parts.append(disk.read(file, offset, part))
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            parts.append(bytes(part))
        offset, length = offset + part, length - part
    return b"".join(parts), False
