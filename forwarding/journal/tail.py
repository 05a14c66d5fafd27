"""The end of a journal, where it is written: the current file, the chain, and what of it is on disk.

    begin_file ─▶ put, put, … ─▶ sync ─▶ put, … ─▶ complete_file ─▶ begin_file

What is on disk when, which is all that the promise rests on:

    blocks       after `sync`; each tells of those before that they were
    file         complete and synced before the next is begun; its name is synced by the first `sync`
    recovery     what was promised stays as it is. The last blocks, which may have been, are written again into a new
                 file and synced there, since after a failed sync the system may show what the disk does not have

A failed write leaves the file as it was, as far as anybody reads it. After a failed sync, what it should have synced is
forgotten, and the next file is chained to what is known to be on disk.
"""

from __future__ import annotations

import errno
import secrets
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.forwarding.journal.blocks import (
    HEADER_BYTES,
    Block,
    encode_block,
    encode_header,
    encode_payload,
    file_name,
)
from contrada.forwarding.journal.disk import is_full
from contrada.forwarding.journal.recovery import JournalFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from contrada.forwarding.journal.disk import Disk
    from contrada.forwarding.journal.recovery import Directory

_RESTATED: Final = 4096  # entries in one block


class Draft(NamedTuple):
    """A block to be written, but for what chains it to the one before."""

    payload: bytes
    first: int
    numbers: int
    time: int
    life: int


class Tail:
    """The files of a directory, and the last of them open for writing, once there is something to write.

    `lock` guards all of it; only `sync` lets go of it while it waits for the disk.
    """

    def __init__(
        self, directory: Path, disk: Disk, clock: Callable[[], int], found: Directory, *, lenient: bool
    ) -> None:
        self.directory = directory
        self.files = found.files
        self.lock = threading.RLock()
        self.number = found.number  # of the last file
        self.salt = secrets.randbits(32) if found.salt is None else found.salt
        self.life = 0  # until a file is begun
        self.written = 0  # bytes
        self.on_disk = self.last_written = self.files[-1].end - 1 if self.files else 0
        self._disk = disk
        self._clock = clock
        self._lenient = lenient
        self._checksum = self.files[-1].checksum if self.files else 0
        self._file: int | None = None
        self._retired: list[int] = []  # complete, and not synced yet
        self._removed = False  # a file, of which the disk may not know
        self._named = True  # whether the directory on disk knows the current file
        self.sync_failed = False  # whether the last one did
        self._synced: tuple[int, int, int] | None = None  # end, size and checksum of the current file on disk
        if not lenient:
            self._recover(found)
        elif self.files:  # nobody was promised anything: the first sync is also for what was found
            self.on_disk = min(found.promised, self.last_written)
            self._retired.append(disk.open(self.files[-1].path))
            self._named = False

    # -- beginning ------------------------------------------------------------------------------------------

    def _recover(self, found: Directory) -> None:
        """Make sure of what was found, and cut off what was not promised."""
        if found.unreadable:  # going on would void what another disk, or another day, may give
            raise OSError(errno.EIO, "the disk does not give the end of it: copy what can be read, see docs/journal.md")
        for path in found.torn:
            self._disk.remove(path)
        for cut in found.recovery.cut:
            if cut.path not in found.torn:
                self._disk.truncate(cut.path, cut.offset)
        if self.files:
            self._sync_found(self.files[-1])
        self._disk.sync_directory(self.directory)  # names that came, and such that went, before a kill
        if found.promised < self.on_disk:
            self._rewrite(self.files[-1], found)

    def _sync_found(self, found: JournalFile) -> None:
        """Have the disk know what a killed process may only have told the system, and what was cut."""
        file = self._disk.open(found.path)
        try:
            self._disk.sync(file)
        finally:
            self._disk.close(file)

    def _rewrite(self, old: JournalFile, found: Directory) -> None:
        """Write what is behind the last promised number into a new file, and cut it off the old one.

        The new file gets its beginning, which makes it follow the old one's promised part, when all else is on disk.
        On a full disk everything stays where it is.
        """
        pieces = old.blocks(self._disk, self.salt, found.promised + 1, old.end)
        blocks = [each for each in pieces if isinstance(each, Block) and each.numbers]
        if not blocks:  # numbers that were skipped
            return
        first, checksum, end = blocks[0].first, self._checksum, self.on_disk
        self.on_disk = self.last_written = found.promised
        self._checksum = blocks[0].before
        try:
            file = self._create_file(first)
            drafts = [Draft(each.payload, each.first, each.numbers, each.time, each.life) for each in blocks]
            (beginning, *rest), placed = self._chain([self._beginning(first), *drafts], HEADER_BYTES)
            self._disk.write(file, placed[1].offset, b"".join(rest))
            self._disk.sync(file)
            self._disk.write(file, 0, encode_header(self.salt) + beginning)
            self._add(placed)
            self.sync()
            self._confirm()
        except OSError as error:
            if not is_full(error):
                raise
            self._forget_file()
            self._checksum = checksum
            self.on_disk = self.last_written = end
            return
        found.recovery.rewritten = end + 1 - first
        old.cut(first, blocks[0].offset, blocks[0].before)
        self._disk.truncate(old.path, old.size)

    # -- writing --------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The file that is written to, or was last."""
        return self.directory / file_name(self.number)

    @property
    def is_open(self) -> bool:
        """Whether a file has been begun."""
        return self._file is not None

    @property
    def to_sync(self) -> bool:
        """Whether `sync` has anything to do."""
        return self.on_disk < self.last_written or bool(self._retired) or not self._named

    def now(self) -> int:
        """The time, in µs since 1970."""
        return self._clock() // 1000

    def begin_file(self, first: int, restated: Sequence[bytes]) -> None:
        """Begin the next file: header, a block without entries, and those of what is restated."""
        self._create_file(first)
        parts = (restated[at : at + _RESTATED] for at in range(0, len(restated), _RESTATED))
        drafts = [Draft(encode_payload(each), first, 0, self.now(), self.life) for each in parts]
        self.put([self._beginning(first), *drafts], encode_header(self.salt))

    def _create_file(self, first: int) -> int:
        path = self.directory / file_name(self.number + 1)
        self._file = self._disk.create(path)
        self.number += 1
        self.life = self.life or self.number
        self._named, self._synced, self.sync_failed = False, None, False
        self.files.append(JournalFile(path, first, first))
        return self._file

    def _beginning(self, first: int) -> Draft:
        return Draft(encode_payload([]), first, 0, self.now(), self.life)

    def put(self, drafts: Iterable[Draft], header: bytes = b"") -> None:
        """Write blocks behind the others, in one go, chained to them."""
        assert self._file is not None
        current = self.files[-1]
        encoded, placed = self._chain(drafts, current.size + len(header))
        try:
            self._disk.write(self._file, current.size, b"".join((header, *encoded)))
        except OSError:
            if not current.size:
                self._forget_file()
            else:
                with suppress(OSError):  # what is left there follows nothing, and is known by that
                    self._disk.truncate(current.path, current.size)
            raise
        self._add(placed)

    def _chain(self, drafts: Iterable[Draft], offset: int) -> tuple[list[bytes], list[Block]]:
        """Blocks that are to stand at an offset, each naming the one before; as bytes, and without payload."""
        parts, placed = [], []
        checksum, synced = self._checksum, self.on_disk
        for payload, first, count, time, life in drafts:
            before = checksum
            encoded, checksum = encode_block(payload, before, self.salt, life, count, first, synced, time)
            parts.append(encoded)
            placed.append(
                Block(offset, checksum, len(payload), before, self.salt, life, count, first, synced, time, b"")
            )
            offset += len(encoded)
        return parts, placed

    def _add(self, placed: Sequence[Block]) -> None:
        """Count blocks in that were written."""
        current = self.files[-1]
        self.written += placed[-1].end_offset - current.size
        for block in placed:
            current.add(block)
        self._checksum = current.checksum
        self.last_written = max(self.last_written, current.end - 1)

    def complete_file(self) -> None:
        """Be done with the current file; where promises are made, only once the disk has it."""
        if self._file is None:
            return
        if self._lenient:
            self._retired.append(self._file)
            self._file = None
            return
        self.sync()
        self._disk.close(self._file)
        self._file = None

    def sync(self) -> None:
        """Wait until the disk has all that is written, and knows the files' names."""
        with self.lock:
            retired, self._retired = self._retired, []
            file, named, last, current = self._file, self._named, self.last_written, self.files[-1]
            state = current.end, current.size, current.checksum
        try:
            for each in retired:
                try:
                    self._disk.sync(each)
                finally:
                    self._disk.close(each)
            if file is not None:
                self._disk.sync(file)
            if not named:
                self._disk.sync_directory(self.directory)
        except OSError:
            self.sync_failed = True
            self._back_to_synced()
            raise
        with self.lock:
            self._named = self._named or self._file == file
            self.on_disk, self._synced, self.sync_failed = last, state, False

    def _back_to_synced(self) -> None:
        """Forget what the disk may not have, so that whatever comes next is chained to what it has."""
        if self._lenient:
            return
        if self._synced is None:
            self._forget_file()
        else:
            self.files[-1].cut(*self._synced)
            with suppress(OSError):
                self._disk.truncate(self.files[-1].path, self.files[-1].size)
        self._checksum = self.files[-1].checksum if self.files else 0
        self.last_written = self.on_disk

    def _forget_file(self) -> None:
        """Remove the current file, on which nothing rests; its number goes to the next."""
        if self._file is not None:
            self._disk.close(self._file)
            self._file = None
            with suppress(OSError):  # then no other can be begun before the journal is opened again
                self._disk.remove(self.files.pop().path)
                self.number -= 1
        self._named = True

    # -- end ------------------------------------------------------------------------------------------------

    def drop_before(self, sequence: int) -> None:
        """Remove the files that hold nothing but lower numbers, oldest first, so that no crash leaves a gap."""
        self._sync_removed()
        while len(self.files) > 1 and self.files[1].first <= sequence:
            self._disk.remove(self.files.pop(0).path)
            self._removed = True
            self._sync_removed()

    def _sync_removed(self) -> None:
        """Have the disk know that a file is gone: before any other goes, whatever failed meanwhile."""
        if self._removed and not self._lenient:
            self._disk.sync_directory(self.directory)
        self._removed = False

    def close(self) -> None:
        """Note on disk that all is on disk, if so, and close the files."""
        try:
            if self._file is not None and self.on_disk == self.last_written and not self.sync_failed:
                with suppress(OSError):  # then the last blocks are written again by whoever opens it next
                    self._confirm()
                    self._disk.sync(self._file)
        finally:
            for each in (*self._retired, self._file):
                if each is not None:
                    self._disk.close(each)
            self._retired, self._file = [], None

    def _confirm(self) -> None:
        """Write a block that says what is on disk: damage before it is not taken for a torn end."""
        self.put([Draft(encode_payload([]), self.files[-1].end, 0, self.now(), self.life)])
