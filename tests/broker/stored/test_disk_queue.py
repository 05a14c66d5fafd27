"""The queue of a durable subscription against its slow twin."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.stored import disk_queue
from contrada.broker.stored.disk_queue import DiskQueue
from tests.naive.disk_queue import NaiveQueue

positions = st.integers(0, 60)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 9), st.integers(0, 2)),
        st.tuples(st.just("extend"), st.lists(st.integers(1, 4), min_size=1, max_size=9), st.integers(0, 2)),
        st.tuples(st.just("acknowledge"), positions, positions),
        st.tuples(st.just("take"), st.integers(0, 5)),
        st.tuples(st.just("rewind")),
    ),
    max_size=60,
)


@given(actions)
def test_it_is_what_its_twin_is(steps):
    queue, twin = DiskQueue(), NaiveQueue()
    last = time = 0
    for name, *arguments in steps:
        if name == "append":
            last, time = last + arguments[0], time + arguments[2]
            queue.append(last, arguments[1], time)
            twin.append(last, arguments[1], time)
        elif name == "extend":
            gaps, time = arguments[0], time + arguments[1]
            found = [last + sum(gaps[: place + 1]) for place in range(len(gaps))]
            queue.extend(array("Q", found), array("I", gaps), time)
            for position, size in zip(found, gaps, strict=True):
                twin.append(position, size, time)
            last = found[-1]
        elif name == "acknowledge":
            assert queue.acknowledge(*arguments) == twin.acknowledge(*arguments)
        elif name == "take":
            upcoming = queue.upcoming(arguments[0])
            assert upcoming == twin.upcoming(arguments[0])
            if upcoming:
                queue.sent(upcoming[-1])
                twin.sent(upcoming[-1])
        else:
            queue.rewind()
            twin.rewind()
        queue._check()
        assert len(queue) == len(twin.waiting)
        assert queue.bytes == sum(size for _, size, _ in twin.waiting)
        assert [each for each, _ in queue.oldest()] == [position for position, _, _ in twin.waiting]
        assert queue.first == (twin.waiting[0][0] if twin.waiting else None)
        assert queue.older_than(time) == twin.older_than(time)
    restored = DiskQueue()
    for packed in queue.snapshot(3):
        restored.restore(*packed)
    assert list(restored.oldest()) == list(queue.oldest())
    assert restored.bytes == queue.bytes


def test_what_is_acknowledged_is_cut_off(monkeypatch):
    monkeypatch.setattr(disk_queue, "_COMPACT", 4)
    queue = DiskQueue()
    for position in range(1, 101):
        queue.append(position, 1, 0)
    queue.sent(50)
    queue.acknowledge(1, 60)
    queue._check()
    assert len(queue._positions) == 40
    assert queue.upcoming(2) == [61, 62]


def test_a_million_that_wait_take_sixteen_megabytes():
    queue = DiskQueue()
    for position in range(1, 1_000_001):
        queue.append(position, 100, 0)
    arrays = (queue._positions, queue._sizes, queue._times)
    assert sum(each.itemsize * len(each) for each in arrays) == 16_000_000
    assert queue.acknowledge(0, 500_000) == 500_000
    assert len(queue) == 500_000
