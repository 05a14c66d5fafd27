"""A journal: entries are appended, committed together, and read back in order, after any crash.

    append ─▶ pending ── commit ─▶ one write of all that is pending, one sync ─▶ 00000003.rec ── full ─▶ the next file
                └──────── write ─▶ the same without the sync: survives a kill, not a power cut

Group commit: whoever commits while another's sync goes on waits for it, and then syncs for all that came meanwhile.
Appending never waits for the disk. One thread appends and begins files; any may commit.

When a write fails, what was pending is dropped, and its numbers are not used again: a reader sees them skipped by
blocks that follow one another, and takes it for no damage. A full disk may have room later. After any other error, and
after every failed sync, the journal takes nothing until it is opened again or goes on in another file (`begin_file`).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from contrada.errors import ContradaError, InvalidValue, JournalFailed
from contrada.forwarding.journal.blocks import LONGEST, Block, Entry, encode_entry, encode_payload, entries_of
from contrada.forwarding.journal.disk import REAL_DISK, is_full
from contrada.forwarding.journal.recovery import Damage, JournalFile, walk
from contrada.forwarding.journal.scan import Hole
from contrada.forwarding.journal.tail import Draft, Tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from contrada.forwarding.journal.disk import Disk

_BLOCK_BYTES: Final = 64 << 10  # so much a damaged byte may cost


class _Pending(NamedTuple):
    """An entry that is not written yet, or the wish for a new file that begins with what is restated."""

    sequence: int
    numbers: int
    encoded: bytes
    restated: Sequence[bytes] | None = None


class Journal:
    """Entries in files of a directory, which one process at a time may open: `Journal.open`.

    `first` to `last` are the sequence numbers held, those up to `on_disk` survive anything; `size` is what the files
    take, in bytes. `recovery` says what was cut or damaged; `failure` why nothing is taken any more.
    """

    def __init__(
        self,
        directory: Path,
        *,
        disk: Disk,
        clock: Callable[[], int],
        file_bytes: int,
        restates: bool,
        lenient: bool,
    ) -> None:
        self.directory = directory
        self.failure: JournalFailed | None = None
        self._disk = disk
        self._file_bytes = file_bytes
        self._restates = restates
        self._lenient = lenient
        self._appending = threading.Lock()  # pending entries and the next number
        self._committing = threading.Lock()  # syncs; taken before the tail's own lock
        self._pending: list[_Pending] = []
        self._pending_bytes = 0
        self._lock = -1
        try:
            self._make_directory()
            self._lock = disk.lock(directory / "lock")
            found = walk(disk, directory, thorough=not lenient)
            self.recovery = found.recovery
            self._tail = Tail(directory, disk, clock, found, lenient=lenient)
            self._next = self._tail.last_written + 1
        except BlockingIOError as error:
            raise ContradaError(f"another broker writes in {directory}: give each a directory") from error
        except OSError as error:
            self._unlock()
            raise self._failed(error) from error
        except BaseException:
            self._unlock()
            raise

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        disk: Disk = REAL_DISK,
        file_bytes: int = 64 << 20,
        clock: Callable[[], int] = time.time_ns,
        restates: bool = False,
        lenient: bool = False,
    ) -> Self:
        """Open or make the journal of a directory, and recover what a crash left.

        A file that has `file_bytes` is followed by another; where the owner `restates`, only when it says `begin_file`.
        A `lenient` journal is for what promises nothing: of an existing one it looks at the last file only, and `write`
        does not wait for the disk between two files.

        `JournalFailed` when the directory cannot be used, `ContradaError` when another process has it, `CorruptFile`
        when somebody else's files are in it.
        """
        return cls(directory, disk=disk, clock=clock, file_bytes=file_bytes, restates=restates, lenient=lenient)

    def _make_directory(self) -> None:
        """Make the directory and those above it, each known to the disk before anything is in it.

        Those that are there are synced, too: whoever made them may have been killed before it came so far.
        """
        directory = self.directory.absolute()
        for each in reversed([directory, *directory.parents[:-1]]):
            if not self._disk.exists(each):
                self._disk.make_directory(each)
            with suppress(PermissionError):  # then it is older than we are
                self._disk.sync_directory(each.parent)

    # -- what is held ---------------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """The lowest sequence number held, or the next one if there is none."""
        files = self._tail.files
        return files[0].first if files else self._next

    @property
    def last(self) -> int:
        """The highest sequence number appended, on disk or not."""
        return self._next - 1

    @property
    def on_disk(self) -> int:
        """The highest sequence number on disk."""
        return self._tail.on_disk

    @property
    def size(self) -> int:
        """What the files take, in bytes."""
        return sum(each.size for each in self._tail.files)

    @property
    def written(self) -> int:
        """Bytes written since it was opened."""
        return self._tail.written

    @property
    def full(self) -> bool:
        """Whether the current file has what a file should have, pending entries included: time for `begin_file`."""
        return self._tail.is_open and self._tail.files[-1].size + self._pending_bytes >= self._file_bytes

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._lock < 0

    @property
    def files(self) -> Sequence[JournalFile]:
        """The files, oldest first."""
        return tuple(self._tail.files)

    @property
    def path(self) -> Path:
        """The file that is written to, or was last."""
        return self._tail.path

    def read(self, start: int = 1, stop: int | None = None) -> Iterator[Entry]:
        """The entries on disk from number `start` to before `stop`, in order, in bounded memory.

        What files restate comes only where it is news: at the beginning, and behind a gap. Damage is skipped and
        added to `recovery`.
        """
        with self._tail.lock:
            files = list(self._tail.files)
            end = (self._tail.last_written if self._lenient else self._tail.on_disk) + 1
        stop = end if stop is None else min(stop, end)
        expected = None
        for file in files:
            if file.end <= start and file is not files[-1]:
                continue
            news = expected != file.first
            for block in self._blocks(file, start, stop):
                if block.numbers or news:
                    yield from self._entries(file, block, start, stop)
                expected = block.end

    def _entries(self, file: JournalFile, block: Block, start: int, stop: int) -> Iterator[Entry]:
        try:
            entries = entries_of(block)
        except ValueError as error:
            length = block.end_offset - block.offset
            self.recovery.note(Damage(file.path, block.offset, length, block.first, block.end - 1, str(error)))
            return
        if block.numbers == 0 or (start <= block.first and block.end <= stop):
            yield from entries
        else:
            yield from (each for each in entries if each.sequence + each.numbers > start and each.sequence < stop)

    def _blocks(self, file: JournalFile, start: int, stop: int) -> Iterator[Block]:
        """The blocks of a file that have numbers from `start` to before `stop`, and those that restate before them."""
        expected = max(start, file.first)
        hole: Hole | None = None
        for each in file.blocks(self._disk, self._tail.salt, start, stop):
            if isinstance(each, Hole):
                hole = each
                continue
            if hole is not None and not self.recovery.knows(file.path, hole.offset):
                length = hole.end_offset - hole.offset
                self.recovery.note(Damage(file.path, hole.offset, length, expected, each.first - 1, hole.reason))
            hole, expected = None, each.end
            yield each

    # -- appending ------------------------------------------------------------------------------------------

    def append(self, kind: int, payload: bytes, count: int = 1) -> int:
        """Take an entry in, to be written by the next `commit`; the first of the `count` numbers that it gets."""
        if len(payload) > LONGEST >> 1:
            raise InvalidValue(f"an entry of {len(payload)} bytes; a journal takes {LONGEST >> 1}")
        encoded = encode_entry(kind, count, payload)
        with self._appending:
            sequence = self._next
            self._next += count
            self._pending.append(_Pending(sequence, count, encoded))
            self._pending_bytes += len(encoded)
        return sequence

    def begin_file(self, restated: Iterable[tuple[int, bytes]] = ()) -> None:
        """Have what is appended from here on stand in a new file, that begins with entries which take no numbers.

        Done by the next `commit` or `write`. It also ends a failure, once what was pending then has been discarded.
        """
        if self.failure is not None and self._pending:
            raise self.failure.again()
        encoded = [encode_entry(kind, 0, payload) for kind, payload in restated]
        with self._appending:
            self._pending.append(_Pending(self._next, 0, b"", encoded))

    def skip(self, numbers: int) -> None:
        """Leave numbers out, for entries that are not going to be written."""
        with self._appending:
            self._next += numbers

    def discard(self) -> None:
        """Forget what is not written yet. Its numbers are skipped."""
        with self._appending:
            self._pending, self._pending_bytes = [], 0

    def commit(self) -> int:
        """Write and sync everything appended before the call; the last number on disk.

        On `JournalFailed`, what is above `on_disk` of that is dropped, and its numbers are skipped.
        """
        with self._committing:
            try:
                self._write_pending()
                if self._tail.to_sync:
                    self._tail.sync()
            except OSError as error:
                raise self._failed(error, self._tail.sync_failed) from error
        return self._tail.on_disk

    def write(self) -> None:
        """Hand everything appended to the system, without waiting for the disk unless a file is complete."""
        try:
            if self._lenient:
                self._write_pending()
            else:
                with self._committing:
                    self._write_pending()
        except OSError as error:
            raise self._failed(error, self._tail.sync_failed) from error

    def _write_pending(self) -> None:
        with self._tail.lock:
            with self._appending:
                pending, self._pending, self._pending_bytes = self._pending, [], 0
            entries: list[_Pending] = []
            for each in pending:
                if each.restated is None:
                    entries.append(each)
                    continue
                if entries:
                    self._write_entries(entries)
                entries = []
                self._tail.complete_file()
                self.failure = None
                self._tail.begin_file(each.sequence, each.restated)
            self._write_entries(entries)

    def _write_entries(self, entries: Sequence[_Pending]) -> None:
        """Write entries as blocks, all into one file."""
        if self.failure is not None:
            raise self.failure.again()
        if not entries:
            return
        tail = self._tail
        if not tail.is_open or (tail.files[-1].size >= self._file_bytes and not self._restates):
            tail.complete_file()
            tail.begin_file(entries[0].sequence, [])
        now, drafts = tail.now(), []
        run: list[bytes] = []
        size, first = 0, entries[0].sequence
        for sequence, _, encoded, _ in entries:
            if run and size + len(encoded) > _BLOCK_BYTES:
                drafts.append(Draft(encode_payload(run), first, sequence - first, now, tail.life))
                run, size, first = [], 0, sequence
            run.append(encoded)
            size += len(encoded)
        end = entries[-1].sequence + entries[-1].numbers
        drafts.append(Draft(encode_payload(run), first, end - first, now, tail.life))
        tail.put(drafts)

    def _failed(self, error: OSError, sync_failed: bool = False) -> JournalFailed:
        """What is told of an error; all but a disk that was full for a write are remembered."""
        full = is_full(error) and not sync_failed
        failure = JournalFailed(f"cannot keep a journal in {self.directory}", error.strerror or str(error), full=full)
        if not full:
            self.failure = failure
        return failure

    # -- end ------------------------------------------------------------------------------------------------

    def drop_before(self, sequence: int) -> None:
        """Remove the files that hold nothing but lower numbers, except the last."""
        if self.failure is not None:  # a removal that the disk does not know must not be followed by another
            raise self.failure.again()
        with self._tail.lock:
            try:
                self._tail.drop_before(sequence)
            except OSError as error:
                raise self._failed(error, sync_failed=True) from error

    def close(self) -> None:
        """Commit what is pending (a `lenient` one writes it), and let others in. A second call does nothing."""
        if self._lock < 0:
            return
        try:
            if self.failure is None:
                if self._lenient:
                    self.write()
                else:
                    self.commit()
        finally:
            with self._committing:
                self._tail.close()
            self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            self._disk.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
