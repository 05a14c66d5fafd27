"""The memory of notification ids, against a plain set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.routing.seen import SeenIds

runs = st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(1, 60), min_size=1, max_size=12)), max_size=40)


@given(runs)
def test_nothing_is_handled_twice_while_it_is_remembered(runs):
    memory = SeenIds(per_origin=1000)
    seen: set[tuple[str, int]] = set()
    for origin, sequences in runs:
        fresh = memory.unseen(origin, sequences)
        expected = []
        for at, sequence in enumerate(sequences):
            if (origin, sequence) not in seen:
                expected.append(at)
                seen.add((origin, sequence))
        assert (list(range(len(sequences))) if fresh is None else fresh) == expected
        memory._check()


@given(runs, st.integers(1, 8), st.integers(1, 40))
def test_memory_is_bounded_and_keeps_the_newest(runs, per_origin, total):
    memory = SeenIds(per_origin, total)
    for origin, sequences in runs:
        fresh = memory.unseen(origin, sequences)
        memory._check()
        if fresh is None or len(sequences) - 1 in fresh:
            assert memory.unseen(origin, sequences[-1:]) == [], "it was just here"
        assert memory._count <= max(total, 2 * per_origin + 12)


def test_the_last_of_an_origin_are_known_however_many_came():
    memory = SeenIds(per_origin=100)
    for start in range(0, 10_000, 10):
        assert memory.unseen("a", range(start, start + 10)) is None
    assert memory.unseen("a", range(9_900, 10_000)) == []
    assert memory.unseen("a", range(100)) is None, "long forgotten"
