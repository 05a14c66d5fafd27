"""What a journal's directory holds: which numbers are in which file, what was torn, what is damaged.

    file 1   ▓▓▓▓▓▓▓▓▓▓▓ ······   void: file 2 says by its first block that it follows the last ▓
    file 2   ▓▓▓▓▓▓ ░░ ▓▓▓▓▓▓     ░ damage: later blocks say that it was on disk
    file 3   ▓▓▓▓▓▓▓▓▓ ·· ▓ ··    the last: cut where it is not whole and nobody was promised anything

A number is *promised* when a whole block says that it was synced. A hole in what was promised is damage: it is reported
with the numbers that it cost, and everything around it is served. A hole behind the last promised number is where a
crash tore a write: the journal ends there, with what is before it. In all files but the last, a hole is damage: a file
is begun when the one before is complete.

A bit that flips in the very last write, before anything was written behind it, cannot be told from a torn one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.errors import CorruptFile
from contrada.forwarding.journal.blocks import HEADER_BYTES, Block, entries_of, file_number, numbered_files
from contrada.forwarding.journal.scan import UNREADABLE, Beginning, Hole, read_beginning, scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contrada.forwarding.journal.disk import Disk

_INDEX_EVERY: Final = 32 << 10  # bytes of a file from one place of its index to the next


class Damage(NamedTuple):
    """A part of a file that is not what was written, and the numbers that were in it (`last` < `first`: none)."""

    path: Path
    offset: int
    length: int
    first: int
    last: int
    reason: str

    def __str__(self) -> str:
        lost = f"records {self.first} to {self.last} are lost" if self.last >= self.first else "no record is lost"
        return f"{self.path}: {self.length} bytes at byte {self.offset}: {self.reason}; {lost}"


class Cut(NamedTuple):
    """The end of a file that a crash tore: never promised to anybody."""

    path: Path
    offset: int
    length: int

    def __str__(self) -> str:
        return f"{self.path}: {self.length} bytes from byte {self.offset} on were torn by a crash and are cut"


@dataclass
class Recovery:
    """What was not as it was written. Reading adds the damage that it meets."""

    cut: list[Cut] = field(default_factory=list)
    damaged: list[Damage] = field(default_factory=list)
    rewritten: int = 0  # records behind the last promised one, written again to be sure of them

    def note(self, damage: Damage) -> None:
        """Add a damage that is not known yet."""
        if damage not in self.damaged:
            self.damaged.append(damage)

    def knows(self, path: Path, offset: int) -> bool:
        """Whether damage at that place was told before."""
        return any(each.path == path and each.offset == offset for each in self.damaged)


@dataclass
class JournalFile:
    """One file: numbers from `first` up to before `end`, in blocks up to byte `size`."""

    path: Path
    first: int
    end: int
    size: int = 0
    checksum: int = 0  # of its last block
    numbers: array[int] = field(default_factory=lambda: array("Q"))  # of some blocks, ascending,
    offsets: array[int] = field(default_factory=lambda: array("Q"))  # and where they begin

    def add(self, block: Block) -> None:
        """Count a block in that stands behind the others."""
        if block.numbers and (not self.offsets or block.offset >= self.offsets[-1] + _INDEX_EVERY):
            self.numbers.append(block.first)
            self.offsets.append(block.offset)
        self.end = block.end
        self.size = block.end_offset
        self.checksum = block.checksum

    def cut(self, end: int, size: int, checksum: int) -> None:
        """End it before number `end`, at byte `size`, behind the block of that checksum."""
        self.end, self.size, self.checksum = end, size, checksum
        at = bisect_left(self.offsets, size)
        del self.numbers[at:], self.offsets[at:]

    def place(self, sequence: int) -> tuple[int, int]:
        """Where to begin reading for a number: a byte, and the number of the block there or one before it."""
        at = bisect_right(self.numbers, sequence) - 1
        if at < 0 or sequence <= self.first:
            return HEADER_BYTES, self.first
        return self.offsets[at], self.numbers[at]

    def blocks(self, disk: Disk, salt: int | None, start: int, stop: int) -> Iterator[Block | Hole]:
        """Blocks with numbers from `start` to before `stop`, those that restate if it is read from its beginning."""
        offset, first = self.place(start)
        try:
            file = disk.open(self.path)
        except FileNotFoundError:  # dropped meanwhile: nobody needs it
            return
        try:
            for each in scan(disk, file, start=offset, end=self.size, salt=salt, first=first):
                if isinstance(each, Block):
                    if each.numbers and each.first >= stop:
                        return
                    if each.end <= start if each.numbers else start > self.first:
                        continue
                yield each
        finally:
            disk.close(file)


@dataclass
class Directory:
    """All files of a journal, oldest first, after a walk."""

    files: list[JournalFile] = field(default_factory=list)
    torn: list[Path] = field(default_factory=list)  # begun, but nothing of them is there
    recovery: Recovery = field(default_factory=Recovery)
    salt: int | None = None
    number: int = 0  # of the last file, torn ones included
    promised: int = 0  # the last number that a block says is on disk
    unreadable: bool = False  # whether the disk does not give the end, so that nobody knows where it is


@dataclass
class _Doubt:
    """A hole that may be the end of the journal, and how far the file went before it."""

    hole: Hole
    end: int
    size: int
    checksum: int
    next: int | None = None  # the number with which the next block begins


def walk(disk: Disk, directory: Path, *, thorough: bool = True) -> Directory:
    """Look at all files of a directory, or at the beginnings of all and the whole last one."""
    found = Directory()
    paths = numbered_files(directory, disk.names(directory))
    begun: list[tuple[Path, Beginning]] = []
    for path in paths:
        file = disk.open(path)
        try:
            begun.append((path, read_beginning(disk, file)))
        finally:
            disk.close(file)
    found.number = file_number(paths[-1]) if paths else 0
    found.salt = next((each.salt for _, each in begun if each.salt is not None), None)
    if found.salt is None:
        found.salt = next((each.block.salt for _, each in begun if each.block is not None), None)
    found.unreadable = found.salt is None and any(each.unreadable for _, each in begun)
    if found.salt is None and begun and begun[0][1].foreign:
        raise CorruptFile(f"{begun[0][0]}: {begun[0][1].foreign}")
    while begun and _is_torn(disk, *begun[-1], found.salt):
        path, beginning = begun.pop()
        found.torn.append(path)
        found.recovery.cut.append(Cut(path, 0, beginning.size))
    for at, (path, beginning) in enumerate(begun):
        later = (each.block or _first_whole(disk, behind, found.salt) for behind, each in begun[at + 1 :])
        after = next((block for block in later if block is not None), None)
        _walk_file(disk, path, beginning, after, at + 1 == len(begun), thorough, found)
    return found


def _first_whole(disk: Disk, path: Path, salt: int | None) -> Block | None:
    """The first whole block of a file whose beginning is damaged."""
    file = disk.open(path)
    try:
        return next((each for each in scan(disk, file, salt=salt) if isinstance(each, Block)), None)
    finally:
        disk.close(file)


def _is_torn(disk: Disk, path: Path, beginning: Beginning, salt: int | None) -> bool:
    """Whether a crash came while a file was begun, before anything in it was promised."""
    if beginning.block is not None or beginning.unreadable or beginning.foreign:
        return False
    file = disk.open(path)
    try:
        first, promised = None, 0
        for each in scan(disk, file, salt=salt):
            if isinstance(each, Block):
                promised = max(promised, each.synced)
                if each.numbers and first is None:
                    first = each.first
                if not each.numbers and each.offset > HEADER_BYTES and not entries_of(each):
                    return False  # it says that all before it is on disk
        return first is None or first > promised
    finally:
        disk.close(file)


def _walk_file(
    disk: Disk, path: Path, beginning: Beginning, after: Block | None, last: bool, thorough: bool, found: Directory
) -> None:
    """Add a file to the directory; `after` is the first block of the next one."""
    start = beginning.block.first if beginning.block is not None else (found.files[-1].end if found.files else 1)
    new = JournalFile(path, start, start)
    found.files.append(new)
    if beginning.salt is None:
        found.recovery.note(Damage(path, 0, HEADER_BYTES, start, start - 1, "the header is damaged"))
    if after is not None and beginning.block is not None and not thorough:
        new.end, new.size, new.checksum = after.first, beginning.size, after.before
        return
    doubts: list[_Doubt] = []
    ended = False
    file = disk.open(path)
    try:
        for each in scan(disk, file, salt=found.salt, every=_INDEX_EVERY, until=after):
            if isinstance(each, Hole):
                doubts.append(_Doubt(each, new.end, new.size, new.checksum))
                continue
            if after is not None and each.numbers and each.first >= after.first:
                break  # void
            if each.synced > found.promised:
                found.promised = each.synced
            if doubts:
                for doubt in doubts:
                    doubt.next = each.first if doubt.next is None else doubt.next
                doubts = _decide(found, path, doubts, found.promised if last and thorough else each.first)
            new.add(each)
            ended = after is not None and after.before == each.checksum
            if ended:
                break
    finally:
        disk.close(file)
    if last:
        _cut(found, new, doubts, beginning.size)
    elif not ended and (doubts or after is not None):
        _tell_end(found, new, doubts, after)


def _decide(found: Directory, path: Path, doubts: list[_Doubt], promised: int) -> list[_Doubt]:
    """Report the holes in what was promised; those that are left may be the end."""
    left = []
    for doubt in doubts:
        if doubt.next is None or (doubt.end > promised and doubt.hole.reason != UNREADABLE):
            left.append(doubt)
        else:
            hole = doubt.hole
            length = hole.end_offset - hole.offset
            found.recovery.note(Damage(path, hole.offset, length, doubt.end, doubt.next - 1, hole.reason))
    return left


def _cut(found: Directory, new: JournalFile, doubts: list[_Doubt], size: int) -> None:
    """End the last file before the first hole that nobody was promised."""
    if doubts and doubts[-1].hole.reason == UNREADABLE:  # perhaps another time
        _tell_end(found, new, doubts[-1:], None)
        found.unreadable = True
    elif doubts:
        doubt = doubts[0]
        new.cut(doubt.end, doubt.size, doubt.checksum)
        found.recovery.cut.append(Cut(new.path, new.size, size - new.size))


def _tell_end(found: Directory, new: JournalFile, doubts: list[_Doubt], after: Block | None) -> None:
    """Report what is missing at the end of a file that has a next one."""
    lost = after.first - 1 if after is not None else new.end - 1
    reason = doubts[-1].hole.reason if doubts else "its end, or the file behind it, is missing"
    length = doubts[-1].hole.end_offset - new.size if doubts else 0
    found.recovery.note(Damage(new.path, new.size, length, new.end, lost, reason))
