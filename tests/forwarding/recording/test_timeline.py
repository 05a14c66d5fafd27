"""A recording by time gives what reading all of it and looking at the times gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import CorruptFile
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.recording import records as rec
from contrada.forwarding.recording import timeline as module
from contrada.forwarding.recording.reader import Recording
from contrada.forwarding.recording.timeline import Timeline
from contrada.forwarding.recording.writer import RecordingWriter

if TYPE_CHECKING:
    from pathlib import Path

START = 1_700_000_000_000_000  # µs


def write(path: Path, turns: list[tuple[int, int]], **options: int) -> None:
    """Turns of a broker: how long after the one before, in µs, and how many notifications."""
    now = START
    with RecordingWriter(path, "b-1", clock=lambda: now * 1000, **options) as recorder:
        number = 1
        for pause, count in turns:
            now += pause
            recorder.accepted(
                "b-1", number, "p", [encode_notification({"n": number + i}) for i in range(count)], [set()] * count
            )
            recorder.commit()
            number += count


def naive(path: Path, start: int, end: int) -> list[rec.Accepted]:
    return [each for each in Recording(path) if isinstance(each, rec.Accepted) and start <= each.time < end]


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5)), max_size=30),
    st.integers(-5, 900),
    st.integers(0, 900),
    st.booleans(),
)
def test_between_is_what_reading_everything_gives(tmp_path_factory, turns, start, length, small):
    path = tmp_path_factory.mktemp("recording")
    write(path, turns, **({"file_bytes": 300} if small else {}))
    before = module._EVERY
    try:
        module._EVERY = 200 if small else before
        timeline = Timeline(path)
    finally:
        module._EVERY = before
    start += START
    assert list(timeline.between(start, start + length)) == naive(path, start, start + length)
    assert list(timeline.between(0, 2**62)) == naive(path, 0, 2**62)


def test_a_recording_that_goes_on_is_read_on_and_a_torn_end_waits(tmp_path):
    write(tmp_path, [(1, 2), (1, 2)])
    timeline = Timeline(tmp_path)
    assert len(list(timeline.between(0, 2**62))) == 4
    write(tmp_path, [(1000, 3)])
    timeline.refresh()
    assert len(list(timeline.between(0, 2**62))) == 7
    assert timeline.first < timeline.last
    last = max(tmp_path.iterdir())
    last.write_bytes(last.read_bytes()[:-3])
    assert len(list(Timeline(tmp_path).between(0, 2**62))) == 7  # only the end of the broker's life is torn
    with pytest.raises(CorruptFile):
        Timeline(tmp_path / "nothing")
