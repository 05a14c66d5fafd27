"""The journal on real files: what is committed is read back, what is damaged is told, what fails is refused."""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import ContradaError, CorruptFile, InvalidValue, JournalFailed
from contrada.forwarding.journal.blocks import HEADER_BYTES, LONGEST, MAGIC, MARK, Block, encode_block
from contrada.forwarding.journal.disk import REAL_DISK, RealDisk
from contrada.forwarding.journal.journal import Journal
from contrada.forwarding.journal.scan import Hole, read_beginning, scan

if TYPE_CHECKING:
    from pathlib import Path


def filled(path: Path, count: int, **options: Any) -> None:
    """A journal with one commit for each entry, closed."""
    with Journal.open(path, **options) as journal:
        for number in range(count):
            journal.append(number % 7, b"entry %d" % number)
            journal.commit()


def numbers(journal: Journal, *where: int) -> list[int]:
    return [entry.sequence for entry in journal.read(*where)]


def test_what_was_committed_is_read(tmp_path: Path) -> None:
    directory = tmp_path / "some" / "where"
    with Journal.open(directory, clock=lambda: 5_000_000) as journal:
        assert (journal.first, journal.last, journal.on_disk, journal.size) == (1, 0, 0, 0)
        assert journal.append(3, b"a") == 1
        assert journal.append(4, b"b", 10) == 2
        assert (journal.last, journal.on_disk) == (11, 0)
        assert list(journal.read()) == []
        assert journal.commit() == 11
        assert journal.append(5, b"") == 12
        assert [entry.sequence for entry in journal.read()] == [1, 2]
    with Journal.open(directory) as journal:
        assert [(e.sequence, e.numbers, e.time, e.kind, e.payload) for e in journal.read()] == [
            (1, 1, 5000, 3, b"a"),
            (2, 10, 5000, 4, b"b"),
            (12, 1, 5000, 5, b""),
        ]
        assert journal.recovery.cut == journal.recovery.damaged == []
        assert journal.append(1, b"") == 13


def test_files_follow_one_another_and_are_dropped_whole(tmp_path: Path) -> None:
    filled(tmp_path, 100, file_bytes=1000)
    files = sorted(tmp_path.glob("*.rec"))
    assert len(files) > 5
    with Journal.open(tmp_path, file_bytes=1000) as journal:
        assert numbers(journal) == list(range(1, 101))
        assert numbers(journal, 17) == list(range(17, 101))
        assert numbers(journal, 17, 60) == list(range(17, 60))
        assert journal.size == sum(path.stat().st_size for path in files)
        journal.drop_before(50)
        first = journal.first
        assert 1 < first <= 50
        assert numbers(journal) == list(range(first, 101))
        journal.drop_before(1000)
        assert journal.first > 50
        assert len(sorted(tmp_path.glob("*.rec"))) == 1
    with Journal.open(tmp_path) as journal:
        assert journal.last == 100


def test_what_is_restated_comes_where_it_is_news(tmp_path: Path) -> None:
    with Journal.open(tmp_path, restates=True, file_bytes=100) as journal:
        journal.append(1, b"one")
        journal.commit()
        assert journal.full
        journal.begin_file([(9, b"of one"), (8, b"and more")])
        journal.append(2, b"two")
        journal.commit()
        assert [entry.payload for entry in journal.read()] == [b"one", b"two"]
        assert [entry.payload for entry in journal.read(2)] == [b"of one", b"and more", b"two"]
        journal.drop_before(2)
        assert [(entry.sequence, entry.numbers, entry.payload) for entry in journal.read()] == [
            (2, 0, b"of one"),
            (2, 0, b"and more"),
            (2, 1, b"two"),
        ]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with Journal.open(tmp_path), pytest.raises(ContradaError, match="another broker writes in"):
        Journal.open(tmp_path)
    Journal.open(tmp_path).close()


def test_a_torn_end_is_cut_and_written_over(tmp_path: Path) -> None:
    filled(tmp_path, 5)
    (path,) = tmp_path.glob("*.rec")
    whole = path.read_bytes()
    marks = [at for at in range(len(whole)) if whole.startswith(MARK, at)]
    for cut in range(marks[3] + 1, marks[4], 9):  # within the third entry's block: the first block is without entries
        path.write_bytes(whole[:cut])
        with Journal.open(tmp_path) as journal:
            assert numbers(journal) == [1, 2]
            assert [(each.offset, each.length) for each in journal.recovery.cut] == [(marks[3], cut - marks[3])]
            assert journal.append(1, b"again") == 3
        with Journal.open(tmp_path) as journal:
            assert [entry.payload for entry in journal.read()] == [b"entry 0", b"entry 1", b"again"]
            assert journal.recovery.cut == journal.recovery.damaged == []
        for other in set(tmp_path.glob("*.rec")) - {path}:
            other.unlink()


def test_damage_in_the_middle_is_told_and_skipped(tmp_path: Path) -> None:
    filled(tmp_path, 30, file_bytes=1000)
    path = sorted(tmp_path.glob("*.rec"))[1]
    data = bytearray(path.read_bytes())
    at = data.index(b"entry")
    lost = int(data[at : at + 8].split(b"\xc7")[0].split()[1][:2]) + 1
    data[at] ^= 1
    path.write_bytes(data)
    with Journal.open(tmp_path) as journal:
        (damage,) = journal.recovery.damaged
        assert (damage.path, damage.first, damage.last) == (path, lost, lost)
        assert f"records {lost} to {lost} are lost" in str(damage)
        assert numbers(journal) == [number for number in range(1, 31) if number != lost]
        assert journal.recovery.damaged == [damage]
        assert journal.append(1, b"goes on") == 31
        journal.commit()


def test_damage_that_comes_while_it_is_open_is_told(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        for number in range(5):
            journal.append(1, b"entry %d" % number)
            journal.commit()
        (path,) = tmp_path.glob("*.rec")
        data = path.read_bytes()
        path.write_bytes(data.replace(b"entry 2", b"entry X"))
        assert numbers(journal) == [1, 2, 4, 5]
        assert [(damage.first, damage.last) for damage in journal.recovery.damaged] == [(3, 3)]


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "00000001.rec").write_bytes(b"PAR1" * 100)
    with pytest.raises(CorruptFile, match="no magic number"):
        Journal.open(tmp_path)
    (tmp_path / "00000001.rec").write_bytes(MAGIC + b"\x09\0\0\0" + b"PAR1" * 100)
    with pytest.raises(CorruptFile, match="format 9"):
        Journal.open(tmp_path)


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalFailed, match="cannot keep a journal in"):
        Journal.open(tmp_path / "file" / "under")


def test_too_long_an_entry_is_refused(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal, pytest.raises(InvalidValue, match="a journal takes"):
        journal.append(1, bytes((LONGEST >> 1) + 1))


def test_long_entries_have_blocks_of_their_own(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        for size in (3 << 20, 10, 100_000, 5 << 20):
            journal.append(1, bytes(size))
        journal.commit()
    with Journal.open(tmp_path) as journal:
        assert [len(entry.payload) for entry in journal.read()] == [3 << 20, 10, 100_000, 5 << 20]


class Failing(RealDisk):
    """Fails on demand."""

    write_error = sync_error = 0

    def write(self, file: int, offset: int, data: bytes) -> None:
        if self.write_error:
            super().write(file, offset, data[: len(data) // 2])
            raise OSError(self.write_error, os.strerror(self.write_error))
        super().write(file, offset, data)

    def sync(self, file: int) -> None:
        if self.sync_error:
            raise OSError(self.sync_error, os.strerror(self.sync_error))
        super().sync(file)


def test_a_full_disk_refuses_and_takes_again(tmp_path: Path) -> None:
    disk = Failing()
    with Journal.open(tmp_path, disk=disk) as journal:
        journal.append(1, b"a")
        journal.commit()
        disk.write_error = errno.ENOSPC
        journal.append(1, b"refused")
        with pytest.raises(JournalFailed, match="No space") as caught:
            journal.commit()
        assert caught.value.full
        assert journal.commit() == 1
        disk.write_error = 0
        assert journal.append(1, b"c") == 3
        assert journal.commit() == 3
        assert [entry.payload for entry in journal.read()] == [b"a", b"c"]
    with Journal.open(tmp_path) as journal:
        assert [(entry.sequence, entry.payload) for entry in journal.read()] == [(1, b"a"), (3, b"c")]
        assert journal.recovery.cut == journal.recovery.damaged == []


@pytest.mark.parametrize("where", ["write_error", "sync_error"])
def test_after_a_failure_nothing_is_taken_before_it_is_opened_again(tmp_path: Path, where: str) -> None:
    disk = Failing()
    journal = Journal.open(tmp_path, disk=disk)
    journal.append(1, b"a")
    journal.commit()
    setattr(disk, where, errno.EIO)
    journal.append(1, b"refused")
    with pytest.raises(JournalFailed, match="Input/output"):
        journal.commit()
    setattr(disk, where, 0)
    journal.append(1, b"refused, too")
    with pytest.raises(JournalFailed, match="Input/output"):
        journal.commit()
    assert journal.on_disk == 1
    assert [entry.payload for entry in journal.read()] == [b"a"]
    journal.close()
    with Journal.open(tmp_path) as journal:
        journal.append(1, b"b")
        journal.commit()
        payloads = [entry.payload for entry in journal.read()]
        assert payloads in ([b"a", b"b"], [b"a", b"refused", b"b"])
        assert journal.recovery.damaged == []


def test_a_new_file_ends_a_failure(tmp_path: Path) -> None:
    disk = Failing()
    with Journal.open(tmp_path, disk=disk) as journal:
        journal.append(1, b"a")
        journal.commit()
        disk.sync_error = errno.ENOSPC
        journal.append(1, b"refused")
        with pytest.raises(JournalFailed, match="No space") as caught:
            journal.commit()
        assert not caught.value.full
        disk.sync_error = 0
        journal.append(1, b"refused, too")
        with pytest.raises(JournalFailed, match="No space"):  # or a commit would say that it is on disk
            journal.begin_file()
        journal.discard()
        journal.begin_file([(2, b"again")])
        journal.append(1, b"d")
        assert journal.commit() == 4
    with Journal.open(tmp_path) as journal:
        assert [(entry.sequence, entry.payload) for entry in journal.read()] == [(1, b"a"), (4, b"again"), (4, b"d")]
        assert journal.recovery.damaged == []


def test_commits_share_a_sync(tmp_path: Path) -> None:
    """While one sync goes on, everything that is appended waits for the next one, and for no other."""

    class Slow(RealDisk):
        syncs = 0
        going, go_on = threading.Semaphore(0), threading.Semaphore(0)

        def sync(self, file: int) -> None:
            self.syncs += 1
            self.going.release()
            assert self.go_on.acquire(timeout=30)
            super().sync(file)

    disk = Slow()
    journal = Journal.open(tmp_path, disk=disk)
    told: list[int] = []

    def publish() -> None:
        number = journal.append(1, b"x")
        assert journal.commit() >= number
        told.append(number)

    first = threading.Thread(target=publish)
    first.start()
    assert disk.going.acquire(timeout=30)
    others = [threading.Thread(target=publish) for _ in range(20)]
    for thread in others:
        thread.start()
    while journal.last < 21:
        pass  # appending waits for no sync
    assert told == []
    disk.go_on.release(2)
    for thread in (first, *others):
        thread.join(30)
    assert sorted(told) == list(range(1, 22))
    assert disk.syncs == 2
    disk.go_on.release(9)
    journal.close()


class Worn(RealDisk):
    """Cannot read some pages of a file."""

    pages: tuple[int, ...] = ()

    def read(self, file: int, offset: int, length: int) -> bytes:
        if any(offset < 4096 * (page + 1) and 4096 * page < offset + length for page in self.pages):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(file, offset, length)


@pytest.mark.parametrize("page", [0, 3, 4])
def test_what_the_disk_cannot_read_is_damage_and_is_left_alone(tmp_path: Path, page: int) -> None:
    with Journal.open(tmp_path) as journal:
        for _ in range(150):
            journal.append(1, bytes(70))
            journal.commit()
    (path,) = tmp_path.glob("*.rec")
    whole = path.read_bytes()
    assert 4 * 4096 < len(whole) < 5 * 4096
    disk = Worn()
    disk.pages = (page,)
    if page == 3:
        with Journal.open(tmp_path, disk=disk) as journal:
            assert "the disk cannot read it" in {damage.reason for damage in journal.recovery.damaged}
            lost = {number for each in journal.recovery.damaged for number in range(each.first, each.last + 1)}
            assert 0 < len(lost) < 50
            assert numbers(journal) == sorted(set(range(1, 151)) - lost)
    else:  # where it begins or ends cannot be known: going on might void it
        with pytest.raises(JournalFailed, match="does not give the end"):
            Journal.open(tmp_path, disk=disk)
    assert path.read_bytes() == whole
    with Journal.open(tmp_path) as journal:  # it may have been the cable
        assert numbers(journal) == list(range(1, 151))
        assert journal.recovery.damaged == []


def test_a_block_that_another_replaced_is_damage_when_the_journal_is_opened(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as made:
        for number in range(9):
            made.append(1, b"entry %d" % number)
            made.commit()
    (path,) = tmp_path.glob("*.rec")
    file = REAL_DISK.open(path)
    block = [each for each in scan(REAL_DISK, file, salt=None) if isinstance(each, Block) and each.numbers][4]
    REAL_DISK.close(file)
    payload = block.payload.replace(b"entry", b"other")
    facts = (block.before, block.salt, block.life, block.numbers, block.first, block.synced, block.time)
    content = bytearray(path.read_bytes())
    content[block.offset : block.end_offset], _ = encode_block(payload, *facts)
    path.write_bytes(content)
    with Journal.open(tmp_path) as opened:
        (damage,) = opened.recovery.damaged
        assert (damage.first, damage.last) == (5, 5)
        assert [entry.payload for entry in opened.read()] == [b"entry %d" % n for n in range(9) if n != 4]


@given(st.lists(st.integers(0, 90), min_size=1, max_size=60), st.integers(0, 700), st.data())
def test_some_blocks_told_are_those_of_all(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], every: int, data: Any
) -> None:
    directory = tmp_path_factory.mktemp("some")
    with Journal.open(directory) as made:
        for size in sizes:
            made.append(1, bytes(size))
            made.commit()
    (path,) = directory.glob("*.rec")
    content = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(HEADER_BYTES, len(content) - 1), max_size=2)):
        content[at] ^= 1
    path.write_bytes(content)
    file = REAL_DISK.open(path)
    salt = read_beginning(REAL_DISK, file).salt
    all_of_them = list(scan(REAL_DISK, file, salt=salt))
    some = list(scan(REAL_DISK, file, salt=salt, every=every))
    REAL_DISK.close(file)
    assert [h for h in some if isinstance(h, Hole)] == [h for h in all_of_them if isinstance(h, Hole)]
    assert {*some} <= {*all_of_them}
    assert some[-1:] == all_of_them[-1:]
    for at, each in enumerate(all_of_them):  # before and behind a hole, everything is told that counts
        if isinstance(each, Hole) and at:
            assert all_of_them[at - 1] in some
