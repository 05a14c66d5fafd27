"""Messages that wait because nobody knows who sends them."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.sessions.strangers import Said, Strangers


@given(
    st.integers(1, 4),
    st.lists(st.one_of(st.sampled_from([b"a", b"b", b"c"]), st.none()), max_size=40),
)
def test_all_are_heard_in_order_and_so_many_in_a_turn(at_once, events):
    """A connection says something, or, for None, a turn is over."""
    strangers = Strangers(at_once)
    waiting: deque[int] = deque()
    heard: list[int] = []
    left = at_once
    for number, connection in enumerate(events):
        if connection is not None:
            now = strangers.hears_now()
            assert now == (not waiting and left > 0)
            if now:
                heard.append(number)
                left -= 1
            else:
                strangers.put(Said(connection, None, (bytes([number]),)))
                waiting.append(number)
        else:
            strangers.begin_turn()
            left = at_once
            while (said := strangers.next()) is not None:
                (frame,) = said.frames
                heard.append(waiting.popleft())
                left -= 1
                assert frame == bytes([heard[-1]])
            assert not (waiting and left)
        strangers._check()
        assert bool(strangers) == bool(waiting)
        assert set(strangers.connections) == {events[each] for each in waiting}
    assert heard == sorted(heard)


def test_there_is_an_end_to_what_waits():
    strangers = Strangers(at_once=0)
    for _ in range(4):
        assert not strangers.overflow
        strangers.put(Said(b"a", None, (bytes(1 << 20),)))
    assert strangers.overflow
    strangers.take()
    assert not strangers.overflow
    strangers._check()
