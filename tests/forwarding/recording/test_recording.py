"""The recording's format: what was written is read back, a torn tail is told, damage is never taken for records."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import ContradaError, CorruptFile, JournalFailed
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification, encode_filter, encode_notification
from contrada.forwarding.journal.blocks import HEADER_BYTES, encode_header
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.recording import records as rec
from contrada.forwarding.recording.reader import Fault, Recording, recording_files
from contrada.forwarding.recording.writer import RecordingWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Good = tuple[bytes, list[Any]]

FILTER = encode_filter(parse('città = "Siena" or wind > 3'))
BODY = encode_notification({"città": "Siena", "wind": 4})


class Clock:
    """Time that moves when told: nanoseconds."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000_000

    def __call__(self) -> int:
        return self.now


def writer(path: Path, **options: Any) -> RecordingWriter:
    return RecordingWriter(path, "b-1", clock=Clock(), **options)


def few(recorder: RecordingWriter) -> None:
    """A little of everything, in two blocks."""
    recorder.subscribed(1, "añna", 7, 0, (FILTER,))
    recorder.accepted("b-1", 100, "ĉu", (BODY, b"\x80"), [{1}, set()])
    recorder.commit()
    recorder.dropped(1, "drop-oldest", [("b-1", 100)])
    recorder.unsubscribed(1)
    recorder.commit()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    with writer(tmp_path) as recorder:
        few(recorder)
    recording = Recording(tmp_path)
    time = 1_700_000_000_000_000
    one = (1 << 32) + 1
    assert list(recording) == [
        rec.Started(1, time, "b-1"),
        rec.Subscribed(2, time, one, "añna", 7, 0, (FILTER,), False),
        rec.Accepted(3, time, "b-1", 100, "ĉu", BODY, (one,)),
        rec.Accepted(4, time, "b-1", 101, "ĉu", b"\x80", ()),
        rec.Dropped(5, time, one, "drop-oldest", (("b-1", 100),)),
        rec.Unsubscribed(6, time, one),
        rec.Stopped(7, time),
    ]
    assert recording.problems == []
    assert recording.end() == 8
    accepted = [record for record in recording if isinstance(record, rec.Accepted)]
    assert accepted[0].id == "b-1:100"
    assert decode_filter(FILTER).matches(decode_notification(accepted[0].body))


def test_a_restart_goes_on_in_a_new_file(tmp_path: Path) -> None:
    with writer(tmp_path) as recorder:
        recorder.subscribed(1, "a", 1, 0, (FILTER,))
    before = recording_files(tmp_path)[0].read_bytes()
    with writer(tmp_path) as recorder:
        recorder.subscribed(1, "b", 1, 0, (FILTER,))
    assert recording_files(tmp_path)[0].read_bytes() == before
    records = list(Recording(tmp_path))
    assert [record.sequence for record in records] == list(range(1, 7))
    interfaces = [record.interface for record in records if isinstance(record, rec.Subscribed)]
    assert len(set(interfaces)) == 2  # the same number in two lives is two interfaces
    assert [type(record) for record in records] == [rec.Started, rec.Subscribed, rec.Stopped] * 2


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with writer(tmp_path), pytest.raises(ContradaError, match="another broker writes in"):
        writer(tmp_path)
    writer(tmp_path).close()


def test_no_directory_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ContradaError, match="cannot record in"):
        writer(tmp_path / "file" / "under")


def test_files_roll_by_size_and_each_stands_alone(tmp_path: Path) -> None:
    with writer(tmp_path, file_bytes=1500) as recorder:
        recorder.indexed("/índice", "1/2", "abc", 2, 3)
        recorder.standing(90, "porto")
        recorder.subscribed(1, "a", 1, 0, (FILTER,))
        recorder.subscribed(2, "b", 2, 0, (FILTER,))
        for number in range(100):
            recorder.accepted("b-1", number, "p", (BODY,), [{1, 2} if number < 50 else {1}])
            recorder.commit()
            if number == 49:
                recorder.unsubscribed(2)
    files = recording_files(tmp_path)
    assert len(files) > 3
    whole = list(Recording(tmp_path))
    assert [record.sequence for record in whole] == list(range(1, 108))
    assert not any(getattr(record, "restated", False) for record in whole)
    parts: list[Any] = []
    for path in files:
        alone = Recording(path)
        live = set()
        for record in alone:
            if isinstance(record, rec.Subscribed):
                live.add(record.interface)
            elif isinstance(record, rec.Unsubscribed):
                live.discard(record.interface)
            elif isinstance(record, rec.Accepted):
                assert set(record.interfaces) == live
            if not getattr(record, "restated", False):
                parts.append(record)
        assert alone.problems == []
        if path != files[0]:
            kinds = [type(record) for record in alone if getattr(record, "restated", False)]
            assert kinds[:2] == [rec.Indexed, rec.Standing]
    assert parts == whole


def test_files_roll_by_age_and_the_oldest_go(tmp_path: Path) -> None:
    clock = Clock()
    with RecordingWriter(tmp_path, "b", clock=clock, file_seconds=60, total_bytes=2000) as recorder:
        for number in range(200):
            recorder.accepted("b", number, "p", (BODY,), [set()])
            recorder.commit()
            clock.now += 10 * 10**9
    files = recording_files(tmp_path)
    assert files[0].name != "00000001.rec"
    assert sum(path.stat().st_size for path in files[:-1]) <= 2000
    recording = Recording(tmp_path)
    numbers = [record.number for record in recording if isinstance(record, rec.Accepted)]
    assert numbers == list(range(numbers[0], 200))
    assert recording.problems == []


actions = st.lists(
    st.one_of(
        st.tuples(st.just("subscribed"), st.integers(1, 5), st.text(max_size=8), st.lists(st.binary(max_size=9))),
        st.tuples(st.just("unsubscribed"), st.integers(1, 5)),
        st.tuples(st.just("accepted"), st.lists(st.tuples(st.binary(max_size=40), st.sets(st.integers(1, 5))))),
        st.tuples(st.just("dropped"), st.integers(1, 5), st.lists(st.tuples(st.text(max_size=3), st.integers(0)))),
        st.sampled_from([("commit",), ("restart",)]),
    ),
    max_size=30,
)


@given(actions, st.integers(1, 400))
def test_any_life_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[Any, ...]], file_bytes: int
) -> None:
    directory = tmp_path_factory.mktemp("life")
    time = Clock().now // 1000
    life, live, expected = 1, set[int](), list[Any]([rec.Started(1, time, "b-1")])
    recorder = writer(directory, file_bytes=file_bytes)
    for name, *args in actions:
        at, base = len(expected) + 1, life << 32
        if name == "subscribed":
            number, client, filters = args
            live.add(number)
            recorder.subscribed(number, client, 1, 2, filters)
            expected.append(rec.Subscribed(at, time, base + number, client, 1, 2, tuple(filters), False))
        elif name == "unsubscribed" and args[0] in live:
            live.remove(args[0])
            recorder.unsubscribed(args[0])
            expected.append(rec.Unsubscribed(at, time, base + args[0]))
        elif name == "accepted":
            recorder.accepted("b", 9, "p", [body for body, _ in args[0]], [matched for _, matched in args[0]])
            for n, (body, matched) in enumerate(args[0]):
                expected.append(
                    rec.Accepted(at + n, time, "b", 9 + n, "p", body, tuple(base + each for each in matched))
                )
        elif name == "dropped":
            lost = [(broker, number % 2**63) for broker, number in args[1]]
            recorder.dropped(args[0], "ended", lost)
            expected.append(rec.Dropped(at, time, base + args[0], "ended", tuple(lost)))
        elif name == "commit":
            recorder.commit()
        elif name == "restart":
            recorder.close()
            expected.append(rec.Stopped(at, time))
            life = len(recording_files(directory)) + 1
            live.clear()
            recorder = writer(directory, file_bytes=file_bytes)
            expected.append(rec.Started(at + 1, time, "b-1"))
    recorder.close()
    expected.append(rec.Stopped(len(expected) + 1, time))
    recording = Recording(directory)
    assert list(recording) == expected
    assert recording.problems == []
    assert recording.end() == len(expected) + 1


def test_an_index_replaces_the_one_before(tmp_path: Path) -> None:
    with writer(tmp_path) as recorder:
        recorder.indexed("one", "", "1", 1, 1)
        recorder.standing(5, "porto")
        recorder.attached(6, "añna", 3, 4, "porto")
        recorder.added("old", "porto", FILTER)
        recorder.indexed("two", "", "2", 1, 1)
        recorder.added("s1", "città", FILTER)
        recorder.removed("s2")
        recorder.commit()
        recorder.reopen()
        recorder.unsubscribed(6)
        recorder.commit()
        recorder.reopen()
    records = list(Recording(tmp_path))
    kinds = [
        rec.Started,
        rec.Indexed,
        rec.Standing,
        rec.Attached,
        rec.Added,
        rec.Indexed,
        rec.Added,
        rec.Removed,
        rec.Unsubscribed,
        rec.Stopped,
    ]
    assert [type(record) for record in records] == kinds
    restated = [record for record in Recording(recording_files(tmp_path)[1]) if getattr(record, "restated", False)]
    assert [record._replace(restated=False, sequence=0) for record in restated] == [
        records[at]._replace(sequence=0) for at in (5, 6, 7, 2, 3)
    ]
    last = [type(record) for record in Recording(recording_files(tmp_path)[2])]
    assert last == [rec.Indexed, rec.Added, rec.Removed, rec.Standing, rec.Stopped]


# -- what can go wrong ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Good:
    """A small file, and what it holds."""
    path = tmp_path_factory.mktemp("good")
    with writer(path) as recorder:
        few(recorder)
    return recording_files(path)[0].read_bytes(), list(Recording(path))


def test_truncation_at_every_byte(tmp_path: Path, good: Good) -> None:
    data, records = good
    path = tmp_path / "00000001.rec"
    longest = 0
    for length in range(len(data)):
        path.write_bytes(data[:length])
        recording = Recording(tmp_path)
        found = list(recording)
        assert found == records[: len(found)]
        assert len(found) >= longest
        longest = len(found)
        faults = [problem.fault for problem in recording.problems]
        assert faults in ([Fault.TORN], [Fault.OPEN])
        if faults == [Fault.OPEN]:  # the cut fell between two blocks, and is told nevertheless
            path.write_bytes(data[: length + 1])
            again = Recording(tmp_path)
            assert list(again) == found
            assert "not a whole block" in str(again.problems[0])
        # A broker that starts after such a death goes on behind the last whole record.
        assert recording.end() == len(found) + 1
    assert longest == len(records) - 1


@given(st.data())
def test_bit_flips(good: Good, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content, records = good
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    flipped = bytearray(content)
    flipped[bit // 8] ^= 1 << bit % 8
    path = tmp_path_factory.getbasetemp() / f"{os.getpid()}.rec"
    path.write_bytes(flipped)
    recording = Recording(path)
    try:
        found = list(recording)
    except CorruptFile:
        pass  # damage that is told
    else:
        assert recording.problems
        assert found == records[: len(found)]
    if bit // 8 >= HEADER_BYTES:
        lenient = Recording(path, strict=False)
        kept = [record for record in lenient if not isinstance(record, rec.Gap)]
        assert all(record in records for record in kept)
        assert lenient.problems


@given(st.binary(max_size=200))
def test_noise_behind_the_header(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / f"{os.getpid()}-noise.rec"
    path.write_bytes(encode_header(1) + noise)
    recording = Recording(path)
    assert list(recording) == []
    assert [problem.fault for problem in recording.problems] == [Fault.TORN]


def test_a_life_cut_between_two_blocks_is_told(tmp_path: Path, good: Good) -> None:
    data, _ = good
    path = tmp_path / "00000001.rec"
    path.write_bytes(data[: data.rindex(b"\xc7BLK")])  # without the block of `Stopped`
    cut = Recording(tmp_path)
    assert not any(isinstance(record, rec.Stopped) for record in cut)
    (problem,) = cut.problems
    assert (problem.fault, problem.path, problem.offset) == (Fault.OPEN, path, path.stat().st_size)
    assert "still open or cut" in str(problem)
    with writer(tmp_path):  # a second life: now nobody writes the first on
        running = Recording(tmp_path)
        list(running)
        assert [problem.fault for problem in running.problems] == [Fault.CUT, Fault.OPEN]
    ended = Recording(tmp_path)
    list(ended)
    assert [(problem.fault, problem.path) for problem in ended.problems] == [(Fault.CUT, path)]
    alone = Recording(path)  # of one file nobody can tell whether its life went on in the next
    list(alone)
    assert alone.problems == []


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "00000001.rec")
    with pytest.raises(CorruptFile, match="where a file was expected"):
        list(Recording(tmp_path))
    with pytest.raises(CorruptFile, match="where a file was expected"):
        writer(tmp_path)


def test_damage_in_the_middle_is_told_or_skipped(tmp_path: Path, good: Good) -> None:
    data, records = good
    path = tmp_path / "00000001.rec"
    at = data.index(FILTER)
    path.write_bytes(data[:at] + b"?" + data[at + 1 :])
    with pytest.raises(CorruptFile, match="damaged at byte"):
        list(Recording(tmp_path))
    recording = Recording(tmp_path, strict=False)
    found = list(recording)
    assert [record for record in found if not isinstance(record, rec.Gap)] == [records[0], *records[4:]]
    (gap,) = (record for record in found if isinstance(record, rec.Gap))
    assert (gap.missing, gap.reset) == (3, False)
    assert [problem.fault for problem in recording.problems] == [Fault.DAMAGED, Fault.GAP]


def test_a_missing_file_is_a_gap_that_the_next_file_mends(tmp_path: Path) -> None:
    with writer(tmp_path, file_bytes=300) as recorder:
        recorder.subscribed(1, "a", 1, 0, (FILTER,))
        for number in range(20):
            recorder.accepted("b-1", number, "p", (BODY,), [{1}])
            recorder.commit()
    recording_files(tmp_path)[1].unlink()
    recording = Recording(tmp_path)
    records = list(recording)
    at = next(n for n, record in enumerate(records) if isinstance(record, rec.Gap))
    assert records[at].reset
    assert isinstance(records[at + 1], rec.Subscribed)
    assert records[at + 1].restated
    assert [problem.fault for problem in recording.problems] == [Fault.GAP]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PAR1 and so on, and on", "no magic number"),
        (b"contrada-rec" + bytes([9, *[0] * 11]), "format 9"),
        (b"contrada-rec" + bytes([1, *[0] * 11]), "format 1, this version reads 2"),
        (b"conTrada", "no magic number"),
    ],
)
def test_foreign_files(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "00000001.rec").write_bytes(content)
    with pytest.raises(CorruptFile, match=words):
        list(Recording(tmp_path))
    with pytest.raises(CorruptFile, match=words):  # nor does a broker write beside it
        writer(tmp_path)


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="no recording"):
        Recording(tmp_path)
    with pytest.raises(CorruptFile, match="not a recording's directory"):
        Recording(tmp_path / "nowhere")


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written is a gap; the file ends whole, and the next restates."""
    real = os.pwrite
    with writer(tmp_path) as recorder:
        recorder.subscribed(1, "a", 1, 0, (FILTER,))
        recorder.commit()

        def full(file: int, data: memoryview, offset: int) -> int:
            if len(data) > 10:
                return real(file, data[:10], offset)
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "pwrite", full)
        recorder.accepted("b-1", 1, "p", (BODY,), [{1}])
        with pytest.raises(JournalFailed, match="No space"):
            recorder.commit()
        assert recorder.failed
        recorder.unsubscribed(1)
        recorder.subscribed(2, "b", 1, 1, (FILTER,))
        recorder.commit()
        with pytest.raises(JournalFailed, match="No space"):
            recorder.reopen()
        monkeypatch.setattr(os, "pwrite", real)
        recorder.reopen()
        recorder.accepted("b-1", 2, "p", (BODY,), [{2}])
    recording = Recording(tmp_path)
    records = list(recording)
    assert [type(record) for record in records] == [
        rec.Started,
        rec.Subscribed,
        rec.Gap,
        rec.Subscribed,
        rec.Accepted,
        rec.Stopped,
    ]
    assert records[2].missing == 3
    assert [problem.fault for problem in recording.problems][-1] is Fault.GAP
